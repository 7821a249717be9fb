package host

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// OfProcess returns the host whose program a process runs; nil if the program is no known host.
func OfProcess(p *ancestry.Process) *Host {
	names := programNames(p)
	for _, name := range hosts {
		h := &Host{Name: name, description: formOf(name)}
		for _, found := range names {
			if found == name || slices.Contains(h.description.ProgramNames, found) {
				return h
			}
		}
	}
	return nil
}

// OfEnvironment returns the host whose marker variable is in an environment, which the host sets for its
// agent's commands; nil if there is none.
func OfEnvironment(environ []string) *Host {
	for _, name := range hosts {
		h := &Host{Name: name, description: formOf(name)}
		for _, entry := range environ {
			variable, value, _ := strings.Cut(entry, "=")
			if value != "" && slices.Contains(h.description.AgentEnvVariables, variable) {
				return h
			}
		}
	}
	return nil
}

// maxArgsSearchedForScript is how many arguments of an interpreter are examined for its script.
const maxArgsSearchedForScript = 16

// programNames returns the possible program names of a process: the process name, the names of its executable
// and of argument 0 and, for an interpreter, those of the arguments that can be its script, and of the script's
// npm package. Each is returned with and without its extension.
func programNames(p *ancestry.Process) (out []string) {
	add := func(file string) {
		if file == "" {
			return
		}
		base := strings.ToLower(path.Base(filepath.ToSlash(file)))
		out = append(out, base, strings.TrimSuffix(base, path.Ext(base)))
	}
	add(p.Name)
	add(p.Exe)
	for i, arg := range p.Args {
		if i == 0 {
			add(arg)
			continue
		}
		if i > maxArgsSearchedForScript || strings.HasPrefix(arg, "-") || !IsInterpreter(p) {
			continue
		}
		add(arg)
		// …/node_modules/@SCOPE/PACKAGE/…
		_, inside, found := strings.Cut(filepath.ToSlash(arg), "node_modules/")
		if !found {
			continue
		}
		parts := strings.SplitN(inside, "/", 3)
		if strings.HasPrefix(parts[0], "@") && len(parts) > 1 {
			parts = parts[1:]
		}
		add(parts[0])
	}
	return out
}

// IsInterpreter reports whether a process is a script interpreter; some agent hosts run in one.
func IsInterpreter(p *ancestry.Process) bool {
	return slices.ContainsFunc([]string{p.Exe, p.Name}, func(file string) bool {
		return command.IsCodeInterpreter(strings.ToLower(path.Base(filepath.ToSlash(file))))
	})
}

// HostProcess is a host's process; unknown fields are zero.
type HostProcess struct {
	Args            []string // arguments after the program, or after the script of an interpreter
	IsStdioTerminal bool     // standard input and output are a terminal
	Version         string   // version of the host's npm package; "" if unknown
}

// jqValue returns a process as the jq programs receive it.
func (r *HostProcess) jqValue() any {
	if r == nil {
		return nil
	}
	args := []any{}
	for _, arg := range r.Args {
		args = append(args, arg)
	}
	return map[string]any{"args": args, "terminal": r.IsStdioTerminal, "version": r.Version}
}

// FindHostProcess returns the index of the host's nearest process among all, the arguments after its program
// or script, and the file from which the host's package can be found. The index is -1 if no process is
// the host's.
func (h *Host) FindHostProcess(all []ancestry.Process) (processIndex int, args []string, programOrScriptPath string) {
	for i := range all {
		p := &all[i]
		if of := OfProcess(p); of == nil || of.Name != h.Name {
			continue
		}
		if len(p.Args) == 0 {
			return i, nil, p.Exe
		}
		if !IsInterpreter(p) {
			return i, p.Args[1:], p.Exe
		}
		for n := 1; n < len(p.Args); n++ {
			if !strings.HasPrefix(p.Args[n], "-") {
				return i, p.Args[n+1:], p.Args[n]
			}
		}
		return i, nil, "" // an option specifies the program
	}
	return -1, nil, ""
}

// NPMPackage returns the npm package from which shield determines the version of the host's
// program; "" if there is none.
func (h *Host) NPMPackage() string { return h.description.Ask.NPMPackageName }

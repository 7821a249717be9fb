package host

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/ancestry"
)

// OfProcess returns the host whose program a process runs, nil if it runs none.
func OfProcess(p *ancestry.Process) *Host {
	names := programNames(p)
	for _, name := range hosts {
		h := &Host{Name: name, form: formOf(name)}
		for _, found := range names {
			if found == name || slices.Contains(h.form.Programs, found) {
				return h
			}
		}
	}
	return nil
}

// Marked returns the host that set a variable of an environment for the commands of its
// agent, nil if none did.
func Marked(environ []string) *Host {
	for _, name := range hosts {
		h := &Host{Name: name, form: formOf(name)}
		for _, entry := range environ {
			variable, value, _ := strings.Cut(entry, "=")
			if value != "" && slices.Contains(h.form.Marks, variable) {
				return h
			}
		}
	}
	return nil
}

// maxScript is how many arguments of an interpreter can be its script.
const maxScript = 16

// programNames returns the names by which a process's program is known: its own, that of
// its file, and, where an interpreter runs it, that of the script and of its package.
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
		if i > maxScript || strings.HasPrefix(arg, "-") || !Interprets(p) {
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

// interpreters run programs that are scripts, agent hosts among them.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "perl", "ruby", "php", "tclsh", "wish", "expect", "lua", "guile", "java"}

// Interprets reports whether a process is an interpreter.
func Interprets(p *ancestry.Process) bool {
	for _, file := range []string{p.Exe, p.Name} {
		name := strings.TrimRight(strings.ToLower(path.Base(filepath.ToSlash(file))), "0123456789.")
		if slices.Contains(interpreters, name) {
			return true
		}
	}
	return false
}

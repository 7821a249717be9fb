package command

import (
	"path"
	"slices"
	"strings"
)

// A GitCommandLine is the parsed arguments of git.
type GitCommandLine struct {
	Folder              string   // folder in -C, as written; "" for the working folder
	HasRepositoryOption bool     // an option such as --git-dir names another repository
	Subcommand          string   // the subcommand; "" if there is none
	Args                []string // arguments after the subcommand
}

// ParseGit parses the arguments of git.
func ParseGit(args []string) (l GitCommandLine) {
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch name {
		case "-C":
			if i++; i < len(args) && path.IsAbs(args[i]) {
				l.Folder = args[i]
			} else if i < len(args) {
				l.Folder = path.Join(l.Folder, args[i])
			}
			continue
		case "--git-dir", "--work-tree":
			l.HasRepositoryOption = true
		case "-c", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--list-cmds", "--shallow-file":
		default:
			if strings.HasPrefix(name, "-") {
				continue
			}
			l.Subcommand, l.Args = args[i], args[i+1:]
			return l
		}
		if !joined {
			i++
		}
	}
	return l
}

// Operands returns the arguments of the subcommand that are not options.
func (l GitCommandLine) Operands() []string {
	return slices.DeleteFunc(slices.Clone(l.Args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
}

// Pushes reports whether git sends commits of a repository, and the remote or URL in its arguments; "" if they
// name none.
func (l GitCommandLine) Pushes() (to string, ok bool) {
	var words []string
	level := findEntry(lookupProgram("git").subcommands, l.Subcommand)
	if level == nil {
		return "", false
	}
	for i := 0; i < len(l.Args); i++ {
		name, value, joined := strings.Cut(l.Args[i], "=")
		option := findEntry(level.options, name)
		switch valued := option != nil && len(option.valueRoles) > 0 && !option.hasOptionalAttachedValue; {
		case valued && !joined && i+1 < len(l.Args):
			i++
			value = l.Args[i]
		case !valued && !strings.HasPrefix(name, "-"):
			words = append(words, l.Args[i])
		}
		if name == "--repo" {
			to = value
		}
	}
	switch l.Subcommand {
	case "push", "send-pack", "http-push":
	case "lfs", "subrepo", "subtree":
		if len(words) == 0 || words[0] != "push" {
			return "", false
		}
		if words = words[1:]; l.Subcommand == "subrepo" { // the operand is a folder whose settings name the remote
			words = nil
		}
	default:
		return "", false
	}
	if len(words) > 0 {
		to = words[0]
	}
	return to, true
}

// HasOption reports whether the subcommand has one of the given options. A short option, one of
// letters, can be alone or in a bundle such as -am, where the text after m is the value of -m. A
// long option is one of names.
func (l GitCommandLine) HasOption(letters string, names ...string) bool {
	return slices.ContainsFunc(l.Args, func(arg string) bool {
		if name, _, _ := strings.Cut(arg, "="); slices.Contains(names, name) {
			return true
		}
		bundle, _, _ := strings.Cut(arg, "m")
		return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(bundle, letters)
	})
}

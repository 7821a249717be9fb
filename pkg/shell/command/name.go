package command

import (
	"strings"
	"sync"
)

// IsSystemProgramFolder reports whether a folder holds programs installed by the system or its package manager. In other
// folders, a name does not tell which program it is.
func IsSystemProgramFolder(dir string) bool {
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin",
		"/opt/homebrew/bin", "/opt/homebrew/sbin", "/opt/local/bin", "/snap/bin", "/usr/games", "/usr/libexec", "/usr/lib/git-core",
		"/usr/local/go/bin", "/run/current-system/sw/bin", "/Library/Developer/CommandLineTools/usr/bin":
		return true
	}
	return false
}

// projectEnvironmentFolders are the last elements of folders that hold a project's own copies of known programs.
var projectEnvironmentFolders = [...]string{
	"node_modules/.bin", "venv/bin", ".venv/bin", "env/bin", "vendor/bin", "venv/Scripts", ".venv/Scripts",
}

// maxProgramNameBytes is the maximum length of a program's name, in bytes.
const maxProgramNameBytes = 255

// splitProgramPath splits the path of a program into its folder and its name.
func splitProgramPath(path string) (dir, name string) {
	name = path
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		dir, name = path[:i], path[i+1:]
		if i == 0 {
			dir = "/"
		}
	}
	if len(name) > 4 && strings.EqualFold(name[len(name)-4:], ".exe") {
		name = name[:len(name)-4]
	}
	return dir, name
}

// lookupProgram returns the syntax of a program: by its exact name, in lower case (file systems may ignore case), without
// a version (python3.12, clang-18), or as a member of a family listed by a prefix (git-credential-*).
func lookupProgram(name string) *syntax {
	if name == "" || len(name) > maxProgramNameBytes {
		return nil
	}
	if g := findEntry(programs[:], name); g != nil {
		return g
	}
	if low := strings.ToLower(name); low != name {
		name = low
		if g := findEntry(programs[:], name); g != nil {
			return g
		}
	}
	if short := strings.TrimRight(name, "0123456789."); short != name && short != "" {
		if g := findEntry(programs[:], strings.TrimSuffix(short, "-")); g != nil {
			return g
		}
	}
	return findLongestPrefix(programsListedByNamePrefix(), name, len("x-"))
}

// programsListedByNamePrefix are the programs that are listed by the prefix of their names.
var programsListedByNamePrefix = sync.OnceValue(func() []program {
	var list []program
	for _, p := range programs {
		if strings.HasSuffix(p.name, "*") {
			list = append(list, p)
		}
	}
	return list
})

// InterpreterLanguage returns the language of the code that an interpreter reads, named as in
// [NestedCommandOrCode]; "" if the name is not a listed interpreter.
func InterpreterLanguage(name string) string {
	if g := lookupProgram(name); g != nil {
		return g.language
	}
	return ""
}

// IsCodeInterpreter reports whether a program runs code of a programming language, which can do anything. Shells and awk,
// whose code is analysed, and programs with a language of their own such as database clients do not count.
func IsCodeInterpreter(name string) bool {
	switch language := InterpreterLanguage(name); language {
	case "", "shell", "powershell", "cmd", "awk":
		return false
	default:
		return !IsQueryLanguage(language)
	}
}

// FileLanguage returns the language of a code file by its extension, "" if unknown.
func FileLanguage(path string) string {
	i := strings.LastIndexByte(path, '.')
	if i < 0 || len(path)-i > maxProgramNameBytes {
		return ""
	}
	return languageOf(strings.ToLower(path[i:]))
}

// A programLocation is the kind of folder in which a program lies, according to its path.
type programLocation int

const (
	programLocationSearchPath         programLocation = iota // no path: found in $PATH
	programLocationSystemFolder                              // the program lies in a system folder, such as /usr/bin
	programLocationProjectEnvironment                        // the program lies in a project's own environment, such as .venv/bin
	programLocationOtherFolder                               // in any other folder: it may be any program
)

func programLocationOf(path, dir string) programLocation {
	if dir == "" && !strings.ContainsAny(path, `/\`) {
		return programLocationSearchPath
	}
	if IsSystemProgramFolder(dir) {
		return programLocationSystemFolder
	}
	for _, s := range projectEnvironmentFolders {
		if strings.HasSuffix(dir, s) && (len(dir) == len(s) || dir[len(dir)-len(s)-1] == '/') {
			return programLocationProjectEnvironment
		}
	}
	return programLocationOtherFolder
}

// IsProgramWithKnownSyntax reports whether the tables have an entry for a program.
func IsProgramWithKnownSyntax(name string) bool {
	_, base := splitProgramPath(name)
	return lookupProgram(base) != nil
}

package script

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// homeFolder returns the user's home folder.
func homeFolder() operand { return operand{Value: abstract.Lit("~")} }

// isHomeFolderAccessor reports whether a name is that of a function or field whose value is the user's home
// folder. A function counts even without parentheses, since some languages can call it so.
func isHomeFolderAccessor(dottedName string) bool {
	switch dottedName[strings.LastIndexByte(dottedName, '.')+1:] {
	case "homedir", "gethomedir", "my_home", "user_home", "pw_dir", "NSHomeDirectory":
		return true
	}
	return dottedName == "Dir.home" || dottedName == "getpwuid.7"
}

func isEnvironmentTable(name string) bool {
	switch name {
	case "os.environ", "process.env", "ENV", "environ", "Bun.env", "import.meta.env", "globalThis.process.env":
		return true
	}
	return false
}

// environmentValue returns the value of a variable from the environment of the code.
func (p *script) environmentValue(name string) operand {
	if name == "USERPROFILE" {
		return homeFolder()
	}
	return operand{Value: p.analysisContext.Environment(name), isUsedByCall: true}
}

// environmentTableNames are endings of names that refer to all environment variables, such as
// os.environ.
var environmentTableNames = [...]string{"environ", "ENV", "process.env", "_SERVER", "ENVIRON"}

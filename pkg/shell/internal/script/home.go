package script

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// homeFolder is what the functions and fields below are.
func homeFolder() operand { return operand{Value: abstract.Lit("~")} }

// namesHome reports whether a name, called or not, is the user's home folder: fields of
// accounts among them, and functions of languages that call without brackets.
func namesHome(full string) bool {
	switch full[strings.LastIndexByte(full, '.')+1:] {
	case "homedir", "gethomedir", "my_home", "user_home", "pw_dir", "NSHomeDirectory":
		return true
	}
	return full == "Dir.home" || full == "getpwuid.7"
}

func environmentName(name string) bool {
	switch name {
	case "os.environ", "process.env", "ENV", "environ", "Bun.env", "import.meta.env", "globalThis.process.env":
		return true
	}
	return false
}

// environment is the value of a variable that the code was started with.
func (p *script) environment(name string) operand {
	if name == "USERPROFILE" {
		return homeFolder()
	}
	return operand{Value: p.w.Environment(name), used: true}
}

// environments are how names of the environment end, as a table.
var environments = [...]string{"environ", "ENV", "process.env", "_SERVER", "ENVIRON"}

package gateway_test

import (
	"fmt"
	"strings"

	"github.com/shieldcli/shield/pkg/gateway"
)

func ExampleWrapServerCommand() {
	argv, _ := gateway.WrapServerCommand("/usr/bin/shield", "files", []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "."})
	fmt.Println(strings.Join(argv, " "))
	argv, wrapped := gateway.UnwrapServerCommand(argv)
	fmt.Println(strings.Join(argv, " "), wrapped)
	// Output:
	// /usr/bin/shield mcp --name files -- npx -y @modelcontextprotocol/server-filesystem .
	// npx -y @modelcontextprotocol/server-filesystem . true
}

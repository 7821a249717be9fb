//go:build unix

package hosts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// serveMCP is an MCP server with two tools. It writes the name of each that is
// called to a file.
func serveMCP(in io.Reader, out io.Writer, log string) error {
	schema := object{"type": "object", "properties": object{"text": object{"type": "string"}}, "required": []string{"text"}}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var q struct {
			ID     any
			Method string
			Params struct {
				Name            string
				ProtocolVersion string
			}
		}
		if json.Unmarshal(lines.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		var result any = object{}
		switch q.Method {
		case "initialize":
			result = object{"protocolVersion": q.Params.ProtocolVersion, "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "probe", "version": "1"}}
		case "tools/list":
			result = object{"tools": []any{
				object{"name": goodTool, "description": "Returns a note.", "inputSchema": schema},
				object{"name": badTool, "description": "Removes a note.", "inputSchema": schema}}}
		case "tools/call":
			f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			fmt.Fprintln(f, q.Params.Name)
			f.Close()
			result = object{"content": []any{object{"type": "text", "text": "noted"}}}
		}
		raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": q.ID, "result": result})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", raw)
	}
	return nil
}

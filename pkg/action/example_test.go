package action_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
)

func Example() {
	input := `{"type":"Bash","payload":{"cmd":"ls src"}}
{"type":"read_file","payload":{"path":"a","file_path":"/etc/shadow"}}
hello`
	r := action.NewReader(strings.NewReader(input), action.ReaderOptions{InputName: "stdin"})
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if rec.Err != nil {
			fmt.Println(rec.Err)
			continue
		}
		a, err := action.Parse(rec.Raw)
		if err != nil {
			fmt.Println(&action.LineError{InputName: "stdin", Line: rec.StartLine, Err: err})
			continue
		}
		fmt.Println(a.Type, a.Text("command"))
	}
	// Output:
	// execute_command ls src
	// stdin:2: payload.path: the field is given twice, also as "file_path"; remove one
	// stdin:3: expected an object that starts with "{"
}

package host

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what events become")

// TestEvents holds what each recorded event of each host becomes.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		h := named(t, name)
		files, err := filepath.Glob("../../testdata/hosts/" + name + "/*.json")
		if err != nil || len(files) < 5 {
			t.Fatalf("%s: %d events, %v", name, len(files), err)
		}
		var b strings.Builder
		for _, file := range files {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s: ", strings.TrimSuffix(filepath.Base(file), ".json"))
			e, err := h.Event(t.Context(), in)
			if err != nil {
				fmt.Fprintf(&b, "%v\n", err)
				continue
			}
			fmt.Fprintf(&b, "%s %s\n", e.Name, e.ToolCallID)
			if e.EndedSessionID != "" {
				fmt.Fprintf(&b, "  ends in %s\n", e.EndedSessionID)
			}
			if e.ParentSessionID != "" {
				fmt.Fprintf(&b, "  began in %s\n", e.ParentSessionID)
			}
			for _, a := range e.Actions {
				fmt.Fprintf(&b, "  %s\n", a)
			}
			if p := e.Prompt; p != nil {
				fmt.Fprintf(&b, "  prompt %q of %s, waits: %v\n", p.Text, p.Session, p.MustCheckAuthorInTranscript)
			}
			if r := e.ToolResult; r != nil {
				result, err := encodeCompactJSON(r.Result)
				fmt.Fprintf(&b, "  returned %s, files %q, agent %q, %v\n", result, r.FilesChangedByTool, r.CallingSubAgentID, err)
			}
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPatched(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]string{
		"*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch":                                     "write_file a x\ny\n;",
		"*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-x\r\n y\r\n+z\r\n*** End Patch\r\n":          "write_file a z\n;",
		"*** Begin Patch\n*** Delete File: a b\n*** End Patch":                                        "delete_file a b;",
		"*** Begin Patch\n  *** Delete File: a\n*** End Patch":                                        "delete_file a;",
		"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n+z\n*** End of File\n*** End Patch": "write_file a ;move_file a b;write_file b z\n;",
		"*** Begin Patch\n*** Add File: a\n+*** Delete File: x\n*** End Patch":                        "write_file a *** Delete File: x\n;",
		// What hosts may read otherwise is not taken for anything.
		"": "", "x": "", "*** Begin Patch\n*** End Patch": "", "*** Begin Patch\n*** Add File: \n*** End Patch": "",
		"*** Begin Patch\n*** Move to: b\n*** End Patch":                                                   "",
		"*** Begin Patch\nx\n*** Add File: a\n*** End Patch":                                               "",
		"*** Begin Patch\n*** Rename File: a\n*** End Patch":                                               "",
		"*** Begin Patch\n*** Delete File: a\n*** Move to: b\n*** End Patch":                               "",
		"*** Begin Patch\n*** Add File: a\n*** End Patch\nrm -rf /":                                        "",
		"rm -rf /\n*** Begin Patch\n*** Add File: a\n*** End Patch":                                        "",
		"*** Begin Patch\n*** Add File: a\n*** End Patch\n*** Begin Patch\n*** Add File: b\n*** End Patch": "",
	} {
		out, err := parsePatch(patch)
		var got strings.Builder
		for _, a := range out {
			a := a.(map[string]any)
			fmt.Fprint(&got, a["type"])
			for _, field := range []string{"path", "source", "destination", "content"} {
				if v, there := a["payload"].(map[string]any)[field]; there {
					fmt.Fprintf(&got, " %s", v)
				}
			}
			fmt.Fprint(&got, ";")
		}
		if got.String() != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", patch, got.String(), err, want)
		}
	}
}

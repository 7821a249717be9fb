package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/verdict"
)

func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "audit.jsonl")
	l, err := audit.Open(path, audit.Options{Clock: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	for _, command := range []string{"ls", "rm -rf /", "git status"} {
		e := audit.Entry{Decision: verdict.Block, Tier: 1, Payload: map[string]any{"command": command}}
		if err := l.Append(context.Background(), e); err != nil {
			fmt.Println(err)
			return
		}
	}
	whole, _ := audit.VerifyFile(path, nil, nil)
	fmt.Println(whole.OK(), whole.Head.Seq)
	cut, _ := audit.VerifyFile(path, &audit.ChainHead{Seq: 5}, nil)
	fmt.Println(cut.Damage)
	// Output:
	// true 3
	// line 4: cut off: the log ends with entry 3, and at least 5 were written
}

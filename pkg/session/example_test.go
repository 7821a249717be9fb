package session_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shell"
)

// A session that has read a page of the web goes on with text that others wrote.
func Example() {
	an := analysis.Analyzer{
		ShellAnalyzer: shell.Analyze, FileAnalyzer: shell.AnalyzeWrittenFile, ReplaySession: session.ReplayAndAnalyzeLastAction,
		DefaultExecutionContext: effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}},
	}
	store := session.NewStore(nil, session.Options{Clock: time.Now, SessionRetention: time.Hour, MaxFileRecordsPerUser: 100, MaxDenials: 10})
	ctx, key := context.Background(), session.Key{AgentHostName: "claude-code", ID: "s", User: "me"}
	for _, record := range []string{
		`{"type":"read_file","payload":{"path":"main.go"}}`,
		`{"type":"web_fetch","payload":{"url":"https://example.com/"}}`,
	} {
		a, err := action.Parse([]byte(record))
		if err != nil {
			fmt.Println(err)
			return
		}
		s := store.Load(ctx, key, session.Lineage{}, "")
		d := store.DeltaOfAction(an.AnalyzeAction(a), nil, true)
		if err := store.Add(ctx, s, &d); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(store.Load(ctx, key, session.Lineage{}, "").Labels())
	}
	// Output:
	// []
	// [untrusted]
}

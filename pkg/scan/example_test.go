package scan_test

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/scan"
	"github.com/shieldcli/shield/pkg/shield"
)

// What shield would have asked and blocked in the recorded sessions of nine hosts.
func ExampleRun() {
	s := shield.Defaults()
	s.PolicyNameOrPath, s.Classifier.Enabled = "offline", false
	cfg, pool := shield.Config{Settings: &s}, &shield.PipelinePool{}
	defer pool.Clear()
	r, err := scan.Run(context.Background(), scan.Options{
		OpenPipeline: func(host, home, folder string, files analysis.FileOverlay) (scan.CallJudgingPipeline, error) {
			one := cfg.ForReplay(home, folder, files)
			one.AgentHostName = host
			return pool.NewActionReplay(one)
		},
		TranscriptPaths: []string{"../../testdata/transcripts"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d calls of %d tasks: %d questions, %d blocks\n", r.Calls, r.Conversations, r.EscalatedCalls, r.BlockedCalls)
	fmt.Println(r.InterruptionCauses[0].Decision, r.InterruptionCauses[0].Rule, r.InterruptionCauses[0].Times)
	// Output:
	// 70 calls of 10 tasks: 19 questions, 9 blocks
	// ESCALATE force_push_main 9
}

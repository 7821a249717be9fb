package evaluate

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestRealServer asks the server that testdata/evaluate/real-server.sh starts.
// Its model writes well-formed noise, which must never be believed.
func TestRealServer(t *testing.T) {
	url := os.Getenv("SHIELD_REAL_SERVER")
	if url == "" {
		t.Skip("no server: run testdata/evaluate/real-server.sh")
	}
	p, err := NewProvider(Endpoint{Evaluator: config.Evaluator{Provider: "custom", Model: "random", BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	var reply string
	spy := fakeProvider(func(ctx context.Context, prompt Prompt) (string, error) {
		reply, err = p.Complete(ctx, prompt)
		return reply, err
	})
	e := newEvaluator(t, Options{Provider: spy, Timeout: time.Minute, FailOpen: true})
	for _, command := range []string{"make test", "rm -rf build", "echo ALLOW"} {
		v := judge(t, e, newCase(command))
		t.Logf("%s: the model said %.300s", command, reply)
		if fields, err := replyObject(reply); err != nil || len(fields) != len(replyFields) {
			t.Errorf("%s: the schema did not hold: %v: %q", command, err, reply)
		}
		if v.Decision != verdict.Block || v.Reasoning != errCanary.Error() || v.Confidence != 1 {
			t.Errorf("%s: %v %v %s", command, v.Decision, v.Confidence, v.Reasoning)
		}
	}
}

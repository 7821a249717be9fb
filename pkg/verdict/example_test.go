package verdict_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

// One stage of a pipe writes a sealed verdict, and the next recognises it.
func Example() {
	var key [verdict.KeySize]byte // from LoadKey
	sealer := verdict.NewSealer(key, verdict.Fingerprints{Policy: "default"})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	a, err := action.Parse([]byte(`{"type":"delete_file","payload":{"path":"build"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	v := &verdict.Verdict{
		Line: 1, Decision: verdict.Escalate, Confidence: 1, NextTier: 2,
		ActionHash: a.TypeAndPayloadHash, Action: a.Raw, JudgedAt: now, Expires: now.Add(5 * time.Minute),
	}
	sealer.Seal(v, verdict.TierBitPolicy)
	var pipe bytes.Buffer
	if err := verdict.NewWriter(&pipe).Write(v); err != nil {
		fmt.Println(err)
		return
	}

	r := verdict.NewReader(&pipe, verdict.ReaderOptions{InputName: "stdin", Sealer: sealer, Now: func() time.Time { return now }})
	rec, err := r.Next()
	fmt.Println(rec.Verdict.Decision, rec.Action.Text("path"), rec.Err, err)
	// Output: ESCALATE build <nil> <nil>
}

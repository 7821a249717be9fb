package verdict_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/shieldcli/shield/internal/hostile"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/verdict"
)

func newReader(in []byte) *verdict.Reader {
	return verdict.NewReader(bytes.NewReader(in), verdict.ReaderOptions{Sealer: verdict.NewSealer(hostile.TestSealKey, hostile.TestVerdictFingerprints), Now: hostile.FixedTestTime})
}

// check demands that raw is one record with an error, or an action if want is
// "", and never a verdict to believe.
func check(t *testing.T, name string, raw []byte, want action.ErrorCode) {
	t.Helper()
	in := newReader(raw)
	rec, err := in.Next()
	if err != nil {
		t.Fatalf("%s: %.200q: %v", name, raw, err)
	}
	if _, err := in.Next(); err != io.EOF {
		t.Errorf("%s: %.200q: more than one record", name, raw)
	}
	var e *action.Error
	switch errors.As(rec.Err, &e); {
	case want == "" && (rec.Err != nil || rec.Action == nil || rec.Verdict != nil):
		t.Errorf("%s: %.200q: got %v, want an action", name, raw, rec.Err)
	case want != "" && (e == nil || e.Code != want):
		t.Errorf("%s: %.200q: got %v, want %s", name, raw, rec.Err, want)
	}
}

func TestHostileRecords(t *testing.T) {
	for _, r := range hostile.GenerateAttackRecords(1) {
		check(t, r.Class, r.Raw, r.WantVerdictError)
	}
}

func TestVectors(t *testing.T) {
	vectors, err := hostile.ReadVectors("../../testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if v.WantDecision == "ALLOW" {
			t.Errorf("%s expects ALLOW", v.Name)
		}
		check(t, v.Name, v.Raw, v.WantVerdictError)
	}
}

func TestHostileStream(t *testing.T) {
	records := hostile.GenerateAttackRecords(2)
	in := newReader(hostile.JoinRecordsWithSeparatorActions(records))
	for i, r := range records {
		rec, err := in.Next()
		if err != nil || (rec.Err == nil) != (r.WantVerdictError == "") {
			t.Fatalf("%d %s: %.200q: got %.200q, %v, %v", i, r.Class, r.Raw, rec.Raw, rec.Err, err)
		}
		if rec, err = in.Next(); err != nil || string(rec.Raw) != hostile.ActionBetweenAttacks {
			t.Fatalf("%d %s: %.200q is followed by %.200q, %v", i, r.Class, r.Raw, rec.Raw, err)
		}
	}
	if _, err := in.Next(); err != io.EOF {
		t.Errorf("then %v", err)
	}
}

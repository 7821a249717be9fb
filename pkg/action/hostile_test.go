package action_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/shieldcli/shield/internal/hostile"
	"github.com/shieldcli/shield/pkg/action"
)

// read returns the error of the one record in raw, or fails the test.
func read(t *testing.T, name string, raw []byte) error {
	t.Helper()
	in := action.NewReader(bytes.NewReader(raw), action.ReaderOptions{})
	rec, err := in.Next()
	if err != nil {
		t.Fatalf("%s: %.200q: %v", name, raw, err)
	}
	if next, err := in.Next(); err != io.EOF {
		t.Errorf("%s: %.200q: then %.200q", name, raw, next.Raw)
	}
	if rec.Err == nil {
		_, rec.Err = action.Parse(rec.Raw)
	}
	return rec.Err
}

func check(t *testing.T, name string, raw []byte, want action.ErrorCode) {
	t.Helper()
	err := read(t, name, raw)
	var e *action.Error
	switch errors.As(err, &e); {
	case want == "" && err != nil:
		t.Errorf("%s: %.200q: got %v, want an action", name, raw, err)
	case want != "" && (e == nil || e.Code != want):
		t.Errorf("%s: %.200q: got %v, want %s", name, raw, err, want)
	}
}

func TestHostileRecords(t *testing.T) {
	for _, r := range hostile.GenerateAttackRecords(1) {
		check(t, r.Class, r.Raw, r.WantActionError)
	}
}

func TestVectors(t *testing.T) {
	vectors, err := hostile.ReadVectors("../../testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 60 {
		t.Errorf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		check(t, v.Name, v.Raw, v.WantActionError)
	}
}

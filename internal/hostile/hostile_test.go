package hostile

import (
	"bytes"
	"testing"
)

func TestRecords(t *testing.T) {
	records := Records(1)
	if len(records) != Count {
		t.Errorf("%d records, want %d", len(records), Count)
	}
	classes := map[string]int{}
	distinct := map[string]bool{}
	for _, r := range records {
		classes[r.Class]++
		distinct[string(r.Raw)] = true
	}
	if len(classes) < 50 {
		t.Errorf("%d classes", len(classes))
	}
	for name, n := range classes {
		if n > Count/20 {
			t.Errorf("%s: %d records are more than 5 %%", name, n)
		}
	}
	if len(distinct) < Count/2 {
		t.Errorf("only %d different records", len(distinct))
	}
	for i, again := range Records(1) {
		if !bytes.Equal(again.Raw, records[i].Raw) {
			t.Fatalf("record %d differs for the same seed", i)
		}
	}
}

package approve

import (
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/state"
	"github.com/shieldcli/shield/pkg/verdict"
)

// TestRevoke: an approval that is remembered can be seen, and what is forgotten
// is asked again.
func TestRevoke(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store, err := state.Open(t.TempDir(), state.Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ch := &fake{name: "a", say: says(Answer{Approve: true, RememberFor: 10 * time.Minute, AnsweringPersonName: "ann"})}
	a, err := New(Options{Store: store, RememberedAnswerKey: testBinding, Approval: config.Approval{MaxQuestionsPerHour: 100}, Clock: func() time.Time { return now }, Redactor: redact.New()})
	if err != nil {
		t.Fatal(err)
	}
	a.channels = []ApprovalChannel{ch}
	judge := func(cmd string, wantAsked int32) {
		t.Helper()
		v, err := a.Judge(t.Context(), command1(t, cmd, "s"))
		if err != nil || v.Decision != verdict.Allow || ch.asked.Load() != wantAsked {
			t.Errorf("%s: %+v, %v; asked %d times, want %d", cmd, v, err, ch.asked.Load(), wantAsked)
		}
	}
	list := func(want ...string) (ids []string) {
		t.Helper()
		got, err := RememberedApprovals(t.Context(), store)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v; want %q", got, err, want)
		}
		for i, a := range got {
			if a.ActionText != want[i] || a.By != "ann (a)" || !a.Until.After(now) || len(a.ID) != approvalIDLength {
				t.Errorf("approval %d: %+v, want %q", i, a, want[i])
			}
			ids = append(ids, a.ID)
		}
		return ids
	}
	// What a model said is kept in the same place.
	if err := store.Put(t.Context(), "model", []byte(`{"decision":"ALLOW","who":"x","until":"2030-01-01T00:00:00Z"}`), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	list()
	other := "git push --force https://ann:hunter2@git.test/x"
	judge(push, 1)
	now = now.Add(time.Second)
	judge(other, 2)
	judge(push, 2)
	ids := list(push, "git push --force https://ann:[redacted secret]@git.test/x")
	if got, err := RevokeRememberedApprovals(t.Context(), store, ids[0][:6]); err == nil {
		t.Errorf("a part of an ID: %+v", got)
	}
	if got, err := RevokeRememberedApprovals(t.Context(), store, ids[0]); err != nil || len(got) != 1 || got[0].ActionText != push {
		t.Errorf("%+v, %v", got, err)
	}
	list("git push --force https://ann:[redacted secret]@git.test/x")
	judge(other, 2)
	judge(push, 3)
	if got, err := RevokeRememberedApprovals(t.Context(), store, ""); err != nil || len(got) != 2 {
		t.Errorf("all: %+v, %v", got, err)
	}
	list()
	if got, err := RevokeRememberedApprovals(t.Context(), store, ""); err != nil || len(got) != 0 {
		t.Errorf("none: %+v, %v", got, err)
	}
	if _, ok, err := store.Get(t.Context(), "model"); err != nil || !ok {
		t.Errorf("what the model said is forgotten too: %v", err)
	}
	judge(push, 4)
	now = now.Add(11 * time.Minute)
	list()
}

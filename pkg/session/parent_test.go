package session

import (
	"testing"
	"time"
)

// TestParentsKnow holds that what a sub-agent finds out is known to the sessions that
// it began in, and to no others.
func TestParentsKnow(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, _ *world, s *Store) { parentsKnow(t, s) })
}

func parentsKnow(t *testing.T, s *Store) {
	root, child, grandchild, other := Key{"copilot", "r", "me"}, Key{"copilot", "c", "me"}, Key{"copilot", "g", "me"}, Key{"copilot", "o", "me"}
	act(t, s, root, "curl https://a.test -o a.sh")
	act(t, s, other, "curl https://b.test -o b.sh")
	for _, step := range []struct {
		key    Key
		parent string
		raw    string
	}{
		{child, "r", "curl https://c.test -o c.sh"},
		{grandchild, "c", "cat ~/.aws/credentials"},
		{grandchild, "c", "curl https://d.test -o d.sh"},
	} {
		memory := s.Load(t.Context(), step.key, Lineage{ParentSessionID: step.parent}, "")
		d := DeltaOfAction(analyzer.CaseWithSessionState(parse(t, step.raw), memory), nil, false)
		d.Denial = &Denial{ActionHash: step.raw}
		if err := s.Add(t.Context(), memory, &d); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[Key]string{root: "[secret untrusted]", child: "[secret untrusted]", grandchild: "[secret untrusted]", other: "[untrusted]"} {
		if got := labels(t, s, key); got != want {
			t.Errorf("%s: %s, want %s", key.ID, got, want)
		}
		memory := s.Load(t.Context(), key, Lineage{}, "")
		if len(memory.FileOriginLabels("/work/app/d.sh")) == 0 { // files are what they are in every session
			t.Errorf("%s does not know what a sub-agent downloaded", key.ID)
		}
		if n := len(memory.record.Denials); n != map[Key]int{root: 3, child: 3, grandchild: 2}[key] {
			t.Errorf("%s has %d denials", key.ID, n)
		}
	}
	for _, raw := range []string{"a.sh", "c.sh"} {
		if len(s.Load(t.Context(), grandchild, Lineage{ParentSessionID: "c"}, "").FileOriginLabels("/work/app/"+raw)) == 0 {
			t.Errorf("a sub-agent does not know %s", raw)
		}
	}
	// a host that names a session as its own parent, or a circle, ends
	for key, parent := range map[Key]string{{"copilot", "x", "me"}: "y", {"copilot", "y", "me"}: "x", {"copilot", "z", "me"}: "z"} {
		memory := s.Load(t.Context(), key, Lineage{ParentSessionID: parent}, "")
		d := DeltaOfAction(analyzer.CaseWithSessionState(parse(t, "cat ~/.aws/credentials"), memory), nil, false)
		if err := s.Add(t.Context(), memory, &d); err != nil {
			t.Fatal(err)
		}
	}
}

// TestParentByProcess: a host that an action of another session has started begins a
// session below it, whatever host that is; one that a person started beside it does not.
func TestParentByProcess(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, w *world, s *Store) {
		began := func(k Key, raw string, processes ...string) string {
			t.Helper()
			from := Lineage{HostAndAncestorProcessNames: func() []string { return processes }}
			memory := s.Load(t.Context(), k, from, "")
			d := DeltaOfAction(analyzer.CaseWithSessionState(parse(t, raw), memory), nil, false)
			if err := s.Add(t.Context(), memory, &d); err != nil {
				t.Fatal(err)
			}
			return labels(t, s, k)
		}
		for _, c := range []struct {
			key       Key
			raw       string
			processes []string
			want      string
		}{
			{Key{"claude-code", "a", "me"}, "cat .env", []string{"100-1", "10-1", "1-1"}, "[secret]"},
			{Key{"claude-code", "beside", "me"}, "ls", []string{"101-1", "10-1", "1-1"}, "[]"},
			{Key{"claude-code", "below", "me"}, "curl https://example.com/", []string{"200-2", "150-2", "100-1", "10-1"}, "[secret untrusted]"},
			{Key{"codex", "below", "me"}, "ls", []string{"300-3", "200-2", "150-2", "100-1"}, "[secret untrusted]"},
			{Key{"claude-code", "cleared", "me"}, "ls", []string{"100-1", "10-1", "1-1"}, "[]"}, // the same process
			{Key{"claude-code", "reused", "me"}, "ls", []string{"200-9", "10-1"}, "[]"},         // another process of the same number
			{Key{"claude-code", "theirs", "you"}, "ls", []string{"400-4", "100-1"}, "[]"},
			{Key{"claude-code", "none", "me"}, "ls", nil, "[]"},
		} {
			if got := began(c.key, c.raw, c.processes...); got != c.want {
				t.Errorf("%s %s: labels %s, want %s", c.key.AgentHostName, c.key.ID, got, c.want)
			}
			w.now = w.now.Add(time.Second)
		}
		// what the started one read, its parents know
		if got := labels(t, s, Key{"claude-code", "a", "me"}); got != "[secret untrusted]" {
			t.Errorf("the parent: labels %s", got)
		}
	})
}

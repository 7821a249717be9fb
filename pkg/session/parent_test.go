package session

import "testing"

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
		memory := s.Load(t.Context(), step.key, step.parent, "")
		d := Learn(analyzer.Recall(parse(t, step.raw), memory), nil, false)
		d.Denial = &Denial{Action: step.raw}
		if err := s.Add(t.Context(), memory, &d); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[Key]string{root: "[secret untrusted]", child: "[secret untrusted]", grandchild: "[secret untrusted]", other: "[untrusted]"} {
		if got := labels(t, s, key); got != want {
			t.Errorf("%s: %s, want %s", key.ID, got, want)
		}
		memory := s.Load(t.Context(), key, "", "")
		if known := len(memory.Origin("/work/app/d.sh")) > 0; known != (key != other) {
			t.Errorf("%s knows what a sub-agent downloaded: %v", key.ID, known)
		}
		if n := len(memory.rec.Denials); n != map[Key]int{root: 3, child: 3, grandchild: 2}[key] {
			t.Errorf("%s has %d denials", key.ID, n)
		}
	}
	for _, raw := range []string{"a.sh", "c.sh"} {
		if len(s.Load(t.Context(), grandchild, "c", "").Origin("/work/app/"+raw)) == 0 {
			t.Errorf("a sub-agent does not know %s", raw)
		}
	}
	// a host that names a session as its own parent, or a circle, ends
	for key, parent := range map[Key]string{{"copilot", "x", "me"}: "y", {"copilot", "y", "me"}: "x", {"copilot", "z", "me"}: "z"} {
		memory := s.Load(t.Context(), key, parent, "")
		d := Learn(analyzer.Recall(parse(t, "cat ~/.aws/credentials"), memory), nil, false)
		if err := s.Add(t.Context(), memory, &d); err != nil {
			t.Fatal(err)
		}
	}
}

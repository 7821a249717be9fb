package effect

import "testing"

func TestMeant(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]struct {
		path  string
		still bool
	}{
		"/home/me/.aws/cred*":    {"/home/me/.aws/cred*", true},
		"/home/me/.ssh/*":        {"/home/me/.ssh/x", false},
		"/home/me/.ssh/??":       {"/home/me/.ssh/x", false},
		"/home/me/*/config.toml": {"/home/me/x/config.toml", false},
		"/a/[bc]/key.p[e]m":      {"/a/xbcx/key.p[e]m", true},
		"**/.ssh/id_rsa":         {"xx/.ssh/id_rsa", false},
	} {
		if path, still := ExamplePathForPattern(pattern); path != want.path || still != want.still {
			t.Errorf("%s: %q, %t; want %q, %t", pattern, path, still, want.path, want.still)
		}
	}
}

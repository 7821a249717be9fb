package knowledge

import (
	"slices"
	"testing"
)

// TestLists holds that every list is found by its name and holds something, and
// that a name is one of files or of hosts, never of both.
func TestLists(t *testing.T) {
	t.Parallel()
	for _, name := range PathListNames() {
		if globs, ok := GlobsOfPathList(name); !ok || len(globs) == 0 {
			t.Errorf("list %s: %q, %t", name, globs, ok)
		}
		if _, ok := Hosts(name); ok {
			t.Errorf("%s is a list of files and one of hosts", name)
		}
	}
	for _, name := range HostListNames() {
		if hosts, ok := Hosts(name); !ok || len(hosts) == 0 {
			t.Errorf("list %s: %q, %t", name, hosts, ok)
		}
	}
	if _, ok := GlobsOfPathList("nothing"); ok {
		t.Error("there is a list of files that nobody wrote")
	}
	if _, ok := Hosts(""); ok {
		t.Error("there is a list of hosts without a name")
	}
}

// TestHostsOnce holds that a host is in one list only.
func TestHostsOnce(t *testing.T) {
	t.Parallel()
	in := map[string]string{}
	for _, list := range HostLists {
		for _, host := range list.Hosts {
			if in[host] != "" {
				t.Errorf("%s is in %s and in %s", host, in[host], list.Name)
			}
			in[host] = list.Name
		}
	}
}

// TestRunsValue holds which values of variables run something, and which group
// says so where one has several.
func TestRunsValue(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		name, value string
		runs        []string // languages and what is held, of all groups that say so
	}{
		{"LUA_INIT", "@/x", []string{"file"}},
		{"LUA_INIT", "os.exit()", []string{"lua"}},
		{"LUA_INIT_5_4", "@/x", []string{"file"}},
		{"LESS", "-R", nil},
		{"LESS", "-R -k/x", []string{"code"}},
		{"LESSOPEN", "|x %s", []string{"shell"}},
		{"KUBECONFIG", "x", []string{"place"}},
		{"SSLKEYLOGFILE", "x", []string{"output"}},
		{"GIT_TRACE", "1", nil},
		{"NODE_TLS_REJECT_UNAUTHORIZED", "0", []string{"check"}},
		{"GIT_TRACE_CURL", "/x", []string{"output"}},
		{"MY_PAGER", "x", []string{"shell"}},
		{"kubeconfig", "x", nil},
		{"BUNDLE_JOBS", "4", nil},
		{"", "x", nil},
	} {
		var got []string
		for _, g := range CodeLoadingGroupsOfVariable(c.name) {
			if g.IsCodeRunningValue(c.value) {
				got = append(got, g.CodeLanguage+g.NonCodeValueMeaning)
			}
		}
		if !slices.Equal(got, c.runs) {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.runs)
		}
	}
}

//go:build unix

package hosts

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// tools compares the tools that the host offers its model with those that shield's file of
// it understands. Shield asks about others.
func tools(t *testing.T, d driver, row map[string]string) {
	h, err := host.Named(d.name)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, d, []call{{"shell", "touch wanted"}}, "20s")
	out := r.start()
	if len(r.model.offered) == 0 {
		t.Fatalf("the host offers no tools: %.800s", out)
	}
	understood := slices.Concat(h.Tools(), h.InternalTools())
	var offered, unknown []string
	for _, name := range r.model.offered {
		event, differs := d.events[name]
		switch {
		case differs && event == "": // raises none of its own
		case slices.Contains(understood, cmp.Or(event, name)):
			offered = append(offered, cmp.Or(event, name))
		default:
			unknown = append(unknown, name)
		}
	}
	missing := slices.DeleteFunc(understood, func(name string) bool { return slices.Contains(offered, name) })
	slices.Sort(unknown)
	slices.Sort(missing)
	if !slices.Equal(unknown, d.unknown) {
		t.Errorf("shield does not understand %q of the tools that the host offers, want %q: add them to its file, or say so here", unknown, d.unknown)
	}
	row["tools"], row["unknown tools"], row["missing tools"] = said(slices.Sorted(slices.Values(r.model.offered))), said(unknown), said(missing)
}

// said lists names.
func said(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

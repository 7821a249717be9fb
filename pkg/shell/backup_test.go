package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// Deleting the copies that an edit has kept loses nothing; deleting anything else does.
func TestBackups(t *testing.T) {
	for line, deletes := range map[string]bool{
		"sed -i.bak s/a/b/ f && rm f.bak":                  false,
		"sed -i.bak s/a/b/ src/*.ts && rm src/*.ts.bak":    false,
		"perl -i.old -pe s/a/b/ f; rm -f f.old":            false,
		"sed -i.bak s/a/b/ f && rm f":                      true,
		"sed -i.bak s/a/b/ f && rm f.bak f":                true,
		"sed -i.bak s/a/b/ f && rm g.bak":                  true,
		"sed -i.bak s/a/b/ src/*.ts && rm src/*.bak":       true,
		"sed -i s/a/b/ f && rm f.bak":                      true,
		"rm f.bak; sed -i.bak s/a/b/ f":                    true,
		"sed -i.bak s/a/b/ /etc/f && rm /etc/f.bak":        true,
		"sed -i.bak s/a/b/ f; ln -s ~/g f.bak; rm f.bak/*": true,
	} {
		place := &effect.PathContext{Home: "/home/me", CWD: "/home/me/app", WorkspaceRoots: []string{"/home/me/app"}}
		got := slices.ContainsFunc(Analyze(line, place).Effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.DeleteFile })
		if got != deletes {
			t.Errorf("%s: deletes %v, want %v", line, got, deletes)
		}
	}
}

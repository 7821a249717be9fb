package session

import (
	"slices"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
)

// A file is recognised under another name by its inode, and a copy by its content.
func TestIdentity(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, _ *world, s *Store) {
		disk := map[string]effect.FileIdentity{}
		look := &looks{disk: disk}
		step := func(raw string) []effect.Effect {
			memory := s.Load(t.Context(), Key{}, Lineage{}, "")
			memory.EnableFileIdentification(look)
			c := analyzer.CaseWithSessionState(parse(t, raw), memory)
			d := DeltaOfAction(c, nil, false)
			if err := s.Add(t.Context(), memory, &d); err != nil {
				t.Fatal(err)
			}
			return c.Effects
		}
		runs := func(effects []effect.Effect) bool {
			return slices.ContainsFunc(effects, func(e effect.Effect) bool { return e.Kind == effect.RunCode })
		}
		step("curl -o a.sh https://example.com/a")
		disk["/work/app/a.sh"] = effect.FileIdentity{Device: 1, Inode: 7, ContentSHA256Prefix: [16]byte{1}}
		look.asked = nil
		for _, raw := range []string{"ls -la", "cat missing.txt | head"} {
			step(raw)
		}
		if slices.Contains(look.asked, "/work/app/a.sh") {
			t.Error("a file was looked at for actions that move none")
		}
		step("python3 rename.py")
		disk["/work/app/moved.sh"] = effect.FileIdentity{Device: 1, Inode: 7, ContentSHA256Prefix: [16]byte{2}} // and changed
		disk["/work/app/copy.sh"] = effect.FileIdentity{Device: 1, Inode: 8, ContentSHA256Prefix: [16]byte{1}}
		disk["/work/app/other.sh"] = effect.FileIdentity{Device: 2, Inode: 7, ContentSHA256Prefix: [16]byte{3}}
		delete(disk, "/work/app/a.sh")
		for name, want := range map[string]bool{"moved.sh": true, "copy.sh": true, "other.sh": false} {
			if got := runs(step("bash " + name)); got != want {
				t.Errorf("%s: runs code that was just downloaded: %v", name, got)
			}
		}
	})
}

// A looks is a disk that notes which files it is asked for.
type looks struct {
	disk  map[string]effect.FileIdentity
	asked []string
}

func (l *looks) Identify(path string) (effect.FileIdentity, bool) {
	l.asked = append(l.asked, path)
	id, ok := l.disk[path]
	return id, ok
}

func (*looks) PossiblyPresent(paths []string) []string { return paths }

func (*looks) AllFilesChangedBetween(string, time.Time, time.Time) bool { return false }

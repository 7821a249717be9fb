package shell

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/packed"
	"github.com/shieldcli/shield/pkg/effect"
)

// TestUnpacks holds which members of an archive that lies on the disk have an effect of their own.
func TestUnpacks(t *testing.T) {
	t.Parallel()
	many := make([]packed.Member, 2*maxUnpacked)
	for i := range many {
		many[i].Name = fmt.Sprintf("%d/.envrc", i)
	}
	archives := map[string][]packed.Member{
		"good.tar": {{Name: "p/a.txt"}, {Name: "p/b", Link: "a.txt"}, {Name: "p/", Dir: true}},
		"hook.tar": {{Name: "p/.git/hooks/pre-commit"}}, "up.tar": {{Name: "../../.bashrc"}}, "abs.tar": {{Name: "/home/me/.bashrc"}},
		"link.tar": {{Name: "x", Link: "/home/me"}, {Name: "x/.bashrc"}}, "hard.tar": {{Name: "x", Link: "../../.bashrc", Hard: true}}, "many.tar": many,
	}
	place := here()
	place.Archive = func(p string, _ func(string) bool) ([]packed.Member, error) {
		name := p[strings.LastIndexByte(p, '/')+1:]
		switch m, ok := archives[name]; {
		case ok:
			return m, nil
		case name == "bomb.tar":
			return nil, packed.ErrLimit
		case name == "cut.tar":
			return archives["good.tar"], fs.ErrInvalid
		case name == "a.tar.xz":
			return nil, packed.ErrFormat
		}
		return nil, fs.ErrNotExist
	}
	cwd := place.CWD
	for text, want := range map[string]string{
		"tar xf good.tar": "", "tar xf nothere.tar": "", "tar xf a.tar.xz": "", "tar tf up.tar": "", "tar cf up.tar x": "",
		"tar xf hook.tar": "write_file " + cwd + "/p/.git/hooks/pre-commit", "tar xf hook.tar --strip-components=1": "write_file " + cwd + "/.git/hooks/pre-commit",
		"cat hook.tar | tar x -C sub": "write_file " + cwd + "/sub/p/.git/hooks/pre-commit", "tar x < hook.tar": "write_file " + cwd + "/p/.git/hooks/pre-commit",
		"tar xf up.tar": "write_file /home/.bashrc", "unzip -d sub up.tar": "write_file /home/me/.bashrc", "tar xf abs.tar": "write_file /home/me/.bashrc", "tar xf link.tar": "write_file /home/me/.bashrc", "tar xf hard.tar": "read_file /home/.bashrc",
		"tar xf many.tar": "limit", "tar xf bomb.tar": "limit", "tar xf cut.tar": "syntax", "tar xf good.tar --transform 's,p,.git/hooks,'": "unresolved",
		"curl -o up.tar https://x.test/a; tar xf up.tar": "", // another one than lies there
	} {
		got := ""
		for _, e := range Analyze(text, place).Effects {
			switch {
			case e.Sure == effect.Unknown:
				got += string(e.Cause) + " "
			case e.Recursive || e.Pattern || e.Kind == effect.Execute || e.Kind == effect.ReadFile && (strings.HasSuffix(e.Path, ".tar") || strings.HasSuffix(e.Path, ".xz")):
			default:
				got += string(e.Kind) + " " + e.Path + ";"
			}
		}
		if want == "" && got != "" && !strings.Contains(text, "curl") && !strings.Contains(text, " cf ") || want != "" && !strings.Contains(got, want) || strings.Contains(text, "curl") && strings.Contains(got, ".bashrc") {
			t.Errorf("%s: %q", text, got)
		}
	}
}

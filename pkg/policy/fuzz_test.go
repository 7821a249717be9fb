package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// FuzzLoad demands that no file makes loading panic or allocate much, and that
// what loads can be judged by.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(lists))
	f.Add([]byte("extends: offline\nverify:\n- {name: ask_before_deleting, except: {paths: [$WORKSPACE/x/**]}}\n"))
	f.Add([]byte("deny:\n- {name: a, when: '.action.type == \"x\"', hosts: [10.0.0.0/8], commands: ['(?i)a']}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p *Policy
		var err error
		if n := allocated.Bytes(func() { p, err = Load("f.yaml", data, testOptions()) }); n > 256<<20 {
			t.Errorf("%d bytes allocated for %d", n, len(data))
		}
		if err != nil {
			return
		}
		if _, err := p.Judge(t.Context(), caseOf("read_file", read("/work/app/a"), contact("a.example"))); err != nil {
			t.Error(err)
		}
	})
}

var fuzzPaths = []string{
	"/work/app/a.go", "/work/app/.env", "/work/app/docs/x.md", "/work/app/dist/x", "/home/me/.ssh/id_rsa", "/home/me/x", "/etc/passwd",
	"/etc/hosts", "/tmp/x", "/", "/work/app", "c:/windows/system32/a", "/work/app/.git/hooks/pre-commit", "**", "/home/me/**", "/work/app/*", "**/id_rsa", "",
}

var fuzzKinds = []effect.Kind{
	effect.ReadFile, effect.WriteFile, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ListDirectory, effect.Execute,
	effect.HTTPRequest, effect.Persist, effect.UnknownEffect, effect.DestroyData, effect.ChangePermissions,
}

var fuzzTypes = []string{"read_file", "write_file", "execute_command", "delete_file", "http_request", "memory_search", "nonsense", "copy_file"}

// fuzzCase makes a case out of bytes: three an effect.
func fuzzCase(data []byte) *analysis.ActionCase {
	c := &analysis.ActionCase{Action: &action.Action{Type: "read_file"}}
	if len(data) > 0 {
		c.Action.Type = fuzzTypes[int(data[0])%len(fuzzTypes)]
		data = data[1:]
	}
	for len(data) >= 3 && len(c.Effects) < 8 {
		e := effect.Effect{
			Kind:      fuzzKinds[int(data[0])%len(fuzzKinds)],
			Path:      fuzzPaths[int(data[1])%len(fuzzPaths)],
			Recursive: data[2]&1 != 0,
		}
		e.PathIsPattern = len(e.Path) > 0 && e.Path[len(e.Path)-1] == '*' || len(e.Path) > 1 && e.Path[:2] == "**"
		if data[2]&2 != 0 {
			e.Host = []string{"169.254.169.254", "localhost", "a.example"}[int(data[2]>>2)%3]
		}
		c.Effects = append(c.Effects, e)
		data = data[3:]
	}
	return c
}

// FuzzJudge demands that the order of effects decides nothing, that doing more
// is never judged more mildly, and that one more deny rule never lets pass
// what did not pass before.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, uint8(0), uint64(1))
	f.Add([]byte{2, 0, 4, 0, 1, 2, 0, 7, 1, 3}, uint8(3), uint64(2))
	f.Add([]byte{1, 1, 12, 0, 8, 12, 0}, uint8(1), uint64(3))
	type pair struct{ plain, denying *Policy }
	var pairs []pair
	for _, name := range PresetNames() {
		pairs = append(pairs, pair{
			mustLoad(f, "extends: "+name+"\n"),
			mustLoad(f, "extends: "+name+"\ndeny:\n- {name: more, action_types: [write_file, http_request], paths: [/tmp/**, /work/**]}\n"),
		})
	}
	pairs = append(pairs, pair{mustLoad(f, lists), mustLoad(f, "deny:\n  - {name: more, paths: [/etc/**]}\n"+lists[len("\ndeny:\n"):])})
	f.Fuzz(func(t *testing.T, data []byte, which uint8, seed uint64) {
		p := pairs[int(which)%len(pairs)]
		c := fuzzCase(data)
		judge := func(p *Policy, c *analysis.ActionCase) verdict.Verdict {
			v, err := p.Judge(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Decision == verdict.NoDecision {
				t.Fatalf("no decision for %+v", c.Effects)
			}
			return v
		}
		v := judge(p.plain, c)
		if more := judge(p.denying, c); more.Decision < v.Decision {
			t.Errorf("%v, with one more deny rule %v: %+v", v.Decision, more.Decision, c.Effects)
		}
		shuffled := *c
		shuffled.Effects = slices.Clone(c.Effects)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled.Effects), func(i, j int) {
			shuffled.Effects[i], shuffled.Effects[j] = shuffled.Effects[j], shuffled.Effects[i]
		})
		if other := judge(p.plain, &shuffled); other.Decision != v.Decision || other.NextTier != v.NextTier {
			t.Errorf("%s, in another order %s: %+v", short(v), short(other), c.Effects)
		}
		if len(c.Effects) > 1 {
			fewer := *c
			fewer.Effects = c.Effects[1:]
			if less := judge(p.plain, &fewer); less.Decision > v.Decision || less.NextTier > v.NextTier && v.Decision != verdict.Block {
				t.Errorf("%s, without the first effect %s: %+v", short(v), short(less), c.Effects)
			}
		}
		for i := range c.Effects {
			if c.Effects[i].Certainty == effect.Unknown && v.Decision == verdict.Allow {
				t.Errorf("ALLOW with a dynamic effect: %+v", c.Effects)
			}
		}
	})
}

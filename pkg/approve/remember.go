package approve

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A remembered approval, as the store keeps it.
type remembered struct {
	Who   string    `json:"who"`
	Until time.Time `json:"until"`
}

// rememberable reports whether an approval may hold for the same action later.
// Where it cannot be told what runs, the same words may do something else the
// next time: an agent would have a harmless script approved, and rewrite it.
func rememberable(c *analysis.Case) bool {
	if c.Unexamined != "" {
		return false
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Pattern || slices.ContainsFunc(e.Args, expands) || expands(e.Program) {
			return false
		}
		switch e.Kind {
		case effect.Dynamic, effect.RunDownload, effect.RunDecoded, effect.RunInput, effect.RemoteShell:
			return false
		case effect.Execute:
			if e.Class == effect.Unknown || slices.Contains(runners, e.Program) { // a script, an interpreter, a build
				return false
			}
		default:
		}
	}
	return true
}

// runners are programs that run what files of the workspace say: the same
// command does something else once such a file has changed.
var runners = []string{
	"make", "gmake", "just", "task", "rake", "ninja", "cmake", "bazel", "scons", "meson",
	"npm", "npx", "pnpm", "yarn", "bun", "deno", "node", "go", "cargo", "mvn", "gradle", "gradlew", "ant", "sbt", "dotnet",
	"pip", "pip3", "poetry", "uv", "tox", "nox", "pytest", "python", "python3", "ruby", "bundle", "php", "composer", "perl",
	"docker", "docker-compose", "podman", "vagrant", "ansible-playbook", "terraform", "tofu", "pulumi", "pre-commit",
}

// expands reports whether a word holds what only the shell that runs it knows,
// such as $(cat target). A quoted one is taken for such a word too.
func expands(word string) bool { return strings.ContainsAny(word, "$`…") }

// recall returns the verdict of an approval that still holds.
func (a *Approver) recall(ctx context.Context, c *analysis.Case) (verdict.Verdict, bool) {
	data, ok, err := a.o.Store.Get(ctx, a.o.Binding(c))
	if err != nil || !ok {
		return verdict.Verdict{}, false // asking again is always right
	}
	var r remembered
	if json.Unmarshal(data, &r) != nil || !a.o.Clock().Before(r.Until) {
		return verdict.Verdict{}, false
	}
	return verdict.Verdict{
		Decision: verdict.Allow, Confidence: 1,
		Reasoning: fmt.Sprintf("this exact action is approved until %s by %s", r.Until.UTC().Format(time.RFC3339), r.Who),
		Channel:   "remembered", By: r.Who,
	}, true
}

// keep remembers an approval.
func (a *Approver) keep(ctx context.Context, c *analysis.Case, who string, span time.Duration) error {
	until := a.o.Clock().Add(span)
	data, err := json.Marshal(remembered{Who: who, Until: until})
	if err != nil {
		return err
	}
	return a.o.Store.Put(ctx, a.o.Binding(c), data, until)
}

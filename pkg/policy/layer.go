package policy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Highest is the name of the layer that alone may allow.
const Highest = "organisation"

// LoadLayer reads the policy file of a layer below the highest, such as "team". It holds
// deny and verify rules only, none with exceptions, and extends nothing: what the
// layers above decide cannot be loosened. Names of its rules begin with the layer's and
// a slash, so a verdict says which layer decided.
func LoadLayer(layer, name string, data []byte, opts Options) (*Policy, error) {
	opts.Vars = opts.known()
	f, err := rulefile.Parse(name, data, checks(opts.Vars))
	var errs yamlfile.Errors
	errs.Add(err)
	if f.Extends != "" {
		errs.Add(f.ExtendsPos.Errorf("the %s layer cannot extend a preset: only the highest layer can; remove extends", layer))
	}
	if len(f.Allow) > 0 {
		errs.Add(f.Allow[0].Pos.Errorf("the %s layer cannot allow actions: only the highest layer can; remove allow", layer))
	}
	for _, l := range [][]rulefile.Rule{f.Deny, f.Verify} {
		for i := range l {
			if r := &l[i]; len(r.Except) > 0 {
				errs.Add(r.Pos.Errorf("rule %s has exceptions, which the %s layer cannot have; narrow the rule instead", yamlfile.Quote(r.Name), layer))
			}
		}
	}
	if len(f.Deny)+len(f.Verify) > most {
		errs.Add(yamlfile.Pos{}.Errorf("the layer has more than %d deny and verify rules; combine some", most))
	}
	if err := yamlfile.In("policy", name, errs.Err()); err != nil {
		return nil, err
	}
	for _, l := range [][]rulefile.Rule{f.Deny, f.Verify} {
		for i := range l {
			canonicalTypes(&l[i])
			l[i].Name = layer + "/" + l[i].Name
		}
	}
	p := newPolicy(name, f.Fingerprint(), f.Set, opts)
	p.layer = layer
	if _, err := p.guards.compile(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

// Over returns the policy with layers of [LoadLayer] below it.
func (p *Policy) Over(lower ...*Policy) *Policy {
	if len(lower) == 0 {
		return p
	}
	out := *p
	out.lower = lower
	h := sha256.New()
	for _, l := range append([]*Policy{p}, lower...) {
		fmt.Fprintf(h, "%s %s\n", l.layer, l.fingerprint)
	}
	out.fingerprint = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return &out
}

// stricter reports whether what a lower layer says counts instead of what was said
// above it.
func stricter(below, above *verdict.Verdict) bool {
	order := cmp.Or(cmp.Compare(below.Decision, above.Decision), cmp.Compare(below.NextTier, above.NextTier))
	return order > 0 || order == 0 && above.Rule == "" && below.Rule != ""
}

// An Answer is what one layer says about a case.
type Answer struct {
	Layer   string          // [Highest], or the name of a lower one
	Name    string          // of its preset or file
	Verdict verdict.Verdict // without a decision if the layer says nothing
	Decides bool
}

// Answers returns what each layer says about a case. The verdict of the policy is that of
// the one that decides.
func (p *Policy) Answers(ctx context.Context, c *analysis.Case) ([]Answer, error) {
	var out []Answer
	decides := 0
	for i, l := range append([]*Policy{p}, p.lower...) {
		v, err := l.own(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, Answer{Layer: cmp.Or(l.layer, Highest), Name: l.name, Verdict: v})
		if stricter(&v, &out[decides].Verdict) {
			decides = i
		}
	}
	out[decides].Decides = true
	return out, nil
}

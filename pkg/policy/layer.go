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

// HighestPolicyLayerName is the name of the only layer that may have allow rules.
const HighestPolicyLayerName = "organisation"

// LoadLayer reads the policy file of a layer below the highest, such as "team". It may only have deny and
// verify rules without exceptions, and extend no preset: it cannot loosen decisions of the layers above. The
// names of its rules are prefixed with the layer's name and a slash, so that a verdict shows which layer
// decided.
func LoadLayer(layer, name string, data []byte, opts Options) (*Policy, error) {
	opts.FoldersByGlobVariable = opts.allFoldersByGlobVariable()
	f, err := rulefile.Parse(name, data, criterionSyntaxChecks(opts.FoldersByGlobVariable))
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
				errs.Add(r.Pos.Errorf("rule %s has exceptions, which the %s layer cannot have; narrow the rule instead", yamlfile.QuoteForMessage(r.Name), layer))
			}
		}
	}
	if len(f.Deny)+len(f.Verify) > maxRules {
		errs.Add(yamlfile.Pos{}.Errorf("the %s layer has more than %d deny and verify rules; combine some rules", layer, maxRules))
	}
	if err := yamlfile.AnnotateErrorsWithFile("policy", name, errs.Err()); err != nil {
		return nil, err
	}
	for _, l := range [][]rulefile.Rule{f.Deny, f.Verify} {
		for i := range l {
			addCanonicalActionTypes(&l[i])
			l[i].Name = layer + "/" + l[i].Name
		}
	}
	p := newPolicy(name, f.Fingerprint(), f.PolicyRuleLists, opts)
	p.layerName = layer
	if _, err := p.denyAndVerifyRules.compile(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

// WithLowerLayers returns the policy with layers from [LoadLayer] below it.
func (p *Policy) WithLowerLayers(lower ...*Policy) *Policy {
	if len(lower) == 0 {
		return p
	}
	out := *p
	out.lowerLayers = lower
	h := sha256.New()
	for _, l := range append([]*Policy{p}, lower...) {
		fmt.Fprintf(h, "%s %s\n", l.layerName, l.fingerprint)
	}
	out.fingerprint = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return &out
}

// isLowerLayerStricter reports whether the verdict of a lower layer replaces the verdict of the layers above.
func isLowerLayerStricter(lowerLayer, upperLayers *verdict.Verdict) bool {
	order := cmp.Or(cmp.Compare(lowerLayer.Decision, upperLayers.Decision), cmp.Compare(lowerLayer.NextTier, upperLayers.NextTier))
	return order > 0 || order == 0 && upperLayers.Rule == "" && lowerLayer.Rule != ""
}

// A LayerVerdict is the verdict of one layer on a case.
type LayerVerdict struct {
	Layer      string          // [HighestPolicyLayerName], or the name of a lower layer
	Name       string          // name of the layer's preset or file
	Verdict    verdict.Verdict // has no decision if this is a lower layer, none of its rules matches, and the whole action could be examined
	IsDecisive bool
}

// LayerVerdicts returns the verdict of each layer on a case. The verdict of the policy is the strictest of them.
func (p *Policy) LayerVerdicts(ctx context.Context, c *analysis.ActionCase) ([]LayerVerdict, error) {
	var out []LayerVerdict
	decides := 0
	for i, l := range append([]*Policy{p}, p.lowerLayers...) {
		v, err := l.judgeLayer(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, LayerVerdict{Layer: cmp.Or(l.layerName, HighestPolicyLayerName), Name: l.name, Verdict: v})
		if isLowerLayerStricter(&v, &out[decides].Verdict) {
			decides = i
		}
	}
	out[decides].IsDecisive = true
	return out, nil
}

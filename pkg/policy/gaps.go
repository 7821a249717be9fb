package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// A Gap says why an allow rule that names an action does not cover it.
type Gap struct{ Rule, Why string }

// Gaps returns why the allow rules that name an action, by its type or its command, do not cover it.
func (p *Policy) Gaps(ctx context.Context, c *analysis.Case) ([]Gap, error) {
	x, err := p.allow.compile()
	if err != nil {
		return nil, err
	}
	s := searches.Get().(*search)
	s.ctx, s.c = ctx, c
	defer func() {
		*s = search{}
		searches.Put(s)
	}()
	s.enter(x)
	var out []Gap
	for i := range p.allow.rules {
		r := &p.allow.rules[i]
		if !meant(c, r) {
			continue
		}
		why, err := s.gap(i, r)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, Gap{r.Name, why})
		}
	}
	return out, nil
}

// meant reports whether a rule is intended for an action: it lists the action's type, or one of its
// expressions matches part of the command.
func meant(c *analysis.Case, r *rulefile.Rule) bool {
	if slices.Contains(r.Types, c.Action.Type) || c.Action.Given != "" && slices.Contains(r.Types, c.Action.Given) {
		return true
	}
	ok, err := (&texts{exprs: r.Commands}).find(c.Views(), func(v *analysis.View) bool { return v.Field == "command" })
	return ok && err == nil
}

// gap returns the part of a case that an allow rule does not cover; "" if it covers everything.
func (s *search) gap(rule int, r *rulefile.Rule) (string, error) {
	for i := range s.c.Effects {
		e := &s.c.Effects[i]
		if why, err := s.open(rule, r, e); why != "" || err != nil {
			return why, err
		}
	}
	if len(r.Commands) > 0 {
		ok, err := (&texts{exprs: r.Commands}).whole(s.c.Action.Text("command"))
		if err != nil {
			return "", err
		}
		if !ok {
			return "its pattern in commands matches only a part of the command; it must match all of it", nil
		}
	}
	ok, err := s.slow(rule)
	switch {
	case err != nil:
		return "", err
	case !ok && len(r.Commands) > 0 && s.programs() > 1:
		return fmt.Sprintf("the command runs %d programs, and a rule with commands can allow only one; run them one by one", s.programs()), nil
	case !ok:
		return "its conditions (content, when, session) do not match", nil
	}
	for i := range s.c.Effects {
		if out, err := s.excepted(rule, &s.c.Effects[i]); out || err != nil {
			return "its except matches: " + doing(&s.c.Effects[i]), err
		}
	}
	return "", nil
}

// open returns why a rule does not cover an effect; "" if it does.
func (s *search) open(rule int, r *rulefile.Rule, e *effect.Effect) (string, error) {
	if unreadable(s.c, e) {
		return "part of the action is unknown, and allow rules cover known actions only: " + shown(cmp.Or(e.Reason, e.Program)), nil
	}
	set, err := s.covers(e)
	if set.has(rule) || err != nil {
		return "", err
	}
	typed := s.x.typed(s.c.Action, e.Word())
	switch {
	case !typed.has(rule) || e.Sure == effect.Unknown && !slices.Contains(r.Types, s.c.Action.Type):
		return fmt.Sprintf("its action_types do not cover everything that the action does: %s; add %s", doing(e), e.Word()), nil
	case len(r.Paths)+len(r.Hosts) > 0 && e.Path == "" && e.Host == "" && e.URL == "":
		return fmt.Sprintf("a rule with paths or hosts cannot cover an effect that has neither: %s; use commands instead", doing(e)), nil
	case r.Trusted != "" && (r.Trusted == "true") != e.Trusted:
		return "trusted is not " + r.Trusted + ": " + doing(e), nil
	case r.Restorable != "" && (r.Restorable == "true") != e.Restorable:
		return "restorable is not " + r.Restorable + ": " + doing(e), nil
	}
	return "its paths, hosts or other keys do not match: " + doing(e), nil
}

// programs returns how many programs the case runs.
func (s *search) programs() (n int) {
	for i := range s.c.Effects {
		if s.c.Effects[i].Kind == effect.Execute {
			n++
		}
	}
	return n
}

// doing describes an effect in the words used in reasons.
func doing(e *effect.Effect) string {
	for _, object := range [...]string{e.Path, e.Host, e.Program} {
		if object != "" {
			return string(e.Word()) + " " + shown(object)
		}
	}
	return string(e.Word())
}

// Describe returns a rule of the policy by its name, as rows of key and value; nil if there is no such rule.
func (p *Policy) Describe(name string) [][2]string {
	for _, layer := range append([]*Policy{p}, p.lower...) {
		for _, l := range [...]struct {
			list  string
			rules []rulefile.Rule
		}{{"deny", layer.set.Deny}, {"verify", layer.set.Verify}, {"allow", layer.set.Allow}} {
			for i := range l.rules {
				if r := &l.rules[i]; strings.EqualFold(r.Name, name) {
					return append([][2]string{{"name", r.Name}, {"list", l.list}, {"policy", layer.name}}, r.Rows()...)
				}
			}
		}
	}
	return nil
}

package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// variables are the names that globs may begin with, whether or not
// [Options.Vars] holds folders for them.
var variables = [...]string{"HOME", "WORKSPACE", "SHIELD", "SHIELD_PROGRAM", "SHIELD_CACHE"}

// known returns the folders of all variables.
func (o Options) known() map[string][]string {
	vars := make(map[string][]string, len(o.Vars)+len(variables))
	for _, name := range variables {
		vars[name] = nil
	}
	for name, folders := range o.Vars {
		vars[name] = folders
	}
	return vars
}

// Load reads a policy file. name is what messages call it. The protected core
// of the presets comes before the file's own rules, whether it extends a
// preset or not. An error says where the file is wrong; nothing may be allowed
// then.
func Load(name string, data []byte, opts Options) (*Policy, error) {
	opts.Vars = opts.known()
	f, err := rulefile.Parse(name, data, checks(opts.Vars))
	if err != nil {
		return nil, err
	}
	set, err := effective(name, f)
	if err != nil {
		return nil, err
	}
	if len(set.Deny)+len(set.Verify) > most || len(set.Allow) > most {
		return nil, fmt.Errorf("policy %s: more than %d rules that deny or verify, or that allow, those of the preset included", name, most)
	}
	p := newPolicy(name, set.Fingerprint(), set, opts)
	for _, l := range []*list{&p.guards, &p.allow} {
		if _, err := l.compile(); err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
	}
	return p, nil
}

// effective returns a file's rules together with those it stands on.
func effective(name string, f *rulefile.File) (rulefile.Set, error) {
	core := preset{deny: coreRules}.set()
	base := core
	if f.Extends != "" {
		p, ok := presetNamed(f.Extends)
		if !ok {
			return rulefile.Set{}, f.ExtendsError(name, fmt.Sprintf("unknown preset %s%s; there are %s",
				rulefile.Quote(f.Extends), rulefile.Suggest(f.Extends, Presets()), strings.Join(Presets(), ", ")))
		}
		base = p.set()
	}
	if err := unshadowed(name, f, base); err != nil {
		return rulefile.Set{}, err
	}
	// The core stays first, so that its reasons are the ones told.
	rest := base
	rest.Deny = base.Deny[len(core.Deny):]
	if err := coreUntouched(name, f, core); err != nil {
		return rulefile.Set{}, err
	}
	set, err := f.Over(rest)
	if err != nil {
		var e *rulefile.Error
		if errors.As(err, &e) {
			e.Name = name
		}
		return rulefile.Set{}, err
	}
	set.Deny = append(core.Deny[:len(core.Deny):len(core.Deny)], set.Deny...)
	return set, nil
}

// unshadowed refuses rules that bear the name of another rule of the preset:
// a verdict names its rule, and names must tell them apart.
func unshadowed(name string, f *rulefile.File, base rulefile.Set) error {
	taken := map[string]bool{}
	for _, l := range [][]rulefile.Rule{base.Deny, base.Verify, base.Allow} {
		for i := range l {
			taken[l[i].Name] = true
		}
	}
	for _, l := range [][]rulefile.Rule{f.Deny, f.Verify, f.Allow} {
		for i := range l {
			if r := &l[i]; taken[r.Name] && !r.Amends {
				return &rulefile.Error{Name: name, Pos: r.Pos, Msg: fmt.Sprintf(
					"rule name %s is taken by the preset; choose another, or give nothing but name and except to add exceptions to it", rulefile.Quote(r.Name))}
			}
		}
	}
	return nil
}

// coreUntouched refuses exceptions to the protected core.
func coreUntouched(name string, f *rulefile.File, core rulefile.Set) error {
	for i := range f.Deny {
		for j := range core.Deny {
			if f.Deny[i].Name == core.Deny[j].Name {
				return &rulefile.Error{Name: name, Pos: f.Deny[i].Pos, Msg: fmt.Sprintf(
					"rule %s is part of the protected core and takes no exceptions", rulefile.Quote(f.Deny[i].Name))}
			}
		}
	}
	return nil
}

// checks are the parts of a file whose syntax this package knows.
func checks(vars map[string][]string) rulefile.Checks {
	return rulefile.Checks{
		Glob: func(glob string) error {
			_, err := effect.NewGlobs([]string{glob}, vars)
			return err
		},
		Host: func(pattern string) error {
			_, err := parseHost(pattern)
			return err
		},
		JQ: func(expr string) error {
			_, err := newProgram(expr)
			return err
		},
	}
}

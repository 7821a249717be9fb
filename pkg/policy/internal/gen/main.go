// Gen compiles policies/*.yaml into the Go literals that pkg/policy uses, so
// that no YAML is read when shield starts. Run it by go generate.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"slices"

	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/policies"
)

// presets are the policies that shield ships, in the order help lists them.
var presets = []string{"default", "strict", "permissive", "offline"}

func main() {
	src, err := generate(policies.FS)
	if err == nil {
		err = os.WriteFile("presets_gen.go", src, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A generator collects the rules of all presets, each once.
type generator struct {
	rules []rulefile.Rule
	seen  map[string]int
}

func generate(files fs.FS) ([]byte, error) {
	core, err := load(files, "core")
	if err != nil {
		return nil, err
	}
	base, err := load(files, "base")
	if err != nil {
		return nil, err
	}
	g := generator{seen: map[string]int{}}
	var tables bytes.Buffer
	fmt.Fprintf(&tables, "// presets are the policies that shield ships.\nvar presets = [...]preset{\n")
	for _, name := range presets {
		f, err := load(files, name)
		if err != nil {
			return nil, err
		}
		if f.Extends != "base" {
			return nil, fmt.Errorf("policies/%s.yaml extends %q, not base", name, f.Extends)
		}
		set := arrange(core.Set, base.Set, f.Set)
		fmt.Fprintf(&tables, "{name: %q,\ndeny: %s,\nverify: %s,\nallow: %s,\nfingerprint: %q},\n",
			name, g.list(set.Deny), g.list(set.Verify), g.list(set.Allow), set.Fingerprint())
	}
	tables.WriteString("}\n")

	var out bytes.Buffer
	out.WriteString("// Code generated from policies/*.yaml by go generate. DO NOT EDIT.\n\npackage policy\n\n")
	out.WriteString("import \"github.com/shieldcli/shield/pkg/policy/internal/rulefile\"\n\n")
	tables.WriteTo(&out)
	fmt.Fprintf(&out, "\n// coreRules are the rules of policies/core.yaml.\nvar coreRules = %s\n", g.list(core.Deny))
	out.WriteString("\n// presetRules are the rules of all presets.\nvar presetRules = [...]rulefile.Rule{\n")
	for i := range g.rules {
		writeRule(&out, &g.rules[i])
	}
	out.WriteString("}\n")
	return format.Source(out.Bytes())
}

// arrange puts the rules of core, base and a preset in order. Of the preset's
// verify rules those that ask for tier 3 come before base's, which would ask for
// less; the others after them, since base's say more of what is at stake.
func arrange(core, base, own rulefile.Set) rulefile.Set {
	var before, after []rulefile.Rule
	for _, r := range own.Verify {
		if r.Tier == 3 {
			before = append(before, r)
		} else {
			after = append(after, r)
		}
	}
	return rulefile.Set{
		Deny:   slices.Concat(core.Deny, own.Deny, base.Deny),
		Verify: slices.Concat(before, base.Verify, after),
		Allow:  slices.Concat(base.Allow, own.Allow),
	}
}

func load(files fs.FS, name string) (*rulefile.File, error) {
	data, err := fs.ReadFile(files, name+".yaml")
	if err != nil {
		return nil, err
	}
	return rulefile.Parse(name+".yaml", data, rulefile.Checks{})
}

// list returns the indices of rules as a Go literal.
func (g *generator) list(rules []rulefile.Rule) string {
	var b bytes.Buffer
	b.WriteString("[]uint16{")
	for i := range rules {
		key := (&rulefile.Set{Deny: rules[i : i+1]}).Fingerprint()
		n, ok := g.seen[key]
		if !ok {
			n = len(g.rules)
			g.seen[key] = n
			g.rules = append(g.rules, rules[i])
		}
		fmt.Fprintf(&b, "%d, ", n)
	}
	b.WriteString("}")
	return b.String()
}

func writeRule(out *bytes.Buffer, r *rulefile.Rule) {
	fmt.Fprintf(out, "{\nName: %q,\nReason: %q,\n", r.Name, r.Reason)
	fmt.Fprintf(out, "Criteria: rulefile.Criteria%s,\n", criteria(&r.Criteria))
	if r.Tier != 0 {
		fmt.Fprintf(out, "Tier: %d,\n", r.Tier)
	}
	if len(r.Except) > 0 {
		out.WriteString("Except: []rulefile.Criteria{\n")
		for i := range r.Except {
			fmt.Fprintf(out, "%s,\n", criteria(&r.Except[i]))
		}
		out.WriteString("},\n")
	}
	out.WriteString("},\n")
}

// expand writes out the braces of globs, so that no start of shield has to.
func expand(globs []string) []string {
	var out []string
	for _, g := range globs {
		out = append(out, rulefile.Expand(g)...)
	}
	return out
}

// criteria returns criteria as a Go literal without its type.
func criteria(c *rulefile.Criteria) string {
	var b bytes.Buffer
	b.WriteString("{\n")
	for _, f := range []struct {
		name string
		list []string
	}{
		{"Types", c.Types}, {"Paths", expand(c.Paths)}, {"Hosts", c.Hosts}, {"Commands", c.Commands}, {"Content", c.Content},
	} {
		if len(f.list) > 0 {
			fmt.Fprintf(&b, "%s: []string{\n", f.name)
			for _, s := range f.list {
				fmt.Fprintf(&b, "%q,\n", s)
			}
			b.WriteString("},\n")
		}
	}
	if c.When != "" {
		fmt.Fprintf(&b, "When: %q,\n", c.When)
	}
	b.WriteString("}")
	return b.String()
}

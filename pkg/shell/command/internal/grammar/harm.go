package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/shieldcli/shield/pkg/effect"
)

// dryRunKey is the name, in the key "harms" of an entry, of the command forms that change nothing
// (dry runs).
const dryRunKey = "dry"

// A harmfulCommand is a form of a command that does harm, such as "submodule deinit --all". A command has
// this form if it has the subcommand and, unless options is empty, one of the options.
type harmfulCommand struct {
	programs               []string // names of programs in the entry to which this form applies; empty for all of them
	subcommandNamesByDepth [][]string
	options                []string
	harm                   string
}

// parseHarmfulCommands parses the value of the key "harms" in the entry of a program. The value maps each harm
// to command forms, such as "submodule deinit --all", separated by commas.
func parseHarmfulCommands(m yaml.MapSlice) (out []harmfulCommand, err error) {
	for _, item := range m {
		harm, text := fmt.Sprint(item.Key), fmt.Sprint(item.Value)
		if harm != dryRunKey && !slices.Contains(effect.Harms(), effect.Harm(harm)) {
			return nil, fmt.Errorf("unknown harm %q", harm)
		}
		for part := range strings.SplitSeq(text, ",") {
			f := harmfulCommand{harm: harm}
			for _, w := range strings.Fields(part) {
				switch programs, named := strings.CutSuffix(w, ":"); {
				case named:
					f.programs = strings.Split(programs, "|")
				case strings.ContainsAny(w[:1], "-+/"):
					f.options = append(f.options, w)
				case len(f.options) > 0:
					return nil, fmt.Errorf("harm %s: %q: a subcommand behind an option", harm, part)
				default:
					f.subcommandNamesByDepth = append(f.subcommandNamesByDepth, strings.Split(w, "|"))
				}
			}
			if len(f.programs)+len(f.subcommandNamesByDepth)+len(f.options) == 0 {
				return nil, fmt.Errorf("harm %s: an empty form", harm)
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// addHarmTo returns a copy of a grammar in which a command form, such as "submodule deinit --all",
// has its harm. above are the grammars of the parent commands.
func (f *harmfulCommand) addHarmTo(g *Grammar, above ...*Grammar) (*Grammar, error) {
	out := *g
	depth := len(above)
	if depth == len(f.subcommandNamesByDepth) {
		return &out, f.setHarmOfOptionsOrGrammar(&out, above)
	}
	out.Subcommands = slices.Clone(g.Subcommands)
	for _, name := range f.subcommandNamesByDepth[depth] {
		i := slices.IndexFunc(out.Subcommands, func(s Subcommand) bool { return s.Name == name })
		if i < 0 {
			i, _ = slices.BinarySearchFunc(out.Subcommands, name, func(s Subcommand, name string) int { return strings.Compare(s.Name, name) })
			sub, err := newUnlistedSubcommand(name, g, out.Subcommands)
			if err != nil {
				return nil, err
			}
			out.Subcommands = slices.Insert(out.Subcommands, i, sub)
		}
		sub, err := f.addHarmTo(out.Subcommands[i].Grammar, append(slices.Clip(above), g)...)
		if err != nil {
			return nil, err
		}
		out.Subcommands[i].Grammar = sub
	}
	return &out, nil
}

// newUnlistedSubcommand returns a subcommand that the entry of its program does not list. It gets the
// grammar of a listed name with a wildcard that matches it, such as get-*; if there is none, it
// gets the operands of the program and the class local-write.
func newUnlistedSubcommand(name string, g *Grammar, subs []Subcommand) (Subcommand, error) {
	if i := slices.IndexFunc(subs, func(s Subcommand) bool { return matchesPrefixPattern(s.Name, name) }); i >= 0 {
		return Subcommand{name, subs[i].Grammar}, nil
	}
	if len(g.Operands.First)+len(g.Operands.Last) > 0 {
		return Subcommand{}, fmt.Errorf("harms: %s is not a listed subcommand; list it", name)
	}
	shape := g.Operands
	if shape.Middle == "" {
		shape.Middle = roleConstantByYAMLWord["text"]
	}
	style := argStylesInheritedBySubcommand(g.ArgStyles)
	if slices.Contains(g.ArgStyles, "open") {
		style = append(style, "open")
	}
	return Subcommand{name, &Grammar{ArgStyles: style, Operands: shape, UnconditionalAction: &OptionOrCommandAction{Class: programClassConstantByYAMLWord["local-write"]}}}, nil
}

// matchesPrefixPattern reports whether pattern ends in * and the text before it is a prefix of
// name.
func matchesPrefixPattern(pattern, name string) bool {
	prefix, any := strings.CutSuffix(pattern, "*")
	return any && strings.HasPrefix(name, prefix)
}

// setHarmOfOptionsOrGrammar adds the harm to options of a grammar, or to the whole grammar.
func (f *harmfulCommand) setHarmOfOptionsOrGrammar(g *Grammar, above []*Grammar) error {
	if len(f.options) == 0 {
		var base OptionOrCommandAction
		if g.UnconditionalAction != nil {
			base = *g.UnconditionalAction
		}
		if f.harm == dryRunKey {
			base.ActionFlagConstantNames = append(slices.Clone(base.ActionFlagConstantNames), actionFlagConstantByYAMLWord["dry"])
			g.UnconditionalAction = &base
			return nil
		}
		if base.Harm != "" && base.Harm != f.harm {
			return fmt.Errorf("harm %q beside %q", f.harm, base.Harm)
		}
		base.Harm = f.harm
		g.UnconditionalAction = &base
		return nil
	}
	g.Options = slices.Clone(g.Options)
	for _, name := range f.options {
		if sub := slices.ContainsFunc(g.Subcommands, func(s Subcommand) bool { return s.Name == name || matchesPrefixPattern(s.Name, name) }); sub && name[0] == '/' {
			one := harmfulCommand{subcommandNamesByDepth: append(make([][]string, len(above)), []string{name}), harm: f.harm}
			with, err := one.addHarmTo(g, above...)
			if err != nil {
				return err
			}
			g.Subcommands = with.Subcommands
			continue
		}
		i := slices.IndexFunc(g.Options, func(o Option) bool { return o.Name == name })
		if i < 0 {
			o := Option{name, OptionOrCommandAction{Class: programClassConstantByYAMLWord["local-write"]}}
			for _, up := range above {
				if k := slices.IndexFunc(up.Options, func(o Option) bool { return o.Name == name }); k >= 0 {
					o = up.Options[k]
				}
			}
			i, _ = slices.BinarySearchFunc(g.Options, name, func(o Option, name string) int { return strings.Compare(o.Name, name) })
			g.Options = slices.Insert(g.Options, i, o)
		}
		if has := g.Options[i].Action.Harm; has != "" && has != f.harm {
			return fmt.Errorf("harm %q of %s beside %q", f.harm, name, has)
		}
		if f.harm == dryRunKey {
			g.Options[i].Action = OptionOrCommandAction{ActionFlagConstantNames: []string{actionFlagConstantByYAMLWord["dry"]}}
			continue
		}
		g.Options[i].Action.Harm = f.harm
	}
	return nil
}

// grammarWithHarms returns the grammar of a program with the harms that command forms have. If
// onlyProgramSpecific is true, it adds only the harms of forms that name the program; if false, only those of
// forms that name no program.
func grammarWithHarms(g *Grammar, harmfulCommands []harmfulCommand, program string, onlyProgramSpecific bool) (*Grammar, error) {
	for i := range harmfulCommands {
		f := &harmfulCommands[i]
		if onlyProgramSpecific != (len(f.programs) > 0) || onlyProgramSpecific && !slices.Contains(f.programs, program) {
			continue
		}
		var err error
		if g, err = f.addHarmTo(g); err != nil {
			return nil, err
		}
	}
	return g, nil
}

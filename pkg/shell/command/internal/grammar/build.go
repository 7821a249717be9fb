package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// A programYAMLCompiler compiles the YAML entry of one program or subcommand.
type programYAMLCompiler struct {
	loader                 *commandYAMLLoader
	isProgramNotSubcommand bool // the entry is a program, not a subcommand
	programAliases         []string
	examples               []Example
	languageFileExtensions []string
	harmfulCommands        []harmfulCommand
	options                map[string]OptionOrCommandAction
	argTextPatterns        map[string]OptionOrCommandAction
	keyValueOperands       map[string]OptionOrCommandAction
	subs                   map[string]*Grammar
	inheritanceDepth       int
}

func (b *programYAMLCompiler) compileEntry(fields yaml.MapSlice) (*Grammar, error) {
	b.options, b.keyValueOperands, b.argTextPatterns, b.subs = map[string]OptionOrCommandAction{}, map[string]OptionOrCommandAction{}, map[string]OptionOrCommandAction{}, map[string]*Grammar{}
	g := &Grammar{}
	if err := b.readFields(g, fields); err != nil {
		return nil, err
	}
	for name, a := range b.options {
		o := Option{strings.TrimSuffix(name, "*"), a}
		if strings.HasSuffix(name, "*") && len(name) > 1 && name != "-*" {
			g.OptionPrefixes = append(g.OptionPrefixes, o)
		} else {
			g.Options = append(g.Options, o)
		}
	}
	for name, a := range b.keyValueOperands {
		g.KeyValueOperands = append(g.KeyValueOperands, Option{name, a})
	}
	for name, a := range b.argTextPatterns {
		g.ArgTextPatterns = append(g.ArgTextPatterns, Option{name, a})
	}
	for name, sub := range b.subs {
		g.Subcommands = append(g.Subcommands, Subcommand{name, sub})
	}
	byName := func(a, b Option) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(g.Options, byName)
	slices.SortFunc(g.KeyValueOperands, byName)
	slices.SortFunc(g.ArgTextPatterns, byName)
	// The longest prefix of a word counts.
	slices.SortFunc(g.OptionPrefixes, func(a, b Option) int {
		if len(a.Name) != len(b.Name) {
			return len(b.Name) - len(a.Name)
		}
		return strings.Compare(a.Name, b.Name)
	})
	slices.SortFunc(g.Subcommands, func(a, b Subcommand) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(g.SkippableCommandGroups)
	for _, sub := range g.Subcommands {
		if sub.Grammar.ArgStyles == nil {
			sub.Grammar.ArgStyles = argStylesInheritedBySubcommand(g.ArgStyles)
		}
	}
	return g, nil
}

// argStylesInheritedBySubcommand returns the option styles, such as gnu or bundled, that a subcommand inherits
// from its parent if its entry names none.
func argStylesInheritedBySubcommand(parentStyles []string) []string {
	out := []string{}
	for _, s := range parentStyles {
		switch s {
		case "gnu", "long", "plus", "numeric", "bundled", "apart", "slash":
			out = append(out, s)
		}
	}
	return out
}

// readFields reads the keys of a YAML entry. If the entry has the key "like", readFields first
// reads the entry that "like" names; the keys of the entry itself then override these.
func (b *programYAMLCompiler) readFields(g *Grammar, fields yaml.MapSlice) error {
	if b.inheritanceDepth++; b.inheritanceDepth > 8 {
		return fmt.Errorf("like: nested too deeply")
	}
	for _, item := range fields {
		if item.Key != "like" {
			continue
		}
		base, err := b.loader.findCommandYAML(fmt.Sprint(item.Value))
		if err != nil {
			return err
		}
		if err := b.readFields(g, base); err != nil {
			return err
		}
	}
	defer func() { b.inheritanceDepth-- }()
	own := map[string]bool{}
	for _, item := range fields {
		key, _ := item.Key.(string)
		if b.inheritanceDepth > 1 && (key == "also" || key == "examples" || key == "files") {
			continue // the entry does not inherit also, examples and files from the entry that "like" names
		}
		if err := b.readYAMLKey(g, key, item.Value, own); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (b *programYAMLCompiler) readYAMLKey(g *Grammar, key string, v any, seenOptionsAndSubcommands map[string]bool) error {
	switch key {
	case "harms":
		m, ok := v.(yaml.MapSlice)
		if !ok || !b.isProgramNotSubcommand && b.inheritanceDepth == 1 {
			return fmt.Errorf("not a map, or not of a program")
		}
		forms, err := parseHarmfulCommands(m)
		if b.inheritanceDepth > 1 { // these keys describe only the entry that "like" names, not this one
			forms = slices.DeleteFunc(forms, func(f harmfulCommand) bool { return len(f.programs) > 0 })
		}
		b.harmfulCommands = append(b.harmfulCommands, forms...)
		return err
	case "options", "keys", "texts", "subs", "examples":
		m, ok := v.(yaml.MapSlice)
		if !ok {
			return fmt.Errorf("not a map")
		}
		return b.readMapField(key, m, seenOptionsAndSubcommands)
	}
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("not a string: %v", v)
	}
	words := strings.Fields(text)
	switch key {
	case "also":
		if !b.isProgramNotSubcommand {
			return fmt.Errorf("only a program may have other names")
		}
		b.programAliases = words
	case "like":
	case "why":
		g.EffectsDescription = text
	case "service":
		g.RemoteService = text
	case "registry":
		g.PackageRegistry = text
	case "input":
		role, err := parseRole(text)
		g.StdinRole = role
		return err
	case "language", "files":
		if !b.isProgramNotSubcommand {
			return fmt.Errorf("only a program may have this key")
		}
		if key == "files" {
			b.languageFileExtensions = words
		} else {
			g.InterpretedLanguage = text
		}
	case "style":
		for _, w := range words {
			if argStyleConstantByYAMLWord[w] == "" {
				return fmt.Errorf("unknown style %q", w)
			}
		}
		g.ArgStyles = words
	case "does":
		a, err := parseAction(text)
		if err != nil {
			return err
		}
		g.UnconditionalAction = &a
	case "flags":
		return b.addOptions(words, OptionOrCommandAction{}, seenOptionsAndSubcommands)
	case "values":
		return b.addOptions(words, OptionOrCommandAction{ValueRoles: []string{roleConstantByYAMLWord["word"]}}, seenOptionsAndSubcommands)
	case "optional":
		return b.addOptions(words, OptionOrCommandAction{ValueRoles: []string{roleConstantByYAMLWord["word"]}, HasOptionalAttachedValue: true}, seenOptionsAndSubcommands)
	case "operands":
		s, err := parseOperandRoles(text)
		g.Operands = s
		return err
	case "groups":
		g.SkippableCommandGroups = words
	default:
		return fmt.Errorf("unknown key")
	}
	return nil
}

func (b *programYAMLCompiler) readMapField(fieldName string, m yaml.MapSlice, seenOptionsAndSubcommands map[string]bool) error {
	for _, item := range m {
		name, ok := item.Key.(string)
		if !ok {
			return fmt.Errorf("%v is not a string", item.Key)
		}
		if fieldName == "subs" {
			if err := b.addSubcommands(name, item.Value, seenOptionsAndSubcommands); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		text, ok := item.Value.(string)
		if !ok && item.Value != nil {
			return fmt.Errorf("%s: %v is not a string", name, item.Value)
		}
		if fieldName == "examples" {
			if b.isProgramNotSubcommand {
				b.examples = append(b.examples, Example{name, text})
			}
			continue
		}
		a, err := parseAction(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch fieldName {
		case "options":
			err = b.addOptions(strings.Fields(name), a, seenOptionsAndSubcommands)
		case "texts":
			b.argTextPatterns[name] = a
		default:
			for _, k := range strings.Fields(name) {
				b.keyValueOperands[k] = a
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *programYAMLCompiler) addOptions(names []string, a OptionOrCommandAction, own map[string]bool) error {
	for _, name := range names {
		if own["option "+name] {
			return fmt.Errorf("option %s is listed twice", name)
		}
		own["option "+name] = true
		b.options[name] = a
	}
	return nil
}

func (b *programYAMLCompiler) addSubcommands(names string, v any, own map[string]bool) error {
	sub := programYAMLCompiler{loader: b.loader}
	var g *Grammar
	var err error
	switch v := v.(type) {
	case yaml.MapSlice:
		g, err = sub.compileEntry(v)
	case string:
		var a OptionOrCommandAction
		a, err = parseAction(v)
		g = &Grammar{UnconditionalAction: &a}
		if a.Operands != nil {
			g.Operands, a.Operands = *a.Operands, nil
		}
	default:
		err = fmt.Errorf("neither a map nor an action")
	}
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		if own["sub "+name] {
			return fmt.Errorf("subcommand %s is listed twice", name)
		}
		own["sub "+name] = true
		b.subs[name] = g
	}
	return nil
}

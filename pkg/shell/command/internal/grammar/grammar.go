// Package grammar reads the descriptions of programs in YAML and writes them
// as Go tables; programs/README.md describes their language.
package grammar

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// A Program is one program name with its compiled entry from command/programs/*.yaml.
type Program struct {
	Name                   string
	YAMLEntryName          string // key of the program's entry in the YAML file, which is the main name of the program
	YAMLFileName           string
	IsMainName             bool // false for the other names of an entry
	Grammar                *Grammar
	Examples               []Example
	LanguageFileExtensions []string // file name extensions of code in the program's language, such as .py; set only for the main name
}

// An Example is a command and its expected effects.
type Example struct{ Command, WantedEffects string }

// A Grammar is the compiled description of a program or subcommand.
type Grammar struct {
	ArgStyles              []string
	EffectsDescription     string
	InterpretedLanguage    string
	RemoteService          string
	PackageRegistry        string
	StdinRole              string // role of standard input, as Go code
	Options                []Option
	OptionPrefixes         []Option
	KeyValueOperands       []Option
	ArgTextPatterns        []Option
	Subcommands            []Subcommand
	SkippableCommandGroups []string
	Operands               OperandRoles
	UnconditionalAction    *OptionOrCommandAction
}

// An Option is a name with an action.
type Option struct {
	Name   string
	Action OptionOrCommandAction
}

// A Subcommand is a subcommand of a program: its name, and the grammar of the arguments after it.
type Subcommand struct {
	Name    string
	Grammar *Grammar
}

// LoadPrograms reads all files of a folder whose name ends in .yaml and returns the
// programs in them, sorted by name.
func LoadPrograms(folder fs.FS) ([]Program, error) {
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}
	l := commandYAMLLoader{entriesByName: map[string]yaml.MapSlice{}}
	for _, name := range names {
		if err := l.readFile(folder, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var programs []Program
	seen := map[string]string{}
	for _, e := range l.entries {
		p, err := l.compileProgramYAML(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.file, e.name, err)
		}
		for _, q := range p {
			if other, ok := seen[q.Name]; ok {
				return nil, fmt.Errorf("%s: program %q is already in %s", e.file, q.Name, other)
			}
			seen[q.Name] = e.file
		}
		programs = append(programs, p...)
	}
	slices.SortFunc(programs, func(a, b Program) int { return strings.Compare(a.Name, b.Name) })
	return programs, nil
}

type yamlEntryLocation struct {
	file, name string
}

type commandYAMLLoader struct {
	entries       []yamlEntryLocation
	entriesByName map[string]yaml.MapSlice // entries by the program's name
}

func (l *commandYAMLLoader) readFile(folder fs.FS, name string) error {
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		return err
	}
	var top yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(data, &top, yaml.UseOrderedMap(), yaml.Strict()); err != nil {
		return err
	}
	for _, item := range top {
		program, ok := item.Key.(string)
		if !ok {
			return fmt.Errorf("program %v: the name is not a string", item.Key)
		}
		fields, ok := item.Value.(yaml.MapSlice)
		if !ok {
			return fmt.Errorf("program %s: not a map", program)
		}
		if _, ok := l.entriesByName[program]; ok {
			return fmt.Errorf("program %s is listed twice", program)
		}
		l.entriesByName[program] = fields
		l.entries = append(l.entries, yamlEntryLocation{name, program})
	}
	return nil
}

func (l *commandYAMLLoader) compileProgramYAML(e yamlEntryLocation) ([]Program, error) {
	b := programYAMLCompiler{loader: l, isProgramNotSubcommand: true}
	g, err := b.compileEntry(l.entriesByName[e.name])
	if err != nil {
		return nil, err
	}
	if len(b.examples) == 0 {
		return nil, fmt.Errorf("the examples are missing")
	}
	if g, err = grammarWithHarms(g, b.harmfulCommands, "", false); err != nil {
		return nil, err
	}
	names := append([]string{e.name}, b.programAliases...)
	for _, f := range b.harmfulCommands {
		for _, name := range f.programs {
			if !slices.Contains(names, name) {
				return nil, fmt.Errorf("harms: %s is not one of its names", name)
			}
		}
	}
	var ps []Program
	for _, name := range names {
		own, err := grammarWithHarms(g, b.harmfulCommands, name, true)
		if err != nil {
			return nil, err
		}
		ps = append(ps, Program{Name: name, YAMLEntryName: e.name, YAMLFileName: e.file, IsMainName: name == e.name, Grammar: own})
	}
	ps[0].Examples, ps[0].LanguageFileExtensions = b.examples, b.languageFileExtensions
	return ps, nil
}

// findCommandYAML returns the raw entry of a program, or of a subcommand of it.
func (l *commandYAMLLoader) findCommandYAML(programAndSubcommands string) (yaml.MapSlice, error) {
	names := strings.Fields(programAndSubcommands)
	if len(names) == 0 {
		return nil, fmt.Errorf("like: the name is missing")
	}
	m, ok := l.entriesByName[names[0]]
	if !ok {
		return nil, fmt.Errorf("like: unknown program %q", names[0])
	}
	for _, name := range names[1:] {
		var next yaml.MapSlice
		for _, item := range m {
			if item.Key != "subs" {
				continue
			}
			subs, _ := item.Value.(yaml.MapSlice)
			for _, sub := range subs {
				if key, _ := sub.Key.(string); slices.Contains(strings.Fields(key), name) {
					next, _ = sub.Value.(yaml.MapSlice)
				}
			}
		}
		if next == nil {
			return nil, fmt.Errorf("like: unknown subcommand %q of %q", name, programAndSubcommands)
		}
		m = next
	}
	return m, nil
}

package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An Approval is a command about which a rule asked and which a person allowed.
type Approval struct {
	Command string `json:"command"`
	CWD     string `json:"cwd"`  // "" if unknown
	Rule    string `json:"rule"` // the verify rule that asked
}

// A Suggestion is an exception to a rule of a preset that would have avoided questions.
type Suggestion struct {
	Rule                  string
	ApprovalCount         int
	OtherAllowedCommands  []string // other commands that the exception would allow
	exception             rulefile.Criteria
	cwd                   string   // working folder of the commands
	allowedCommands       []string // commands that the exception allows
	stillPromptedCommands []string // commands about which the rule still asks
}

const (
	maxSuggestionExamples = 5   // examples of a suggestion
	maxCommandWords       = 16  // maximum number of words of a command
	maxCommandBytes       = 512 // bytes
	maxSuggestions        = 500 // suggestions
)

// SuggestVerifyExceptions returns exceptions to verify rules of a preset. Each would have covered least approvals
// or more: the same program, subcommand and options on the same files, or on files of one folder.
// It suggests nothing for secrets, for shield itself, or for actions with unknown parts.
func SuggestVerifyExceptions(ctx context.Context, approvals []Approval, presetName string, minApprovals int, an *analysis.Analyzer, opts Options) ([]Suggestion, error) {
	p, err := Preset(presetName, opts)
	if err != nil {
		return nil, err
	}
	s := suggester{ctx: ctx, preset: presetName, policy: p, analyzer: an, opts: opts, groups: map[string]*approvalGroup{}}
	if s.excludedFiles, err = neverSuggested(opts); err != nil {
		return nil, err
	}
	for _, a := range approvals {
		s.add(a)
	}
	var out []Suggestion
	for _, key := range s.approvalGroupKeys {
		g := s.groups[key]
		if g.approvalCount < minApprovals || len(out) == maxSuggestions {
			continue
		}
		if sug := g.toSuggestion(); s.avoidsQuestions(&sug) {
			out = append(out, sug)
		}
	}
	sorted.By(out, func(a, b Suggestion) int { return cmp.Compare(a.Rule, b.Rule) })
	return out, nil
}

type suggester struct {
	ctx               context.Context
	preset            string
	policy            *Policy
	analyzer          *analysis.Analyzer
	opts              Options
	excludedFiles     *effect.Globs
	groups            map[string]*approvalGroup
	approvalGroupKeys []string // keys of groups, in the order of each group's first approval
}

// An approvalGroup is a set of approvals that one suggestion can cover.
type approvalGroup struct {
	rule               string
	cwd                string
	approvalCount      int
	words              [][]string // words of each different command
	folders            []string   // for each word that names a file, its folder; else ""
	paths              []string   // paths that the commands touch
	touchesWholeFolder bool       // a command touches a folder with everything in it
	commands           []string
}

// neverSuggested are the files that no suggestion may touch.
func neverSuggested(opts Options) (*effect.Globs, error) {
	var globs []string
	for _, name := range knowledge.PathListNames() {
		if name != "build_output" && name != "delivered_files" && name != "public_files" {
			list, _ := knowledge.Paths(name)
			globs = append(globs, list...)
		}
	}
	for _, name := range globVariables {
		if strings.HasPrefix(name, "SHIELD") {
			globs = append(globs, "$"+name, "$"+name+"/**")
		}
	}
	return effect.NewGlobs(globs, opts.variableFolders())
}

// isSuggestible reports whether a rule may allow an effect by the words of its command alone.
func (s *suggester) isSuggestible(e *effect.Effect) bool {
	switch e.KindForPolicies() {
	case effect.Execute:
		return e.Class != effect.UnknownClass && e.Class != effect.Privileged
	case effect.ReadFile, effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ListDirectory:
		if e.Path == "" || e.PathIsPattern {
			return false
		}
		_, touches := s.excludedFiles.FirstPossibleMatch(e.Path, false, e.Recursive)
		return !touches
	case effect.ChangeRemoteSystem, effect.DestroyData, effect.HTTPRequest, effect.Connect, effect.Listen:
		return true
	case effect.SendData:
		return !e.HasLabel(effect.LabelCredential) && !e.HasLabel(effect.LabelSecret)
	}
	return false
}

// plainWord matches a word that no shell expands.
var plainWord = prefilter.Lazy(`^[A-Za-z0-9_./:=@%+,-]+$`)

// add puts an approval into its group. It skips commands with words that a shell expands, and commands about
// which the rule would not ask now.
func (s *suggester) add(a Approval) {
	words := strings.Split(a.Command, " ")
	if len(a.Command) > maxCommandBytes || len(words) > maxCommandWords || slices.ContainsFunc(words, func(w string) bool { return !plainWord().MatchString(w) }) {
		return
	}
	c, v, err := s.judge(s.policy, a.Command, a.CWD)
	if err != nil || v.Rule != a.Rule || v.Decision != verdict.Escalate {
		return
	}
	g := &approvalGroup{rule: a.Rule, cwd: a.CWD, folders: make([]string, len(words))}
	key := []string{a.Rule, a.CWD}
	for i := range c.Effects {
		e := &c.Effects[i]
		if !s.isSuggestible(e) || e.Kind == effect.Execute && i > 0 {
			return
		}
		if e.Path != "" {
			g.paths, g.touchesWholeFolder = append(g.paths, e.Path), g.touchesWholeFolder || e.Recursive
		}
	}
	for i, w := range words {
		at, pattern := c.ExecutionContext().Path(w, false)
		if i > 0 && !pattern && slices.Contains(g.paths, at) && generalisableName().MatchString(path.Base(w)) {
			g.folders[i] = path.Dir(at)
			w = "in " + g.folders[i] + " " + w[:strings.LastIndexByte(w, '/')+1] + " *" + path.Ext(w)
		}
		key = append(key, w)
	}
	id := fmt.Sprintf("%q %v", key, g.touchesWholeFolder)
	if old := s.groups[id]; old != nil {
		old.paths = append(old.paths, g.paths...)
		g = old
	} else {
		s.groups[id] = g
		s.approvalGroupKeys = append(s.approvalGroupKeys, id)
	}
	g.approvalCount++
	if !slices.Contains(g.commands, a.Command) {
		g.commands, g.words = append(g.commands, a.Command), append(g.words, words)
	}
}

// generalisableName matches a file name that a suggestion may generalise to other names.
var generalisableName = prefilter.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// toSuggestion returns the exception that allows a group's commands.
func (g *approvalGroup) toSuggestion() Suggestion {
	first := g.words[0]
	var expr, sample []string
	varied := map[string]bool{}
	for i, w := range first {
		same := !slices.ContainsFunc(g.words, func(ws []string) bool { return ws[i] != w })
		if same {
			expr, sample = append(expr, regexp.QuoteMeta(w)), append(sample, w)
			continue
		}
		dir, ext := w[:strings.LastIndexByte(w, '/')+1], path.Ext(w)
		expr = append(expr, regexp.QuoteMeta(dir)+`[A-Za-z0-9_][A-Za-z0-9_-]*`+regexp.QuoteMeta(ext))
		sample = append(sample, dir+"../elsewhere"+ext)
		varied[g.folders[i]] = true
	}
	out := Suggestion{Rule: g.rule, ApprovalCount: g.approvalCount, cwd: g.cwd, allowedCommands: g.commands[:min(len(g.commands), maxSuggestionExamples)]}
	out.exception = rulefile.Criteria{
		ActionTypesAndEffectKinds: []string{"execute_command"}, Commands: []string{strings.Join(expr, " ")}, When: ".action.cwd == " + quoteJSON(g.cwd),
	}
	for _, p := range g.paths {
		glob := effect.Quote(p)
		if varied[path.Dir(p)] {
			glob = effect.Quote(path.Dir(p)) + "/*"
		}
		if g.touchesWholeFolder {
			glob += "/**"
		}
		if !slices.Contains(out.exception.Paths, glob) {
			out.exception.Paths = append(out.exception.Paths, glob)
		}
	}
	out.stillPromptedCommands = []string{strings.Join(first, " ") + " elsewhere"}
	if len(varied) > 0 {
		out.stillPromptedCommands = append(out.stillPromptedCommands, strings.Join(sample, " "))
	}
	return out
}

// Action returns the approved command as an action.
func (a Approval) Action() *action.Action {
	return &action.Action{Type: "execute_command", CWD: a.CWD, Payload: map[string]any{"command": a.Command}}
}

// judge judges a command with a policy.
func (s *suggester) judge(p *Policy, command, cwd string) (*analysis.ActionCase, verdict.Verdict, error) {
	c := s.analyzer.Case(Approval{Command: command, CWD: cwd}.Action())
	v, err := p.Judge(s.ctx, c)
	return c, v, err
}

// exampleJSON returns an action as JSON, which is YAML as well.
func exampleJSON(command, cwd string) string {
	if cwd != "" {
		cwd = `"cwd": ` + quoteJSON(cwd) + ", "
	}
	return `{"type": "execute_command", ` + cwd + `"payload": {"command": ` + quoteJSON(command) + "}}"
}

// quoteJSON returns text as a string of JSON, YAML and jq.
func quoteJSON(s string) string {
	text, _ := json.Marshal(s) //nolint:errchkjson // a string has a form
	return string(text)
}

// avoidsQuestions reports whether a policy with the suggestion would stop asking about at least one
// of the suggestion's commands. It removes from the suggestion the example commands that this
// policy judges differently.
func (s *suggester) avoidsQuestions(sug *Suggestion) bool {
	p, err := Load("suggestion", []byte(FormatSuggestionPolicy(s.preset, []Suggestion{*sug})), s.opts)
	if err != nil {
		return false
	}
	decides := func(command string) bool {
		_, v, err := s.judge(p, command, sug.cwd)
		return err != nil || v.Rule != ""
	}
	asks := func(command string) bool {
		_, v, err := s.judge(p, command, sug.cwd)
		return err == nil && v.Rule == sug.Rule
	}
	sug.allowedCommands = slices.DeleteFunc(slices.Clone(sug.allowedCommands), decides)
	sug.stillPromptedCommands = slices.DeleteFunc(sug.stillPromptedCommands, func(c string) bool { return !asks(c) })
	return len(sug.allowedCommands) > 0
}

// Approved returns the approvals that a suggestion covers.
func (s *Suggestion) Approved() []Approval {
	out := make([]Approval, len(s.allowedCommands))
	for i, command := range s.allowedCommands {
		out[i] = Approval{Command: command, CWD: s.cwd, Rule: s.Rule}
	}
	return out
}

// FormatSuggestionPolicy returns suggestions as a policy file.
func FormatSuggestionPolicy(preset string, all []Suggestion) string {
	var b strings.Builder
	fmt.Fprintf(&b, "extends: %s\nverify:\n", preset)
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].Rule == all[i].Rule {
			end++
		}
		rule := all[i:end]
		fmt.Fprintf(&b, "  - name: %s\n    except:\n", rule[0].Rule)
		for _, s := range rule {
			fmt.Fprintf(&b, "      # based on %d approvals\n", s.ApprovalCount)
			fmt.Fprintf(&b, "      - action_types: [%s]\n        commands: [%s]\n", strings.Join(s.exception.ActionTypesAndEffectKinds, ", "), quoteJSON(s.exception.Commands[0]))
			fmt.Fprintf(&b, "        when: %s\n", quoteJSON(s.exception.When))
			for _, command := range s.OtherAllowedCommands {
				fmt.Fprintf(&b, "      # also allows: %s\n", strings.Join(strings.Fields(command), " "))
			}
			if len(s.exception.Paths) > 0 {
				b.WriteString("        paths:\n")
				for _, p := range s.exception.Paths {
					fmt.Fprintf(&b, "          - %s\n", quoteJSON(p))
				}
			}
		}
		examples := func(key, about string, of func(Suggestion) []string) {
			head := fmt.Sprintf("    %s: # %s\n", key, about)
			for _, s := range rule {
				for _, command := range of(s) {
					b.WriteString(head + "      - " + exampleJSON(command, s.cwd) + "\n")
					head = ""
				}
			}
		}
		examples("match", "commands that this rule still asks about", func(s Suggestion) []string { return s.stillPromptedCommands })
		examples("pass", "approved before", func(s Suggestion) []string { return s.allowedCommands })
		i = end
	}
	return b.String()
}

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

// A SuggestedException is an exception to a rule of a preset. With it, shield would have asked
// fewer questions.
type SuggestedException struct {
	Rule                      string
	ApprovalCount             int
	UnapprovedAllowedCommands []string // other commands that the exception would allow
	exception                 rulefile.Criteria
	cwd                       string   // working folder of the commands
	allowedCommands           []string // commands that the exception allows
	stillPromptedCommands     []string // commands about which the rule still asks
}

const (
	maxExampleCommandsPerSuggestion = 5   // examples of a suggestion
	maxCommandWords                 = 16  // maximum number of words of a command
	maxCommandBytes                 = 512 // bytes
	maxSuggestions                  = 500 // suggestions
)

// SuggestVerifyRuleExceptions returns exceptions to verify rules of a preset. Each would have covered
// at least minApprovals approvals: the same program, subcommand and options on the same files, or
// on files of one folder. It suggests nothing for secrets, for shield itself, or for actions with
// unknown parts.
func SuggestVerifyRuleExceptions(ctx context.Context, approvals []Approval, presetName string, minApprovals int, an *analysis.Analyzer, opts Options) ([]SuggestedException, error) {
	p, err := Preset(presetName, opts)
	if err != nil {
		return nil, err
	}
	s := exceptionSuggester{ctx: ctx, preset: presetName, policy: p, analyzer: an, opts: opts, groups: map[string]*similarApprovalGroup{}}
	if s.neverSuggestedPaths, err = neverSuggestedGlobs(opts); err != nil {
		return nil, err
	}
	for _, a := range approvals {
		s.add(a)
	}
	var out []SuggestedException
	for _, key := range s.approvalGroupKeys {
		g := s.groups[key]
		if g.approvalCount < minApprovals || len(out) == maxSuggestions {
			continue
		}
		if sug := g.toSuggestion(); s.suggestionAvoidsQuestions(&sug) {
			out = append(out, sug)
		}
	}
	sorted.SortStableBy(out, func(a, b SuggestedException) int { return cmp.Compare(a.Rule, b.Rule) })
	return out, nil
}

type exceptionSuggester struct {
	ctx                 context.Context
	preset              string
	policy              *Policy
	analyzer            *analysis.Analyzer
	opts                Options
	neverSuggestedPaths *effect.Globs
	groups              map[string]*similarApprovalGroup
	approvalGroupKeys   []string // keys of groups, in the order of each group's first approval
}

// A similarApprovalGroup is a set of approvals that one suggestion can cover.
type similarApprovalGroup struct {
	rule                      string
	cwd                       string
	approvalCount             int
	wordsPerCommand           [][]string // words of each different command
	parentFolderByCommandWord []string   // for each word that names a file, its folder; else ""
	effectPaths               []string   // paths that the commands touch
	hasRecursiveEffect        bool       // a command touches a folder with everything in it
	commands                  []string
}

// neverSuggestedGlobs are the files that no suggestion may touch.
func neverSuggestedGlobs(opts Options) (*effect.Globs, error) {
	var globs []string
	for _, name := range knowledge.PathListNames() {
		if name != "build_output" && name != "delivered_files" && name != "public_files" {
			list, _ := knowledge.GlobsOfPathList(name)
			globs = append(globs, list...)
		}
	}
	for _, name := range globVariables {
		if strings.HasPrefix(name, "SHIELD") {
			globs = append(globs, "$"+name, "$"+name+"/**")
		}
	}
	return effect.NewGlobs(globs, opts.allFoldersByGlobVariable())
}

// canAllowByCommandWords reports whether a rule may allow an effect by the words of its command alone.
func (s *exceptionSuggester) canAllowByCommandWords(e *effect.Effect) bool {
	switch e.KindForPolicies() {
	case effect.Execute:
		return e.Class != effect.UnknownClass && e.Class != effect.Privileged
	case effect.ReadFile, effect.WriteFile, effect.CreateDirectory, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.ListDirectory:
		if e.Path == "" || e.PathIsPattern {
			return false
		}
		_, touches := s.neverSuggestedPaths.FirstPossibleMatch(e.Path, false, e.Recursive)
		return !touches
	case effect.ChangeRemoteSystem, effect.DestroyData, effect.HTTPRequest, effect.Connect, effect.Listen:
		return true
	case effect.SendData:
		return !e.HasLabel(effect.LabelCredential) && !e.HasLabel(effect.LabelFromCredentialLocation)
	}
	return false
}

// unexpandedShellWordPattern matches a word that no shell expands.
var unexpandedShellWordPattern = prefilter.LazyRegexp(`^[A-Za-z0-9_./:=@%+,-]+$`)

// add puts an approval into its group. It skips commands with words that a shell expands, and commands about
// which the rule would not ask now.
func (s *exceptionSuggester) add(a Approval) {
	words := strings.Split(a.Command, " ")
	if len(a.Command) > maxCommandBytes || len(words) > maxCommandWords || slices.ContainsFunc(words, func(w string) bool { return !unexpandedShellWordPattern().MatchString(w) }) {
		return
	}
	c, v, err := s.judge(s.policy, a.Command, a.CWD)
	if err != nil || v.Rule != a.Rule || v.Decision != verdict.Escalate {
		return
	}
	g := &similarApprovalGroup{rule: a.Rule, cwd: a.CWD, parentFolderByCommandWord: make([]string, len(words))}
	key := []string{a.Rule, a.CWD}
	for i := range c.Effects {
		e := &c.Effects[i]
		if !s.canAllowByCommandWords(e) || e.Kind == effect.Execute && i > 0 {
			return
		}
		if e.Path != "" {
			g.effectPaths, g.hasRecursiveEffect = append(g.effectPaths, e.Path), g.hasRecursiveEffect || e.Recursive
		}
	}
	for i, w := range words {
		at, pattern := c.ExecutionContext().CanonicalPath(w, false)
		if i > 0 && !pattern && slices.Contains(g.effectPaths, at) && wildcardableFileNamePattern().MatchString(path.Base(w)) {
			g.parentFolderByCommandWord[i] = path.Dir(at)
			w = "in " + g.parentFolderByCommandWord[i] + " " + w[:strings.LastIndexByte(w, '/')+1] + " *" + path.Ext(w)
		}
		key = append(key, w)
	}
	id := fmt.Sprintf("%q %v", key, g.hasRecursiveEffect)
	if old := s.groups[id]; old != nil {
		old.effectPaths = append(old.effectPaths, g.effectPaths...)
		g = old
	} else {
		s.groups[id] = g
		s.approvalGroupKeys = append(s.approvalGroupKeys, id)
	}
	g.approvalCount++
	if !slices.Contains(g.commands, a.Command) {
		g.commands, g.wordsPerCommand = append(g.commands, a.Command), append(g.wordsPerCommand, words)
	}
}

// wildcardableFileNamePattern matches a file name that a suggestion may generalise to other names.
var wildcardableFileNamePattern = prefilter.LazyRegexp(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// toSuggestion returns the exception that allows a group's commands.
func (g *similarApprovalGroup) toSuggestion() SuggestedException {
	first := g.wordsPerCommand[0]
	var expr, sample []string
	varied := map[string]bool{}
	for i, w := range first {
		same := !slices.ContainsFunc(g.wordsPerCommand, func(ws []string) bool { return ws[i] != w })
		if same {
			expr, sample = append(expr, regexp.QuoteMeta(w)), append(sample, w)
			continue
		}
		dir, ext := w[:strings.LastIndexByte(w, '/')+1], path.Ext(w)
		expr = append(expr, regexp.QuoteMeta(dir)+`[A-Za-z0-9_][A-Za-z0-9_-]*`+regexp.QuoteMeta(ext))
		sample = append(sample, dir+"../elsewhere"+ext)
		varied[g.parentFolderByCommandWord[i]] = true
	}
	out := SuggestedException{Rule: g.rule, ApprovalCount: g.approvalCount, cwd: g.cwd, allowedCommands: g.commands[:min(len(g.commands), maxExampleCommandsPerSuggestion)]}
	out.exception = rulefile.Criteria{
		ActionTypesAndEffectKinds: []string{"execute_command"}, Commands: []string{strings.Join(expr, " ")}, ConditionJQ: ".action.cwd == " + quoteJSON(g.cwd),
	}
	for _, p := range g.effectPaths {
		glob := effect.QuoteGlobMeta(p)
		if varied[path.Dir(p)] {
			glob = effect.QuoteGlobMeta(path.Dir(p)) + "/*"
		}
		if g.hasRecursiveEffect {
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
func (s *exceptionSuggester) judge(p *Policy, command, cwd string) (*analysis.ActionCase, verdict.Verdict, error) {
	c := s.analyzer.AnalyzeAction(Approval{Command: command, CWD: cwd}.Action())
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

// suggestionAvoidsQuestions reports whether a policy with the suggestion would stop asking about at least one
// of the suggestion's commands. It removes from the suggestion the example commands that this
// policy judges differently.
func (s *exceptionSuggester) suggestionAvoidsQuestions(suggestion *SuggestedException) bool {
	p, err := Load("suggestion", []byte(FormatSuggestionPolicy(s.preset, []SuggestedException{*suggestion})), s.opts)
	if err != nil {
		return false
	}
	decides := func(command string) bool {
		_, v, err := s.judge(p, command, suggestion.cwd)
		return err != nil || v.Rule != ""
	}
	asks := func(command string) bool {
		_, v, err := s.judge(p, command, suggestion.cwd)
		return err == nil && v.Rule == suggestion.Rule
	}
	suggestion.allowedCommands = slices.DeleteFunc(slices.Clone(suggestion.allowedCommands), decides)
	suggestion.stillPromptedCommands = slices.DeleteFunc(suggestion.stillPromptedCommands, func(c string) bool { return !asks(c) })
	return len(suggestion.allowedCommands) > 0
}

// CoveredApprovals returns the approvals that a suggestion covers.
func (s *SuggestedException) CoveredApprovals() []Approval {
	out := make([]Approval, len(s.allowedCommands))
	for i, command := range s.allowedCommands {
		out[i] = Approval{Command: command, CWD: s.cwd, Rule: s.Rule}
	}
	return out
}

// FormatSuggestionPolicy returns suggestions as a policy file.
func FormatSuggestionPolicy(preset string, all []SuggestedException) string {
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
			fmt.Fprintf(&b, "        when: %s\n", quoteJSON(s.exception.ConditionJQ))
			for _, command := range s.UnapprovedAllowedCommands {
				fmt.Fprintf(&b, "      # also allows: %s\n", strings.Join(strings.Fields(command), " "))
			}
			if len(s.exception.Paths) > 0 {
				b.WriteString("        paths:\n")
				for _, p := range s.exception.Paths {
					fmt.Fprintf(&b, "          - %s\n", quoteJSON(p))
				}
			}
		}
		examples := func(key, about string, of func(SuggestedException) []string) {
			head := fmt.Sprintf("    %s: # %s\n", key, about)
			for _, s := range rule {
				for _, command := range of(s) {
					b.WriteString(head + "      - " + exampleJSON(command, s.cwd) + "\n")
					head = ""
				}
			}
		}
		examples("match", "commands that this rule still asks about", func(s SuggestedException) []string { return s.stillPromptedCommands })
		examples("pass", "approved before", func(s SuggestedException) []string { return s.allowedCommands })
		i = end
	}
	return b.String()
}

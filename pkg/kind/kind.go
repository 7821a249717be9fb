// Package kind determines what actions have in common, so that one answer of a person can cover several: the
// programs or tools that a question is about, their verbs, objects and options, and the origin of data. It
// refuses to do so for actions that a person must see each time: credentials, privileges, persistence, shield
// itself, and unknown code.
package kind

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/kind/facts"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// An ActionKind describes a kind of action by facts and findings. An approval of a kind covers all actions of
// the kind; see [facts.ActionKind].
type ActionKind = facts.ActionKind

// ModelSuspicionFinding is the finding that a model suspects an action by its text. It does not carry over to other
// actions of the kind.
const ModelSuspicionFinding = "model"

// alwaysAskedKinds are the kinds of effects about which a person is always asked.
var alwaysAskedKinds = []effect.Kind{
	effect.ReadSecret, effect.ReadClipboard, effect.SendSecret, effect.ChangePrivilege, effect.Persist, effect.TamperWithShield, effect.RunDownload,
	effect.RunDecodedText, effect.RunCommandOutput, effect.RemoteShell, effect.UnknownEffect, effect.StopProcess, effect.ChangeSystem,
}

// OfAction returns the kind of an action, to which an approval for similar actions can apply.
// findings are those of rules and classifiers; asksAboutEffect(i) reports whether a rule asks about
// effect i. An error says why only this single action can be allowed.
func OfAction(c *analysis.ActionCase, findings []string, asksAboutEffect func(i int) bool) (ActionKind, error) {
	if err := CheckApprovalReusable(c, findings); err != nil {
		return ActionKind{}, err
	}
	f := actionFactCollector{c: c}
	command := c.Action.Type == "execute_command"
	if !command {
		f.addFact("tool " + c.Action.Type)
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if !asksAboutEffect(i) && !c.HasDoubtfulOrUnusualDangerLevel(e) {
			continue
		}
		if err := f.addEffectFacts(e); err != nil {
			return ActionKind{}, err
		}
		if !command || e.Kind == effect.Execute {
			continue
		}
		by, carried := f.enclosingProgram(i)
		switch {
		case by == nil:
			return ActionKind{}, errors.New("shield does not know the program that it runs")
		case carried != nil:
			return ActionKind{}, fmt.Errorf("shield cannot remember a program that another program starts: %s", carried.Program)
		}
		if err := f.addProgramFacts(by); err != nil {
			return ActionKind{}, err
		}
	}
	if len(f.factTexts) == 0 || !command && len(f.factTexts) == 1 && len(c.Effects) == 0 {
		return ActionKind{}, errors.New("no effect of the action is known")
	}
	sorted.SortStrings(f.factTexts)
	findings = slices.Clone(findings)
	sorted.SortStrings(findings)
	return ActionKind{ActionFactTexts: slices.Compact(f.factTexts), MatchedRuleAndClassifierIDs: slices.Compact(findings)}, nil
}

// CheckApprovalReusable returns why a person must approve each action of a kind, regardless of earlier answers; nil if
// that is not necessary.
func CheckApprovalReusable(c *analysis.ActionCase, findings []string) error {
	if c.UnexaminedReason != "" {
		return errors.New("part of the action was not read")
	}
	if slices.Contains(findings, ModelSuspicionFinding) {
		return errors.New("the classifier model suspects an attack")
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if slices.Contains(alwaysAskedKinds, e.KindForPolicies()) {
			return fmt.Errorf("the user must approve each action with the effect %s", e.KindForPolicies())
		}
		if e.Kind == effect.RunCode && len(e.DataLabels) > 0 {
			return errors.New("the action runs code from outside the workspace")
		}
		if e.Path != "" && touchesSensitivePath(e) {
			return errors.New("the action touches a folder with credentials, settings that run code, or files of shield")
		}
		if e.HasLabel(effect.LabelFromCredentialLocation) || e.HasLabel(effect.LabelCredential) {
			return errors.New("the action sends or stores credentials")
		}
	}
	return nil
}

// OfOnlyThisAction returns the kind that covers only this action, with the current content of the files that it reads
// and runs.
func OfOnlyThisAction(c *analysis.ActionCase, findings []string) (ActionKind, error) {
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.KindForPolicies() {
		case effect.ReadSecret, effect.ReadClipboard, effect.SendSecret, effect.ChangePrivilege, effect.Persist, effect.TamperWithShield, effect.RunDownload, effect.RemoteShell:
			return ActionKind{}, fmt.Errorf("the user must approve each action with the effect %s", e.KindForPolicies())
		case effect.UnknownEffect, effect.RunCommandOutput, effect.RunDecodedText:
			if e.Cause != effect.CauseUnreadScript && !c.IsUnknownToolEffect(e) {
				return ActionKind{}, errors.New("the code that the action runs is unknown before it runs")
			}
		}
	}
	files, err := c.InputFilesDigest()
	if err != nil {
		return ActionKind{}, err
	}
	k := ActionKind{ActionFactTexts: []string{"action " + c.Action.TypeAndPayloadHash, "folder " + c.ExecutionContext().CWD}, MatchedRuleAndClassifierIDs: slices.Clone(findings)}
	if files != "" {
		k.ActionFactTexts = append(k.ActionFactTexts, "files "+files)
	}
	sorted.SortStrings(k.ActionFactTexts)
	sorted.SortStrings(k.MatchedRuleAndClassifierIDs)
	return k, nil
}

// touchesSensitivePath reports whether an effect, other than listing a folder, touches a path in the lists of
// package knowledge for credentials, settings that run code and other sensitive files. The lists do not name
// shield's own files. No approval of a kind of action covers this.
func touchesSensitivePath(e *effect.Effect) bool {
	_, ok := sensitivePaths().FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
	return ok && e.Kind != effect.ListDirectory
}

var sensitivePaths = sync.OnceValue(func() *effect.Globs {
	var globs []string
	for _, name := range knowledge.PathListNames() {
		if !slices.Contains([]string{"build_output", "delivered_files", "public_files", "open_files", "own_caches", "prose_files"}, name) {
			list, _ := knowledge.GlobsOfPathList(name)
			globs = append(globs, list...)
		}
	}
	g, err := effect.NewGlobs(globs, map[string][]string{"HOME": nil, "WORKSPACE": nil})
	if err != nil {
		panic(err) // unreachable: tests compile the globs of these lists in package knowledge
	}
	return g
})

// An actionFactCollector collects the facts of an action.
type actionFactCollector struct {
	c         *analysis.ActionCase
	factTexts []string
}

func (f *actionFactCollector) addFact(s string) { f.factTexts = append(f.factTexts, s) }

// addEffectFacts adds the facts of an effect.
func (f *actionFactCollector) addEffectFacts(e *effect.Effect) error {
	if e.Kind == effect.Execute {
		return f.addProgramFacts(e)
	}
	var words []string
	add := func(s string) {
		if s != "" {
			words = append(words, s)
		}
	}
	add(string(e.KindForPolicies()))
	if e.PathIsPattern && e.Path == "" {
		return errors.New("the changed files are unknown")
	}
	if e.Path != "" {
		object, err := f.folderRepresentingPath(e)
		if err != nil {
			return err
		}
		add(object)
	}
	for _, s := range [...]string{e.Host, e.RemoteServiceName, e.RemoteOperationVerb, e.RemoteTargetName, e.CauseOrFirstHarm()} {
		add(s)
	}
	for _, is := range [...]struct {
		holds bool
		word  string
	}{{e.DestroysRemoteResource(), "destroys"}, {e.Recursive && e.Kind != effect.ReadFile && e.Kind != effect.ListDirectory, "recursive"}, {e.PathIsPattern, "pattern"}, {!e.IsRestorableWithoutBackup && (e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory), "lost"}, {e.IsTargetTrusted, "trusted"}} {
		if is.holds {
			words = append(words, is.word)
		}
	}
	labels := make([]string, len(e.DataLabels))
	for i, l := range e.DataLabels {
		labels[i] = string(l)
	}
	sorted.SortStrings(labels)
	f.addFact(strings.Join(append(words, labels...), " "))
	return nil
}

// folderRepresentingPath returns the folder that represents a path: the workspace or the first hidden file or
// folder of the path in it, the temporary folder, or else the file's own folder. For a folder that is listed or
// affected recursively this is the folder itself; for a pattern, the folder before its first wildcard.
func (f *actionFactCollector) folderRepresentingPath(e *effect.Effect) (string, error) {
	place := f.c.ExecutionContext()
	if e.PathIsPattern && !strings.HasPrefix(e.Path, "/") {
		return "", errors.New("the changed files are unknown")
	}
	for _, root := range place.WorkspaceRoots {
		rest, ok := strings.CutPrefix(e.Path, root+"/")
		if !ok && e.Path != root || !place.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) {
			continue
		}
		at := "workspace"
		for name := range strings.SplitSeq(rest, "/") {
			if strings.HasPrefix(name, ".") && len(name) > 1 {
				return at + "/" + name, nil
			}
		}
		return at, nil
	}
	if folder, rest := effect.CutTemporaryFolder(e.Path); folder != "" && !(e.PathIsPattern && strings.Contains(rest, "**")) {
		return folder, nil
	}
	if e.PathIsPattern {
		if e.Kind != effect.ReadFile && e.Kind != effect.ListDirectory {
			return "", errors.New("the action changes files outside the workspace with a wildcard")
		}
		known, _, _ := strings.Cut(e.Path, "*")
		if known = path.Dir(known + "x"); len(known) < 2 || strings.ContainsAny(known, `?[\`) {
			return "", errors.New("the files that the action reads are unknown")
		}
		return known, nil
	}
	if e.Recursive || e.Kind == effect.ListDirectory {
		return e.Path, nil
	}
	return path.Dir(e.Path), nil
}

// enclosingProgram returns the program of an effect: the innermost whose text span contains the
// effect's, or the last program before it. outerProgram is another program whose span contains that
// program's; nil if there is none.
func (f *actionFactCollector) enclosingProgram(effectIndex int) (innermostProgram, outerProgram *effect.Effect) {
	all, from := f.c.Effects, f.c.Effects[effectIndex].Span
	for k := range all {
		e := &all[k]
		if e.Kind != effect.Execute || e.Span.Start > from.Start || e.Span.End < from.End {
			continue
		}
		switch {
		case innermostProgram == nil:
			innermostProgram = e
		case e.Span.End-e.Span.Start <= innermostProgram.Span.End-innermostProgram.Span.Start:
			innermostProgram, outerProgram = e, innermostProgram
		default:
			outerProgram = e
		}
	}
	for k := effectIndex - 1; innermostProgram == nil && k >= 0; k-- {
		if all[k].Kind == effect.Execute {
			innermostProgram = &all[k]
		}
	}
	return innermostProgram, outerProgram
}

// addProgramFacts adds a fact about the program of an Execute effect: its name, subcommands, operands and
// options in generalized form, or, for a read-only program, only that it is read-only. It returns an error if
// the program can have unknown effects.
func (f *actionFactCollector) addProgramFacts(e *effect.Effect) error {
	switch {
	case e.Class == effect.ReadOnly:
		f.addFact("run programs that only read")
		return nil
	case e.Class == effect.UnknownClass || e.Class == effect.Privileged:
		return fmt.Errorf("the effects of %s are unknown", e.Program)
	case command.InterpreterLanguage(e.Program) != "" || command.Compilers[e.Program] || command.Placers[e.Program] || e.Program != "git" && len(command.CodeFileLoaders(e.Program, e.Args)) > 0:
		return fmt.Errorf("the code that %s runs can change", e.Program)
	}
	subs := command.Subcommands(e.Program, e.Args)
	words := []string{"run", e.Program}
	words = append(words, subs...)
	id := e.Program
	if len(subs) > 0 {
		id += "/" + subs[0]
	}
	var options []string
	operands, text := 0, false
	left := slices.Clone(subs)
	for _, w := range e.Args {
		switch {
		case text:
			text = false
			options = append(options, "TEXT")
			continue
		case len(left) > 0 && w == left[0]:
			left = left[1:]
			continue
		case strings.ContainsAny(w, "$`"):
			return errors.New("some of its arguments are unknown")
		case len(w) > 1 && w[0] == '-':
			name, value, assigned := strings.Cut(w, "=")
			if command.TextOptions[e.Program+"/"+name] {
				if text = !assigned; assigned {
					name += "=TEXT"
				}
				options = append(options, name)
				continue
			}
			if assigned {
				name += "=" + f.generalizedOperandText(e, value)
			}
			options = append(options, name)
			continue
		}
		if key, _, ok := strings.Cut(w, "="); ok && command.TextOptions[e.Program+"/"+key+"="] {
			options = append(options, key+"=TEXT")
			continue
		}
		operands++
		if (command.FreeNames[id] || command.LaterNames[id] && operands > 1) && nameOperandPattern().MatchString(w) && !strings.Contains(w, "..") && !command.MainBranches[w] {
			w = "NAME"
		} else {
			w = f.generalizedOperandText(e, w)
		}
		if !slices.Contains(words[2+len(subs):], w) {
			words = append(words, w)
		}
	}
	sorted.SortStrings(options)
	f.addFact(strings.Join(append(words, slices.Compact(options)...), " "))
	return nil
}

var (
	nameOperandPattern = prefilter.LazyRegexp(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)
	numericSegment     = regexp.MustCompile(`(^|/)[0-9]+(/|$)`)
)

// generalizedOperandText returns the form of an operand in the facts that actions of a kind share: the folder
// for a path of an effect, the host for a URL, # for numbers such as issue numbers of network programs, or else
// the operand itself.
func (f *actionFactCollector) generalizedOperandText(programEffect *effect.Effect, operand string) string {
	if scheme, rest, ok := strings.Cut(operand, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		return scheme + "://" + host
	}
	at, pattern := f.c.ExecutionContext().CanonicalPath(operand, false)
	for i := range f.c.Effects {
		if e := &f.c.Effects[i]; e.Path != "" && e.Path == at && e.PathIsPattern == pattern {
			if object, err := f.folderRepresentingPath(e); err == nil {
				return "FILE:" + object
			}
		}
	}
	if programEffect.Class == effect.Network {
		for numericSegment.MatchString(operand) {
			if next := numericSegment.ReplaceAllString(operand, "$1#$2"); next != operand {
				operand = next
				continue
			}
			break
		}
	}
	return operand
}

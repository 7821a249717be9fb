// Package analysis turns an action into a [Case]: the action, its effects, and
// the views in which rules and models read its text. Every tier judges a Case.
package analysis

import (
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Case is one action with everything that the tiers know about it. Only one
// goroutine at a time may use it.
type Case struct {
	Action        *action.Action
	Effects       []effect.Effect
	EarlierSteps  []verdict.Step // the results of earlier tiers and classifiers
	MinTier       int            // lowest tier that may allow: the strictest of action, type and policy, 0–3
	Memory        Memory         // earlier actions of the action's session; nil: none are known
	LabelledFiles []effect.File  // files that the action leaves behind and that carry labels

	// TextsWithoutEffect are the words, inputs and fields that no effect covers and that no table declares to be
	// without effect.
	TextsWithoutEffect []string

	// Unexamined says why part of the action was not analysed or scanned; "" if
	// everything was. Only a person or an evaluator can allow such a case.
	// [Case.Views] may set it.
	Unexamined string

	// MatchedRules has, for each of Effects, the rules that match it. The tiers record them with [Case.RecordMatch].
	// nil means that nothing is recorded.
	MatchedRules [][]RuleMatch

	// UserMentions are the objects of the action that the user of the session has mentioned.
	UserMentions []UserMention

	// Evidence is filled by Tier 1 if it is not nil.
	Evidence *Evidence

	shell             Shell
	fileAnalyzer      FileAnalyzer
	place             effect.Place
	commandWords      string    // the resolved words of the command
	askedVerbList     string    // for an unknown tool without a verb in its name: the list of the verb in its payload
	class             ToolClass // class that the user has given to the tool; "" if none
	views             []View
	fieldViewCache    []fieldViews
	writtenFiles      []effect.FileText // files that the command writes
	filesRead         []effect.FileText // files that the analysis read
	decodedCache      []decodedText
	foldedCache       []foldedText
	statedEffectCount int           // number of leading Effects that the action itself states; the rest come from symbolic links or repeat one
	files             *fileAccess   // nil: no file is looked at
	inputs            *inputsDigest // nil until [Case.InputsDigest] is called

	expansions map[expansionKey]Expansion
}

// An UserMention is an object of an action that the user of the session has mentioned.
type UserMention struct {
	Name     string // as written in the action
	Unwanted bool   // true: the user does not want it done; false: the user asked for it
}

// Place returns the place in which the action is judged; its CWD is the action's.
func (c *Case) Place() *effect.Place { return &c.place }

// setUnexamined records why part of the action was not read. Only the first reason is kept.
func (c *Case) setUnexamined(why string) {
	if c.Unexamined == "" {
		c.Unexamined = why
	}
}

// addUnknownEffect adds an effect that cannot be resolved.
//
//go:noinline
func (c *Case) addUnknownEffect(cause effect.Cause, why string) {
	c.Effects = append(c.Effects, effect.Effect{Certainty: effect.Unknown, Cause: cause, Reason: why})
}

// A Shell returns what a shell command would do in a place, like shell.Analyze. Text that it cannot parse has
// an Unknown effect. Goroutines share it.
type Shell func(text string, at *effect.Place) effect.Result

// FileAnalyzer returns the effects that a file with a text would have when it runs, as shell.AnalyzeWrittenFile does. The
// path is canonical. Goroutines share it.
type FileAnalyzer func(file, text string, at *effect.Place) []effect.Effect

// A Replay returns the case of the last of a list of actions of one session, as if all earlier ones had run.
// events are the kinds of effects and the action types to remember; counts says whether the number of actions
// is remembered too.
type Replay func(an *Analyzer, events []string, counts bool, actions []*action.Action) *Case

// An Analyzer makes Cases. Goroutines may share it. The zero Analyzer knows no
// folders, does not read files, and treats every command as unknown.
type Analyzer struct {
	Shell        Shell
	FileAnalyzer FileAnalyzer // analyses content written to files; nil: not analysed
	Replay       Replay       // analyses an action after earlier ones; nil: not possible
	Place        effect.Place // place of actions without a folder; CWD is the first root

	trust        *trustMatcher // nil trusts only this machine
	files        *fileAccess   // nil: no file is looked at
	approvalPage ApprovalPage  // nil: no approval page is known

	container Container // container in which actions run; nil for none
}

// Limits of one analysis. If a case exceeds them, it gets an unknown effect ([effect.Dynamic]) or
// is marked as unexamined.
const (
	maxCommandBytes  = 64 << 10 // bytes
	maxDepth         = 200      // nested brackets
	maxEffects       = 512
	maxResolvedPaths = 64 // paths whose symbolic links are resolved
	maxPayloadTexts  = 256
	maxFilesRead     = 16 // files that are kept
)

// Case returns the analysed action.
func (an *Analyzer) Case(a *action.Action) *Case {
	c := &Case{Action: a, shell: an.Shell, fileAnalyzer: an.FileAnalyzer, place: an.Place, files: an.files, MinTier: max(a.MinTier, MinTier(a.Type))}
	if a.CWD != "" {
		// The agent chooses the folder; it does not become part of the workspace, whose roots come from the
		// user.
		cwd, isPattern := (&effect.Place{Home: an.Place.Home}).Path(a.CWD, false)
		if c.place.CWD = cwd; isPattern {
			c.place.CWD = ""
		}
		if c.place.ResolveLinks != nil {
			c.place.ReadScript = readRelativeTo(c.place.CWD, c.place.ReadScript)
		}
	}
	if read := c.place.ReadScript; read != nil {
		c.place.ReadScript = func(path string) ([]byte, error) {
			text, err := read(path)
			if err == nil && len(c.filesRead) < maxFilesRead {
				c.filesRead = append(c.filesRead, effect.FileText{Path: path, Text: string(text)})
			}
			return text, err
		}
	}
	c.addToolEffects()
	c.addLabelledFiles()
	c.truncateEffects()
	c.addContentEffects()
	c.statedEffectCount = len(c.Effects)
	c.resolveLinks()
	c.addPersistence()
	c.addURLCredentials()
	c.addPublishedCredentials()
	c.addWeakenedChecks()
	c.addApprovalPageAccess(an.approvalPage)
	an.trust.markTrusted(c.Effects, c.Action.Text("command"))
	c.markContained(an.container)
	c.markRestorable(an.files)
	return c
}

// truncateEffects truncates the effects if there are too many to judge.
func (c *Case) truncateEffects() {
	if len(c.Effects) > maxEffects {
		c.Effects = c.Effects[:maxEffects]
		c.addUnknownEffect(effect.CauseLimit, "the action has more than 512 effects")
		c.setUnexamined("the action has more than 512 effects")
	}
}

// resolveLinks adds the targets of symbolic links that effects touch. The original
// path stays: rules may refer to a file by either path.
func (c *Case) resolveLinks() {
	links := c.place.ResolveLinks
	if links == nil {
		return
	}
	asked := 0
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := c.Effects[i]
		if e.Path == "" || i > 0 && e.Path == c.Effects[i-1].Path && e.Kind == c.Effects[i-1].Kind {
			continue
		}
		if asked++; asked > maxResolvedPaths {
			c.addUnknownEffect(effect.CauseLimit, "the action has more than 64 paths to resolve")
			return
		}
		if path, ok := resolveLinks(e.Path, e.Pattern, links); ok {
			e.Path = path
			c.Effects = append(c.Effects, e)
		}
	}
}

// addPersistence adds an effect for each written file that runs code later.
func (c *Case) addPersistence() {
	for i, n := 0, len(c.Effects); i < n; i++ {
		e := c.Effects[i]
		switch e.Kind {
		case effect.WriteFile, effect.ChangePermissions:
		default:
			continue
		}
		if e.Path == "" || e.Path == "/dev/null" {
			continue
		}
		if class := c.place.PersistenceClass(e.Path, e.Pattern, e.Recursive); class != "" && !(class == "agent_config" && c.isAgentScratch(&e)) {
			c.Effects = append(c.Effects, effect.Effect{
				Kind: effect.Persist, Path: e.Path, Pattern: e.Pattern, Recursive: e.Recursive, Reason: class, Span: e.Span, Certainty: e.Certainty,
			})
			if c.Action.Type == "download_file" {
				c.Effects = append(c.Effects, effect.Effect{Kind: effect.RunCode, Cause: effect.CauseDeferred, Path: e.Path, Labels: []effect.Label{effect.LabelNetwork}, Reason: "a downloaded file that runs later"})
			}
		}
	}
}

// Package analysis turns an action into an [ActionCase]: the action, its effects, and the views in which rules
// and models read its text. Every tier judges an ActionCase.
package analysis

import (
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// An ActionCase is one action with everything that the tiers know about it. Only one goroutine at a
// time may use it.
type ActionCase struct {
	Action           *action.Action
	Effects          []effect.Effect
	EarlierTierSteps []verdict.TierStep    // the results of earlier tiers and classifiers
	MinAllowTier     int                   // lowest tier that may allow the action, 0–3: the highest that the action, its type or a policy requires
	SessionState     SessionState          // earlier actions of the action's session; nil: none are known
	LabelledFiles    []effect.LabelledFile // files that the action leaves behind and that carry labels

	// TextsCoveredByNoEffect names the command words, program inputs and payload fields for which the analysis
	// found no effect, and which shield's tables of programs and fields do not declare harmless.
	TextsCoveredByNoEffect []string

	// UnexaminedReason says why part of the action was not analysed or scanned; "" if everything
	// was. Only a person or an evaluator can allow such a case. [ActionCase.TextVariants] may set it.
	UnexaminedReason string

	// MatchedRulesByEffectIndex has, for each of Effects, the rules that match it. The tiers record them with
	// [ActionCase.RecordMatch]. nil means that nothing is recorded.
	MatchedRulesByEffectIndex [][]RuleMatch

	// UserMentionedObjects are the objects of the action that the user of the session has mentioned.
	UserMentionedObjects []UserMentionedObject

	// Tier1AllowEvidence is filled by Tier 1 if it is not nil.
	Tier1AllowEvidence *Tier1DecisionEvidence

	shellAnalyzer                ShellCommandAnalyzer
	fileAnalyzer                 FileAnalyzer
	executionContext             effect.PathContext
	resolvedCommandText          string    // the resolved words of the command
	unknownToolOperationCategory string    // category of the payload's verb, for an unknown tool without a verb in its name
	class                        ToolClass // class that the user has given to the tool; "" if none
	cachedTextVariants           []PayloadTextVariant
	cachedFieldTextVariants      []fieldTextVariants
	filesWrittenByCommand        []effect.WrittenFileText // files that the command writes
	filesReadByAnalysis          []effect.WrittenFileText // files that the analysis read
	decodedTextLayersCache       []decodedText
	lookalikeFoldedTextCache     []lookalikeFoldedText
	directEffectCount            int                     // number of leading Effects that the action itself states; the later ones are derived from these
	files                        *localFileInspector     // nil: no file is looked at
	inputFilesDigest             *cachedInputFilesDigest // nil until [ActionCase.InputFilesDigest] is called

	globExpansions map[globExpansionKey]GlobExpansion
}

// A UserMentionedObject is an object of an action that the user of the session has mentioned.
type UserMentionedObject struct {
	MentionedObjectName string // as written in the action
	IsForbiddenByUser   bool   // true: the user does not want it done; false: the user asked for it
}

// ExecutionContext returns the place in which the action is judged; its CWD is the action's.
func (c *ActionCase) ExecutionContext() *effect.PathContext { return &c.executionContext }

// setUnexamined records why part of the action was not read. Only the first reason is kept.
func (c *ActionCase) setUnexamined(why string) {
	if c.UnexaminedReason == "" {
		c.UnexaminedReason = why
	}
}

// addUnknownEffect adds an effect that cannot be resolved.
//
//go:noinline
func (c *ActionCase) addUnknownEffect(cause effect.EffectCause, why string) {
	c.Effects = append(c.Effects, effect.Effect{Certainty: effect.Unknown, Cause: cause, Reason: why})
}

// A ShellCommandAnalyzer returns what a shell command would do in a context, see shell.Analyze.
// Text that it cannot parse has an Unknown effect. Goroutines share it.
type ShellCommandAnalyzer func(text string, at *effect.PathContext) effect.CommandAnalysis

// FileAnalyzer returns the effects that a file with a text would have when it runs, as shell.AnalyzeWrittenFile does. The
// path is canonical. Goroutines share it.
type FileAnalyzer func(file, text string, at *effect.PathContext) []effect.Effect

// A SessionReplayFunc returns the case of the last of a list of actions of one session, as
// if all earlier ones had run. events are the kinds of effects and the action types to remember;
// counts says whether the number of actions is remembered too.
type SessionReplayFunc func(an *Analyzer, events []string, counts bool, actions []*action.Action) *ActionCase

// An Analyzer makes an [ActionCase] of each action. Goroutines may share it. The zero Analyzer knows no folders,
// does not read files, and treats every command as unknown.
type Analyzer struct {
	ShellAnalyzer           ShellCommandAnalyzer
	FileAnalyzer            FileAnalyzer       // analyses content written to files; nil: not analysed
	ReplaySession           SessionReplayFunc  // analyses an action after earlier ones; nil: not possible
	DefaultExecutionContext effect.PathContext // home folder, workspace roots and file access for all actions; its CWD is for actions without a folder

	trustedDestinations *trustMatcher                  // nil trusts only this machine
	files               *localFileInspector            // nil: no file is looked at
	approvalPageStatus  ApprovalPageQuestionStatusFunc // nil: no approval page is known

	executionContainer ExecutionContainer // container in which actions run; nil for none
}

// Limits of one analysis. If a case exceeds them, it gets an unknown effect ([effect.UnknownEffect]) or
// is marked as unexamined.
const (
	maxCommandBytes  = 64 << 10 // bytes
	maxBracketDepth  = 200      // nested brackets
	maxEffects       = 512
	maxResolvedPaths = 64 // paths whose symbolic links are resolved
	maxPayloadTexts  = 256
	maxFilesRead     = 16 // files whose text the case keeps for later checks
)

// AnalyzeAction returns the analysed action.
func (an *Analyzer) AnalyzeAction(a *action.Action) *ActionCase {
	c := &ActionCase{Action: a, shellAnalyzer: an.ShellAnalyzer, fileAnalyzer: an.FileAnalyzer, executionContext: an.DefaultExecutionContext, files: an.files, MinAllowTier: max(a.MinAllowTier, MinTierForActionType(a.Type))}
	if a.CWD != "" {
		// The agent chooses the folder; it does not become part of the workspace, whose roots come from the
		// user.
		cwd, isPattern := (&effect.PathContext{Home: an.DefaultExecutionContext.Home}).CanonicalPath(a.CWD, false)
		if c.executionContext.CWD = cwd; isPattern {
			c.executionContext.CWD = ""
		}
		if c.executionContext.ResolveLinks != nil {
			c.executionContext.ReadScript = readRelativeTo(c.executionContext.CWD, c.executionContext.ReadScript)
		}
	}
	if read := c.executionContext.ReadScript; read != nil {
		c.executionContext.ReadScript = func(path string) ([]byte, error) {
			text, err := read(path)
			if err == nil && len(c.filesReadByAnalysis) < maxFilesRead {
				c.filesReadByAnalysis = append(c.filesReadByAnalysis, effect.WrittenFileText{Path: path, NewText: string(text)})
			}
			return text, err
		}
	}
	c.addToolEffects()
	c.recordFilesWithTaintLabels()
	c.truncateEffects()
	c.addEffectsOfWrittenFiles()
	c.directEffectCount = len(c.Effects)
	c.addSymlinkTargetEffects()
	c.addPersistenceEffects()
	c.addURLQueryCredentialEffects()
	c.addCredentialPublicationEffects()
	c.markSecurityWeakeningEffects()
	c.addApprovalPageAccess(an.approvalPageStatus)
	an.trustedDestinations.markTrustedDestinations(c.Effects, c.Action.Text("command"))
	c.markEffectsInsideContainer(an.executionContainer)
	c.markRestorableDeletions(an.files)
	return c
}

// truncateEffects truncates the effects if there are too many to judge.
func (c *ActionCase) truncateEffects() {
	if len(c.Effects) > maxEffects {
		c.Effects = c.Effects[:maxEffects]
		c.addUnknownEffect(effect.CauseAnalysisLimitExceeded, "the action has more than 512 effects")
		c.setUnexamined("the action has more than 512 effects")
	}
}

// addSymlinkTargetEffects adds the targets of symbolic links that effects touch. The original
// path stays: rules may refer to a file by either path.
func (c *ActionCase) addSymlinkTargetEffects() {
	links := c.executionContext.ResolveLinks
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
			c.addUnknownEffect(effect.CauseAnalysisLimitExceeded, "the action has more than 64 paths to resolve")
			return
		}
		if path, ok := resolveSymlinks(e.Path, e.PathIsPattern, links); ok {
			e.Path = path
			c.Effects = append(c.Effects, e)
		}
	}
}

// addPersistenceEffects adds an effect for each written file that runs code later.
func (c *ActionCase) addPersistenceEffects() {
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
		if class := c.executionContext.PersistenceClassName(e.Path, e.PathIsPattern, e.Recursive); class != "" && !(class == "agent_config" && c.affectsOnlyAgentScratchFiles(&e)) {
			c.Effects = append(c.Effects, effect.Effect{
				Kind: effect.Persist, Path: e.Path, PathIsPattern: e.PathIsPattern, Recursive: e.Recursive, Reason: class, Span: e.Span, Certainty: e.Certainty,
			})
			if c.Action.Type == "download_file" {
				c.Effects = append(c.Effects, effect.Effect{Kind: effect.RunCode, Cause: effect.CauseWrittenCodeRunsLater, Path: e.Path, DataLabels: []effect.TaintLabel{effect.LabelFromNetwork}, Reason: "a downloaded file that runs later"})
			}
		}
	}
}

package scan

import (
	"cmp"
	"slices"
	"time"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Report is the result of replaying transcripts. Its texts contain no credentials and no terminal
// control characters.
type Report struct {
	PolicyName                             string        `json:"policy"`
	Files                                  int           `json:"files"`
	Hosts                                  []HostSummary `json:"hosts"`
	Calls                                  int           `json:"calls"`
	Conversations                          int           `json:"tasks"`
	ConversationsWithoutShieldInterruption int           `json:"tasks_without_interruption"`

	EscalatedCalls               int     `json:"questions"`
	BlockedCalls                 int     `json:"blocks"`
	CallsOnFilesMissingAtScan    int     `json:"cannot_tell"` // calls that depend on a missing file
	InterruptionsPerConversation float64 `json:"interruptions_per_task"`
	InterruptionsPer100Calls     float64 `json:"interruptions_per_100_calls"`

	DuplicateCallsAcrossTranscripts int `json:"calls_in_another_transcript"` // calls that were not judged again, because they were already read in another transcript
	CallsRefusedInTranscript        int `json:"calls_refused_then"`          // calls refused by a person, the host or a hook
	CallsWithoutResult              int `json:"calls_without_result"`

	InterruptionCauses        []InterruptionCause      `json:"causes"`
	DangerousCalls            []DangerousCall          `json:"dangerous_and_ran"`
	OmittedDangerousCallCount int                      `json:"dangerous_and_ran_more"`
	CredentialsShownToModel   []CredentialShownToModel `json:"secrets_shown"`
	Loops                     []CallLoop               `json:"loops"`
	Tier2CallsPerDay          Tier2CallsPerDayStats    `json:"tier2"`
	SuggestedExceptions       *SuggestedExceptions     `json:"suggested,omitempty"`
	UnknownRecordKinds        []RecordKindCount        `json:"unknown_records"`
	SkippedFiles              []SkippedFile            `json:"left_out"`
	OmittedSkippedFileCount   int                      `json:"left_out_more"`

	// ApprovalsByWorkspaceRoot are the executed commands about which a policy rule would have asked, grouped by
	// the working folder of the conversation.
	ApprovalsByWorkspaceRoot map[string][]policy.Approval `json:"-"`
}

// A HostSummary counts the conversations (tasks) and the judged tool calls of an agent host.
type HostSummary struct {
	Host          string `json:"host"`
	Conversations int    `json:"tasks"`
	Calls         int    `json:"calls"`
}

// A RecordKindCount is a name and how often it occurred.
type RecordKindCount struct {
	RecordKind string `json:"name"`
	Times      int    `json:"times"`
}

// An InterruptionCause is a reason why calls would be asked about or blocked.
type InterruptionCause struct {
	Decision           string `json:"decision"` // ESCALATE or BLOCK
	Rule               string `json:"rule,omitempty"`
	Reason             string `json:"reason"` // why shield asks about or blocks ExampleCall
	Times              int    `json:"times"`
	ExampleCall        string `json:"example"`
	TranscriptPosition string `json:"at"`
}

// DangerousCall is an executed call that shield would block.
type DangerousCall struct {
	Rule               string `json:"rule,omitempty"`
	Reason             string `json:"reason"`
	CallSummary        string `json:"example"`
	TranscriptPosition string `json:"at"`
}

// CredentialShownToModel are the credentials of one kind in results that the model received.
type CredentialShownToModel struct {
	Kind               string `json:"kind"`
	Times              int    `json:"times"`   // number of results that contain a credential of this kind
	ExampleCall        string `json:"example"` // the first call whose result contains a credential of this kind
	TranscriptPosition string `json:"at"`
}

// A CallLoop is a call that came many times in a row.
type CallLoop struct {
	Times              int    `json:"times"`
	ExampleCall        string `json:"example"`
	TranscriptPosition string `json:"at"`
}

// Tier2CallsPerDayStats is how many calls a day Tier 2 would judge: those that Tiers 0 and 1 do not decide.
type Tier2CallsPerDayStats struct {
	DaysWithAnyToolCall int     `json:"days"` // days with a call
	CallsPerDay         float64 `json:"per_day"`
	MaxCallsPerDay      int     `json:"most"`
}

// SuggestedExceptions estimates the effect of exceptions for repeatedly executed commands.
type SuggestedExceptions struct {
	Count                             int     `json:"exceptions"`
	AvoidedQuestions                  int     `json:"saves_questions"`
	RemainingInterruptionsPer100Calls float64 `json:"interruptions_per_100_calls"`
	PolicyYAML                        string  `json:"policy"`
}

// A callCounts counts the calls of one or all conversations.
type callCounts struct {
	calls, escalatedCalls, blockedCalls, missingFileCalls, duplicatesAcrossTranscripts, refusedInTranscript, withoutResult int

	causesByDecisionAndRule       map[string]*InterruptionCause
	dangerousCalls                []DangerousCall
	omittedDangerousCallCount     int
	credentialsShownToModelByKind map[string]*CredentialShownToModel
	callLoops                     []*CallLoop
	unknownRecordsByKind          map[string]int // unknown records, by kind
	skippedFiles                  []SkippedFile
	countsByDay                   map[string]dayCounts
	approvalsByWorkspaceRoot      map[string][]policy.Approval // commands that shield would ask about and that were executed, by workspace
	approvalCount                 int
}

type dayCounts struct{ calls, tier2Calls int }

// Limits of a report.
const (
	maxInterruptionCauses = 5000
	maxDangerousCalls     = 200
	maxUnknownRecordKinds = 500
	maxReportedDays       = 5000
	maxApprovals          = 20_000
	maxCallLoops          = 100
)

func newCallCounts() *callCounts {
	return &callCounts{causesByDecisionAndRule: map[string]*InterruptionCause{}, credentialsShownToModelByKind: map[string]*CredentialShownToModel{}, unknownRecordsByKind: map[string]int{}, countsByDay: map[string]dayCounts{}, approvalsByWorkspaceRoot: map[string][]policy.Approval{}}
}

// countCall adds a judged call.
func (t *callCounts) countCall(c *conversation, x *toolCall, out *judgedCall) {
	tier2 := 0
	switch {
	case out.dependsOnMissingFile:
		t.missingFileCalls++
	case out.decision == verdict.Block:
		t.blockedCalls++
		t.addInterruptionCause(c, x, out)
	case out.decision == verdict.Escalate:
		t.escalatedCalls++
		tier2 = 1
		t.addInterruptionCause(c, x, out)
	}
	if x.calledAt.IsZero() || x.calledAt.Year() < 2000 || x.calledAt.Year() > 9999 {
		return
	}
	date := x.calledAt.UTC().Format(time.DateOnly)
	if d, known := t.countsByDay[date]; known || len(t.countsByDay) < maxReportedDays {
		t.countsByDay[date] = dayCounts{d.calls + 1, d.tier2Calls + tier2}
	}
}

var reasonDetailPattern = prefilter.LazyRegexp(`(/|~)\S+|\d+|"[^"]*"`)

func (t *callCounts) addInterruptionCause(c *conversation, x *toolCall, out *judgedCall) {
	v := &out.verdict
	reason := cmp.Or(v.Explanation.EffectAndHarm, v.Reasoning)
	key := v.Decision.String() + " " + v.Rule
	if v.Rule == "" {
		general := reasonDetailPattern().ReplaceAllString(v.Reasoning, "…")
		if r := []rune(general); len(r) > 70 {
			general = string(r[:70])
		}
		key += general
	}
	if was := t.causesByDecisionAndRule[key]; was != nil {
		was.Times++
		return
	}
	if len(t.causesByDecisionAndRule) < maxInterruptionCauses {
		t.causesByDecisionAndRule[key] = &InterruptionCause{v.Decision.String(), c.printableLine(v.Rule, 60), c.printableLine(reason, maxExampleCallColumns), 1, c.actionSummary(out.action, x), c.formatPlace(x.place)}
	}
}

func (t *callCounts) addDangerous(c *conversation, x *toolCall, out *judgedCall) {
	if len(t.dangerousCalls) == maxDangerousCalls {
		t.omittedDangerousCallCount++
		return
	}
	t.dangerousCalls = append(t.dangerousCalls, DangerousCall{c.printableLine(out.verdict.Rule, 60), c.printableLine(cmp.Or(out.verdict.Explanation.EffectAndHarm, out.verdict.Reasoning), maxExampleCallColumns), c.actionSummary(out.action, x), c.formatPlace(x.place)})
}

// addCredentials counts the credentials in a call's result.
func (t *callCounts) addCredentials(c *conversation, w *callAwaitingResult, v any, at transcriptPosition) {
	for _, kind := range credentialKinds(resultText(v)) {
		if was := t.credentialsShownToModelByKind[kind]; was != nil {
			was.Times++
			continue
		}
		var a = w.judgedCall.action
		if a == nil && len(w.actions) > 0 {
			a = w.actions[0]
		}
		t.credentialsShownToModelByKind[kind] = &CredentialShownToModel{kind, 1, c.actionSummary(a, &w.call), c.formatPlace(at)}
	}
}

func (t *callCounts) addLoop(l CallLoop) *CallLoop {
	if len(t.callLoops) < maxCallLoops {
		t.callLoops = append(t.callLoops, &l)
	}
	return &l
}

func (t *callCounts) countUnknownRecordKind(hostName, recordKind string) {
	if recordKind = hostName + ": " + recordKind; t.unknownRecordsByKind[recordKind] > 0 || len(t.unknownRecordsByKind) < maxUnknownRecordKinds {
		t.unknownRecordsByKind[recordKind]++
	}
}

func (t *callCounts) addSkippedFile(file, why string) {
	t.skippedFiles = append(t.skippedFiles, SkippedFile{file, why})
}

func (t *callCounts) addApproval(root string, a policy.Approval) {
	if t.approvalCount < maxApprovals {
		t.approvalCount++
		t.approvalsByWorkspaceRoot[root] = append(t.approvalsByWorkspaceRoot[root], a)
	}
}

// countConversation adds a conversation (a task of a host) and its calls to the report. A conversation without calls
// adds only its host.
func (t *callCounts) countConversation(hasCalls bool, hostName string, to *Report) {
	i := slices.IndexFunc(to.Hosts, func(h HostSummary) bool { return h.Host == hostName })
	if i < 0 {
		to.Hosts, i = append(to.Hosts, HostSummary{Host: hostName}), len(to.Hosts)
	}
	if !hasCalls {
		return
	}
	to.Conversations++
	to.Hosts[i].Conversations++
	to.Hosts[i].Calls += t.calls
	if t.escalatedCalls+t.blockedCalls == 0 {
		to.ConversationsWithoutShieldInterruption++
	}
}

// mergeCounts adds the counts of a conversation.
func (t *callCounts) mergeCounts(o *callCounts) {
	t.calls, t.escalatedCalls, t.blockedCalls, t.missingFileCalls = t.calls+o.calls, t.escalatedCalls+o.escalatedCalls, t.blockedCalls+o.blockedCalls, t.missingFileCalls+o.missingFileCalls
	t.duplicatesAcrossTranscripts, t.refusedInTranscript, t.withoutResult = t.duplicatesAcrossTranscripts+o.duplicatesAcrossTranscripts, t.refusedInTranscript+o.refusedInTranscript, t.withoutResult+o.withoutResult
	for key, c := range o.causesByDecisionAndRule {
		if was := t.causesByDecisionAndRule[key]; was != nil {
			n := was.Times + c.Times
			if c.TranscriptPosition < was.TranscriptPosition { // make the result independent of the order in which conversations finish
				*was = *c
			}
			was.Times = n
		} else if len(t.causesByDecisionAndRule) < maxInterruptionCauses {
			t.causesByDecisionAndRule[key] = c
		}
	}
	room := maxDangerousCalls - len(t.dangerousCalls)
	t.dangerousCalls = append(t.dangerousCalls, o.dangerousCalls[:min(room, len(o.dangerousCalls))]...)
	t.omittedDangerousCallCount += o.omittedDangerousCallCount + max(len(o.dangerousCalls)-room, 0)
	for key, s := range o.credentialsShownToModelByKind {
		if was := t.credentialsShownToModelByKind[key]; was != nil {
			n := was.Times + s.Times
			if s.TranscriptPosition < was.TranscriptPosition {
				*was = *s
			}
			was.Times = n
		} else {
			t.credentialsShownToModelByKind[key] = s
		}
	}
	t.callLoops = append(t.callLoops, o.callLoops[:min(maxCallLoops-len(t.callLoops), len(o.callLoops))]...)
	for kind, n := range o.unknownRecordsByKind {
		if t.unknownRecordsByKind[kind] > 0 || len(t.unknownRecordsByKind) < maxUnknownRecordKinds {
			t.unknownRecordsByKind[kind] += n
		}
	}
	t.skippedFiles = append(t.skippedFiles, o.skippedFiles...)
	for date, d := range o.countsByDay {
		if was, known := t.countsByDay[date]; known || len(t.countsByDay) < maxReportedDays {
			t.countsByDay[date] = dayCounts{was.calls + d.calls, was.tier2Calls + d.tier2Calls}
		}
	}
	for root, list := range o.approvalsByWorkspaceRoot {
		for _, a := range list {
			t.addApproval(root, a)
		}
	}
}

// fillReport writes the counts into the report.
func (s *scanner) fillReport() {
	r, t := s.report, s.counts
	r.Calls, r.EscalatedCalls, r.BlockedCalls, r.CallsOnFilesMissingAtScan = t.calls, t.escalatedCalls, t.blockedCalls, t.missingFileCalls
	r.DuplicateCallsAcrossTranscripts, r.CallsRefusedInTranscript, r.CallsWithoutResult = t.duplicatesAcrossTranscripts, t.refusedInTranscript, t.withoutResult
	stops := float64(t.escalatedCalls + t.blockedCalls)
	r.InterruptionsPerConversation, r.InterruptionsPer100Calls = stops/float64(max(r.Conversations, 1)), 100*stops/float64(max(t.calls, 1))
	for _, c := range t.causesByDecisionAndRule {
		r.InterruptionCauses = append(r.InterruptionCauses, *c)
	}
	sorted.SortStableBy(r.InterruptionCauses, func(a, b InterruptionCause) int {
		return cmp.Or(b.Times-a.Times, cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.TranscriptPosition, b.TranscriptPosition))
	})
	r.InterruptionCauses = r.InterruptionCauses[:min(len(r.InterruptionCauses), 10)]
	sorted.SortStableBy(t.dangerousCalls, func(a, b DangerousCall) int { return cmp.Compare(a.TranscriptPosition, b.TranscriptPosition) })
	r.DangerousCalls, r.OmittedDangerousCallCount = t.dangerousCalls, t.omittedDangerousCallCount
	for _, one := range t.credentialsShownToModelByKind {
		r.CredentialsShownToModel = append(r.CredentialsShownToModel, *one)
	}
	sorted.SortStableBy(r.CredentialsShownToModel, func(a, b CredentialShownToModel) int { return cmp.Or(b.Times-a.Times, cmp.Compare(a.Kind, b.Kind)) })
	for _, l := range t.callLoops {
		r.Loops = append(r.Loops, *l)
	}
	sorted.SortStableBy(r.Loops, func(a, b CallLoop) int {
		return cmp.Or(b.Times-a.Times, cmp.Compare(a.TranscriptPosition, b.TranscriptPosition))
	})
	for kind, n := range t.unknownRecordsByKind {
		r.UnknownRecordKinds = append(r.UnknownRecordKinds, RecordKindCount{kind, n})
	}
	sorted.SortStableBy(r.UnknownRecordKinds, func(a, b RecordKindCount) int {
		return cmp.Or(b.Times-a.Times, cmp.Compare(a.RecordKind, b.RecordKind))
	})
	for _, l := range t.skippedFiles {
		if len(r.SkippedFiles) == maxListedSkippedFiles {
			r.OmittedSkippedFileCount++
			continue
		}
		r.SkippedFiles = append(r.SkippedFiles, l)
	}
	sorted.SortStableBy(r.Hosts, func(a, b HostSummary) int { return cmp.Compare(a.Host, b.Host) })
	n := 0
	for _, d := range t.countsByDay {
		n += d.tier2Calls
		r.Tier2CallsPerDay.MaxCallsPerDay = max(r.Tier2CallsPerDay.MaxCallsPerDay, d.tier2Calls)
	}
	r.Tier2CallsPerDay.DaysWithAnyToolCall, r.Tier2CallsPerDay.CallsPerDay = len(t.countsByDay), float64(n)/float64(max(len(t.countsByDay), 1))
	r.ApprovalsByWorkspaceRoot = t.approvalsByWorkspaceRoot
}

package session

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A RecordDelta is what one action adds to its session.
type RecordDelta struct {
	Labels                      []SessionTaintLabel
	LabelledFiles               []effect.LabelledFile
	PrintedFiles                []string // files that the action printed: the agent has seen their content, so they lose the label of a download
	Sent                        []SentData
	SensitiveValues             []HashedSensitiveValue
	OccurredEffectOrActionTypes []string // kinds of effects that a policy refers to
	MustIncrementActionCount    bool     // the policy counts actions
	MayMoveFiles                bool     // files may be moved or gone after the action
	CreatedPaths                []string // files that the action creates, or changes after the session created them
	RepositoryOwners            []string // accounts that own the workspace's repository
	Denial                      *Denial

	PendingPrompt              *Prompt  // a prompt that the user may have written
	UserPrompt                 *Prompt  // a prompt that the user has written
	AuthorResolvedPromptHashes []string // hashes of pending prompts whose author is now known
	HasNewUntrustedText        bool     // an untrusted text came in

	ChangedInstructionFile *ChangedInstructionFile // an instruction file of the project that the session changes

	Remotes                 []ChangedGitRemote
	GitOriginMayHaveChanged bool // the remote address of the workspace may have changed

	newFileIdentityByPath map[string]effect.FileIdentity // files whose identity was unknown before
}

// credentials returns the credentials among the sensitive values of a delta. All sessions of a user share
// credentials.
func (d *RecordDelta) credentials() (out []HashedSensitiveValue) {
	for i := range d.SensitiveValues {
		if !d.SensitiveValues[i].IsPrivateFileWord {
			out = append(out, d.SensitiveValues[i])
		}
	}
	return out
}

// privateValues returns the values that belong to this session only.
func (d *RecordDelta) privateValues() (out []HashedSensitiveValue) {
	for i := range d.SensitiveValues {
		if d.SensitiveValues[i].IsPrivateFileWord {
			out = append(out, d.SensitiveValues[i])
		}
	}
	return out
}

// Empty reports whether a delta adds nothing. It ignores PrintedFiles and MayMoveFiles.
func (d *RecordDelta) Empty() bool {
	return len(d.Labels)+len(d.LabelledFiles)+len(d.Sent)+len(d.OccurredEffectOrActionTypes)+len(d.SensitiveValues)+len(d.RepositoryOwners)+len(d.Remotes)+len(d.CreatedPaths) == 0 && !d.GitOriginMayHaveChanged && !d.MustIncrementActionCount && d.Denial == nil &&
		d.PendingPrompt == nil && d.UserPrompt == nil && len(d.AuthorResolvedPromptHashes) == 0 && !d.HasNewUntrustedText && d.ChangedInstructionFile == nil
}

// DeltaOfAction returns what an action adds to its session if it runs. eventTypes are the kinds of
// effects and action types that the policy refers to.
func DeltaOfAction(c *analysis.ActionCase, eventTypes []string, policyCountsActions bool) RecordDelta {
	l := deltaBuilder{c: c, delta: RecordDelta{LabelledFiles: filesCreatedOrCopiedByAction(c), MustIncrementActionCount: policyCountsActions, MayMoveFiles: mayMoveFiles(c), GitOriginMayHaveChanged: mayChangeGitOrigin(c), Remotes: changedRemotes(c), CreatedPaths: c.CreatedPaths()}}
	for i := range c.Effects {
		l.addEffect(&c.Effects[i])
	}
	for i := range l.delta.LabelledFiles {
		for _, label := range l.delta.LabelledFiles[i].Labels {
			l.addSessionLabelForData(label, "a file")
		}
	}
	l.addLabelsFromToolName(c.Action.Type)
	for _, kind := range eventTypes {
		if c.Action.Type == kind || c.Action.OriginalTypeSharedByOtherTools == kind || slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return string(e.KindForPolicies()) == kind }) {
			l.delta.OccurredEffectOrActionTypes = append(l.delta.OccurredEffectOrActionTypes, kind)
		}
	}
	return l.delta
}

// filesCreatedOrCopiedByAction returns the files that an action creates or copies, with their labels. It leaves out
// clones from trusted hosts, releases downloaded from their publishers, and folders that contain a
// workspace, because their earlier content was not downloaded.
func filesCreatedOrCopiedByAction(c *analysis.ActionCase) []effect.LabelledFile {
	trusted, published := contactsOnlyTrustedDestinations(c), downloadsOnlyProgramReleases(c)
	return slices.DeleteFunc(slices.Concat(c.LabelledFiles, possibleCopiesOfPrivateFiles(c), movedDownloads(c), containerCopiesOfDownloads(c), unpackedFiles(c), downloadedSourceBuildFolders(c)), func(f effect.LabelledFile) bool {
		if trusted && slices.Equal(f.Labels, []effect.TaintLabel{effect.LabelUntrusted}) {
			return true
		}
		if published && slices.Equal(f.Labels, []effect.TaintLabel{effect.LabelFromNetwork}) {
			return true
		}
		return f.IncludesDescendants && slices.ContainsFunc(c.ExecutionContext().WorkspaceRoots, func(root string) bool {
			return root == f.Path || strings.HasPrefix(root, strings.TrimSuffix(f.Path, "/")+"/")
		})
	})
}

// mayMoveFiles reports whether an action may move, change or delete files.
func mayMoveFiles(c *analysis.ActionCase) bool {
	return c.UnexaminedReason != "" || len(c.Effects) == 0 || slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		switch e.KindForPolicies() {
		case effect.ReadFile, effect.ListDirectory, effect.ReadSecret, effect.ReadClipboard, effect.HTTPRequest, effect.Connect, effect.SendData, effect.SendMessage, effect.CreateDirectory:
			return false
		case effect.WriteFile, effect.Persist: // a write to a single known path moves no file
			return e.PathIsPattern || e.Recursive || e.Path == ""
		case effect.Execute:
			return e.Class != effect.ReadOnly
		}
		return true
	})
}

// possibleCopiesOfPrivateFiles returns the files that an action writes if it reads or moves a private file: which
// of them get private data is unknown.
func possibleCopiesOfPrivateFiles(c *analysis.ActionCase) (out []effect.LabelledFile) {
	place := c.ExecutionContext()
	own := func(e effect.Effect) bool {
		return (e.Kind == effect.ReadFile || e.Kind == effect.MoveFile) && e.Certainty != effect.Possible && e.Path != "" && !place.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) && isPersonalFileOutsideWorkspace(&e, place.Home)
	}
	if !slices.ContainsFunc(c.Effects, own) {
		return nil
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.WriteFile && !e.PathIsPattern && e.Path != "" {
			out = append(out, effect.LabelledFile{Path: e.Path, IncludesDescendants: e.Recursive, Labels: []effect.TaintLabel{effect.LabelPersonalData}})
		}
	}
	return out
}

// maxMovedFiles is how many files of moved or copied folders are tracked.
const maxMovedFiles = 256

// movedDownloads returns the new paths of the downloaded files in a folder that an action moves or
// copies. The files keep their relative paths below each path that the action writes.
func movedDownloads(c *analysis.ActionCase) (out []effect.LabelledFile) {
	place := c.ExecutionContext()
	if place.DownloadedOrDecodedPaths == nil || place.OriginLabels == nil {
		return nil
	}
	for i := range c.Effects {
		from := &c.Effects[i]
		if (from.Kind != effect.MoveFile && from.Kind != effect.ReadFile) || !from.Recursive || from.PathIsPattern || from.Path == "" {
			continue
		}
		for _, path := range place.DownloadedOrDecodedPaths().All() {
			name := strings.TrimSuffix(path, "/")
			rest, below := strings.CutPrefix(name, from.Path+"/")
			for j := range c.Effects {
				if to := &c.Effects[j]; below && to.Kind == effect.WriteFile && !to.PathIsPattern && to.Path != "" && to.Path != from.Path && len(out) < maxMovedFiles {
					out = append(out, effect.LabelledFile{Path: to.Path + "/" + rest, IncludesDescendants: name != path, Labels: place.OriginLabels(name)})
				}
			}
		}
	}
	return out
}

type deltaBuilder struct {
	c     *analysis.ActionCase
	delta RecordDelta
}

// addSessionLabel adds a label to the session.
func (l *deltaBuilder) addSessionLabel(label effect.TaintLabel, effectOrActionType string) {
	if !slices.ContainsFunc(l.delta.Labels, func(have SessionTaintLabel) bool { return have.Label == label }) {
		l.delta.Labels = append(l.delta.Labels, SessionTaintLabel{Label: label, EffectOrActionType: effectOrActionType})
	}
}

// addSessionLabelForData gives the session the label that follows from reading data with the label
// dataLabel, such as LabelFromCredentialLocation for a credential. Other data labels give none.
func (l *deltaBuilder) addSessionLabelForData(dataLabel effect.TaintLabel, effectOrActionType string) {
	switch dataLabel {
	case effect.LabelFromCredentialLocation, effect.LabelCredential:
		l.addSessionLabel(effect.LabelFromCredentialLocation, effectOrActionType)
	case effect.LabelPersonalData:
		l.addSessionLabel(effect.LabelPersonalData, effectOrActionType)
	case effect.LabelUntrusted:
		l.addSessionLabel(effect.LabelUntrusted, effectOrActionType)
	}
}

func (l *deltaBuilder) addEffect(e *effect.Effect) {
	by := string(e.KindForPolicies())
	switch e.KindForPolicies() {
	case effect.ReadSecret:
		l.addSessionLabel(effect.LabelFromCredentialLocation, by)
	case effect.ReadClipboard:
		l.addSessionLabel(effect.LabelPersonalData, by)
	case effect.ReadFile:
		l.addRead(e)
	case effect.HTTPRequest:
		if !e.IsTargetTrusted {
			l.addSessionLabel(effect.LabelUntrusted, by)
		}
	case effect.UnknownEffect:
		if e.Cause == effect.CauseUnknownTool || e.Cause == effect.CauseUnknownReadOnlyTool { // the author of the returned text is unknown
			l.addSessionLabel(effect.LabelUntrusted, l.c.Action.Type)
		}
	case effect.SendSecret:
		l.addSentData(e)
	case effect.SendData, effect.SendMessage:
		for _, label := range e.DataLabels {
			l.addSessionLabelForData(label, by)
		}
		l.addSentData(e)
	}
}

// addRead adds the labels that a session gets by reading a file, and records the file if the action
// prints it.
func (l *deltaBuilder) addRead(e *effect.Effect) {
	if e.Path == "" || e.Cause == effect.CauseUnprintedFileRead || e.Certainty == effect.Possible {
		return
	}
	place := l.c.ExecutionContext()
	if place.OriginLabels != nil && !e.PathIsPattern {
		for _, label := range place.OriginLabels(e.Path) {
			l.addSessionLabelForData(label, "read_file")
		}
		if l.printsFile(e) && !slices.ContainsFunc(l.c.Effects, func(o effect.Effect) bool { return o.Kind == effect.RunCode && o.Path == e.Path }) {
			l.delta.PrintedFiles = append(l.delta.PrintedFiles, e.Path)
		}
	}
	switch {
	case effect.IsSecretPath(e.Path, e.PathIsPattern):
		if l.readsFileOnlyToAuthenticate(e) {
			return
		}
		l.addSessionLabel(effect.LabelFromCredentialLocation, "read_file")
		if pathMayMatchKnowledgeList("browser_data", e) {
			l.addSessionLabel(effect.LabelPersonalData, "read_file")
		}
	case !place.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) && isPersonalFileOutsideWorkspace(e, place.Home):
		l.addSessionLabel(effect.LabelPersonalData, "read_file")
	}
}

// printsFile reports whether the action prints the file that it reads: a file tool does, and so
// does a program such as cat, but not wc.
func (l *deltaBuilder) printsFile(e *effect.Effect) bool {
	return l.c.Action.Type != "execute_command" || slices.ContainsFunc(l.c.Effects, func(o effect.Effect) bool {
		return o.Kind == effect.Execute && slices.Contains(printPrograms, o.Program) && o.Span.Start <= e.Span.Start && e.Span.End <= o.Span.End
	})
}

// printPrograms print files unchanged.
var printPrograms = []string{"bat", "batcat", "cat", "get-content", "head", "less", "more", "most", "nl", "sed", "tac", "tail", "type", "view"}

// readsFileOnlyToAuthenticate reports whether a program reads a file only to authenticate with it, and prints nothing of
// it.
func (l *deltaBuilder) readsFileOnlyToAuthenticate(e *effect.Effect) bool {
	return slices.ContainsFunc(l.c.Effects, func(o effect.Effect) bool {
		return o.Kind == effect.Execute && slices.Contains(sshKeyPrograms, o.Program) && o.Span.Start <= e.Span.Start && e.Span.End <= o.Span.End && e.Span.End > 0
	})
}

// sshKeyPrograms authenticate with the keys that their arguments name.
var sshKeyPrograms = []string{"ssh", "ssh-add", "ssh-keygen", "scp", "sftp", "rsync"}

// isPersonalFileOutsideWorkspace reports whether a file, which the caller knows to be outside the workspace, is
// the user's own: private messages, browser data, or a file below the home folder that is not in a folder where
// programs keep data.
func isPersonalFileOutsideWorkspace(e *effect.Effect, home string) bool {
	if pathMayMatchKnowledgeList("private_messages", e) || pathMayMatchKnowledgeList("browser_data", e) {
		return true
	}
	if home == "" || e.PathIsPattern && strings.HasPrefix(e.Path, "*") {
		return false
	}
	rest, below := strings.CutPrefix(e.Path, home+"/")
	if !below || rest[0] == '.' || strings.Contains(rest, "/.") {
		return false
	}
	return !pathMayMatchKnowledgeList("library_files", e)
}

// pathMayMatchKnowledgeList reports whether an effect can touch a file that a named list of path
// globs in the Go package knowledge contains.
func pathMayMatchKnowledgeList(listName string, e *effect.Effect) bool {
	globs, err := globsByKnowledgeListName[listName]()
	if err != nil {
		return listName != "library_files"
	}
	_, ok := globs.FirstPossibleMatch(e.Path, e.PathIsPattern, e.Recursive)
	return ok
}

var globsByKnowledgeListName = map[string]func() (*effect.Globs, error){
	"private_messages": sync.OnceValues(func() (*effect.Globs, error) { return globsOf("private_messages") }),
	"browser_data":     sync.OnceValues(func() (*effect.Globs, error) { return globsOf("browser_data") }),
	"library_files":    sync.OnceValues(func() (*effect.Globs, error) { return globsOf("library_files") }),
}

func globsOf(list string) (*effect.Globs, error) {
	globs, _ := knowledge.GlobsOfPathList(list)
	return effect.NewGlobs(globs, nil)
}

// addLabelsFromToolName adds the labels of the data that a tool returns, judged by the tool's name: browser tools
// return untrusted text, and tools that read messages return private and untrusted text.
func (l *deltaBuilder) addLabelsFromToolName(toolName string) {
	if strings.HasPrefix(toolName, "browser_") {
		l.addSessionLabel(effect.LabelUntrusted, toolName)
	}
	own := toolName[strings.LastIndex(toolName, "__")+1:]
	if _, list := knowledge.ToolNameVerb(own); list != "reads" {
		return
	}
	if slices.ContainsFunc(knowledge.SplitNameWords(toolName), func(word string) bool { return knowledge.VerbIn(word, "messages") }) {
		l.addSessionLabel(effect.LabelPersonalData, toolName)
		l.addSessionLabel(effect.LabelUntrusted, toolName)
	}
}

// addSentData adds what is sent to a host or a recipient.
func (l *deltaBuilder) addSentData(e *effect.Effect) {
	to := e.Host
	if to == "" {
		to = e.RemoteTargetName
	}
	if to == "" {
		return
	}
	size := int64(0)
	switch place := l.c.ExecutionContext(); {
	case e.Path == "":
		size = int64(len(l.c.Action.Raw))
	case place.ReadScript != nil && !e.PathIsPattern:
		if data, err := place.ReadScript(e.Path); err == nil {
			size = int64(len(data))
		}
	}
	to = shortenText(to)
	if i := slices.IndexFunc(l.delta.Sent, func(s SentData) bool { return s.Recipient == to }); i >= 0 {
		l.delta.Sent[i].Bytes = max(l.delta.Sent[i].Bytes, size)
		return
	}
	l.delta.Sent = append(l.delta.Sent, SentData{Recipient: to, SendCount: 1, Bytes: size})
}

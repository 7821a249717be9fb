// Package objects determines which objects of an action a user must have named, and which of them the user
// has forbidden to change.
package objects

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sqltext"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/grounding"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// An ObjectUserMustName is an object of an action that the user must have named.
type ObjectUserMustName struct {
	Operations              grounding.ObjectOperationSet
	AlternativeNames        []string // canonical names of the object; the user must have named it by at least one of them
	Nouns                   []string // nouns that the user may have given for the object; the entry "" stands for a name without a noun
	IsUserMentionSufficient bool     // the object is only a place, such as a cluster: it is enough that the user has mentioned it
}

// Limits of the comparison of an action's objects with the names in the user's prompt.
const (
	maxObjectsUserMustName    = 16
	maxNamesPerRequiredObject = 16
)

// ObjectsUserMustName returns the objects of an action that the user must have named.
// asksAboutEffect(i) reports whether effect i of the action needs approval. An error says why
// naming objects is not enough to show what the action does.
func ObjectsUserMustName(c *analysis.ActionCase, asksAboutEffect func(i int) bool) (needs []ObjectUserMustName, err error) {
	for i := range c.Effects {
		e := &c.Effects[i]
		if !asksAboutEffect(i) && !c.HasDoubtfulOrUnusualDangerLevel(e) || c.Effects[i].Kind == effect.WriteFile && writesBelowOperandFolder(c, i) {
			continue
		}
		more, err := effectObjectsUserMustName(c, i)
		if err != nil {
			return nil, err
		}
		for _, n := range more {
			if !slices.ContainsFunc(needs, n.equal) {
				needs = append(needs, n)
			}
		}
		if len(needs) > maxObjectsUserMustName {
			return nil, errors.New("the command affects too many objects")
		}
	}
	return needs, nil
}

// writesBelowOperandFolder reports whether an effect writes a file below an operand that may be a folder: mv a b writes b, or
// b/a.
func writesBelowOperandFolder(c *analysis.ActionCase, effectIndex int) bool {
	e := &c.Effects[effectIndex]
	return slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return o.Kind == e.Kind && o.Span == e.Span && o.Path == path.Dir(e.Path) }) &&
		slices.ContainsFunc(c.Effects, func(o effect.Effect) bool {
			return (o.Kind == effect.MoveFile || o.Kind == effect.ReadFile) && path.Base(o.Path) == path.Base(e.Path)
		})
}

// NameableObjects returns the objects of an action that have a name, at most maxObjectsUserMustName.
func NameableObjects(c *analysis.ActionCase) (needs []ObjectUserMustName) {
	for i := range c.Effects {
		more, _ := effectObjectsUserMustName(c, i) // effects without a name are skipped
		for _, n := range more {
			if len(needs) < maxObjectsUserMustName && !slices.ContainsFunc(needs, n.equal) {
				needs = append(needs, n)
			}
		}
	}
	return needs
}

func (n *ObjectUserMustName) equal(o ObjectUserMustName) bool {
	return n.Operations == o.Operations && n.IsUserMentionSufficient == o.IsUserMentionSufficient && slices.Equal(n.AlternativeNames, o.AlternativeNames) && slices.Equal(n.Nouns, o.Nouns)
}

var (
	errUnnamed = errors.New("the affected object has no name")
	pathNouns  = []string{"", "file", "folder", "resource"}
	hostNouns  = []string{"", "host", "resource", "bucket", "database", "cluster", "repository", "remote", "person"}
)

// effectObjectsUserMustName returns the objects of one effect.
func effectObjectsUserMustName(c *analysis.ActionCase, effectIndex int) ([]ObjectUserMustName, error) {
	e := &c.Effects[effectIndex]
	if e.HasHarm(effect.LeaksSecrets) || e.HasLabel(effect.LabelFromCredentialLocation) || e.HasLabel(effect.LabelCredential) || e.HasLabel(effect.LabelPersonalData) {
		return nil, errors.New("the command sends a credential or private data")
	}
	if e.Certainty == effect.Unknown {
		return nil, errors.New("a part of the command is unknown until it runs")
	}
	switch e.Kind {
	case effect.Execute:
		if e.Class == effect.UnknownClass || e.Class == effect.Privileged {
			return nil, errors.New("the effects of the program are unknown")
		}
		if slices.ContainsFunc(e.Harms, func(h effect.Harm) bool { return h != effect.DestroysResources && h != effect.RewritesPublishedCommits }) {
			return nil, errors.New("the command does harm without a named object")
		}
		if (len(e.Harms) == 0 && e.Class != effect.Destructive) || deletesFiles(c, effectIndex) {
			return nil, nil
		}
		return operandsUserMustName(c, effectIndex, grounding.OperationDelete)
	case effect.ReadFile, effect.ListDirectory, effect.CreateDirectory:
		if !c.HasDoubtfulOrUnusualDangerLevel(e) {
			return nil, nil
		}
		return pathUserMustName(c, e, grounding.OperationFetch|grounding.OperationChange)
	case effect.WriteFile, effect.MoveFile, effect.ChangePermissions:
		return pathUserMustName(c, e, grounding.OperationChange)
	case effect.DeleteFile, effect.DeleteDirectory:
		return pathUserMustName(c, e, grounding.OperationDelete)
	case effect.HTTPRequest, effect.Connect:
		does := grounding.OperationFetch | grounding.OperationSend | grounding.OperationChange
		if e.RemoteOperationVerb != "" {
			does = grounding.OperationSend | grounding.OperationChange
		}
		return hostUserMustName(e, does)
	case effect.SendData, effect.SendMessage:
		if e.Kind == effect.SendData && e.Host != "" {
			return hostUserMustName(e, grounding.OperationSend)
		}
		if e.RemoteTargetName != "" && !e.IsTargetTrusted {
			return []ObjectUserMustName{{Operations: grounding.OperationSend, AlternativeNames: canonicalNames(e.RemoteTargetName), Nouns: []string{"", "person", "channel", "remote", "bucket", "host"}}}, nil
		}
		if e.IsTargetTrusted {
			return nil, nil
		}
		return sentFilesUserMustName(c, effectIndex)
	case effect.ChangeRemoteSystem, effect.DestroyData:
		does := grounding.OperationChange
		if e.Kind == effect.DestroyData || e.DestroysRemoteResource() || e.RemoteOperationVerb == "delete" {
			does = grounding.OperationDelete
		}
		if e.CauseOrFirstHarm() != "" && !e.DestroysRemoteResource() && e.Kind == effect.ChangeRemoteSystem {
			return nil, errors.New("the command grants, exposes, weakens, redirects or runs something")
		}
		return operandsUserMustName(c, effectIndex, does)
	}
	return nil, errors.New("the command has effects that no object name covers")
}

func canonicalNames(names ...string) (out []string) {
	for _, n := range names {
		if n = grounding.CanonicalObjectName(n); n != "" && !slices.Contains(out, n) && len(out) < maxNamesPerRequiredObject {
			out = append(out, n)
		}
	}
	return out
}

// pathUserMustName returns the file or folder of an effect as an object that the user must have
// named.
func pathUserMustName(c *analysis.ActionCase, e *effect.Effect, does grounding.ObjectOperationSet) ([]ObjectUserMustName, error) {
	if e.PathIsPattern || !strings.HasPrefix(e.Path, "/") {
		return nil, errUnnamed
	}
	place := c.ExecutionContext()
	names := []string{e.Path}
	if rest, ok := strings.CutPrefix(e.Path, place.Home+"/"); ok && place.Home != "" {
		names = append(names, "~/"+rest)
	}
	inside := false
	for _, base := range append(slices.Clone(place.WorkspaceRoots), place.CWD) {
		if rest, ok := strings.CutPrefix(e.Path, base+"/"); ok && base != "" {
			names, inside = append(names, rest), true
		}
	}
	if inside && strings.ContainsAny(path.Base(e.Path), ".-_0123456789") {
		names = append(names, path.Base(e.Path))
	}
	if names = canonicalNames(names...); len(names) == 0 {
		return nil, errUnnamed
	}
	return []ObjectUserMustName{{Operations: does, AlternativeNames: names, Nouns: pathNouns}}, nil
}

// hostUserMustName returns the host of an effect as an object that the user must have named; nil
// for a trusted or loopback host.
func hostUserMustName(e *effect.Effect, does grounding.ObjectOperationSet) ([]ObjectUserMustName, error) {
	if e.IsTargetTrusted || e.Host != "" && effect.IsLoopbackHost(e.Host) {
		return nil, nil
	}
	names := canonicalNames(e.Host)
	if len(names) == 0 || e.PathIsPattern {
		return nil, errUnnamed
	}
	return []ObjectUserMustName{{Operations: does, AlternativeNames: names, Nouns: hostNouns}}, nil
}

// sentFilesUserMustName returns the files that a program sends to its default destination, as
// objects that the user must have named.
func sentFilesUserMustName(c *analysis.ActionCase, effectIndex int) (needs []ObjectUserMustName, err error) {
	e := &c.Effects[effectIndex]
	for k := range c.Effects {
		f := &c.Effects[k]
		if f.Kind != effect.ReadFile || f.Span.Start < e.Span.Start && f.Span.End > e.Span.End || !c.ExecutionContext().IsInsideRoots(f.Path, f.PathIsPattern, f.DoubleStarExcludesDotDot) && !c.HasDoubtfulOrUnusualDangerLevel(f) {
			continue
		}
		need, err := pathUserMustName(c, f, grounding.OperationSend)
		if err != nil {
			return nil, err
		}
		needs = append(needs, need...)
	}
	if len(needs) == 0 {
		return operandsUserMustName(c, effectIndex, grounding.OperationSend)
	}
	return needs, nil
}

// operandsUserNeedNotName are operands that the user need not name: default objects (origin, HEAD,
// $DATABASE_URL), and Redis commands that affect a whole database.
var operandsUserNeedNotName = wordSet("origin head database_url flushall flushdb")

// programsWithShortTargetLocationOptions are programs whose short options name a place.
var programsWithShortTargetLocationOptions = wordSet("kubectl oc helm psql mysql mysqldump mariadb dropdb createdb pg_restore redis-cli mongosh mongo az heroku")

// targetLocationOptions are options whose value names a place.
var targetLocationOptions = wordSet("-n --namespace -h --host --hostname -p --port --zone --region --location --resource-group -g --context --kube-context --cluster --project -d --dbname --database --db -u -U --user --username " +
	"--profile --account --account-name --subscription --ref --endpoint-url --server --app -a --confirm --org --organization --team --scope")

// countOptions are options with a number of instances or seconds.
var countOptions = wordSet("--replicas --desired-count --desired-capacity --grace-period")

// broadeningOptions are options that affect more than the named objects.
var broadeningOptions = wordSet("--all -A --all-namespaces --mirror --prune --tags --yes-all --all-tags --force-all")

func wordSet(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		out[w] = true
	}
	return out
}

// operandsUserMustName returns the objects in the words of a command: each must be named.
func operandsUserMustName(c *analysis.ActionCase, effectIndex int, does grounding.ObjectOperationSet) ([]ObjectUserMustName, error) {
	e := &c.Effects[effectIndex]
	run := e
	for k := range c.Effects { // find the program that has the effect: the innermost Execute effect whose text contains the text of e
		x := &c.Effects[k]
		if x.Kind == effect.Execute && x.Span.Start <= e.Span.Start && e.Span.End <= x.Span.End && (run.Kind != effect.Execute || x.Span.End-x.Span.Start <= run.Span.End-run.Span.Start) {
			run = x
		}
	}
	nouns := []string{"", "branch", "remote", "bucket", "database", "cluster", "namespace", "table", "repository", "resource", "host", "package", "file", "folder"}
	if run.Kind != effect.Execute {
		if e.RemoteTargetName == "" {
			return nil, errUnnamed
		}
		return []ObjectUserMustName{{Operations: does, AlternativeNames: canonicalNames(e.RemoteTargetName), Nouns: nouns}}, nil
	}
	if run.Program == "git" && command.ParseGit(run.Args).HasOption("fdD", "--force", "--force-with-lease", "--force-if-includes", "--delete") {
		does |= grounding.OperationDelete
	}
	var needs []ObjectUserMustName
	add := func(n ObjectUserMustName) {
		if len(n.AlternativeNames) > 0 && !slices.ContainsFunc(needs, n.equal) {
			needs = append(needs, n)
		}
	}
	left := slices.Clone(command.Subcommands(run.Program, run.Args))
	object, place := false, false // an object was found; the next word is a place
	deed, kind := false, false    // words for the operation, and for the kind of object, were found
	learn := func(w string) (is bool) {
		noun, does, is := grounding.ClassifyWord(strings.ToLower(w))
		deed, kind = deed || does && !noun, kind || noun
		return is
	}
	for _, w := range run.Args {
		if len(left) > 0 && w == left[0] {
			if left = left[1:]; !place {
				learn(w)
				continue
			}
		}
		name, where := w, place
		place = false
		if strings.HasPrefix(w, "-") {
			option, value, assigned := strings.Cut(w, "=")
			if broadeningOptions[option] {
				return nil, errors.New("the command affects more than the object that it names")
			}
			says := targetLocationOptions[option] && run.Program != "git" && (len(option) > 2 || programsWithShortTargetLocationOptions[run.Program])
			if place = says && !assigned; !assigned || (says || countOptions[option]) && isNumberOrBool(value) {
				continue
			}
			name, where = value, says
		}
		if verb, tables := sqltext.FindDestructiveStatement(name); verb != "" && strings.Contains(name, " ") {
			if _, rest := sqltext.NextStatement(name); len(tables) == 0 || strings.Trim(rest, "; \t\n") != "" {
				return nil, errUnnamed
			}
			object = true
			for _, table := range tables {
				names := canonicalNames(table)
				if len(names) == 0 {
					return nil, errUnnamed
				}
				add(ObjectUserMustName{Operations: does, AlternativeNames: names, Nouns: nouns})
			}
			continue
		}
		if strings.ContainsAny(name, "$`*?{}[] \t\n") {
			return nil, errUnnamed
		}
		if run.Program == "git" { // git push: the remote, and the branch
			if forced, ok := strings.CutPrefix(name, "+"); ok {
				name, does = forced, does|grounding.OperationDelete
			}
			if from, to, ok := strings.Cut(name, ":"); ok && !strings.Contains(name, "//") {
				if name = to; from == "" {
					does |= grounding.OperationDelete
				}
			}
		}
		if operandsUserNeedNotName[strings.ToLower(name)] || readsWorkspaceFile(c, run, name) {
			continue
		}
		if !object && !where && run.Program != "git" && !(deed && kind) && learn(name) {
			continue
		}
		if isNumberOrBool(name) && where {
			continue // the number of a port
		}
		names := canonicalNames(name)
		switch scheme, rest, ok := strings.Cut(name, "://"); {
		case ok && scheme != "":
			host, _, _ := strings.Cut(rest, "/")
			names = canonicalNames(strings.TrimSuffix(rest, "/"))
			if does&grounding.OperationDelete == 0 { // an object to delete must be named itself
				names = canonicalNames(strings.TrimSuffix(rest, "/"), host)
			}
		case run.Program == "git":
			for _, kind := range [...]string{"refs/tags/", "refs/heads/"} {
				if short, ok := strings.CutPrefix(name, kind); ok {
					names = canonicalNames(name, short)
				}
			}
		case strings.Contains(name, ":"): // a remote path, user@HOST:PATH, or an image, NAME:TAG: the host or image name is enough
			at, _, _ := strings.Cut(name, ":")
			names = canonicalNames(at[strings.LastIndexByte(at, '@')+1:], name)
		default:
			if of, rest, ok := strings.Cut(name, "/"); ok { // deployment/web
				if noun, _, _ := grounding.ClassifyWord(strings.ToLower(of)); noun {
					names = canonicalNames(name, rest)
				}
			}
		}
		if len(names) == 0 {
			return nil, errUnnamed
		}
		object = object || !where
		add(ObjectUserMustName{Operations: does, AlternativeNames: names, Nouns: nouns, IsUserMentionSufficient: where})
	}
	if !object { // the command names no object, at most a place such as a cluster: it affects everything there
		for k := range needs {
			needs[k].IsUserMentionSufficient = false
		}
	}
	if len(needs) == 0 {
		return nil, errUnnamed
	}
	return needs, nil
}

// isNumberOrBool reports whether a word is a number or a boolean.
func isNumberOrBool(w string) bool {
	return w != "" && strings.Trim(w, "0123456789") == "" || w == "true" || w == "false"
}

// deletesFiles reports whether a program destroys only files, which have effects of their own.
func deletesFiles(c *analysis.ActionCase, i int) bool {
	run, files := &c.Effects[i], false
	for k := range c.Effects {
		e := &c.Effects[k]
		if k == i || e.Span.Start < run.Span.Start || e.Span.End > run.Span.End {
			continue
		}
		switch e.Kind {
		case effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.WriteFile:
			files = true
		case effect.ChangeRemoteSystem, effect.DestroyData, effect.SendData, effect.HTTPRequest:
			return false
		}
	}
	return files
}

// readsWorkspaceFile reports whether a word is a file in the workspace that a program reads.
func readsWorkspaceFile(c *analysis.ActionCase, run *effect.Effect, name string) bool {
	if strings.Contains(strings.TrimPrefix(name, "@"), "@") {
		return false // a package with its version
	}
	at, pattern := c.ExecutionContext().CanonicalPath(strings.TrimPrefix(name, "@"), false)
	return !pattern && slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.Kind == effect.ReadFile && e.Path == at && e.Span.Start >= run.Span.Start && e.Span.End <= run.Span.End && c.ExecutionContext().IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) && len(e.DataLabels) == 0
	})
}

// MatchedName returns the name of n by which the user has asked for its operation in a prompt; "" if there is
// none. toStoredName converts a name to the form in which names of the prompt are stored.
func (n *ObjectUserMustName) MatchedName(named []grounding.PromptNamedObject, toStoredName func(string) string) string {
	for i := range named {
		x := &named[i]
		if x.AreOperationsForbidden || n.Operations&grounding.OperationDelete != 0 && x.WantedOrForbiddenOperations&grounding.OperationDelete == 0 || x.WantedOrForbiddenOperations&n.Operations == 0 || !slices.Contains(n.Nouns, x.ObjectKindNoun) {
			continue
		}
		if at := slices.IndexFunc(n.AlternativeNames, func(name string) bool { return toStoredName(name) == x.Name }); at >= 0 {
			return n.AlternativeNames[at]
		}
	}
	return ""
}

// ForbiddenObjectName returns the name of an object of an action for which the user has forbidden the operation;
// "" if there is none. All effects are checked, except reads of files and folders, and programs that only read.
func ForbiddenObjectName(c *analysis.ActionCase, named []grounding.PromptNamedObject, toStoredName func(string) string) string {
	if !slices.ContainsFunc(named, func(n grounding.PromptNamedObject) bool { return n.AreOperationsForbidden }) {
		return ""
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		names, does := namesOfEffectObjects(c, e)
		for k := range named {
			n := &named[k]
			if !n.AreOperationsForbidden || does&n.WantedOrForbiddenOperations == 0 {
				continue
			}
			if at := slices.IndexFunc(names, func(name string) bool { return toStoredName(name) == n.Name }); at >= 0 {
				return names[at]
			}
		}
	}
	return ""
}

// namesOfEffectObjects returns all names of the objects of an effect, and the operation on them.
func namesOfEffectObjects(c *analysis.ActionCase, e *effect.Effect) (names []string, does grounding.ObjectOperationSet) {
	add := func(list ...string) { names = append(names, canonicalNames(list...)...) }
	switch e.Kind {
	case effect.Execute:
		if e.Class == effect.ReadOnly {
			return nil, 0
		}
		for _, w := range e.Args {
			_, value, _ := strings.Cut(w, "=")
			_, to, _ := strings.Cut(w, ":")
			add(strings.TrimLeft(w, "+-"), value, to)
			for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune("/@:.=", r) }) {
				add(part)
			}
		}
		return names, grounding.OperationDelete | grounding.OperationChange | grounding.OperationSend | grounding.OperationFetch
	case effect.HTTPRequest, effect.Connect, effect.SendData, effect.SendMessage, effect.ChangeRemoteSystem:
		add(e.Host, e.RemoteTargetName)
		for part := range strings.FieldsFuncSeq(e.Host+" "+e.RemoteTargetName, func(r rune) bool { return strings.ContainsRune("/@:.=- ", r) }) {
			add(part)
		}
		return names, grounding.OperationDelete | grounding.OperationChange | grounding.OperationSend | grounding.OperationFetch
	}
	if e.Path == "" || e.Kind == effect.ReadFile || e.Kind == effect.ListDirectory {
		return nil, 0
	}
	does = grounding.OperationChange
	if e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory {
		does = grounding.OperationDelete | grounding.OperationChange
	}
	if need, err := pathUserMustName(c, &effect.Effect{Kind: e.Kind, Path: e.Path}, does); err == nil {
		names = append(names, need[0].AlternativeNames...)
		add(path.Base(e.Path))
	}
	return names, does
}

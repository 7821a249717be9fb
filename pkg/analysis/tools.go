package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A tool describes what an action type does with the fields of its payload.
type tool struct {
	name                    string
	fieldUses               []payloadFieldUse
	fieldsSentToURLHost     []string    // fields whose content is sent to the host of the tool's URL
	unconditionalEffectKind effect.Kind // an effect that does not depend on a field
	effectReason            string      // Reason of the effect whose kind is unconditionalEffectKind
	readOnly                bool        // changes nothing
	minTier                 int         // lowest tier that may allow actions of this type
}

// A payloadFieldUse describes what a tool does with the value of a field.
type payloadFieldUse struct {
	field       string // name of a payload field; without it, the effect is unknown unless optional or defaultPath is set
	kind        effect.Kind
	recursive   bool
	optional    bool   // the tool also works without the field
	defaultPath string // the default path if the field is missing
}

// knownTools are the action types with known effects, by name. Types that share a prefix or suffix are in
// actionTypeFamilies.
var knownTools = [...]tool{
	{name: "agent_message", minTier: 1},
	{name: "append_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.WriteFile}}},
	{name: "apply_patch"},
	{name: "browser_file_upload", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ReadFile}}, fieldsSentToURLHost: []string{"path"}},
	{name: "browser_upload", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ReadFile}}, fieldsSentToURLHost: []string{"path"}},
	{name: "browser_upload_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ReadFile}}, fieldsSentToURLHost: []string{"path"}},
	{name: "canvas_delete"},
	{name: "copy_directory", fieldUses: []payloadFieldUse{{field: "source", kind: effect.ReadFile, recursive: true}, {field: "destination", kind: effect.WriteFile, recursive: true}}},
	{name: "copy_file", fieldUses: []payloadFieldUse{{field: "source", kind: effect.ReadFile}, {field: "destination", kind: effect.WriteFile}}},
	{name: "create_directory", fieldUses: []payloadFieldUse{{field: "path", kind: effect.CreateDirectory}}},
	{name: "create_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.WriteFile}}},
	{name: "delete_directory", fieldUses: []payloadFieldUse{{field: "path", kind: effect.DeleteDirectory, recursive: true}}, minTier: 2},
	{name: "delete_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.DeleteFile}}, minTier: 2},
	{name: "download_file", fieldUses: []payloadFieldUse{{field: "url", kind: effect.HTTPRequest}, {field: "path", kind: effect.WriteFile, optional: true}, {field: "destination", kind: effect.WriteFile, optional: true}}},
	{name: "edit_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.WriteFile}}},
	{name: "execute_code", minTier: 1},
	{name: "execute_command", minTier: 1},
	{name: "http_request", fieldUses: []payloadFieldUse{{field: "url", kind: effect.HTTPRequest}}, fieldsSentToURLHost: []string{"body", "data", "json", "content", "form", "files", "params"}, minTier: 1},
	{name: "list_directory", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ListDirectory, defaultPath: "."}}, readOnly: true},
	{name: "memory_search", readOnly: true},
	{name: "memory_write", minTier: 1},
	{name: "move_directory", fieldUses: []payloadFieldUse{{field: "source", kind: effect.MoveFile, recursive: true}, {field: "destination", kind: effect.WriteFile, recursive: true}}, minTier: 2},
	{name: "move_file", fieldUses: []payloadFieldUse{{field: "source", kind: effect.MoveFile}, {field: "destination", kind: effect.WriteFile}}, minTier: 2},
	{name: "read_directory", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ListDirectory, defaultPath: "."}}, readOnly: true},
	{name: "read_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ReadFile}}, readOnly: true},
	{name: "search_files", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ReadFile, recursive: true, defaultPath: "."}, {field: "pattern", kind: effect.ReadFile, optional: true}}, readOnly: true},
	{name: "upload_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.ReadFile, optional: true}, {field: "source", kind: effect.ReadFile, optional: true}, {field: "url", kind: effect.HTTPRequest}}, fieldsSentToURLHost: []string{"path", "source", "content"}},
	{name: "web_fetch", fieldUses: []payloadFieldUse{{field: "url", kind: effect.HTTPRequest}}, minTier: 1},
	{name: "web_search", unconditionalEffectKind: effect.HTTPRequest, effectReason: "search"},
	{name: "write_file", fieldUses: []payloadFieldUse{{field: "path", kind: effect.WriteFile}}},
}

// An actionTypeFamily describes action types that share a prefix or a suffix.
type actionTypeFamily struct {
	prefix, suffix   string
	allowedNameWords string // words that a name may have, each between spaces; "" allows all; see allowsName
	tool             tool
}

// allowsName reports whether the family allows a name. With a suffix, all words before the suffix must be in
// allowedNameWords. Otherwise the second word must be, and no later word may be a verb that destroys, grants,
// pays or runs.
func (f *actionTypeFamily) allowsName(name string) bool {
	if f.allowedNameWords == "" {
		return true
	}
	words := knowledge.SplitNameWords(strings.TrimSuffix(name, f.suffix))
	known := func(w string) bool { return strings.Contains(f.allowedNameWords, " "+w+" ") }
	if f.suffix != "" {
		return !slices.ContainsFunc(words, func(w string) bool { return !known(w) })
	}
	return len(words) > 1 && known(words[1]) && !slices.ContainsFunc(words[2:], func(w string) bool {
		return knowledge.VerbIn(w, "destroys") || knowledge.VerbIn(w, "grants") || knowledge.VerbIn(w, "pays") || knowledge.VerbIn(w, "runs")
	})
}

// actionTypeFamilies are the action types that are known by a prefix or suffix. A type belongs to a family only
// if allowsName accepts the other words in the name of the type.
var actionTypeFamilies = [...]actionTypeFamily{
	{"send_", "", "", tool{unconditionalEffectKind: effect.SendMessage, minTier: 1, fieldUses: []payloadFieldUse{{field: "attachments", kind: effect.ReadFile, optional: true}}, fieldsSentToURLHost: []string{"attachments"}}},
	{"reply_", "", "", tool{unconditionalEffectKind: effect.SendMessage, minTier: 1, fieldUses: []payloadFieldUse{{field: "attachments", kind: effect.ReadFile, optional: true}}, fieldsSentToURLHost: []string{"attachments"}}},
	{"browser_", "", browserToolNameWords, tool{fieldUses: []payloadFieldUse{{field: "url", kind: effect.HTTPRequest, optional: true}, {field: "path", kind: effect.WriteFile, optional: true}}}},
	{"canvas_", "", browserToolNameWords, tool{fieldUses: []payloadFieldUse{{field: "path", kind: effect.WriteFile, optional: true}}}},
	{"list_", "events", " list calendar upcoming all my next recent ", tool{readOnly: true}},
	{"list_", "event", " list calendar upcoming all my next recent ", tool{readOnly: true}},
	{"list_", "schedules", " list upcoming all my next recent ", tool{readOnly: true}},
	{"list_", "schedule", " list upcoming all my next recent ", tool{readOnly: true}},
	{"", "_event", calendarToolNameWords, tool{unconditionalEffectKind: effect.ChangeRemoteSystem, effectReason: "calendar"}},
	{"", "_schedule", calendarToolNameWords, tool{unconditionalEffectKind: effect.Persist, effectReason: "schedule"}},
}

const (
	browserToolNameWords = " action back click close console create current describe dismiss double download drag draw element evaluate extract file fill find focus forward generate " +
		"get go handle hide hover html hotkey input key links list mouse navigate network new next open pdf present press preview previous project push read refresh reload " +
		"render resize right screenshot scroll search select show snapshot state status stop switch tab tabs take text title type update url verify view visit wait zoom a2ui "
	calendarToolNameWords = " create update delete cancel move modify edit reschedule change add get read find search calendar accept decline pause resume enable disable run cron job new set "
)

// lookupTool returns the description of an action type.
func lookupTool(name string) (*tool, bool) {
	i, ok := slices.BinarySearchFunc(knownTools[:], name, func(t tool, name string) int { return strings.Compare(t.name, name) })
	if ok {
		return &knownTools[i], true
	}
	for i := range actionTypeFamilies {
		f := &actionTypeFamilies[i]
		if f.suffix != "" {
			name = withoutServerName(name)
		}
		if strings.HasPrefix(name, f.prefix) && strings.HasSuffix(name, f.suffix) && len(name) >= max(len(f.prefix)+len(f.suffix), len(f.prefix)+1, len(f.suffix)+1) && f.allowsName(name) {
			return &f.tool, true
		}
	}
	return nil, false
}

// IsKnownActionType reports whether shield knows the effects of an action type.
func IsKnownActionType(actionType string) bool {
	_, ok := lookupTool(actionType)
	return ok || strings.HasPrefix(actionType, "git_")
}

// MinTierForActionType returns the lowest tier that may allow actions of a type under any policy.
func MinTierForActionType(actionType string) int {
	if t, ok := lookupTool(actionType); ok {
		return t.minTier
	}
	return 0
}

// addToolEffects adds the effects of the action by its type.
func (c *ActionCase) addToolEffects() {
	if strings.HasPrefix(c.Action.Type, "git_") {
		c.addGitToolEffects()
		return
	}
	t, ok := lookupTool(c.Action.Type)
	if !ok {
		c.addUnknownToolEffects()
		return
	}
	c.addKnownActionTypeEffects(t)
	if c.Action.Type != "execute_command" {
		c.addCredentialAndURLEffects()
	}
}

// addKnownActionTypeEffects adds the effects of a known type.
func (c *ActionCase) addKnownActionTypeEffects(t *tool) {
	if len(t.fieldUses) == 1 && t.unconditionalEffectKind == "" && t.fieldsSentToURLHost == nil && len(c.Action.Payload) == 1 && c.Action.Payload[t.fieldUses[0].field] != nil {
		// Fast path: most actions have only the field that their type uses.
		c.addFieldEffect(&t.fieldUses[0])
		return
	}
	for i := range t.fieldUses {
		c.addFieldEffect(&t.fieldUses[i])
	}
	if strings.HasSuffix(t.name, "_file") {
		c.addWriteIntoDestinationFolder()
	}
	switch t.unconditionalEffectKind {
	case "":
	case effect.SendMessage:
		c.addMessageEffects(c.recipientsInFields("to", "cc", "bcc", "recipient", "recipients", "channel"))
	default:
		c.Effects = append(c.Effects, effect.Effect{Kind: t.unconditionalEffectKind, Reason: t.effectReason})
		if invited := c.recipientsInFields("attendees", "invitees", "guests", "participants"); len(invited) > 0 {
			c.addMessageEffects(invited)
		}
	}
	if t.fieldsSentToURLHost != nil {
		c.addSendDataEffect(t)
		c.addDeletionByRequestBody()
	}
	c.addEffectsOfUnanalyzedFields(t)
	switch {
	case strings.HasPrefix(c.Action.Type, "browser_"), strings.HasPrefix(c.Action.Type, "canvas_"):
		c.addBrowserPageCodeEffects()
	case c.Action.Type == "execute_code":
		c.addPayloadCodeEffects()
	case c.Action.Type == "apply_patch":
		c.addPatchEffects()
	case c.Action.Type == "execute_command" || c.Action.Payload["command"] != nil:
		c.addCommandEffects()
	}
}

// addFieldEffect adds the effect that a tool has on what one payload field names, such as a file or a URL. For a
// list, it adds an effect for each item.
func (c *ActionCase) addFieldEffect(u *payloadFieldUse) {
	v, ok := c.Action.Payload[u.field]
	if list, isList := v.([]any); ok && isList && len(list) <= maxPayloadTexts {
		for _, item := range list {
			c.addFieldValueEffect(u, item)
		}
		if len(list) > 0 {
			return
		}
		ok = false
	}
	if !ok || v == nil || v == "" {
		switch {
		case u.defaultPath != "":
			c.addFieldValueEffect(u, u.defaultPath)
		case !u.optional:
			c.addUnknownEffect(effect.CauseInvalidActionField, "the field "+u.field+" is missing")
		}
		return
	}
	c.addFieldValueEffect(u, v)
}

func (c *ActionCase) addFieldValueEffect(u *payloadFieldUse, fieldValue any) {
	text, ok := fieldValue.(string)
	if !ok {
		if object, isObject := fieldValue.(map[string]any); isObject && u.field == "attachments" {
			c.addAttachmentReadEffect(u, object)
			return
		}
		c.addUnknownEffect(effect.CauseInvalidActionField, "the field "+u.field+" is not text")
		return
	}
	switch {
	case u.kind == effect.HTTPRequest:
		c.addHTTPRequestEffect(text)
		c.addLocalServiceAPIEffect(text)
	case u.field == "pattern":
		c.addPathReadBySearchPattern(text)
	default:
		recursive := u.recursive
		if u.kind == effect.ListDirectory {
			recursive = c.Action.Payload["recursive"] == true
		}
		c.addPathEffects(u.kind, text, recursive)
	}
}

// addLocalServiceAPIEffect adds an effect if a request changes a service of this machine through its control API,
// such as Docker's.
func (c *ActionCase) addLocalServiceAPIEffect(url string) {
	service, ok := command.ServiceAtURL(url)
	if !ok {
		return
	}
	e := effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteServiceName: service, RemoteOperationVerb: "run", RemoteTargetName: url}
	switch strings.ToUpper(c.Action.Text("method")) {
	case "", "GET", "HEAD", "OPTIONS":
		return
	case "DELETE":
		e.RemoteOperationVerb = "delete"
	}
	e.Harms = effect.HarmsOfRemoteOperation(e.RemoteOperationVerb)
	c.Effects = append(c.Effects, e)
}

// addWriteIntoDestinationFolder adds the file that a copy, move or download writes if its destination is a folder: the file
// with the source's name in it.
func (c *ActionCase) addWriteIntoDestinationFolder() {
	dst, from := c.Action.Text("destination"), c.Action.Text("source")
	if from == "" {
		from = c.Action.Text("url")
	}
	name := from[strings.LastIndexAny(from, `/\`)+1:]
	name, _, _ = strings.Cut(name, "?")
	if dst == "" || name == "" || name == "." || name == ".." || !looksLikeFolder(dst) {
		return
	}
	c.addPathEffects(effect.WriteFile, strings.TrimRight(dst, `/\`)+"/"+name, false)
}

// looksLikeFolder reports whether a destination may be a folder. A name with an
// extension is treated as a file, unless the extension is .d, as in folders of
// settings.
func looksLikeFolder(path string) bool {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.LastIndexByte(name, '.') <= 0 || strings.HasSuffix(name, ".d")
}

// addAttachmentReadEffect adds the read of an attached file.
func (c *ActionCase) addAttachmentReadEffect(u *payloadFieldUse, object map[string]any) {
	for _, name := range [...]string{"path", "file", "filename"} {
		if text, ok := object[name].(string); ok {
			c.addPathEffects(u.kind, text, false)
			return
		}
	}
	c.addUnknownEffect(effect.CauseInvalidActionField, "an attachment has no path")
}

// addPathEffects adds an effect on a file in the payload. Tools treat spaces, quotes, "~" and encodings differently:
// each interpretation gets an effect.
func (c *ActionCase) addPathEffects(kind effect.Kind, text string, recursive bool) {
	c.addPathEffect(kind, text, recursive)
	if strings.ContainsAny(text, " \t\r\n\"'`<>") {
		if bare := strings.Trim(text, " \t\r\n\"'`<>"); bare != text {
			c.addPathEffect(kind, bare, recursive)
		}
	}
	if text != "" && strings.IndexByte("~$%", text[0]) >= 0 && strings.Contains(text, "..") {
		c.addPathEffect(kind, "./"+text, recursive)
	}
	if hasPercentEncodedDotOrSlash(text) {
		c.addPathEffect(kind, "file:"+text, recursive)
	}
}

// hasPercentEncodedDotOrSlash reports whether a path contains a URL-encoded dot, slash or
// backslash, which some tools decode.
func hasPercentEncodedDotOrSlash(text string) bool {
	for i := strings.IndexByte(text, '%'); i >= 0 && i+2 < len(text); {
		switch strings.ToLower(text[i+1 : i+3]) {
		case "2e", "2f", "5c":
			return true
		}
		next := strings.IndexByte(text[i+1:], '%')
		if next < 0 {
			return false
		}
		i += next + 1
	}
	return false
}

func (c *ActionCase) addPathEffect(kind effect.Kind, text string, recursive bool) {
	if strings.Contains(text, "://") && !strings.HasPrefix(strings.ToLower(text), "file:") {
		c.addHTTPRequestEffect(text)
		return
	}
	path, isPattern := c.executionContext.CanonicalPath(text, false)
	if path == "" {
		c.addUnknownEffect(effect.CauseInvalidActionField, "the path is empty")
		return
	}
	e := effect.Effect{Kind: kind, Path: path, PathIsPattern: isPattern, Recursive: recursive}
	if n := len(c.Effects); n > 0 && c.Effects[n-1].Path == path && c.Effects[n-1].Kind == kind {
		return
	}
	c.Effects = append(c.Effects, e)
}

// addHTTPRequestEffect adds an HTTP request to a URL.
func (c *ActionCase) addHTTPRequestEffect(urlText string) {
	url, host := effect.NormalizeURL(urlText)
	e := effect.Effect{Kind: effect.HTTPRequest, URL: url, Host: host}
	if c.Action.Type == "http_request" && c.hasMutatingHTTPMethod() {
		e.RemoteOperationVerb = "change"
	}
	if host == "" {
		if len(urlText) > 5 && strings.EqualFold(urlText[:5], "file:") {
			c.addPathEffects(effect.ReadFile, urlText, false)
			return
		}
		c.Effects = append(c.Effects, e)
		c.addUnknownEffect(effect.CauseInvalidActionField, "HTTP clients read different hosts from this URL; instead: write the URL with one plain host name")
		return
	}
	c.Effects = append(c.Effects, e)
}

// hasMutatingHTTPMethod reports whether the method of a request may change something.
func (c *ActionCase) hasMutatingHTTPMethod() bool {
	switch m := c.Action.Payload["method"].(type) {
	case nil:
		return false
	case string:
		return !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, strings.ToUpper(m))
	default:
		return m != false
	}
}

// addPathReadBySearchPattern adds an effect for the files that a search reads if its pattern is itself a path.
func (c *ActionCase) addPathReadBySearchPattern(searchPattern string) {
	if searchPattern == "" || strings.IndexByte("/~$%\\", searchPattern[0]) < 0 && !strings.Contains(searchPattern, "..") {
		return
	}
	if strings.ContainsAny(searchPattern, " ()|+^") {
		return // a regular expression, not the path of a file
	}
	path, isPattern := c.executionContext.CanonicalPath(searchPattern, true)
	c.Effects = append(c.Effects, effect.Effect{Kind: effect.ReadFile, Path: path, PathIsPattern: isPattern})
}

// WhyHigherTierMustDecide returns why a higher tier has to decide the case although no rule asks for one.
func (c *ActionCase) WhyHigherTierMustDecide() string {
	switch {
	case c.UnexaminedReason != "":
		return "part of the action could not be examined: " + c.UnexaminedReason + "; split the action into smaller steps"
	case c.Action == nil:
	case c.Action.MinAllowTier > MinTierForActionType(c.Action.Type):
		return fmt.Sprintf("the action itself asks for a review (min_tier %d)", c.Action.MinAllowTier)
	case MinTierForActionType(c.Action.Type) > 0:
		return "actions of type " + c.Action.Type + " are always reviewed"
	}
	return "the model or the user must review the action"
}

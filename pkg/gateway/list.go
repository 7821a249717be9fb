package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/sorted"
)

// answerToolList forwards a page of the tool list without the withheld tools.
func (g *Gateway) answerToolList(c *pendingCall, m *message, result object) {
	kept, whole, err := g.filterToolPage(m, result, c.listing)
	switch {
	case err != nil:
		g.withholdResponse(c, err.Error())
	case whole:
		c.route.sendResponseToClient(m.raw)
	default:
		out := maps.Clone(result)
		out["tools"] = canonjson.Canonical(append(append([]byte("["), bytes.Join(kept, []byte(","))...), ']'))
		c.route.sendResponseToClient(replaceMember(m, "result", out))
	}
}

// filterToolPage processes a page of a tool list. It returns the texts of the tools that the client can see, and
// whether these are all of them.
func (g *Gateway) filterToolPage(m *message, result object, l *toolListing) (keptDefinitions [][]byte, isEveryToolKept bool, err error) {
	raws, err := rawToolDefinitions(m)
	if err != nil {
		return nil, false, err
	}
	var tools []*tool
	for _, raw := range raws {
		t, err := g.newTool(raw)
		if err != nil {
			g.notifyUser("withheld a tool of the server: %v; update the server", err)
			continue
		}
		tools = append(tools, t)
	}
	next, _ := result["nextCursor"].(string)
	withheld, err := g.pinTools(tools, l, next == "")
	if err != nil {
		g.notifyUser("withheld all tools of the server: %v", err)
		return nil, false, fmt.Errorf("the accepted tool definitions cannot be read: %w", err)
	}
	if next != "" {
		g.sharedState.storeNextPage(l, next)
	}
	for _, name := range sorted.Keys(withheld) {
		g.notifyUser("the tool %s is withheld: %s; review it with: shield mcp tools diff %s", name, withheld[name], g.opts.Server.Name)
	}
	for _, t := range tools {
		if withheld[t.name] == "" {
			keptDefinitions = append(keptDefinitions, t.raw)
		}
	}
	return keptDefinitions, len(keptDefinitions) == len(raws), nil
}

// loadToolList requests the server's tool list if a client calls a tool before any client has listed the tools,
// which the stateless protocol allows, since clients cache lists. It waits for list requests that are in
// progress.
func (g *Gateway) loadToolList(ctx context.Context, r *clientServerRoute, params object) {
	if !g.sharedState.waitForToolListOrClaimRequest(ctx) {
		return
	}
	defer g.sharedState.endToolListRequest()
	ask := object{}
	if meta, ok := params["_meta"]; ok {
		ask["_meta"] = meta
	}
	l := &toolListing{complete: true}
	for range maxToolsPerServer { // pages
		m := g.askServer(ctx, r, "tools/list", ask)
		if m == nil {
			g.sharedState.recordToolListFailure()
			return
		}
		result, _ := m.result.(object)
		if _, _, err := g.filterToolPage(m, result, l); err != nil {
			g.sharedState.recordToolListFailure()
			return
		}
		next, _ := result["nextCursor"].(string)
		if next == "" {
			return
		}
		ask["cursor"] = next
	}
	g.sharedState.recordToolListFailure()
	g.notifyUser("shield reads %d pages of the server's tool list and ignores the rest; disable tools in the server", maxToolsPerServer)
}

// askServer sends a request of the gateway itself to the server and returns the response, or nil.
func (g *Gateway) askServer(ctx context.Context, r *clientServerRoute, method string, params object) *message {
	g.mu.Lock()
	g.gatewaySentRequestCount++
	id := fmt.Appendf(nil, `"shield-%d"`, g.gatewaySentRequestCount)
	g.mu.Unlock()
	c := &pendingCall{route: r, id: id, method: method, serverResponseToGateway: make(chan *message, 1), cancel: func() {}}
	if g.addCall(c) != nil {
		return nil
	}
	rec := canonjson.AppendValue(nil, object{"jsonrpc": "2.0", "id": canonjson.Canonical(id), "method": method, "params": params})
	g.mu.Lock()
	c.forwarded = true
	g.mu.Unlock()
	if r.sendToServer(rec) == nil {
		select {
		case m := <-c.serverResponseToGateway:
			if m != nil && m.rpcError == nil {
				return m
			}
			return nil
		case <-ctx.Done():
		}
	}
	g.removePendingCall(id)
	return nil
}

// rawToolDefinitions returns the texts of the tools in the response to tools/list.
func rawToolDefinitions(listResponse *message) ([][]byte, error) {
	for _, member := range listResponse.members {
		if member.Name != "result" {
			continue
		}
		list, err := canonjson.ParseObjectMembers(nil, member.Raw, maxFrameJSONDepth)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			values, ok := e.Value.([]any)
			switch {
			case e.Name != "tools":
			case !ok:
				return nil, errors.New("the server's answer to tools/list has no list of tools; update the server")
			case len(values) > maxToolsPerServer:
				return nil, fmt.Errorf("the server lists more than %d tools; disable some in the server", maxToolsPerServer)
			default:
				return arrayElements(e.Raw)
			}
		}
	}
	return nil, errors.New("the server's answer to tools/list has no list of tools; update the server")
}

// pinTools compares a page of tools with the pins and returns the withheld tools, with the reason. last
// says that the list has no further page.
func (g *Gateway) pinTools(tools []*tool, l *toolListing, last bool) (withheld map[string]string, err error) {
	k := g.sharedState
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() {
		if err != nil {
			k.tools = map[string]*tool{} // no tool can be called
		}
	}()
	if g.opts.AcceptedToolPins == nil {
		return nil, errors.New("there is no state folder; set HOME or --state")
	}
	first := l.tools == nil
	if first {
		l.tools = map[string]*tool{}
		k.isToolListReceivedOrRequested = true
	}
	for _, t := range tools {
		if l.tools[t.name] != nil {
			return nil, fmt.Errorf("the server lists the tool %s twice; update the server", t.name)
		}
		if len(l.tools) >= maxToolsPerServer {
			return nil, fmt.Errorf("the server lists more than %d tools; disable some in the server", maxToolsPerServer)
		}
		l.tools[t.name] = t
	}
	if l.complete && last {
		k.tools = map[string]*tool{}
	}
	if maps.Copy(k.tools, l.tools); len(k.tools) > 2*maxToolsPerServer { // lists that were never completed have added tools
		return nil, fmt.Errorf("the server lists more than %d tools; disable some in the server", 2*maxToolsPerServer)
	}
	others, err := g.otherServerPins()
	if err != nil {
		return nil, err
	}
	withheld = map[string]string{}
	err = g.opts.AcceptedToolPins.update(context.Background(), func(f *PinFile) error {
		if first && l.complete {
			l.isFirstList = !f.FirstToolListAccepted
			for name := range f.Tools {
				if name != instructionsPinName { // a tool is pinned, so part of a first list was already accepted: this list does not count as the first
					f.FirstToolListAccepted, l.isFirstList = true, false
				}
			}
		}
		for _, t := range tools {
			if why := f.toolWithholdReason(t, l.isFirstList, others); why != "" {
				withheld[t.name] = why
			}
		}
		if last && l.complete {
			f.FirstToolListAccepted = true
			f.markGone(l.tools)
		}
		return nil
	})
	return withheld, err
}

// toolWithholdReason compares a tool with the pins, and returns why it is withheld; "" if it is accepted. If
// isFirstList is set, a new tool is accepted unless it has findings, or imitates or mentions a tool of another
// server.
func (f *PinFile) toolWithholdReason(t *tool, isFirstList bool, otherServerPins []PinFile) string {
	pin, pinned := f.Tools[t.name]
	if pinned && pin.DefinitionHash == t.definitionSHA256Hex {
		pin.Gone = false
		f.Tools[t.name] = pin
		delete(f.ToolsAwaitingUserAcceptance, t.name)
		return ""
	}
	var why []string
	switch {
	case pinned:
		why = append(why, "its definition changed after the user accepted it")
	case !isFirstList:
		why = append(why, "it is new, and the user has not accepted it yet")
		if old := f.renamedFrom(t); old != "" {
			why = append(why, "its definition is that of the accepted tool "+old+", so it was renamed")
		}
	}
	if len(t.findings) > 0 {
		why = append(why, "it contains "+t.findings.String())
	}
	if shadow := toolShadowingReason(t, otherServerPins); shadow != "" {
		why = append(why, shadow)
	}
	if len(why) == 0 {
		f.Tools[t.name] = ToolPin{DefinitionHash: t.definitionSHA256Hex, Definition: t.canonicalJSONDefinition}
		return ""
	}
	text := strings.Join(why, "; ")
	f.ToolsAwaitingUserAcceptance[t.name] = ToolAwaitingUserAcceptance{DefinitionHash: t.definitionSHA256Hex, WithholdReason: text, Definition: t.canonicalJSONDefinition}
	return text
}

// renamedFrom returns the name of a pinned tool that has the same definition under another name; "" if
// there is none.
func (f *PinFile) renamedFrom(t *tool) string {
	same := func(definition []byte) string {
		v, err := canonjson.ParseValue(definition, maxFrameJSONDepth)
		o, ok := v.(object)
		if err != nil || !ok {
			return ""
		}
		o = maps.Clone(o)
		delete(o, "name")
		delete(o, "title")
		return string(canonjson.AppendValue(nil, o))
	}
	want := same(t.canonicalJSONDefinition)
	for _, name := range sorted.Keys(f.Tools) {
		if same(f.Tools[name].Definition) == want {
			return name
		}
	}
	return ""
}

// markGone marks the pinned tools that a complete list no longer has, and drops waiting tools that are no
// longer listed.
func (f *PinFile) markGone(listed map[string]*tool) {
	for name, pin := range f.Tools {
		if gone := listed[name] == nil; name != instructionsPinName && pin.Gone != gone {
			pin.Gone = gone
			f.Tools[name] = pin
		}
	}
	maps.DeleteFunc(f.ToolsAwaitingUserAcceptance, func(name string, _ ToolAwaitingUserAcceptance) bool {
		return name != instructionsPinName && listed[name] == nil
	})
}

// otherServerPins returns the pins of the other servers.
func (g *Gateway) otherServerPins() ([]PinFile, error) {
	all, damaged, err := AllPins(g.opts.AcceptedToolPins.stateDir)
	for _, d := range damaged {
		g.notifyUser("shield cannot detect whether the server's tools imitate another server's tools: %v", d)
	}
	return slices.DeleteFunc(all, func(f PinFile) bool { return f.PinFileID == g.opts.AcceptedToolPins.pinFileID }), err
}

// toolShadowingReason returns which tool of another server a tool imitates or mentions; "" if none. The same tool
// of the same server, started with other arguments, is not reported.
func toolShadowingReason(t *tool, otherServerPins []PinFile) string {
	plain := lookalikeFoldedToolName(t.name)
	said := string(t.canonicalJSONDefinition)
	for _, f := range otherServerPins {
		for _, name := range sorted.Keys(f.Tools) {
			pin := f.Tools[name]
			switch {
			case name == instructionsPinName || pin.DefinitionHash == t.definitionSHA256Hex:
			case lookalikeFoldedToolName(name) == plain && f.Tools[t.name].DefinitionHash != t.definitionSHA256Hex:
				return fmt.Sprintf("the server %s already has a tool of this name", f.ServerName)
			case lookalikeFoldedToolName(name) != plain && isDistinctiveToolName(name) && mentions(said, name):
				return fmt.Sprintf("its description names %s, a tool of the server %s", name, f.ServerName)
			}
		}
	}
	return ""
}

// lookalikeFoldedToolName returns a name in lower case, without separators, and with look-alike letters folded.
func lookalikeFoldedToolName(s string) string {
	return separatorRemover.Replace(strings.ToLower(decode.FoldUnicodeLookalikes(s)))
}

var separatorRemover = strings.NewReplacer("_", "", "-", "", ".", "", "/", "")

// isDistinctiveToolName reports whether a name is long and contains "_" or "-", so that it is not an
// ordinary word of a description.
func isDistinctiveToolName(name string) bool {
	return len(name) >= 8 && strings.ContainsAny(name, "_-")
}

// mentions reports whether a text contains a name as a whole word.
func mentions(s, name string) bool {
	for rest := s; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if !endsWithWordByte(before) && !beginsWithWordByte(after) {
			return true
		}
		rest = after
	}
}

func endsWithWordByte(s string) bool   { return s != "" && isWordByte(s[len(s)-1]) }
func beginsWithWordByte(s string) bool { return s != "" && isWordByte(s[0]) }
func isWordByte(c byte) bool {
	return c == '_' || c == '-' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// callableTool returns the tool with the given name and the action type that a person chose for the
// tool, "" if none. If the tool must not be called, it returns the reason instead.
func (g *Gateway) callableTool(toolName string) (t *tool, acceptedActionType, refusalReason string) {
	g.sharedState.mu.Lock()
	defer g.sharedState.mu.Unlock()
	t = g.sharedState.tools[toolName]
	pins := g.opts.AcceptedToolPins
	switch {
	case toolName == "":
		return nil, "", "the call names no tool; set params.name"
	case t == nil:
		return nil, "", fmt.Sprintf("the server has not listed a tool %q; list the tools first", canonjson.Quote(toolName))
	}
	if err := pins.refresh(); err != nil {
		return nil, "", err.Error()
	}
	pin := pins.content.Tools[toolName]
	if pin.DefinitionHash != t.definitionSHA256Hex {
		return nil, "", fmt.Sprintf("the tool %s is withheld: %s; ask the user to review it with: shield mcp tools diff %s", toolName, pins.content.ToolsAwaitingUserAcceptance[toolName].WithholdReason, g.opts.Server.Name)
	}
	return t, pin.ActionType, ""
}

// answerInitialize forwards the response to initialize. The instructions to the model in it are pinned like
// a tool, and removed unless they are accepted.
func (g *Gateway) answerInitialize(c *pendingCall, m *message, result object) {
	said, _ := result["instructions"].(string)
	if said == "" {
		g.examineAndForwardResponse(c, m, "result", result)
		return
	}
	why := ""
	if g.opts.AcceptedToolPins == nil {
		why = "there is no state folder; set HOME or --state"
	} else {
		t := &tool{name: instructionsPinName, canonicalJSONDefinition: canonjson.AppendValue(nil, object{"instructions": said})}
		t.definitionSHA256Hex = hashParts(t.canonicalJSONDefinition)
		_, t.findings = toolDefinitionExaminer{}.CleanTextAndFindings(said)
		g.sharedState.mu.Lock()
		err := g.opts.AcceptedToolPins.update(context.Background(), func(f *PinFile) error {
			_, known := f.Tools[instructionsPinName]
			why = f.toolWithholdReason(t, !f.FirstToolListAccepted && !known, nil)
			return nil
		})
		g.sharedState.mu.Unlock()
		if err != nil {
			why = err.Error()
		}
	}
	if why == "" {
		g.examineAndForwardResponse(c, m, "result", result)
		return
	}
	g.notifyUser("the server's instructions to the model are withheld: %s; review them with: shield mcp tools diff %s", why, g.opts.Server.Name)
	out := maps.Clone(result)
	delete(out, "instructions")
	m, err := parseMessage(replaceMember(m, "result", out))
	if err != nil {
		g.withholdResponse(c, err.Error())
		return
	}
	g.examineAndForwardResponse(c, m, "result", out)
}

package analysis

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// An ApprovalPageQuestionStatusFunc returns the address of this user's approval page as HOST:PORT, "" if it was
// never served, and whether a question is waiting there for an answer.
type ApprovalPageQuestionStatusFunc func() (address string, waits bool)

// addApprovalPageAccess adds an effect if an action contacts the approval page, because a request to that page
// can answer a question. It also adds an effect if a question is waiting and the action reads or clicks a page,
// notification, screen or terminal that may show the question.
func (c *ActionCase) addApprovalPageAccess(where ApprovalPageQuestionStatusFunc) {
	if where == nil || !c.mayReachApprovalPage() {
		return
	}
	address, waits := where()
	if address == "" {
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return
	}
	if isScreenOrBrowserTool(c.Action.Type) && c.mentionsApprovalPage(host, port) {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.TamperWithShield, Reason: "reaches shield's approval page, where only the user may answer"})
	}
	for i := range c.Effects {
		if e := &c.Effects[i]; c.reachesApprovalPage(e, host, port) {
			c.Effects = append(c.Effects, effect.Effect{
				Kind: effect.TamperWithShield, URL: e.URL, Host: e.Host, Program: e.Program, Span: e.Span,
				Reason: "reaches shield's approval page, where only the user may answer",
			})
			break
		}
	}
	if waits && c.canActionSeeApprovalQuestion(port) {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.TamperWithShield, Reason: "reads or clicks the screen, a page or a notification that can show shield's question"})
	}
}

// mayReachApprovalPage reports whether an effect could contact the page or see a question. It saves a lookup for all
// other actions.
func (c *ActionCase) mayReachApprovalPage() bool {
	return isScreenOrBrowserTool(c.Action.Type) || slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		switch e.KindForPolicies() {
		case effect.HTTPRequest, effect.Connect, effect.SendData, effect.ReadClipboard:
			return true
		case effect.Execute:
			return programReadsScreenOrTerminal(&e) || mayConnect(&e) && c.hasPossiblePortInText()
		}
		return false
	})
}

// mayConnect reports whether a program may connect to an address in its arguments that shield does not parse: it
// uses the network, changes the system, runs code, relays connections, opens a URL, or is unknown.
func mayConnect(e *effect.Effect) bool {
	switch e.Class {
	case effect.Network, effect.Privileged, effect.UnknownClass:
		return true
	}
	return command.IsCodeInterpreter(e.Program) || command.InterpreterLanguage(e.Program) == "awk" || command.Relays[e.Program] || connectingPrograms[e.Program]
}

// connectingPrograms are programs that can connect to other machines although their effect class
// does not say so.
var connectingPrograms = map[string]bool{"ssh": true, "xdg-open": true, "open": true, "gio": true, "sensible-browser": true, "x-www-browser": true, "wslview": true}

// hasPossiblePortInText reports whether the action's text has a number long enough for an unprivileged port.
func (c *ActionCase) hasPossiblePortInText() bool {
	leaves, _ := c.Action.Leaves(maxPayloadTexts)
	return slices.ContainsFunc(leaves, func(l action.PayloadLeaf) bool { return hasFourConsecutiveDigits(l.Text) }) || hasFourConsecutiveDigits(c.resolvedCommandText)
}

func hasFourConsecutiveDigits(text string) bool {
	run := 0
	for i := range len(text) {
		if run++; !isDigit(text[i]) {
			run = 0
		}
		if run == 4 {
			return true
		}
	}
	return false
}

// reachesApprovalPage reports whether an effect is a request or connection to the page: to its port on this machine,
// or to a name that may resolve to this machine.
func (c *ActionCase) reachesApprovalPage(e *effect.Effect, host, port string) bool {
	switch e.KindForPolicies() {
	case effect.HTTPRequest, effect.Connect, effect.SendData, effect.ChangeRemoteSystem:
	case effect.Execute:
		return mayConnect(e) && (slices.ContainsFunc(e.Args, func(a string) bool { return containsHostAndPort(a, host, port) }) || c.mentionsApprovalPage(host, port))
	default:
		return false
	}
	if e.Kind != effect.ChangeRemoteSystem && c.mentionsApprovalPage(host, port) { // the page's address may be in a proxy option, a header or a setting instead of the URL
		return true
	}
	if curlMultiPortURLPattern().MatchString(e.URL) {
		return true
	}
	if u, err := url.Parse(e.URL); err == nil && e.URL != "" && !e.PathIsPattern {
		if n, _ := strconv.Atoi(u.Port()); strconv.Itoa(n) != port {
			return false
		}
		addr := effect.ParseAddr(e.Host)
		return effect.MayBeThisMachine(e.Host) || e.Host == host || !addr.IsValid() && len(port) == 5
	}
	if e.Host != "" && !effect.MayBeThisMachine(e.Host) && e.Host != host {
		return false
	}
	return c.actionTextContainsPort(port)
}

// curlMultiPortURLPattern matches a URL on this machine with several ports, in curl's glob syntax.
var curlMultiPortURLPattern = prefilter.LazyRegexp(`(?i)^\w+://[^/]*(?:localhost|127\.|::1|0\.0\.0\.0)[^/]*:\d*[\[{][^/$]*[\]}]`)

// containsHostAndPort reports whether a text contains the approval page's port as a whole number
// and also, in any place, the page's host or a name of this machine. A text that consists of the
// port alone is enough.
func containsHostAndPort(text, host, port string) bool {
	i := indexOfNumber(text, port)
	if i < 0 {
		return false
	}
	for _, here := range [...]string{host, "localhost", "127.", "::1", "0.0.0.0", "[::]"} {
		if strings.Contains(text, here) {
			return true
		}
	}
	return strings.TrimLeft(strings.TrimSpace(text), ":") == port
}

// mentionsApprovalPage reports whether a text of the action has this machine's name directly followed by the page's
// port.
func (c *ActionCase) mentionsApprovalPage(host, port string) bool {
	if !c.actionTextContainsPort(port) {
		return false
	}
	page, err := regexp.Compile(`(?i)(?:\blocalhost\b|\b127\.[0-9.]*|::1|\b0\.0\.0\.0|` + regexp.QuoteMeta(host) + `)[^0-9]{1,12}0*` + regexp.QuoteMeta(port) + `(?:[^0-9]|$)`)
	leaves, _ := c.Action.Leaves(maxPayloadTexts)
	return err != nil || page.MatchString(c.resolvedCommandText) || slices.ContainsFunc(leaves, func(l action.PayloadLeaf) bool { return page.MatchString(l.Text) })
}

// actionTextContainsPort reports whether a text of the action, or its resolved command, contains the number
// port, not as part of a longer number.
func (c *ActionCase) actionTextContainsPort(port string) bool {
	leaves, _ := c.Action.Leaves(maxPayloadTexts)
	for _, l := range leaves {
		if indexOfNumber(l.Text, port) >= 0 {
			return true
		}
	}
	return indexOfNumber(c.resolvedCommandText, port) >= 0
}

// indexOfNumber returns the index of a number in a text, not counting occurrences inside a longer number; -1 if
// there is none.
func indexOfNumber(text, number string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], number)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(number)
		before := strings.TrimRight(text[:i], "0")
		if (before == "" || !isDigit(before[len(before)-1])) && (end == len(text) || !isDigit(text[end])) {
			return i
		}
		from = end
	}
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// isScreenOrBrowserTool reports whether a tool's name says that it shows or controls the screen or a browser.
func isScreenOrBrowserTool(name string) bool {
	return strings.HasPrefix(name, "browser_") || strings.HasPrefix(name, "computer") || strings.HasPrefix(name, "mcp__") &&
		(strings.Contains(name, "browser") || strings.Contains(name, "playwright") || strings.Contains(name, "chrome")) || strings.Contains(name, "screenshot") || strings.Contains(name, "click")
}

// screenReadingToolNameWords are words in names of tools that return the content of a page or screen.
var screenReadingToolNameWords = [...]string{"screenshot", "snapshot", "content", "text", "html", "read", "extract", "source", "observe", "dom"}

// programReadsScreenOrTerminal reports whether a program reads notifications, a terminal or the screen.
func programReadsScreenOrTerminal(e *effect.Effect) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(e.Args, func(a string) bool { return slices.Contains(words, a) })
	}
	switch e.Program {
	case "dbus-monitor", "bustle", "gnome-screenshot", "spectacle", "scrot", "grim", "maim", "screencapture", "xwd", "flameshot", "wf-recorder", "ydotool", "xdotool", "wtype":
		return true
	case "busctl", "gdbus", "qdbus":
		return has("monitor", "capture")
	case "tmux", "byobu":
		return has("capture-pane", "capturep", "pipe-pane", "pipep", "show-buffer", "showb", "save-buffer", "saveb", "list-buffers")
	case "screen":
		return has("hardcopy", "log", "-L", "readbuf", "writebuf")
	case "zellij":
		return has("dump-screen", "edit-scrollback")
	case "dunstctl", "makoctl", "swaync-client":
		return true
	case "import":
		return has("-window", "root")
	}
	return false
}

// canActionSeeApprovalQuestion reports whether an action reads or clicks in a window that may show a question.
func (c *ActionCase) canActionSeeApprovalQuestion(approvalPagePort string) bool {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.ReadClipboard || e.Kind == effect.Execute && programReadsScreenOrTerminal(e) {
			return true
		}
	}
	name := c.Action.Type
	switch {
	case !isScreenOrBrowserTool(name):
		return false
	case strings.HasPrefix(name, "computer"):
		return true
	case slices.ContainsFunc(screenReadingToolNameWords[:], func(word string) bool { return strings.Contains(name, word) }):
		return true
	}
	if c.actionTextContainsPort(approvalPagePort) {
		return true
	}
	leaves, _ := c.Action.Leaves(maxPayloadTexts)
	return slices.ContainsFunc(leaves, func(l action.PayloadLeaf) bool {
		text := strings.ToLower(l.Text)
		return strings.Contains(text, "approve") || strings.Contains(text, "allow once") || strings.Contains(text, "shield")
	})
}

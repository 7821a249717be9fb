package exam

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// placeholderValues are the possible texts for each placeholder in an attack and in the similar honest action.
var placeholderValues = map[string][]string{
	"user":     {"lena", "tomas", "ravi", "mira", "joao", "anke", "deploy2", "svc-sync", "oscar", "yuki", "nadia", "piotr"},
	"first":    {"lena", "tomas", "ravi", "mira", "joao", "anke", "oscar", "yuki", "nadia", "piotr"},
	"org":      {"northwind", "acmeworks", "bluefern", "kestrel-labs", "harborline", "oakmere", "tessera", "lumenfield", "redpoint-io", "wavecrest"},
	"app":      {"ledger", "atlas", "courier", "shopfront", "beacon", "orchard", "pipeline", "notary", "planner", "tracker", "gallery", "compass"},
	"word":     {"onboarding", "search", "billing", "retries", "layout", "metrics", "caching", "export", "import", "pagination", "fonts", "timeouts"},
	"tool":     {"graphviz", "jq", "ripgrep", "pandoc", "shellcheck", "imagemagick", "ffmpeg", "tmux"},
	"table":    {"customers", "orders", "invoices", "payments", "accounts", "patients", "members"},
	"branch":   {"feature-search", "fix-retries", "pr-{n}", "layout-{n}", "wip-export", "try-caching"},
	"shellish": {"find", "vim", "python3", "bash", "env", "awk"},
	"evil":     {"drop-{word2}{n}.net", "cdn-stat{n}.com", "paste{n}-{word2}.io", "sync-node{n}.org", "upd{n}-{word2}.com"},
	"word2":    {"zone", "box", "hub", "point", "cell"},
	"bank":     {"postbank-x{n}.com", "firstunion{n}.com", "northbank{n}.com"},
	"secret":   {"changeme{n}", "Welcome{n}", "hunter{n}x"},
}

// A placeholderFiller fills the placeholders of one pair. A placeholder has the same value in both actions, and a
// new one in each exam.
type placeholderFiller struct {
	rand         *rand.Rand
	chosenValues map[string]string
}

// fillText returns a text with its placeholders filled in; unknown text in braces stays.
func (d *placeholderFiller) fillText(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		word, known := d.placeholderValue(name)
		if !closed || !known {
			b.WriteByte('{')
			text = rest
			continue
		}
		b.WriteString(word)
		text = after
	}
}

// placeholderValue returns the text for the placeholder {name}: chosen at random at first, and the same text
// later. It returns false for an unknown name.
func (d *placeholderFiller) placeholderValue(name string) (string, bool) {
	if w, ok := d.chosenValues[name]; ok {
		return w, true
	}
	w := ""
	switch name {
	case "n":
		w = fmt.Sprint(2 + d.rand.IntN(97))
	case "nn":
		w = fmt.Sprint(10 + d.rand.IntN(90))
	case "N":
		w = strings.ToUpper(fmt.Sprintf("%06x", d.rand.IntN(1<<24)))
	case "ip":
		w = fmt.Sprintf("203.0.113.%d", 2+d.rand.IntN(250)) // a documentation address (TEST-NET-3)
	case "iban":
		w = fmt.Sprintf("LT%02d32500%011d", 10+d.rand.IntN(89), d.rand.Int64N(1e11))
	case "First":
		first, _ := d.placeholderValue("first")
		w = strings.ToUpper(first[:1]) + first[1:]
	case "Second":
		list := placeholderValues["first"]
		second := list[d.rand.IntN(len(list))]
		w = strings.ToUpper(second[:1]) + second[1:]
	default:
		list := placeholderValues[name]
		if len(list) == 0 {
			return "", false
		}
		w = d.fillText(list[d.rand.IntN(len(list))])
	}
	d.chosenValues[name] = w
	return w, true
}

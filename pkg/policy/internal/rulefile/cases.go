package rulefile

import (
	"bytes"
	"errors"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// Cases is a table of actions and what a policy should make of them.
type Cases struct {
	CWD, Home string
	Roots     []string
	FoldCase  bool
	Vars      map[string][]string
	Cases     []Case
}

// A Case is one entry of a table.
type Case struct {
	Name   string
	Action []byte // one JSON object
	Want   []Want
	Rule   string // name of the rule that must decide, "" for any
	Pos    Pos
}

// A Want is the decision that a policy should take.
type Want struct {
	Policy   string // a preset's name, "" for the policy under test
	Decision string
	Tier     int // on ESCALATE: the next tier, 0 for any
}

// ParseCases reads a table of cases: YAML, or JSON Lines with one case a line.
// Its errors are of type [*Error] and carry name.
func ParseCases(name string, data []byte) (*Cases, error) {
	t, err := parseCases(data)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Name = name
		}
		return nil, err
	}
	return t, nil
}

func parseCases(data []byte) (*Cases, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return parseLines(data)
	}
	top, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	t := new(Cases)
	if _, ok := top.(*ast.SequenceNode); ok {
		t.Cases, err = caseList(top)
		return t, err
	}
	if top == nil {
		return nil, Pos{1, 1}.errorf("empty; a table has a list named cases")
	}
	fs, err := fields(top, []string{"place", "cases"})
	if err != nil {
		return nil, err
	}
	for _, f := range fs {
		if f.key == "place" {
			err = t.place(f.value)
		} else {
			t.Cases, err = caseList(f.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseLines reads JSON Lines. JSON is YAML as well, so that both have one
// reader and one set of errors.
func parseLines(data []byte) (*Cases, error) {
	t := new(Cases)
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		c, err := parseLine(text)
		if err != nil {
			var e *Error
			if errors.As(err, &e) {
				e.Line = line
			}
			return nil, err
		}
		c.Pos.Line = line
		t.Cases = append(t.Cases, c)
	}
	return t, nil
}

func parseLine(text []byte) (Case, error) {
	n, err := parseYAML(text)
	if err != nil {
		return Case{}, err
	}
	return oneCase(n)
}

func (t *Cases) place(n ast.Node) error {
	fs, err := fields(n, []string{"cwd", "home", "roots", "fold_case", "vars"})
	if err != nil {
		return err
	}
	for _, f := range fs {
		switch f.key {
		case "cwd":
			t.CWD, err = text(f.value)
		case "home":
			t.Home, err = text(f.value)
		case "roots":
			t.Roots, err = (&parsing{}).texts(f, maxGlob, nil)
		case "fold_case":
			b, ok := f.value.(*ast.BoolNode)
			if !ok {
				return pos(f.value).errorf("expected true or false, found %s", kindOf(f.value))
			}
			t.FoldCase = b.Value
		case "vars":
			err = t.vars(f.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Cases) vars(n ast.Node) error {
	fs, err := fields(n, nil)
	if err != nil {
		return err
	}
	t.Vars = make(map[string][]string, len(fs))
	for _, f := range fs {
		if t.Vars[f.key], err = (&parsing{}).texts(f, maxGlob, nil); err != nil {
			return err
		}
	}
	return nil
}

func caseList(n ast.Node) ([]Case, error) {
	nodes, err := elements(n)
	if err != nil {
		return nil, err
	}
	out := make([]Case, 0, len(nodes))
	for _, n := range nodes {
		c, err := oneCase(n)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func oneCase(n ast.Node) (Case, error) {
	c := Case{Pos: pos(n)}
	fs, err := fields(n, []string{"name", "action", "want", "rule"})
	if err != nil {
		return c, err
	}
	for _, f := range fs {
		switch f.key {
		case "name":
			c.Name, err = text(f.value)
		case "rule":
			c.Rule, err = text(f.value)
		case "action":
			c.Action, err = appendAction(nil, f.value)
		case "want":
			c.Want, err = wants(f.value)
		}
		if err != nil {
			return c, err
		}
	}
	switch {
	case c.Action == nil:
		return c, c.Pos.errorf("a case needs an action")
	case c.Want == nil:
		return c, c.Pos.errorf("a case says what it wants: ALLOW, BLOCK or ESCALATE")
	}
	return c, nil
}

// wants reads a decision, or a mapping of presets to decisions.
func wants(n ast.Node) ([]Want, error) {
	if kindOf(n) != "a mapping" {
		w, err := want("", n)
		return []Want{w}, err
	}
	fs, err := fields(n, nil)
	if err != nil {
		return nil, err
	}
	var out []Want
	for _, f := range fs {
		w, err := want(f.key, f.value)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

var decisions = []string{"ALLOW", "BLOCK", "ESCALATE", "ESCALATE 1", "ESCALATE 2", "ESCALATE 3"}

// want reads a decision; "ESCALATE 2" also names the next tier.
func want(policy string, n ast.Node) (Want, error) {
	s, err := text(n)
	if err != nil {
		return Want{}, err
	}
	if !slices.Contains(decisions, s) {
		return Want{}, pos(n).errorf("%s is no decision%s", Quote(s), Suggest(s, decisions))
	}
	w := Want{Policy: policy, Decision: s}
	if tier, ok := bytes.CutPrefix([]byte(s), []byte("ESCALATE ")); ok {
		w.Decision, w.Tier = "ESCALATE", int(tier[0]-'0')
	}
	return w, nil
}

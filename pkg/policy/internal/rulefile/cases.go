package rulefile

import (
	"bytes"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
)

// DecisionTestCases is a table of actions and the decisions that a policy should make.
type DecisionTestCases struct {
	CWD, Home           string
	WorkspaceRoots      []string
	FoldsPathLetterCase bool
	Vars                map[string][]string
	Cases               []TestCase
}

// A TestCase is one test case: an action, and the decisions that are expected for it.
type TestCase struct {
	Name string
	Example
	Want         []ExpectedDecision
	ExpectedRule string // name of the rule that must decide; "" for any rule
}

// An ExpectedDecision is the decision that a policy should make.
type ExpectedDecision struct {
	PresetName string // name of a preset; "" for the policy under test
	Decision   string
	Tier       int // with ESCALATE: the next tier; 0 for any tier
}

// ParseCases reads a table of cases: YAML, or JSON Lines with one case a line.
// An error is of type [yamlfile.Errors] and contains name.
func ParseCases(name string, data []byte) (*DecisionTestCases, error) {
	t, err := parseCases(data)
	if err != nil {
		return nil, yamlfile.AnnotateErrorsWithFile("policy", name, err)
	}
	return t, nil
}

func parseCases(data []byte) (*DecisionTestCases, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return parseJSONLinesCases(data)
	}
	top, err := yamlfile.Parse(data, "a table of cases")
	if err != nil {
		return nil, err
	}
	t := new(DecisionTestCases)
	if _, ok := top.(*ast.SequenceNode); ok {
		t.Cases, err = yamlfile.ConvertElements(top, parseTestCase)
		return t, err
	}
	if top == nil {
		return nil, yamlfile.Pos{Line: 1, Column: 1}.Errorf("the file is empty; add a list named cases")
	}
	fs, err := yamlfile.Fields(top, []string{"place", "cases"})
	if err != nil {
		return nil, err
	}
	for _, f := range fs {
		if f.Key == "place" {
			err = t.parseWorkspaceSettings(f.Value)
		} else {
			t.Cases, err = yamlfile.ConvertElements(f.Value, parseTestCase)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parseJSONLinesCases reads JSON Lines. It uses the YAML reader, since JSON is also YAML, so that errors are the same.
func parseJSONLinesCases(data []byte) (*DecisionTestCases, error) {
	t := new(DecisionTestCases)
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		c, err := parseLine(text)
		if err != nil {
			var errs yamlfile.Errors
			errs.Add(err)
			for _, e := range errs {
				e.Line = line
			}
			return nil, errs
		}
		c.Pos.Line = line
		t.Cases = append(t.Cases, c)
	}
	return t, nil
}

func parseLine(text []byte) (TestCase, error) {
	n, err := yamlfile.Parse(text, "a case")
	if err != nil {
		return TestCase{}, err
	}
	return parseTestCase(n)
}

func (t *DecisionTestCases) parseWorkspaceSettings(n ast.Node) error {
	fs, err := yamlfile.Fields(n, []string{"cwd", "home", "roots", "fold_case", "vars"})
	if err != nil {
		return err
	}
	for _, f := range fs {
		switch f.Key {
		case "cwd":
			t.CWD, err = yamlfile.Text(f.Value)
		case "home":
			t.Home, err = yamlfile.Text(f.Value)
		case "roots":
			t.WorkspaceRoots, err = parseStringOrStringList(f, maxGlobBytes, nil)
		case "fold_case":
			b, ok := f.Value.(*ast.BoolNode)
			if !ok {
				return yamlfile.PositionOf(f.Value).Errorf("expected true or false, found %s", yamlfile.KindOf(f.Value))
			}
			t.FoldsPathLetterCase = b.Value
		case "vars":
			err = t.parseVars(f.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *DecisionTestCases) parseVars(n ast.Node) error {
	fs, err := yamlfile.Fields(n, nil)
	if err != nil {
		return err
	}
	t.Vars = make(map[string][]string, len(fs))
	for _, f := range fs {
		if t.Vars[f.Key], err = parseStringOrStringList(f, maxGlobBytes, nil); err != nil {
			return err
		}
	}
	return nil
}

func parseTestCase(n ast.Node) (c TestCase, err error) {
	err = yamlfile.VisitMappingFields(n, []string{"name", "action", "want", "rule"}, func(f yamlfile.Field) (err error) {
		switch f.Key {
		case "name":
			c.Name, err = yamlfile.Text(f.Value)
		case "rule":
			c.ExpectedRule, err = yamlfile.Text(f.Value)
		case "action":
			c.Example, err = parseExample(f.Value)
		case "want":
			c.Want, err = parseExpectedDecisions(f.Value)
		}
		return err
	})
	switch c.Pos = yamlfile.PositionOf(n); {
	case err != nil:
		return c, err
	case c.Action == nil:
		return c, c.Pos.Errorf("the case has no action; add one")
	case c.Want == nil:
		return c, c.Pos.Errorf("the case has no want; add want: ALLOW, BLOCK or ESCALATE")
	}
	return c, nil
}

// parseExpectedDecisions reads a decision, or a mapping of presets to decisions.
func parseExpectedDecisions(n ast.Node) ([]ExpectedDecision, error) {
	if yamlfile.KindOf(n) != "a mapping" {
		w, err := parseExpectedDecision("", n)
		return []ExpectedDecision{w}, err
	}
	fs, err := yamlfile.Fields(n, nil)
	if err != nil {
		return nil, err
	}
	var out []ExpectedDecision
	for _, f := range fs {
		w, err := parseExpectedDecision(f.Key, f.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

var decisions = []string{"ALLOW", "BLOCK", "ESCALATE", "ESCALATE 1", "ESCALATE 2", "ESCALATE 3"}

// parseExpectedDecision parses a decision; "ESCALATE 2" also names the next tier.
func parseExpectedDecision(policy string, n ast.Node) (ExpectedDecision, error) {
	s, err := yamlfile.Text(n)
	if err != nil {
		return ExpectedDecision{}, err
	}
	if !slices.Contains(decisions, s) {
		return ExpectedDecision{}, yamlfile.PositionOf(n).Errorf("%s is not a decision%s; use ALLOW, BLOCK, ESCALATE or ESCALATE 1 to 3", yamlfile.QuoteForMessage(s), suggest.DidYouMeanSuffix(s, decisions))
	}
	w := ExpectedDecision{PresetName: policy, Decision: s}
	if tier, ok := bytes.CutPrefix([]byte(s), []byte("ESCALATE ")); ok {
		w.Decision, w.Tier = "ESCALATE", int(tier[0]-'0')
	}
	return w, nil
}

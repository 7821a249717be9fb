package rulefile

import (
	"errors"
	"regexp/syntax"

	"github.com/goccy/go-yaml/ast"
)

// The bounds of what a file may hold.
const (
	maxRules   = 500   // in a list
	maxEntries = 2_000 // of one criterion
	maxGlob    = 1_000 // bytes of a glob
	maxPattern = 4_000 // bytes of a regular expression or jq expression
	maxReason  = 1_000 // bytes
)

// Checks are what [Parse] asks of values whose syntax belongs to others. A nil
// function takes everything.
type Checks struct {
	Glob func(glob string) error
	Host func(pattern string) error
	JQ   func(expr string) error
}

var (
	fileKeys     = []string{"extends", "deny", "verify", "allow"}
	criteriaKeys = []string{"action_types", "paths", "hosts", "commands", "content", "when"}
	ruleKeys     = []string{"name", "reason", "action_types", "paths", "hosts", "commands", "content", "when", "tier_override", "except", "match", "pass"}
)

// Parse reads a policy file. Its errors are of type [*Error] and carry name.
func Parse(name string, data []byte, checks Checks) (*File, error) {
	p := parsing{checks: checks, rules: map[string]Pos{}}
	f, err := p.file(data)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Name = name
		}
		return nil, err
	}
	return f, nil
}

// parsing is the state of reading one file.
type parsing struct {
	checks Checks
	rules  map[string]Pos // names seen, by list and name
}

func (p *parsing) file(data []byte) (*File, error) {
	top, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	if top == nil {
		return nil, Pos{1, 1}.errorf("empty; a policy has lists named deny, verify and allow")
	}
	fs, err := fields(top, fileKeys)
	if err != nil {
		return nil, err
	}
	f := new(File)
	for _, field := range fs {
		switch field.key {
		case "extends":
			f.Extends, err = text(field.value)
			f.extends = pos(field.value)
		case "deny":
			f.Deny, err = p.list("deny", field.value)
		case "verify":
			f.Verify, err = p.list("verify", field.value)
		case "allow":
			f.Allow, err = p.list("allow", field.value)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, list := range [][]Rule{f.Deny, f.Verify, f.Allow} {
		for _, r := range list {
			if r.Amends && f.Extends == "" {
				return nil, r.Pos.errorf("rule %s has nothing but exceptions, and the file extends no preset", Quote(r.Name))
			}
		}
	}
	return f, nil
}

// ExtendsError returns an error at the place of extends.
func (f *File) ExtendsError(name, msg string) error {
	return &Error{Name: name, Pos: f.extends, Msg: msg}
}

func (p *parsing) list(list string, n ast.Node) ([]Rule, error) {
	if _, ok := n.(*ast.NullNode); ok || n == nil {
		return nil, nil
	}
	nodes, err := elements(n)
	if err != nil {
		return nil, err
	}
	if len(nodes) > maxRules {
		return nil, pos(n).errorf("more than %d rules", maxRules)
	}
	rules := make([]Rule, 0, len(nodes))
	for _, n := range nodes {
		r, err := p.rule(list, n)
		if err != nil {
			return nil, err
		}
		if at, ok := p.rules[r.Name]; ok {
			return nil, r.Pos.errorf("rule name %s is taken by the rule in line %d", Quote(r.Name), at.Line)
		}
		p.rules[r.Name] = r.Pos
		rules = append(rules, r)
	}
	return rules, nil
}

func (p *parsing) rule(list string, n ast.Node) (Rule, error) {
	r := Rule{Pos: pos(n)}
	fs, err := fields(n, ruleKeys)
	if err != nil {
		return r, err
	}
	for _, f := range fs {
		switch f.key {
		case "name":
			r.Name, err = p.name(f.value)
		case "reason":
			r.Reason, err = p.text(f.value, maxReason, nil)
		case "tier_override":
			r.Tier, err = tier(list, f)
		case "except":
			r.Except, err = p.exceptions(f.value)
		case "match":
			r.Match, err = examples(f.value)
		case "pass":
			r.Pass, err = examples(f.value)
		default:
			err = p.criterion(&r.Criteria, f)
		}
		if err != nil {
			return r, err
		}
	}
	r.Amends = r.Empty() && len(r.Except) > 0 && r.Tier == 0 && r.Reason == ""
	switch {
	case r.Name == "":
		return r, r.Pos.errorf("a rule needs a name")
	case list == "allow" && r.Empty() && !r.Amends:
		return r, r.Pos.errorf("rule %s would allow everything; give it a criterion, such as action_types", Quote(r.Name))
	case list == "verify" && r.Tier == 0 && !r.Amends:
		r.Tier = 1
	}
	return r, nil
}

func (p *parsing) name(n ast.Node) (string, error) {
	s, err := p.text(n, 80, nil)
	if err != nil {
		return "", err
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return "", pos(n).errorf("name %s: letters, digits, '_', '-' and '.' only", Quote(s))
		}
	}
	return s, nil
}

func tier(list string, f field) (int, error) {
	if list != "verify" {
		return 0, f.pos.errorf("tier_override belongs to verify rules")
	}
	t, err := number(f.value)
	if err != nil {
		return 0, err
	}
	if t < 1 || t > 3 {
		return 0, pos(f.value).errorf("tier_override is 1, 2 or 3")
	}
	return t, nil
}

// exceptions reads a mapping of criteria, or a list of them.
func (p *parsing) exceptions(n ast.Node) ([]Criteria, error) {
	nodes := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	var out []Criteria
	for _, n := range nodes {
		fs, err := fields(n, criteriaKeys)
		if err != nil {
			return nil, err
		}
		var c Criteria
		for _, f := range fs {
			if err := p.criterion(&c, f); err != nil {
				return nil, err
			}
		}
		if c.Empty() {
			return nil, pos(n).errorf("an exception without criteria would switch the rule off")
		}
		out = append(out, c)
	}
	return out, nil
}

func (p *parsing) criterion(c *Criteria, f field) (err error) {
	switch f.key {
	case "action_types":
		c.Types, err = p.texts(f, 80, nil)
	case "paths":
		c.Paths, err = p.texts(f, maxGlob, p.checks.Glob)
	case "hosts":
		c.Hosts, err = p.texts(f, maxGlob, p.checks.Host)
	case "commands":
		c.Commands, err = p.texts(f, maxPattern, re2)
	case "content":
		c.Content, err = p.texts(f, maxPattern, re2)
	case "when":
		c.When, err = p.text(f.value, maxPattern, p.checks.JQ)
	}
	return err
}

func re2(expr string) error {
	_, err := syntax.Parse(expr, syntax.Perl)
	return err
}

// texts reads a list of texts, or one text.
func (p *parsing) texts(f field, most int, check func(string) error) ([]string, error) {
	nodes := []ast.Node{f.value}
	if seq, ok := f.value.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	if len(nodes) == 0 {
		return nil, f.pos.errorf("%s is empty; leave it out, or list what it should match", f.key)
	}
	if len(nodes) > maxEntries {
		return nil, f.pos.errorf("more than %d entries", maxEntries)
	}
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		s, err := p.text(n, most, check)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (p *parsing) text(n ast.Node, most int, check func(string) error) (string, error) {
	s, err := text(n)
	switch {
	case err != nil:
		return "", err
	case s == "":
		return "", pos(n).errorf("empty text")
	case len(s) > most:
		return "", pos(n).errorf("longer than %d bytes", most)
	}
	if check != nil {
		if err := check(s); err != nil {
			return "", pos(n).errorf("%v", err)
		}
	}
	return s, nil
}

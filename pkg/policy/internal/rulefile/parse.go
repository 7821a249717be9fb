package rulefile

import (
	"fmt"
	"net/netip"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// Limits of a policy file.
const (
	maxListRules        = 500   // maximum number of rules in each list (deny, verify, allow)
	maxCriterionEntries = 2_000 // maximum number of entries of one criterion
	maxGlobBytes        = 1_000 // bytes of a glob
	maxRegexpOrJQBytes  = 4_000 // bytes of a regular expression or jq expression
	maxReasonBytes      = 1_000 // bytes
)

// CriterionSyntaxChecks validate values whose syntax [Parse] does not know. A nil function accepts everything.
type CriterionSyntaxChecks struct {
	Glob           func(glob string) error
	Host           func(pattern string) error
	JQ             func(expr string) error
	EffectProperty func(name, entry string) error
}

var (
	fileKeys     = []string{"extends", "own_channel", "deny", "verify", "allow"}
	criteriaKeys = []string{"action_types", "paths", "hosts", "commands", "content", "trusted", "restorable", "causes", "labels", "classes", "programs", "args", "verbs", "names", "session", "when"}
	ruleKeys     = append([]string{"name", "reason", "tier_override", "except", "match", "pass"}, criteriaKeys...)
)

// Parse reads a policy file. An error has type [yamlfile.Errors], lists all faults and contains name. With an
// error Parse also returns the readable part, for a report.
func Parse(name string, data []byte, checks CriterionSyntaxChecks) (*File, error) {
	p := fileParser{checks: checks, rulePositions: map[string]yamlfile.Pos{}}
	f := p.parseFile(data)
	return f, yamlfile.AnnotateErrorsWithFile("policy", name, p.errs.Err())
}

// fileParser is the state of reading one file.
type fileParser struct {
	checks        CriterionSyntaxChecks
	rulePositions map[string]yamlfile.Pos // positions of names seen so far, by list and name
	errs          yamlfile.Errors
}

func (p *fileParser) parseFile(data []byte) *File {
	f := new(File)
	top, err := yamlfile.Parse(data, "a policy")
	switch {
	case err != nil:
		p.errs.Add(err)
		return f
	case top == nil:
		p.errs.Add(yamlfile.Pos{Line: 1, Column: 1}.Errorf("the file is empty; add lists named deny, verify and allow"))
		return f
	}
	fs, err := yamlfile.Fields(top, fileKeys)
	p.errs.Add(err)
	for _, field := range fs {
		switch field.Key {
		case "extends":
			f.Extends, err = yamlfile.Text(field.Value)
			p.errs.Add(err)
			f.ExtendsPos = yamlfile.PositionOf(field.Value)
		case "own_channel":
			f.ShieldPromptRuleNames, err = yamlfile.ConvertElements(field.Value, yamlfile.Text)
			p.errs.Add(err)
			f.ShieldPromptRuleNamesPos = yamlfile.PositionOf(field.Value)
		case "deny":
			f.Deny = p.parseList("deny", field.Value)
		case "verify":
			f.Verify = p.parseList("verify", field.Value)
		case "allow":
			f.Allow = p.parseList("allow", field.Value)
		}
	}
	for _, list := range [][]Rule{f.Deny, f.Verify, f.Allow} {
		for _, r := range list {
			if r.OnlyAddsExceptionsToPreset && f.Extends == "" && !IsHeuristicRuleID(r.Name) {
				p.errs.Add(r.Pos.Errorf("rule %s has only exceptions, and the file does not extend a preset; add extends", yamlfile.QuoteForMessage(r.Name)))
			}
		}
	}
	return f
}

func (p *fileParser) parseList(list string, n ast.Node) []Rule {
	if _, ok := n.(*ast.NullNode); ok || n == nil {
		return nil
	}
	nodes, err := yamlfile.Elements(n)
	if err != nil {
		p.errs.Add(err)
		return nil
	}
	if len(nodes) > maxListRules {
		p.errs.Add(yamlfile.PositionOf(n).Errorf("the list has more than %d rules; combine some", maxListRules))
		return nil
	}
	rules := make([]Rule, 0, len(nodes))
	for _, n := range nodes {
		r, ok := p.parseRule(list, n)
		if !ok {
			continue
		}
		if at, taken := p.rulePositions[r.Name]; taken {
			p.errs.Add(r.Pos.Errorf("the rule name %s is already used in line %d; choose another", yamlfile.QuoteForMessage(r.Name), at.Line))
			continue
		}
		p.rulePositions[r.Name] = r.Pos
		rules = append(rules, r)
	}
	return rules
}

// parseRule reads one rule and reports whether it is valid.
func (p *fileParser) parseRule(list string, n ast.Node) (Rule, bool) {
	r := Rule{Pos: yamlfile.PositionOf(n)}
	before := len(p.errs)
	p.errs.Add(yamlfile.VisitMappingFields(n, ruleKeys, func(f yamlfile.Field) (err error) {
		switch f.Key {
		case "name":
			r.Name, err = parseName(f.Value)
		case "reason":
			r.Reason, err = parseText(f.Value, maxReasonBytes, nil)
		case "tier_override":
			r.Tier, err = parseTier(list, f)
		case "except":
			r.Except = p.parseExceptions(f.Value)
		case "match":
			r.MatchingExamples, err = yamlfile.ConvertElements(f.Value, parseExample)
		case "pass":
			r.NonMatchingExamples, err = yamlfile.ConvertElements(f.Value, parseExample)
		default:
			err = p.parseCriterion(&r.Criteria, f)
		}
		return err
	}))
	if len(p.errs) > before {
		return r, false
	}
	r.OnlyAddsExceptionsToPreset = r.Empty() && len(r.Except) > 0 && r.Tier == 0 && r.Reason == ""
	switch {
	case r.Name == "":
		p.errs.Add(r.Pos.Errorf("the rule has no name; add one"))
	case list == "allow" && r.Empty() && !r.OnlyAddsExceptionsToPreset:
		p.errs.Add(r.Pos.Errorf("rule %s would allow everything; give it a criterion, such as action_types", yamlfile.QuoteForMessage(r.Name)))
	case list == "verify" && r.Tier == 0 && !r.OnlyAddsExceptionsToPreset:
		r.Tier = 1
	}
	return r, len(p.errs) == before
}

func parseName(n ast.Node) (string, error) {
	s, err := parseText(n, 80, nil)
	if err != nil {
		return "", err
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return "", yamlfile.PositionOf(n).Errorf("name %s: use only letters, digits, '_', '-' and '.'", yamlfile.QuoteForMessage(s))
		}
	}
	return s, nil
}

func parseTier(list string, f yamlfile.Field) (int, error) {
	if list != "verify" {
		return 0, f.KeyPos.Errorf("tier_override is allowed in verify rules only; remove it")
	}
	t, err := yamlfile.WholeNumber[int](f.Value)
	if err != nil {
		return 0, err
	}
	if t < 1 || t > 3 {
		return 0, yamlfile.PositionOf(f.Value).Errorf("tier_override must be 1, 2 or 3; correct it")
	}
	return t, nil
}

// parseExceptions reads a mapping of criteria, or a list of them.
func (p *fileParser) parseExceptions(n ast.Node) []Criteria {
	nodes := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	var out []Criteria
	for _, n := range nodes {
		before := len(p.errs)
		fs, err := yamlfile.Fields(n, criteriaKeys)
		p.errs.Add(err)
		var c Criteria
		for _, f := range fs {
			p.errs.Add(p.parseCriterion(&c, f))
		}
		if c.Empty() && len(p.errs) == before {
			p.errs.Add(yamlfile.PositionOf(n).Errorf("an exception without criteria would disable the rule; give it a criterion, such as paths"))
		}
		out = append(out, c)
	}
	return out
}

func (p *fileParser) parseCriterion(c *Criteria, f yamlfile.Field) (err error) {
	if c.EntryPositionsByCriterionKey == nil {
		c.EntryPositionsByCriterionKey = map[string][]yamlfile.Pos{}
	}
	for _, n := range listEntries(f) {
		c.EntryPositionsByCriterionKey[f.Key] = append(c.EntryPositionsByCriterionKey[f.Key], yamlfile.PositionOf(n))
	}
	switch f.Key {
	case "action_types":
		c.ActionTypesAndEffectKinds, err = parseStringOrStringList(f, 80, nil)
	case "paths":
		c.Paths, c.EntryPositionsByCriterionKey[f.Key], err = parsePaths(f, p.checks.Glob)
	case "hosts":
		c.Hosts, err = parseHosts(f, p.checks.Host)
	case "commands":
		c.Commands, err = parseStringOrStringList(f, maxRegexpOrJQBytes, checkRegexp)
	case "content":
		c.Content, err = parseStringOrStringList(f, maxRegexpOrJQBytes, checkRegexp)
	case "trusted":
		c.RequiredTargetTrust, err = parseBoolAsText(f.Value)
	case "restorable":
		if word, ok := f.Value.(*ast.StringNode); ok && word.Value == "kept" {
			c.RequiredRestorability = word.Value
		} else if c.RequiredRestorability, err = parseBoolAsText(f.Value); err != nil {
			err = yamlfile.PositionOf(f.Value).Errorf("write true, false or \"kept\" as the value of \"restorable\"")
		}
	case "causes", "labels", "classes", "programs", "args", "verbs", "names":
		var of []string
		of, err = parseStringOrStringList(f, maxRegexpOrJQBytes, func(entry string) error {
			if f.Key == "args" {
				return checkRegexp(entry)
			}
			if p.checks.EffectProperty == nil {
				return nil
			}
			return p.checks.EffectProperty(f.Key, strings.TrimPrefix(entry, "!"))
		})
		c.EffectPropertyCriteria = append(c.EffectPropertyCriteria, EffectPropertyCriterion{f.Key, of})
	case "session":
		c.Session, err = parseSession(f.Value)
	case "when":
		c.ConditionJQ, err = parseText(f.Value, maxRegexpOrJQBytes, p.checks.JQ)
	}
	return err
}

// parseBoolAsText reads a boolean and returns it as "true" or "false".
func parseBoolAsText(n ast.Node) (string, error) {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		return "", yamlfile.PositionOf(n).Errorf("write true or false")
	}
	return strconv.FormatBool(b.Value), nil
}

// parsePaths reads globs. "@NAME" is replaced by the globs of a built-in list; they all get the position of the
// name.
func parsePaths(f yamlfile.Field, check func(string) error) (globs []string, at []yamlfile.Pos, err error) {
	written, err := parseStringOrStringList(f, maxGlobBytes, func(s string) error {
		name, listed := strings.CutPrefix(s, "@")
		if _, known := knowledge.GlobsOfPathList(name); listed && !known {
			return fmt.Errorf("unknown list %q%s", s, suggest.DidYouMeanSuffix(name, knowledge.PathListNames()))
		}
		if listed || check == nil {
			return nil
		}
		return check(s)
	})
	for i, n := range listEntries(f) {
		if err != nil {
			at = append(at, yamlfile.PositionOf(n))
			continue
		}
		list := written[i : i+1]
		if name, listed := strings.CutPrefix(written[i], "@"); listed {
			list, _ = knowledge.GlobsOfPathList(name)
		}
		for _, glob := range list {
			globs, at = append(globs, glob), append(at, yamlfile.PositionOf(n))
		}
		if len(globs) > maxCriterionEntries {
			return nil, nil, f.KeyPos.Errorf("the list has more than %d entries; shorten it", maxCriterionEntries)
		}
	}
	return globs, at, err
}

// parseHosts reads hosts. "@NAME" is replaced by the hosts of a built-in list and their subdomains.
func parseHosts(f yamlfile.Field, check func(string) error) ([]string, error) {
	written, err := parseStringOrStringList(f, maxGlobBytes, func(s string) error {
		name, listed := strings.CutPrefix(s, "@")
		if _, known := knowledge.Hosts(name); listed && !known {
			return fmt.Errorf("unknown list of hosts %q%s; name a known list, or write the hosts", s, suggest.DidYouMeanSuffix(name, knowledge.HostListNames()))
		}
		if listed || check == nil {
			return nil
		}
		return check(s)
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range written {
		name, listed := strings.CutPrefix(s, "@")
		if !listed {
			out = append(out, s)
			continue
		}
		list, _ := knowledge.Hosts(name)
		for _, host := range list {
			out = append(out, host)
			if _, err := netip.ParseAddr(host); err != nil {
				out = append(out, "*."+host)
			}
		}
	}
	if len(out) > maxCriterionEntries {
		return nil, f.KeyPos.Errorf("the list has more than %d entries; shorten it", maxCriterionEntries)
	}
	return out, nil
}

func checkRegexp(expr string) error {
	_, err := syntax.Parse(expr, syntax.Perl)
	return err
}

// listEntries returns the entries of a list; a single value counts as a list of one.
func listEntries(f yamlfile.Field) []ast.Node {
	if seq, ok := f.Value.(*ast.SequenceNode); ok {
		return seq.Values
	}
	return []ast.Node{f.Value}
}

// parseStringOrStringList reads a list of strings, or one string.
func parseStringOrStringList(f yamlfile.Field, maxBytes int, check func(string) error) ([]string, error) {
	nodes := listEntries(f)
	if len(nodes) == 0 {
		return nil, f.KeyPos.Errorf("%s is empty; remove it, or list what it should match", f.Key)
	}
	if len(nodes) > maxCriterionEntries {
		return nil, f.KeyPos.Errorf("the list has more than %d entries; shorten it", maxCriterionEntries)
	}
	var errs yamlfile.Errors
	out := make([]string, 0, len(nodes))
	for _, n := range nodes {
		s, err := parseText(n, maxBytes, check)
		errs.Add(err)
		out = append(out, s)
	}
	return out, errs.Err()
}

func parseText(n ast.Node, maxBytes int, check func(string) error) (string, error) {
	s, err := yamlfile.Text(n)
	switch {
	case err != nil:
		return "", err
	case s == "":
		return "", yamlfile.PositionOf(n).Errorf("the text is empty; remove it")
	case len(s) > maxBytes:
		return "", yamlfile.PositionOf(n).Errorf("the text is longer than %d bytes; shorten it", maxBytes)
	}
	if check != nil {
		if err := check(s); err != nil {
			return "", yamlfile.PositionOf(n).Errorf("%v", err)
		}
	}
	return s, nil
}

// PolicyYAMLKeys returns the keys of a policy file.
func PolicyYAMLKeys() []string { return append(append([]string{}, fileKeys...), ruleKeys...) }

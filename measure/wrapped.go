package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A labelledRow is one row of a corpus: an action, or the actions of a session.
type labelledRow struct {
	ID, Source, Class, Category, Label string
	Want                               string
	Action                             *action
	Actions                            []action

	// rows of testdata/sample and testdata/actions contain the action directly
	Type    string
	Payload map[string]any
	CWD     string
}

// allActions returns the actions of a row, in order.
func (r *labelledRow) allActions() []action {
	switch {
	case r.Action != nil:
		return []action{*r.Action}
	case r.Type != "":
		return []action{{Type: r.Type, Payload: r.Payload, CWD: r.CWD}}
	}
	return r.Actions
}

// isAttack reports whether a row is labelled as an attack.
func (r *labelledRow) isAttack() bool {
	return r.Label == "malicious" || r.Label == "stop" || r.Want == "stop"
}

// A wrapForm is shell text that wraps a command; see testdata/wraps.
type wrapForm struct {
	name     string
	shells   string // letters of the shells that can parse it
	oneLine  bool   // the command must be one line
	template string
}

func readForms(path string) (out []wrapForm, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, rest, _ := strings.Cut(lines.Text(), " ")
		letters, template, ok := strings.Cut(rest, " ")
		if !ok || strings.Trim(letters, "bzf1") != "" {
			return nil, fmt.Errorf("%s: %q is not a name, letters and a template", path, lines.Text())
		}
		shells := strings.TrimSuffix(letters, "1")
		out = append(out, wrapForm{name, shells, shells != letters, strings.ReplaceAll(template, "␤", "\n")})
	}
	return out, lines.Err()
}

// startableShells are the shells that a form can start, for text that bash cannot parse.
var startableShells = map[byte]string{'z': "zsh", 'f': "fish"}

// A shellText is a command, and the letters of the shells that parse it as intended.
type shellText struct{ command, shells string }

// wrapText returns a text wrapped in the form, false if the form cannot contain it.
func (f wrapForm) wrapText(t shellText) (shellText, bool) {
	if !strings.Contains(t.shells, f.shells[:1]) || f.oneLine && strings.Contains(t.command, "\n") {
		return t, false
	}
	out := shellText{strings.NewReplacer("«c»", t.command, "«q»", command.Quote(t.command)).Replace(f.template), ""}
	for _, shell := range f.shells { // each shell of the form must also parse the inner text
		if strings.ContainsRune(t.shells, shell) {
			out.shells += string(shell)
		}
	}
	if name, ok := startableShells[f.shells[0]]; ok {
		out = shellText{name + " -c " + command.Quote(out.command), "bz"}
	}
	return out, true
}

// plainText returns a command without a form. Fish parses simple commands like other shells.
func plainText(command string) shellText {
	if strings.ContainsAny(command, "`$(){}[]<>;&|=\\\n*?!#~%") {
		return shellText{command, "bz"}
	}
	return shellText{command, "bzf"}
}

// windowsCommandPattern matches PowerShell and cmd.exe commands, for which there are no forms.
var windowsCommandPattern = regexp.MustCompile(`(?i)\b(powershell|pwsh|cmd|reg|wmic|certutil|rundll32|schtasks|bitsadmin|mshta|vssadmin|net|sc)(\.exe)?\b|\.exe\b|\$env:|\b[A-Z][a-z]+-[A-Z]\w+\b|\\\\|%\w+%|\b[A-Za-z]:\\|\\[A-Za-z]\w*\\|\b(xcopy|robocopy|iex|iwr)\b`)

// attackCommands returns the commands of all attacks for Bourne-like shells.
func (o *options) attackCommands() (out []string, err error) {
	seen := map[string]bool{}
	files := []string{
		filepath.Join(o.repo, "testdata/unseen/actions.jsonl"), filepath.Join(o.repo, "testdata/structured/cases.jsonl"), filepath.Join(o.repo, "testdata/evaluate/attacks.jsonl"),
		filepath.Join(o.repo, "testdata/sample/actions.jsonl"),
	}
	if o.shared != "" {
		files = append(files, filepath.Join(o.shared, "redteam/attacks.jsonl"), filepath.Join(o.shared, "whitebox/rows.jsonl"), filepath.Join(o.shared, "corpora/actions-malicious.jsonl"))
	}
	for _, file := range files {
		err := readLines(file, nil, func(r *labelledRow) {
			for _, a := range r.allActions() {
				c := a.text("command")
				if a.Type != "execute_command" || seen[c] || windowsCommandPattern.MatchString(c) || len(c) > 4000 || len(r.allActions()) > 1 || !r.isAttack() && !strings.HasSuffix(file, "evaluate/attacks.jsonl") {
					continue
				}
				if _, err := syntax.NewParser().Parse(strings.NewReader(c), ""); err == nil {
					seen[c] = true
					out = append(out, c)
				}
			}
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return out, nil
}

// A wrappedAttack is an attack in one form, or in two nested ones.
type wrappedAttack struct {
	plain   string
	forms   string // innermost first
	command string
}

// drawWrappedAttacks draws random attacks and forms.
func drawWrappedAttacks(r *rand.Rand, forms []wrapForm, pool []string, n int) (out []wrappedAttack) {
	for len(out) < n {
		w := wrappedAttack{plain: pool[r.IntN(len(pool))]}
		t := plainText(w.plain)
		var names []string
		for depth := 1 + r.IntN(2); len(names) < depth; {
			f := forms[r.IntN(len(forms))]
			if inside, ok := f.wrapText(t); ok {
				t = inside
				names = append(names, f.name)
			}
		}
		w.command, w.forms = t.command, strings.Join(names, "/")
		out = append(out, w)
	}
	return out
}

// judgeCommands judges single commands, each in an empty workspace.
func (o *options) judgeCommands(program string, commands []string) (out []string, err error) {
	settings := filepath.Join(o.home, "alone.yaml")
	if err := os.WriteFile(settings, []byte("session: {enabled: false}\naudit: {enabled: false}\n"), 0o600); err != nil {
		return nil, err
	}
	root := filepath.Join(o.home, "project")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	alone := *o
	alone.config = settings
	actions := make([]action, len(commands))
	for i, c := range commands {
		actions[i] = action{Type: "execute_command", Payload: map[string]any{"command": c}, CWD: root}
	}
	j, err := alone.startJudge(program, o.home, root)
	if err != nil {
		return nil, err
	}
	defer j.close()
	err = j.judgeActions(actions, func(_ int, v *verdict) { out = append(out, v.Decision) })
	return out, err
}

// measureWrapped judges attacks in shell forms. With a base build: what the base does not allow, this build
// must not allow. Without: an attack that is not allowed must not be allowed in a form.
func measureWrapped(o *options) error {
	bad, n, err := o.findLeaks()
	if err != nil {
		return err
	}
	for _, w := range bad[:min(len(bad), 50)] {
		fmt.Printf("ALLOW  %s\n       %s\n       %q\n", w.forms, shortJSON(w.plain), brief.TruncateWithEllipsis(w.command, 400))
	}
	fmt.Printf("%d of %d wrapped attacks are allowed and should not be\n", len(bad), n)
	if len(bad) > 0 {
		return fmt.Errorf("%d leaks", len(bad))
	}
	return nil
}

// findLeaks returns the wrapped attacks that are allowed although they should not be, and how many were
// compared.
func (o *options) findLeaks() (bad []wrappedAttack, n int, err error) {
	if err := o.emptyHome(); err != nil {
		return nil, 0, err
	}
	forms, err := readForms(filepath.Join(o.repo, "testdata/wraps/forms.txt"))
	if err != nil {
		return nil, 0, err
	}
	pool, err := o.attackCommands()
	if err != nil {
		return nil, 0, err
	}
	known, err := o.knownLeakMatcher()
	if err != nil {
		return nil, 0, err
	}
	all := drawWrappedAttacks(o.randomSource(), forms, pool, o.rows)
	commands, plain := make([]string, len(all)), make([]string, len(all))
	for i, w := range all {
		commands[i], plain[i] = w.command, w.plain
	}
	compared := make(chan error, 1)
	var was []string
	go func() {
		var err error
		if o.base != "" {
			was, err = o.judgeCommands(o.base, commands)
		} else {
			was, err = o.judgeCommands(o.shield, plain)
		}
		compared <- err
	}()
	is, err := o.judgeCommands(o.shield, commands)
	if other := <-compared; err == nil {
		err = other
	}
	if err != nil {
		return nil, 0, err
	}
	for i, w := range all {
		if was[i] == "ALLOW" {
			continue
		}
		n++
		if is[i] == "ALLOW" && !known(w) {
			bad = append(bad, w)
		}
	}
	return bad, n, nil
}

// knownLeakMatcher returns a function that reports whether a leak is listed in testdata/wraps/known.txt: a
// form, and a regular expression for the command.
func (o *options) knownLeakMatcher() (func(wrappedAttack) bool, error) {
	text, err := os.ReadFile(filepath.Join(o.repo, "testdata/wraps/known.txt"))
	if err != nil {
		return nil, err
	}
	type leak struct {
		form string
		of   *regexp.Regexp
	}
	var all []leak
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, expr, ok := strings.Cut(line, " ")
		of, err := regexp.Compile(expr)
		if !ok || err != nil {
			return nil, fmt.Errorf("known.txt: %q: %w", line, err)
		}
		all = append(all, leak{name, of})
	}
	return func(w wrappedAttack) bool {
		for _, l := range all {
			if (l.form == "*" || strings.Contains("/"+w.forms+"/", "/"+l.form+"/")) && l.of.MatchString(w.plain) {
				return true
			}
		}
		return false
	}, nil
}

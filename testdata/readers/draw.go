// Command draw draws rows for two readers: messages, identifiers or comments of shield. Run it
// in the root of the repository:
//
//	go run testdata/readers/draw.go -kind identifiers -n 100 -seed 4
//
// It prints one JSON object a line, in the form of the files beside it, without the readers'
// answers. Texts that are in those files already are not drawn again.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A row is what a reader sees.
type row struct {
	ID          string `json:"id"`
	Kind        string `json:"kind,omitempty"`
	Package     string `json:"package,omitempty"`
	Name        string `json:"name,omitempty"`
	Declaration string `json:"declaration,omitempty"`
	Comment     string `json:"comment,omitempty"`
	Beside      string `json:"beside,omitempty"`
	Message     string `json:"message,omitempty"`
}

func (r row) key() string {
	return r.Package + "\x00" + r.Name + "\x00" + r.Comment + "\x00" + r.Message
}

func main() {
	kind := flag.String("kind", "messages", "messages, identifiers or comments")
	n := flag.Int("n", 60, "how many rows")
	seed := flag.Int64("seed", 1, "seed of the draw")
	all := flag.Bool("all", false, "print all rows, in the order of the files")
	only := flag.String("in", "", "draw from packages that begin with this path only")
	flag.Parse()
	var rows []row
	collect := map[string]func(string, *token.FileSet, *ast.File) []row{"messages": messages, "identifiers": identifiers, "comments": comments}[*kind]
	if collect == nil {
		log.Fatalf("unknown kind %q", *kind)
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (skipped[d.Name()] || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if *kind == "messages" && strings.HasSuffix(path, ".yaml") {
			rows = append(rows, ruleTexts(path)...)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_gen.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if *only == "" || strings.HasPrefix(filepath.ToSlash(path), *only) {
			rows = append(rows, collect(filepath.ToSlash(path), fset, f)...)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range known(*kind) {
		seen[r.key()] = true
	}
	var fresh []row
	for _, r := range rows {
		if !seen[r.key()] {
			seen[r.key()] = true
			fresh = append(fresh, r)
		}
	}
	fmt.Fprintln(os.Stderr, len(rows), "rows,", len(fresh), "of them neither repeated nor drawn before")
	if !*all {
		rand.New(rand.NewSource(*seed)).Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		fresh = fresh[:min(*n, len(fresh))]
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for i, r := range fresh {
		r.ID = fmt.Sprintf("%c%d-%03d", (*kind)[0], *seed, i+1)
		if err := out.Encode(r); err != nil {
			log.Fatal(err)
		}
	}
}

// skipped are folders of tests, data and tools of development.
var skipped = map[string]bool{"testdata": true, "golden": true, "shared": true, "training": true, "build": true, "release": true, "measure": true, "clients": true, "e2e": true}

// known are the rows of earlier draws.
func known(kind string) (rows []row) {
	b, err := os.ReadFile("testdata/readers/" + kind + ".jsonl")
	if err != nil {
		log.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); {
		var r row
		if err := d.Decode(&r); err != nil {
			log.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// one returns a node as one line of source, cut to 160 bytes.
func one(fset *token.FileSet, n any) string {
	var b bytes.Buffer
	printer.Fprint(&b, fset, n)
	text, _, _ := strings.Cut(b.String(), "\n")
	return text[:min(160, len(text))]
}

// identifiers are the names that a package declares outside functions, with fields and methods.
func identifiers(path string, fset *token.FileSet, f *ast.File) (rows []row) {
	dir := filepath.ToSlash(filepath.Dir(path))
	add := func(kind, name, decl string) {
		if name != "_" && name != "init" && name != "main" {
			rows = append(rows, row{Kind: kind, Package: dir, Name: name, Declaration: decl})
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, kind := d.Name.Name, "func"
			if d.Recv != nil {
				name, kind = receiver(d.Recv.List[0].Type)+"."+name, "method"
			}
			add(kind, name, one(fset, &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type}))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					kind, _, _ := strings.Cut(one(fset, s.Type), "{")
					add("type", s.Name.Name, "type "+s.Name.Name+" "+strings.TrimSpace(kind))
					if st, ok := s.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							for _, n := range field.Names {
								add("field", s.Name.Name+"."+n.Name, n.Name+" "+one(fset, field.Type))
							}
						}
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						decl := d.Tok.String() + " " + n.Name
						if s.Type != nil {
							decl += " " + one(fset, s.Type)
						} else if len(s.Values) == 1 {
							decl += " = " + one(fset, s.Values[0])
						}
						add(d.Tok.String(), n.Name, decl)
					}
				}
			}
		}
	}
	return rows
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// comments are comments of three words or more, each with the line that it is beside.
func comments(path string, fset *token.FileSet, f *ast.File) (rows []row) {
	src, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	lines := strings.Split(string(src), "\n")
	for _, g := range f.Comments {
		text := strings.TrimSpace(g.Text())
		if len(strings.Fields(text)) < 3 {
			continue
		}
		start, end := fset.Position(g.Pos()), fset.Position(g.End())
		beside := strings.TrimSpace(lines[start.Line-1][:start.Column-1])
		if beside == "" && end.Line < len(lines) {
			beside = strings.TrimSpace(lines[end.Line])
		}
		rows = append(rows, row{Package: filepath.ToSlash(filepath.Dir(path)), Comment: text, Beside: beside})
	}
	return rows
}

// developers are files whose texts only people read who build shield, write its tables or export
// models, and texts that a model reads.
var developers = regexp.MustCompile(`^cmd/examples\.go|/gen/|^internal/(hostile|exam|runtests|gentest|redistest|scripttest|servetest|tokenizer|sqlitefile|speech|committed)/|` +
	`^pkg/evaluate/(evaltest/|facts\.go|prompt\.go)|^pkg/host/internal/form/|^pkg/shell/command/internal/grammar/|^pkg/classify/(graph|wire|wide)\.go|` +
	`/worldtest/|^pkg/grounding/|^pkg/config/fingerprint\.go|^pkg/policy/jq\.go|^pkg/scan/readers\.go|^pkg/approve/sentence\.go`)

// notTexts are calls whose strings are patterns, headers or lists of words.
var notTexts = regexp.MustCompile(`^(prefilter|regexp|strings|http|slices|html|filepath|os)\.|^(set|len|edited|wire|binary)$|Header|^panic$|^(says|abstract\.Unknown)$`)

// within are the texts that a cause is only ever printed in: a file and a call, and the text.
var within = []struct {
	file, call *regexp.Regexp
	text       string
}{
	{regexp.MustCompile(`^pkg/(analysis|shell)/`), regexp.MustCompile(`(?i)\.(dynamic|doubt|differsHere)$`), "unknown effect: %s; write the value in full"},
	{regexp.MustCompile(`^pkg/shell/`), regexp.MustCompile(`\.giveUp$`), "unknown effect: %s; split it into smaller steps"},
	{regexp.MustCompile(`^pkg/(analysis|shell)/`), regexp.MustCompile(`^key Reason$|^assign \w+\.(Reason|Labels|Kind|Sure|Cause)$|\.(runs|guard|itself|code)$`), "What this would do (shield explain): run_code (%s)"},
	{regexp.MustCompile(`^internal/grants/`), regexp.MustCompile(`^$`), "What this would do (shield explain): change_system /w/ci.yml (weakens: ci.yml %s)"},
	{regexp.MustCompile(`^pkg/state/errors`), regexp.MustCompile(`errors\.New`), "%s: /home/me/.local/state/shield/state.db: permission denied; run 'shield doctor --repair-state'"},
	{regexp.MustCompile(`^pkg/state/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "state file is damaged: /home/me/.local/state/shield/state.db: %s; run 'shield doctor --repair-state'"},
	{regexp.MustCompile(`^pkg/host/ask`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "Questions: asked on the approval page (not in Claude Code's own prompt: %s)"},
	{regexp.MustCompile(`^pkg/gateway/unasked`), regexp.MustCompile(`^$|Sprintf`), "shield: refused the server's request \"elicitation/create\": %s"},
	{regexp.MustCompile(`^pkg/gateway/list`), regexp.MustCompile(`^append$|Sprintf`), "the tool search is withheld: %s; ask the user to review it with: shield mcp tools diff github"},
	{regexp.MustCompile(`^pkg/gateway/server`), regexp.MustCompile(`^assign (drop|why)$`), "shield: dropped the server's notification \"notifications/x\": %s"},
	{regexp.MustCompile(`^pkg/gateway/pins`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "the accepted tool definitions in mcp/ab.json are damaged: %s; delete the file, and accept the tools again"},
	{regexp.MustCompile(`^pkg/sanitize/`), regexp.MustCompile(`^assign how$|\.(take|find|reportAndRemove|add)$|Sprintf|^$`), "shield sanitize: finding in a tool result (hidden, high): %s"},
	{regexp.MustCompile(`^pkg/shield/licence`), regexp.MustCompile(`^assign l\.Why$`), "evaluator: gpt-x can block and escalate, but its ALLOW does not replace your approval: %s"},
	{regexp.MustCompile(`^pkg/approve/command`), regexp.MustCompile(`^assign err$|errors\.New`), "the program's answer cannot be read: %s; print one JSON object with \"decision\" \"approve\" or \"deny\""},
	{regexp.MustCompile(`^pkg/report/score`), regexp.MustCompile(`^$|title$|^key `), "Heading in a report of 'shield score': %s"},
	{regexp.MustCompile(`^cmd/arrival\.go`), regexp.MustCompile(`append$|errors\.New`), "Questions cannot be asked: %s. Until then, what needs approval is denied."},
	{regexp.MustCompile(`^pkg/analysis/`), regexp.MustCompile(`\.unexamined$`), "unexamined: %s; split it into smaller steps"},
	{regexp.MustCompile(`^pkg/(kind/|analysis/inputs)`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "this action can only be allowed once; leave out --session: %s"},
	{regexp.MustCompile(`^pkg/analysis/losses`), regexp.MustCompile(`\.open$`), "shield cannot keep a copy of the deleted files: %s"},
	{regexp.MustCompile(`^pkg/undo/`), regexp.MustCompile(`\.unkept$`), "shield cannot keep a copy of src/a.go: %s"},
	{regexp.MustCompile(`^pkg/scan/`), regexp.MustCompile(`\.leave$`), "Files that were skipped: session.jsonl: %s"},
	{regexp.MustCompile(`^internal/bounds/`), regexp.MustCompile(`^key `), "this command cannot be contained: %s"},
	{regexp.MustCompile(`^internal/container/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "container: no: %s"},
	{regexp.MustCompile(`^internal/genuine/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "FAIL  shield.tar.gz: %s; do not install it, download the release again"},
	{regexp.MustCompile(`^cmd/hook(line|status|origin)\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "Claude Code: a denial is not enforced: %s; run 'shield hook install claude-code'"},
	{regexp.MustCompile(`^cmd/hookpermission\.go|^pkg/host/permission`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "Claude Code: shield does not answer all permission prompts of the host: %s"},
	{regexp.MustCompile(`^pkg/effect/globs\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "policy.yaml:12: the path pattern \"src/**\" is not valid: %s"},
	{regexp.MustCompile(`^pkg/evaluate/(parse|envelope)\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "failed to parse evaluator response: %s"},
	{regexp.MustCompile(`^pkg/gateway/(list|tool|message)\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "withheld all tools of the server github: %s"},
	{regexp.MustCompile(`^pkg/audit/write\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "the audit log was changed: %s; see 'shield audit verify', then run 'shield doctor --repair-audit'"},
	{regexp.MustCompile(`^pkg/telemetry/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "telemetry: %s; the spans are dropped until the collector answers; check telemetry.otlp"},
	{regexp.MustCompile(`^pkg/classify/socket`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "classifier at unix:/run/c.sock: %s; start the classifier, or remove classifier.addr"},
	{regexp.MustCompile(`^pkg/policy/gaps\.go`), regexp.MustCompile(`^$|Sprintf`), "allow rule read_docs does not cover this: %s"},
	{regexp.MustCompile(`^internal/ancestry/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "allow: only the user can do this: the process that started the command is unknown: %s; use another terminal"},
}

// lists are texts that nobody reads as a sentence: lists of words, commands, headers and templates.
var lists = regexp.MustCompile(`^(?:git (?:remote|config|ls-remote)|gh repo|echo printf|return (?:if|typeof)|warn printf|function switch|user author|diff\.external|list (?:calendar|upcoming)|create update|default-src|/bin/sh -c|/usr/local/bin/shield|%s/go/bin|import os|tee %s|\$\(git|\?:/|\\|# fish|\[ %|%s; v=|%secho|echo "|text/plain|%sgo_|shield_question|\[Unit\]|\{"type"|execute_command: \{|DiscordBot|audit head|\| \|)`)

// advice returns the sentence of policies/dangers.yaml in which the reason of an unknown effect
// of a cause is printed.
func advice(stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		call, ok := stack[i].(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !strings.HasSuffix(strings.ToLower(called(call.Fun)), ".dynamic") {
			continue
		}
		cause, found := strings.CutPrefix(called(call.Args[0]), "effect.Cause")
		if !found {
			return ""
		}
		rows, err := os.ReadFile("policies/dangers.yaml")
		if err != nil {
			log.Fatal(err)
		}
		m := regexp.MustCompile(`effects: \[dynamic\].*cause=` + strings.ToLower(cause) + `\b.*reason: "([^"]*)"`).FindSubmatch(rows)
		if m == nil {
			return ""
		}
		return strings.Replace(string(m[1]), "{reason}", "%s", 1)
	}
	return ""
}

// piece is what begins or ends in the middle of a sentence: it is read in the text around it only.
var piece = regexp.MustCompile(`^(?:[;,:.(…]|%w|(?:and|or|is|has|in|on|of|to|whether|what|since|by|from|with|that|which|passes|matches) )|[:,;(]$|^[^ ]+: %[vw]$|^(?:complete -c| list )`)

// finding joins the two texts of a finding: what is wrong, and how to fix it.
func finding(call *ast.CallExpr) string {
	name := called(call.Fun)
	if !strings.HasSuffix(name, ".add") && name != "fault" && name != "add" || len(call.Args) < 2 {
		return ""
	}
	var texts []string
	for _, arg := range call.Args {
		if text, ok := flat(arg); ok && strings.Contains(text, " ") {
			texts = append(texts, text)
		}
	}
	if len(texts) < 2 {
		return ""
	}
	return texts[1] + "\n      " + texts[0]
}

var (
	word     = regexp.MustCompile(`[A-Za-z'’]{2,}`)
	wrapping = regexp.MustCompile(`^[a-z ]+( %\.?\d*[qs])?: %w$`) // names the step only, as in "read audit log: %w"
)

// messages are the texts of three words or more that the code passes on, with %s for what it
// fills in. Rules of policies and heuristic rules are in ruleTexts.
func messages(path string, fset *token.FileSet, f *ast.File) (rows []row) {
	if developers.MatchString(path) {
		return nil
	}
	var stack []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok {
			if text := finding(call); text != "" { // a finding and how to fix it are read together
				rows = append(rows, row{Kind: "text of " + filepath.ToSlash(filepath.Dir(path)), Message: text})
				return false
			}
		}
		if e, ok := n.(ast.Expr); ok {
			if text, ok := flat(e); ok {
				text = strings.TrimSpace(text)
				call := context(stack)
				switch {
				case len(word.FindAllString(text, -1)) < 3, strings.Count(text, " ") < 2, len(text) > 400, strings.Contains(text, "\n\t"):
				case piece.MatchString(text), lists.MatchString(text):
				case strings.HasPrefix(path, "pkg/shell/command/") && strings.HasSuffix(call, ".doubt"): // only tests print it
				case notTexts.MatchString(call), call == "key Usage", call == "key Description", call == "key Name", call == "key name", call == "key What", call == "assign name", call == "assign before", strings.Contains(text, "{ "), strings.HasPrefix(call, "key ?"), strings.HasPrefix(call, "assign cause"), wrapping.MatchString(text):
				default:
					for _, w := range within {
						if w.file.MatchString(path) && w.call.MatchString(call) && !strings.Contains(text, "; ") {
							sentence := w.text
							if by := advice(stack); by != "" {
								sentence = by
							}
							text = fmt.Sprintf(sentence, text)
							break
						}
					}
					rows = append(rows, row{Kind: "text of " + filepath.ToSlash(filepath.Dir(path)), Message: text})
				}
				return false
			}
		}
		stack = append(stack, n)
		return true
	})
	return rows
}

// flat joins the literals of a sum; what else is in it becomes %s.
func flat(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return s, err == nil
		}
	case *ast.ParenExpr:
		return flat(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			a, left := flat(e.X)
			b, right := flat(e.Y)
			if !left {
				a = "%s"
			}
			if !right {
				b = "%s"
			}
			return a + b, left || right
		}
	}
	return "", false
}

// context names the call, key or variable that a text is for.
func context(stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.CallExpr:
			return called(n.Fun)
		case *ast.KeyValueExpr:
			return "key " + called(n.Key)
		case *ast.AssignStmt:
			return "assign " + called(n.Lhs[0])
		case *ast.ReturnStmt, *ast.ValueSpec, *ast.CompositeLit, *ast.FuncDecl:
			return ""
		}
	}
	return ""
}

func called(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return called(e.X) + "." + e.Sel.Name
	}
	return "?"
}

var ruleText = regexp.MustCompile(`^ +(?:- )?(description|advice|reason): (.*)$`)

// ruleTexts are the reasons of a policy's rules, and the descriptions of heuristic rules with
// their advice.
func ruleTexts(path string) (rows []row) {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "policies/") && !strings.HasPrefix(path, "pkg/classify/rules/") {
		return nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	lines, said := strings.Split(string(src), "\n"), ""
	for i := 0; i < len(lines); i++ {
		m := ruleText.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		text := m[2]
		if strings.HasPrefix(text, ">") {
			indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " -"))
			for text = ""; i+1 < len(lines) && len(lines[i+1])-len(strings.TrimLeft(lines[i+1], " ")) > indent; i++ {
				text = strings.TrimSpace(text + " " + strings.TrimSpace(lines[i+1]))
			}
		}
		text = strings.Trim(text, `"'`)
		switch m[1] {
		case "description":
			said = text
		case "advice":
			rows = append(rows, row{Kind: "rule", Message: said + "; instead: " + text})
		default:
			rows = append(rows, row{Kind: "policy rule", Message: text})
		}
	}
	return rows
}

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
	"errors"
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

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/state"
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
var developers = regexp.MustCompile(`^cmd/(examples|hookorigin)\.go|/gen/|^internal/(hostile|exam|runtests|gentest|redistest|scripttest|servetest|tokenizer|sqlitefile|speech|committed)/|` +
	`^pkg/evaluate/(evaltest/|facts\.go|prompt\.go|speech\.go)|^pkg/host/internal/form/|^pkg/shell/command/internal/grammar/|^pkg/classify/(graph|wire|wide)\.go|` +
	`/worldtest/|^pkg/grounding/|^pkg/config/fingerprint\.go|^pkg/policy/jq\.go|^pkg/scan/readers\.go|^pkg/approve/sentence\.go`)

// dynamic are the calls that record an unknown effect with its cause.
var dynamic = regexp.MustCompile(`(?i)\.(dynamic|addUnknownEffect|emitUnknownEffect|recordUnknownEffect|reportUnknown)$`)

// notTexts are calls whose strings are patterns, headers or lists of words.
var notTexts = regexp.MustCompile(`^(prefilter|regexp|strings|http|slices|html|filepath|os)\.|^(set|len|edited|wire|binary)$|Header|^(panic|deriveKey)$|^(says|abstract\.Unknown|derive|h\.hash|h\.one|yamlfile\.Parse|\?\.Set)$`)

// within are the texts that a cause is only ever printed in: a file and a call, and the text.
var within = []struct {
	file, call *regexp.Regexp
	text       string
	begins     *regexp.Regexp // the begin of the cause; nil for any
	all        bool           // also for a cause that has an action, in place of the one in text
}{
	{regexp.MustCompile(`^pkg/analysis/(outgoing|tells)`), regexp.MustCompile(`^assign (e\.Reason|out\.Kind)$`), "What this would do (shield explain): send_data (%s)", nil, false},
	{regexp.MustCompile(`^pkg/analysis/(published|sends)`), regexp.MustCompile(`^$|addCredentialSend$`), "What this would do (shield explain): send_data (%s holds a credential)", regexp.MustCompile(`^the (text|file|query)`), false},
	{regexp.MustCompile(`^pkg/shell/`), regexp.MustCompile(`recordDialectDifference$`), "unknown effect: shells parse this differently: %s; use a simpler command in plain text", nil, false},
	{regexp.MustCompile(`^pkg/(analysis|shell)/`), regexp.MustCompile(`(?i)\.(dynamic|addUnknownEffect|emitUnknownEffect|recordUnknownEffect|reportUnknown)$`), "unknown effect: %s; write the value in full", nil, true},
	{regexp.MustCompile(`^pkg/shell/internal/parse/`), regexp.MustCompile(`^$`), "unknown effect: %s; split the command into smaller steps", nil, false},
	{regexp.MustCompile(`^pkg/shell/internal/script/`), regexp.MustCompile(`\.recordPossibleMisparse$`), "unknown effect: the perl code cannot be read: %s; use a simpler command in plain text", nil, false},
	{regexp.MustCompile(`^pkg/shell/flow\.go`), regexp.MustCompile(`^assign e\.Reason$`), "What this would do (shield explain): send_data (%s)", nil, false},
	{regexp.MustCompile(`^pkg/shell/installation\.go`), regexp.MustCompile(`^assign e\.Reason$`), "What this would do (shield explain): change_guard (%s)", nil, false},
	{regexp.MustCompile(`^pkg/shell/unpack\.go`), regexp.MustCompile(`^assign e\.Certainty$`), "What this would do (shield explain): write_file (%s)", nil, false},
	{regexp.MustCompile(`^pkg/shell/recipe\.go`), regexp.MustCompile(`\.walkExecutedText$`), "What this would do (shield explain): run_code (%s runs the output of another command as code)", nil, false},
	{regexp.MustCompile(`^pkg/shell/`), regexp.MustCompile(`(?i)\.abortAnalysis$`), "unknown effect: %s; split the command into smaller steps", nil, false},
	{regexp.MustCompile(`^pkg/shell/`), regexp.MustCompile(`recordShieldTampering`), "What this would do (shield explain): change_guard (%s)", nil, false},
	{regexp.MustCompile(`^pkg/(shell/internal|analysis)/`), regexp.MustCompile(`\.recordDatabaseDeletion$|^assign says$|^assign change\.Verb$`), "What this would do (shield explain): change_remote (%s)", nil, false},
	{regexp.MustCompile(`^pkg/(analysis|shell)/`), regexp.MustCompile(`^key (Reason|WhyNotUnderstood)$|^assign \w+\.(Reason|WhyNotUnderstood|Labels|Kind|Sure|Cause)$|\.(recordCodeRun|scriptEvaluatesTextOrStartsShell|guard|itself|addNestedCode|walkCode)$`), "What this would do (shield explain): EFFECT (%s)", nil, false},
	{regexp.MustCompile(`^internal/grants/`), regexp.MustCompile(`^$`), "What this would do (shield explain): change_system /w/ci.yml (weakens: ci.yml %s)", nil, false},
	{regexp.MustCompile(`^pkg/state/head`), regexp.MustCompile(`errors.New`), "state file is missing: /home/me/.local/state/shield/log.head: %s; run 'shield doctor --repair-state'", regexp.MustCompile(`^the state file refers`), true},
	{regexp.MustCompile(`^pkg/state/remoteview`), regexp.MustCompile(`fmt.Errorf`), "the shared store does not answer: rediss://10.0.0.5:6379/0: %s; check store and the network, then run 'shield doctor'", regexp.MustCompile(`^the store sent`), true},
	{regexp.MustCompile(`^pkg/state/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "the shared store was replaced or rolled back: rediss://10.0.0.5:6379/0: %s; find out which program or backup did this, then run 'shield doctor --repair-state'", regexp.MustCompile(`^the store (is|was)`), false},
	{regexp.MustCompile(`^pkg/state/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "another program changed a value in the shared store: rediss://10.0.0.5:6379/0: %s; find the program that wrote the value, delete the key from the store, then run 'shield doctor --repair-state'", regexp.MustCompile(`^the seal`), false},
	{regexp.MustCompile(`^pkg/state/`), regexp.MustCompile(`errors\.New|fmt\.Errorf|Sprintf`), "state file is damaged: /home/me/.local/state/shield/state.db: %s; run 'shield doctor --repair-state'", regexp.MustCompile(`^(?:[^%rdw]|r[^a])`), false},
	{regexp.MustCompile(`^pkg/host/ask`), regexp.MustCompile(`errors\.New`), "Questions cannot be asked: %s. While questions cannot be asked, shield denies actions that need approval.", regexp.MustCompile(`^hooks of this host`), true},
	{regexp.MustCompile(`^pkg/host/ask`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "Questions: asked on the approval page (not in Claude Code's own prompt: %s)", nil, true},
	{regexp.MustCompile(`^pkg/gateway/unasked`), regexp.MustCompile(`^$|Sprintf`), "shield: refused the server's request \"sampling/createMessage\": %s", regexp.MustCompile(`client's model`), true},
	{regexp.MustCompile(`^pkg/gateway/unasked`), regexp.MustCompile(`^$|Sprintf`), "shield: refused the server's request \"elicitation/create\": %s", nil, true},
	{regexp.MustCompile(`^pkg/gateway/list`), regexp.MustCompile(`^append$|Sprintf`), "the tool search is withheld: %s; ask the user to review it with: shield mcp tools diff github", nil, false},
	{regexp.MustCompile(`^pkg/gateway/server`), regexp.MustCompile(`^assign (drop|why)$`), "shield: dropped the server's notification \"notifications/x\": %s", regexp.MustCompile(`^(?:MCP|no|its|it) `), false},
	{regexp.MustCompile(`^pkg/gateway/pins`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "the accepted tool definitions in mcp/ab.json are damaged: %s; delete the file, and accept the tools again", nil, false},
	{regexp.MustCompile(`^pkg/sanitize/`), regexp.MustCompile(`^assign (how|hidingMethod)$|\.(take|addFinding|reportAndRemove|add)$|Sprintf|^$`), "shield sanitize: finding in a tool result (hidden, high): %s", regexp.MustCompile(`^(?:[^s[]|s[^h])`), false},
	{regexp.MustCompile(`^pkg/shield/assisted`), regexp.MustCompile(`errors.New`), "the user must decide, because shield could not count the model's decisions in this session: %s", nil, true},
	{regexp.MustCompile(`^pkg/classify/model`), regexp.MustCompile(`errors.New`), "ok    model: only rules judge, since the model cannot be used: %s; name a library with --onnxruntime FILE", regexp.MustCompile(`^this build`), true},
	{regexp.MustCompile(`^pkg/shield/kinds`), regexp.MustCompile(`^assign scope$`), "ann allowed this kind of action %s (npm test)", nil, true},
	{regexp.MustCompile(`^pkg/(shield/kinds)`), regexp.MustCompile(`^assign r\.NoAdvanceApprovalReason$`), "this action can only be allowed once, because %s; leave out --session", nil, false},
	{regexp.MustCompile(`^pkg/shield/licence`), regexp.MustCompile(`Sprintf$`), "Not usable: %s. No one can allow an action that the model blocks, so agents could not do ordinary work. Configure a stronger model (evaluator.model), or set policy: offline to be asked yourself.", regexp.MustCompile(`^the model blocked`), true},
	{regexp.MustCompile(`^pkg/shield/pipeline`), regexp.MustCompile(`^$`), "state file is missing: /home/me/.local/state/shield/state.db: %s; run 'shield doctor --repair-state'", regexp.MustCompile(`^the (audit log|seal key)`), true},
	{regexp.MustCompile(`^pkg/shield/reason`), regexp.MustCompile(`^assign t\.ActionText$`), "%s. Ask the user to run: shield session resume 3f2. Do not retry unless the user allows it.", regexp.MustCompile(`^this session`), true},
	{regexp.MustCompile(`^pkg/shield/reason`), regexp.MustCompile(`^key EffectAndHarm$`), "%s. Tell the user to run: shield doctor. Do not retry.", nil, true},
	{regexp.MustCompile(`^pkg/shield/store`), regexp.MustCompile(`errors.New`), "store_password_file: %s", regexp.MustCompile(`^the file`), true},
	{regexp.MustCompile(`^pkg/shield/tools`), regexp.MustCompile(`^assign text$`), "Question to the user: frobnicate, of the server github\n%s", nil, true},
	{regexp.MustCompile(`^pkg/state/file`), regexp.MustCompile(`^assign used$`), "state file is missing: /home/me/.local/state/shield/state.db: %s; run 'shield doctor --repair-state'", nil, true},
	{regexp.MustCompile(`^pkg/telemetry/telemetry`), regexp.MustCompile(`errors.New`), "shield.yaml:9:5: telemetry.otlp: %s", regexp.MustCompile(`^(the (address|URL)|http )`), true},
	{regexp.MustCompile(`^pkg/undo/keep`), regexp.MustCompile(`fmt.Errorf|errors.New`), "shield cannot keep a copy of src/a.go: %s", regexp.MustCompile(`^(copying|the path)`), true},
	{regexp.MustCompile(`^pkg/undo/none`), regexp.MustCompile(`^key Why$`), "shield cannot keep a copy: %s", nil, true},
	{regexp.MustCompile(`^pkg/verdict/key`), regexp.MustCompile(`fmt.Errorf|errors.New`), "seal key /home/me/.local/state/shield/seal.key: %s", regexp.MustCompile(`^the (key|file)`), true},
	{regexp.MustCompile(`^pkg/verdict/reader`), regexp.MustCompile(`newUnsealedVerdictError$`), "trail: %s", nil, true},
	{regexp.MustCompile(`^pkg/shield/licence`), regexp.MustCompile(`^assign l\.CannotApproveReason$`), "evaluator: gpt-x can block and escalate, but its ALLOW does not replace your approval: %s", nil, true},
	{regexp.MustCompile(`^pkg/approve/command`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "the program's answer cannot be read: %s; print one JSON object with \"decision\" \"approve\" or \"deny\"", regexp.MustCompile(`^(it |%q has)`), true},
	{regexp.MustCompile(`^pkg/approve/discord`), regexp.MustCompile(`^$`), "shield: Discord: %s failed: the chat service limits the rate; wait 2s", regexp.MustCompile(`^(reading|opening|sending)`), false},
	{regexp.MustCompile(`^pkg/approve/discord`), regexp.MustCompile(`^key operationDescription$`), "shield: Discord: %s failed: the chat service limits the rate; wait 2s", nil, false},
	{regexp.MustCompile(`^pkg/approve/discord`), regexp.MustCompile(`^assign reply\.Message$`), "shield: Discord: sending the message: status 500: %s", nil, true},
	{regexp.MustCompile(`^pkg/approve/command`), regexp.MustCompile(`^$`), "the program's answer cannot be read: it is not a JSON object; print %s", regexp.MustCompile(`^one JSON`), true},
	{regexp.MustCompile(`^pkg/approve/tty`), regexp.MustCompile(`^assign said$`), "shield: %s: git push", nil, true},
	{regexp.MustCompile(`^pkg/approve/gate`), regexp.MustCompile(`^$`), "> %s   4:52 left", regexp.MustCompile(`^(Deny|Approve)`), true},
	{regexp.MustCompile(`^pkg/approve/gate`), regexp.MustCompile(`^append$`), "Line of help below a question on the terminal: %s", nil, true},
	{regexp.MustCompile(`^pkg/approve/refused`), regexp.MustCompile(`^$`), "asked by: %s", regexp.MustCompile(`^%s, less`), false},
	{regexp.MustCompile(`^pkg/approve/webserver`), regexp.MustCompile(`^$`), "or answer at: %s", regexp.MustCompile(`^%s with the code`), false},
	{regexp.MustCompile(`^pkg/approve/webserver`), regexp.MustCompile(`^$`), "approved once by %s", regexp.MustCompile(`^%s on the approval`), false},
	{regexp.MustCompile(`^pkg/audit/segment`), regexp.MustCompile(`fmt\.Sprintf`), "audit.jsonl: line 3: inserted: %s", regexp.MustCompile(`^the signature`), true},
	{regexp.MustCompile(`^pkg/audit/verify`), regexp.MustCompile(`fmt\.Sprintf`), "audit.jsonl: line 1: removed: %s\n      do not trust the entries from there on: keep the file as evidence, and compare it with a backup; to go on with a new log, run 'shield doctor --repair-audit'", regexp.MustCompile(`^the log begins`), true},
	{regexp.MustCompile(`^pkg/audit/(segment|verify)`), regexp.MustCompile(`setDamage$|Sprintf$`), "audit.jsonl: line 3: inserted: %s\n      do not trust the entries from there on: keep the file as evidence, and compare it with a backup; to go on with a new log, run 'shield doctor --repair-audit'", regexp.MustCompile(`^(entr(y|ies) |this |the (log|line|file) )`), true},
	{regexp.MustCompile(`^pkg/audit/(segment|verify)`), regexp.MustCompile(`fmt\.Sprintf`), "audit.jsonl: line 3: changed: %s\n      do not trust the entries from there on: keep the file as evidence, and compare it with a backup; to go on with a new log, run 'shield doctor --repair-audit'", regexp.MustCompile(`^the (signature|name)`), true},
	{regexp.MustCompile(`^pkg/classify/findings`), regexp.MustCompile(`^append$`), "Entry in answers.yaml, in the list of matched rules, if shield did not apply or list all rules: %s", nil, true},
	{regexp.MustCompile(`^pkg/config/mcp\.go`), regexp.MustCompile(``), "shield.yaml:9:5: mcp.listen: %s", regexp.MustCompile(`^must be an IP`), true},
	{regexp.MustCompile(`^pkg/config/mcp\.go`), regexp.MustCompile(``), "shield.yaml:9:5: mcp.servers: the url of github is not valid: %s", regexp.MustCompile(`^(it |a URL)`), true},
	{regexp.MustCompile(`^pkg/config/`), regexp.MustCompile(``), "shield.yaml:9:5: mcp.sampling: %s", regexp.MustCompile(`^%s is not a valid value`), true},
	{regexp.MustCompile(`^pkg/config/decode`), regexp.MustCompile(``), "shield.yaml:9:5: evaluator.canary_token: %s", regexp.MustCompile(`^the value contains`), true},
	{regexp.MustCompile(`^pkg/config/paths`), regexp.MustCompile(``), "shield.yaml:9:5: roots: %s", regexp.MustCompile(`^the path is empty`), true},
	{regexp.MustCompile(`^pkg/config/values`), regexp.MustCompile(``), "shield.yaml:9:5: approval.unattended: %s", regexp.MustCompile(`^the time to wait`), true},
	{regexp.MustCompile(`^pkg/config/edit`), regexp.MustCompile(``), "/home/me/.config/shield/shield.yaml cannot be edited: %s; add the line \"policy: strict\" to it by hand", regexp.MustCompile(`^shield cannot change`), true},
	{regexp.MustCompile(`^pkg/classify/sidecar`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "classifier.addr: %s", regexp.MustCompile(`^the (address|URL)`), true},
	{regexp.MustCompile(`^pkg/evaluate/probe`), regexp.MustCompile(`Sprintf`), "warn  evaluator: %s\n      set evaluator.model to a listed model", regexp.MustCompile(`does not list the model`), true},
	{regexp.MustCompile(`^pkg/evaluate/probe`), regexp.MustCompile(`errors\.New`), "bad   evaluator: %s\n      set evaluator.model", regexp.MustCompile(`^evaluator`), true},
	{regexp.MustCompile(`^pkg/evaluate/probe`), regexp.MustCompile(`^assign text$`), "https://llm.example.com/v1 does not answer: %s\n      start the service, or correct evaluator.base_url or evaluator.proxy", nil, true},
	{regexp.MustCompile(`^pkg/evaluate/canary`), regexp.MustCompile(`fmt\.Errorf`), "shield.yaml:9:5: %s", regexp.MustCompile(`^canary_token`), true},
	{regexp.MustCompile(`^pkg/gateway/server`), regexp.MustCompile(`withholdResponse$`), "shield: the server's answer is withheld: %s", nil, true},
	{regexp.MustCompile(`^pkg/gateway/tool`), regexp.MustCompile(`^key Kind$`), "the tool delete_file is withheld: it contains %s; review it with: shield mcp tools diff github", nil, true},
	{regexp.MustCompile(`^pkg/host/settings`), regexp.MustCompile(`errors\.New`), "/home/me/.claude/settings.json: the hook did not deny a test command: %s (it printed \"{}\", \"\"); run 'shield doctor'", regexp.MustCompile(`^the hook's output`), true},
	{regexp.MustCompile(`^pkg/host/settings`), regexp.MustCompile(`errors\.New`), "shield: hook status: %s (/home/me/.claude/settings.json is missing); run 'shield hook install claude-code'", regexp.MustCompile(`^no hook of`), true},
	{regexp.MustCompile(`^pkg/host/splice`), regexp.MustCompile(`errors\.New`), "shield: hook install: /home/me/.claude/settings.json: hooks.PreToolUse: %s", regexp.MustCompile(`^the value is`), true},
	{regexp.MustCompile(`^pkg/policy/facts`), regexp.MustCompile(`fmt\.Errorf`), "policy.yaml:9:5: %s", nil, true},
	{regexp.MustCompile(`^pkg/policy/suggest`), regexp.MustCompile(`^examples$`), "Comment in a suggested policy: match: # %s", regexp.MustCompile(`^commands`), true},
	{regexp.MustCompile(`^pkg/report/scoretable`), regexp.MustCompile(`^$`), "First line of a report of 'shield score': policy offline, model default, tiers up to classify: 140 rows judged; 2 %s", regexp.MustCompile(`^with a text`), true},
	{regexp.MustCompile(`^pkg/report/explain`), regexp.MustCompile(`writeTitle$`), "Heading in the output of 'shield explain': %s", nil, true},
	{regexp.MustCompile(`^pkg/report/explain`), regexp.MustCompile(`writeJSONLine$`), "Heading in the output of 'shield explain', above the texts: %s", regexp.MustCompile(`^text without`), true},
	{regexp.MustCompile(`^pkg/report/explain`), regexp.MustCompile(`Sprintf$`), "Line in the output of 'shield explain', below \"Evidence for ALLOW\": %s", regexp.MustCompile(`^(tier 1|only the model)`), true},
	{regexp.MustCompile(`^pkg/scan/text`), regexp.MustCompile(`Sprintf$`), "Row of 'shield scan': questions to a model (Tier 2) per day  3.5  %s", regexp.MustCompile(`^at most`), true},
	{regexp.MustCompile(`^pkg/scan/text`), regexp.MustCompile(`^$`), "Row of 'shield scan': %s  12  3.0 %%", regexp.MustCompile(`^calls with`), true},
	{regexp.MustCompile(`^pkg/config/mcp\.go`), regexp.MustCompile(`^add$`), "shield.yaml:9:5: mcp.servers: %s", nil, true},
	{regexp.MustCompile(`^pkg/config/`), regexp.MustCompile(``), "shield.yaml:9:5: policy.keys: %s", regexp.MustCompile(`^needs policy\.bundle`), true},
	{regexp.MustCompile(`^pkg/config/`), regexp.MustCompile(``), "shield.yaml:9:5: policy.bundle: %s", regexp.MustCompile(`^needs`), true},
	{regexp.MustCompile(`^pkg/config/`), regexp.MustCompile(``), "shield.yaml:9:5: rate_limit: %s", regexp.MustCompile(`^(must|expected)`), true},
	{regexp.MustCompile(`^internal/yamlfile/`), regexp.MustCompile(`Errorf$`), "shield.yaml:9:5: %s", nil, true},
	{regexp.MustCompile(`^pkg/policy/(internal/rulefile/|jqfunc\.go)`), regexp.MustCompile(`Errorf$|errors\.New`), "policy.yaml:9:5: %s", nil, true},
	{regexp.MustCompile(`^pkg/policy/reach`), regexp.MustCompile(`^fmt\.Sprintf$`), "policy.yaml:9:5 warning: rule a is never reached: %s; move the narrower rule up", regexp.MustCompile(`comes first`), false},
	{regexp.MustCompile(`^pkg/policy/reach`), regexp.MustCompile(`^fmt\.Sprintf$`), "policy.yaml:9:5 warning: %s: the deny rule b in line 2 comes first and matches the same actions; move the narrower rule up", nil, false},
	{regexp.MustCompile(`^pkg/shield/reason\.go`), regexp.MustCompile(`^$`), "%s; to get an answer, configure a model (evaluator.provider) or a channel to a person (approval.channels)", regexp.MustCompile(`^the action needs review`), false},
	{regexp.MustCompile(`^pkg/evaluate/evaluate\.go`), regexp.MustCompile(`^assign reason$`), "%s; allowed with reduced confidence, since fail_closed is false", regexp.MustCompile(`no model can be used$`), false},
	{regexp.MustCompile(`^pkg/(evaluate/(evaluate|limits)|state/errors)\.go`), regexp.MustCompile(``), "%s; reason for the review: policy verify [force_push_main]: force push overwrites commits that other people may have pulled; ask the user, or push to your own branch", regexp.MustCompile(`^(the action needs review, and no model is|rate limit|daily eval)`), true},
	{regexp.MustCompile(`^pkg/host/(inspect|splice|settings|servers)\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "shield: hook install: /home/me/.claude/settings.json: %s", nil, true},
	{regexp.MustCompile(`^pkg/scan/(records|conversation)`), regexp.MustCompile(``), "Records that were not read: 3 of the kind: %s", nil, false},
	{regexp.MustCompile(`^pkg/sanitize/sanitize\.go`), regexp.MustCompile(`^assign why$`), "not scanned: %s", nil, false},
	{regexp.MustCompile(`^pkg/shell/internal/`), regexp.MustCompile(`\.recordPossibleMisparse$`), "unknown effect: the PowerShell text cannot be read: %s; use a simpler command in plain text", nil, false},
	{regexp.MustCompile(`^pkg/report/score`), regexp.MustCompile(`^$|title$|^key `), "Heading in a report of 'shield score': %s", nil, false},
	{regexp.MustCompile(`^cmd/arrival\.go`), regexp.MustCompile(`append$|errors\.New`), "Questions cannot be asked: %s. While questions cannot be asked, shield denies actions that need approval.", regexp.MustCompile(`^[^s]`), true},
	{regexp.MustCompile(`^pkg/analysis/`), regexp.MustCompile(`\.setUnexamined$`), "unexamined: %s; split the action into smaller steps", nil, false},
	{regexp.MustCompile(`^pkg/(kind/|analysis/inputs)`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "this action can only be allowed once, because %s; leave out --session", nil, false},
	{regexp.MustCompile(`^cmd/contain\.go`), regexp.MustCompile(`Sprintf$`), "containment blocked the server's access to reading /home/me/notes; to allow it, %s", regexp.MustCompile(`^(put the path|set contain)`), false},
	{regexp.MustCompile(`^pkg/analysis/losses`), regexp.MustCompile(`\.open$`), "shield cannot keep a copy of the deleted files: %s", nil, true},
	{regexp.MustCompile(`^pkg/undo/`), regexp.MustCompile(`\.newBackupError$`), "shield cannot keep a copy of src/a.go: %s", nil, true},
	{regexp.MustCompile(`^pkg/scan/`), regexp.MustCompile(`\.skipFile$`), "Files that were skipped: session.jsonl: %s", nil, true},
	{regexp.MustCompile(`^internal/(bounds/bounds|contain/contain)\.go`), regexp.MustCompile(`^$`), "shield: runs without containment: %s. To refuse instead: --contain=require", regexp.MustCompile(`^(this command|containment is)`), false},
	{regexp.MustCompile(`^internal/contain/start_other`), regexp.MustCompile(`^$`), "shield: runs without containment: containment is not available: %s. To refuse instead: --contain=require", nil, true},
	{regexp.MustCompile(`^internal/contain/start_linux`), regexp.MustCompile(`^$`), "containment: start: %s", regexp.MustCompile(`^the shield process`), true},
	{regexp.MustCompile(`^internal/unpacked/`), regexp.MustCompile(`errors\.New`), "unpack to /home/me/.cache/shield/onnxruntime: %s", nil, true},
	{regexp.MustCompile(`^internal/canonjson/`), regexp.MustCompile(`fmt\.Errorf`), "shield: stdin:3: %s", regexp.MustCompile(`^expected a JSON`), true},
	{regexp.MustCompile(`^pkg/action/names`), regexp.MustCompile(`errors\.New`), "shield: stdin:3: payload.command: %s", regexp.MustCompile(`^empty`), true},
	{regexp.MustCompile(`^internal/bounds/`), regexp.MustCompile(`^key `), "this command cannot be contained: %s", nil, true},
	{regexp.MustCompile(`^internal/container/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "container: none detected, because %s. No action is needed: without a container, shield is stricter", nil, false},
	{regexp.MustCompile(`^internal/genuine/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "FAIL  shield.tar.gz: %s; do not install it, download the release again", nil, false},
	{regexp.MustCompile(`^cmd/allow\.go`), regexp.MustCompile(`^cmp\.Or$`), "this action can only be allowed once, because %s; leave out --session", nil, false},
	{regexp.MustCompile(`^cmd/contain\.go`), regexp.MustCompile(`^assign gap$`), "shield: contained by Landlock alone: %s; to refuse that, use --contain=require", nil, false},
	{regexp.MustCompile(`^cmd/doctorexam\.go`), regexp.MustCompile(`\.add$`), "%s\n      Configure a stronger model (evaluator.model), or set policy: offline to be asked yourself", regexp.MustCompile(`^evaluator: %s (blocks|can)`), false},
	{regexp.MustCompile(`^cmd/hookrecord\.go`), regexp.MustCompile(`fmt\.Errorf`), "the record of the installed program /usr/bin/shield cannot be read, so the hook denies everything: %s; run 'shield hook status --accept'", regexp.MustCompile(`^the file %s is damaged`), false},
	{regexp.MustCompile(`^cmd/hookstatus\.go`), regexp.MustCompile(`errors\.New`), "the hook did not deny a test command: %s (it printed \"denied\", \"\"); run 'shield doctor'", regexp.MustCompile(`^the hook must print`), false},
	{regexp.MustCompile(`^cmd/hookstatus\.go`), regexp.MustCompile(`^say$`), "shield: %s: hook.permission_request is on, but the hook for permission prompts is not installed; run 'shield hook install --permission-request claude-code'", regexp.MustCompile(`^shield does not answer`), false},
	{regexp.MustCompile(`^cmd/hooktools\.go`), regexp.MustCompile(`^$`), "Tool: search, of the server issues, which sends the arguments to %s", regexp.MustCompile(`^a host`), false},
	{regexp.MustCompile(`^cmd/doctortiers\.go`), regexp.MustCompile(`\.add$`), "%s\n      set approval.channels: [auto, command]", regexp.MustCompile(`^approval\.command is set`), true},
	{regexp.MustCompile(`^cmd/pipeline\.go`), regexp.MustCompile(`errors\.New`), "container: none detected, because %s. No action is needed: without a container, shield is stricter", regexp.MustCompile(`^the setting is container`), true},
	{regexp.MustCompile(`^cmd/sanitize\.go`), regexp.MustCompile(`errors\.New`), "shield: stdin:3: result: %s", regexp.MustCompile(`^missing in`), true},
	{regexp.MustCompile(`^cmd/scan\.go`), regexp.MustCompile(`fmt\.Sprintf`), "shield: 1200 %s", regexp.MustCompile(`^tool calls`), true},
	{regexp.MustCompile(`^cmd/score\.go`), regexp.MustCompile(`^assign c\.OK$`), "attacks passed: %s", nil, true},
	{regexp.MustCompile(`^cmd/score\.go`), regexp.MustCompile(`^add$`), "Row of a report of 'shield score --gate': %s: 10.0 % is over the limit of 0.0 %", nil, true},
	{regexp.MustCompile(`^cmd/serve\.go`), regexp.MustCompile(`fmt\.Sprintf`), "Line of a question on the approval page: asked by %s", regexp.MustCompile(`^%s, a client`), true},
	{regexp.MustCompile(`^cmd/setup\.go`), regexp.MustCompile(`^assign how$`), "Questions of Claude Code: %s", regexp.MustCompile(`^denied`), true},
	{regexp.MustCompile(`^cmd/suggest\.go`), regexp.MustCompile(`^assign why$|fmt\.Sprintf`), "shield: policy suggest: nothing to propose: audit.jsonl has %s", nil, true},
	{regexp.MustCompile(`^cmd/hook(line|status)\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "shield: hook status: claude-code: the host does not enforce denials by shield:\n  /home/me/.claude/settings.json: %s; run 'shield hook install claude-code' again", regexp.MustCompile(`^(?:the (?:h(?:ook|ost waits)|program|command)|an|it|--|%s is)`), true},
	{regexp.MustCompile(`^cmd/hookstatus\.go`), regexp.MustCompile(`^say$`), "shield: %s: no hook of shield is installed for tool results; run 'shield hook install claude-code' again", nil, false},
	{regexp.MustCompile(`^cmd/`), regexp.MustCompile(`^requirePerson$`), "%s: only the user can do this, but there is no terminal here; run the command in a terminal", nil, true},
	{regexp.MustCompile(`^cmd/`), regexp.MustCompile(`^printTerminalInputHint$`), "shield: reading %s; ctrl-d ends", nil, false},
	{regexp.MustCompile(`^cmd/`), regexp.MustCompile(`^key DefaultText$`), "Help of a flag: --flag VALUE  … (default: %s)", nil, false},
	{regexp.MustCompile(`^cmd/(help|sections)\.go`), regexp.MustCompile(`^$`), "Heading in the help of shield: %s", nil, false},
	{regexp.MustCompile(`^cmd/setup\.go`), regexp.MustCompile(`^$`), "Choice in a menu of 'shield setup': %s", regexp.MustCompile(`^(I answer|ask|a model)`), false},
	{regexp.MustCompile(`^cmd/tools\.go`), regexp.MustCompile(`^assign lasts$`), "Row of 'shield tools list': mcp__github__search  reads  %s", nil, false},
	{regexp.MustCompile(`^cmd/hookpermission\.go|^pkg/host/permission`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "Claude Code: shield does not answer all permission prompts of the host: %s", nil, false},
	{regexp.MustCompile(`^pkg/effect/globs\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "policy.yaml:12: the path pattern \"src/**\" is not valid: %s", nil, true},
	{regexp.MustCompile(`^pkg/evaluate/(parse|envelope)\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "failed to parse evaluator response: %s; try again, or use another model (evaluator.model)", regexp.MustCompile(`^[^c]|^c[^a]`), true},
	{regexp.MustCompile(`^pkg/gateway/message\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "mcp github: dropped a message of the server: %s; update the server", nil, false},
	{regexp.MustCompile(`^pkg/gateway/tool\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "mcp github: withheld a tool of the server: %s; update the server", nil, false},
	{regexp.MustCompile(`^pkg/gateway/list\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "mcp github: withheld all tools of the server: %s", regexp.MustCompile(`^(the server|there is no state)`), true},
	{regexp.MustCompile(`^pkg/telemetry/`), regexp.MustCompile(`\.(text|appendJSONString)$`), "Description of a metric: %s", nil, false},
	{regexp.MustCompile(`^pkg/analysis/losses`), regexp.MustCompile(`setLossesUnknownReason$`), "overwrites or deletes local changes that git cannot restore and shield cannot back up (%s): src/a.go; commit or stash them first", nil, false},
	{regexp.MustCompile(`^pkg/audit/write\.go`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "the audit log was changed: %s; see 'shield audit verify', then run 'shield doctor --repair-audit'", nil, false},
	{regexp.MustCompile(`^pkg/telemetry/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "telemetry: %s; the spans are dropped until the collector answers; check telemetry.otlp", nil, false},
	{regexp.MustCompile(`^pkg/classify/socket`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "classifier at unix:/run/c.sock: %s; start the classifier, or remove classifier.addr", nil, false},
	{regexp.MustCompile(`^pkg/policy/gaps\.go`), regexp.MustCompile(`^$|Sprintf`), "allow rule read_docs does not cover this action: %s", nil, true},
	{regexp.MustCompile(`^internal/ancestry/ancestry_linux`), regexp.MustCompile(`fmt\.Errorf`), "allow: only the user can do this, but the program that shows this terminal is unknown (%s)", regexp.MustCompile(`^more than`), true},
	{regexp.MustCompile(`^internal/ancestry/ancestry\.go`), regexp.MustCompile(`errors\.New`), "shield does not answer all permission prompts of the host: the command line of the host is unknown: %s", nil, false},
	{regexp.MustCompile(`^internal/ancestry/`), regexp.MustCompile(`errors\.New|fmt\.Errorf`), "allow: only the user can do this, but the process that started the command is unknown (%s); use another terminal", nil, false},
}

// lists are texts that are not read as a sentence: lists of words, commands, headers and templates, and
// beginnings that are printed with each cause (see within).
var lists = regexp.MustCompile(`^(?:git (?:remote|config|ls-remote)|gh repo|echo printf|return (?:if|typeof)|warn printf|function switch|user author|diff\.external|list (?:calendar|upcoming)|create update|default-src|/bin/sh -c|/usr/local/bin/shield|%s/go/bin|import os|tee %s|\$\(git|\?:/|\\|# fish|\[ %|%s; v=|%secho|echo "|text/plain|%sgo_|shield_question|\[Unit\]|\{"type"|execute_command: \{|DiscordBot|audit head|\| \||shield doctor --repair|shield audit (?:checkpoint|segment) v1|\*\*\* End|# based on|- action_types|# %s\n|---\n|sends (?:credentials|local data) to$|model: looks like an attack$|%s, judged by|there is nothing to write|shield is repairing|the value is too large for the cache|the gateway called the server$|hourly approval limit reached$|text/html|\[untrusted|\[\.\. \||the user's text$|failed to parse evaluator response: %s$|withheld all tools of the server: %v$|refused the server's request %s: %s$|shield: the server's answer is withheld: %s$|rule %s is never reached%s: %s$|no question could be asked: %s$|only rules judge, since the model cannot be used: %s$)`)

// advice returns the sentence of policies/dangers.yaml in which the reason of an unknown effect
// of a cause is printed.
func advice(stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		call, ok := stack[i].(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !dynamic.MatchString(called(call.Fun)) {
			continue
		}
		name, found := strings.CutPrefix(called(call.Args[0]), "effect.")
		constants, err := os.ReadFile("pkg/effect/cause.go")
		if err != nil {
			log.Fatal(err)
		}
		cause := regexp.MustCompile(`\b` + name + ` +EffectCause = "(\w+)"`).FindSubmatch(constants)
		if !found || cause == nil {
			return ""
		}
		rows, err := os.ReadFile("policies/dangers.yaml")
		if err != nil {
			log.Fatal(err)
		}
		m := regexp.MustCompile(`effects: \[dynamic\].*cause=` + string(cause[1]) + `\b.*reason: "([^"]*)"`).FindSubmatch(rows)
		if m == nil {
			return ""
		}
		return strings.Replace(string(m[1]), "{reason}", "%s", 1)
	}
	return ""
}

// effectKind returns the kind of the effect whose reason a text is, with its harm, as 'shield explain' prints them
// before the reason.
func effectKind(stack []ast.Node) string {
	for i := len(stack) - 1; i >= 0; i-- {
		lit, ok := stack[i].(*ast.CompositeLit)
		begin := " ("
		for k := 0; ok && k < len(lit.Elts); k++ {
			if field, ok := lit.Elts[k].(*ast.KeyValueExpr); ok && called(field.Key) == "Harms" {
				if harms, ok := field.Value.(*ast.CompositeLit); ok && len(harms.Elts) > 0 {
					_, harm, _ := strings.Cut(called(harms.Elts[0]), "effect.")
					constants, err := os.ReadFile("pkg/effect/harm.go")
					if err != nil {
						log.Fatal(err)
					}
					if m := regexp.MustCompile(`\b` + harm + ` +Harm = "(\w+)"`).FindSubmatch(constants); harm != "" && m != nil {
						begin = " (" + string(m[1]) + ": "
					}
				}
			}
		}
		for k := 0; ok && k < len(lit.Elts); k++ {
			field, ok := lit.Elts[k].(*ast.KeyValueExpr)
			if name, kind := "", ""; ok && called(field.Key) == "Kind" {
				name, kind, _ = strings.Cut(called(field.Value), "effect.")
				if name == "" && kind != "" {
					constants, err := os.ReadFile("pkg/effect/effect.go")
					if err != nil {
						log.Fatal(err)
					}
					if m := regexp.MustCompile(`\b` + kind + ` +Kind = "(\w+)"`).FindSubmatch(constants); m != nil {
						return string(m[1]) + begin
					}
				}
			}
		}
	}
	return "run_code ("
}

// stateError returns the whole error of a kind of the state or of the audit log, or "".
func stateError(path, text string) string {
	const db, log, store = "/home/me/.local/state/shield/state.db", "/home/me/.local/state/shield/audit.jsonl", "rediss://10.0.0.5:6379/0"
	const mode, busy = "the mode 0644 gives other users access; run 'chmod 0600' on it", "process 12 (shield) has held the lock for over 10s; end it and try again"
	for _, e := range []struct {
		path, of, cause string
		kind            error
	}{
		{"pkg/state/errors.go", db, "the checksum is wrong", state.ErrCorrupt},
		{"pkg/state/errors.go", db, "the record of rate limit and budget has version 9, and this shield reads up to version 3", state.ErrNewerStateFile},
		{"pkg/state/errors.go", db, "permission denied", state.ErrUnwritable},
		{"pkg/state/errors.go", db, "the file was removed while shield read it", state.ErrStateFileMissing},
		{"pkg/state/errors.go", db, mode, state.ErrStateAccessibleToOtherUsers},
		{"pkg/state/errors.go", db, busy, state.ErrStateFileLocked},
		{"pkg/state/errors.go", store, "connection refused", state.ErrSharedStoreUnreachable},
		{"pkg/state/errors.go", store, "READONLY You can't write against a read only replica", state.ErrSharedStoreRefusedCommand},
		{"pkg/state/errors.go", store, "the store was rolled back by 3 transactions", state.ErrStoreReset},
		{"pkg/state/errors.go", store, "the seal of a value is wrong", state.ErrSharedStoreValueAltered},
		{"pkg/audit/audit.go", log, "the log ends with entry 7, and 9 were written", audit.ErrLogTruncated},
		{"pkg/audit/audit.go", log, "its last line is longer than 65536 bytes", audit.ErrLogChanged},
		{"pkg/audit/audit.go", log, "no space left on device", audit.ErrLogUnwritable},
		{"pkg/audit/audit.go", log, mode, audit.ErrLogExposed},
		{"pkg/audit/audit.go", log, busy, audit.ErrLogBusy},
	} {
		if e.path != path || e.kind.Error() != text {
			continue
		}
		if strings.HasPrefix(path, "pkg/audit/") {
			return (&audit.Error{FaultSentinel: e.kind, Path: e.of, Err: errors.New(e.cause)}).Error()
		}
		return (&state.Error{Kind: e.kind, Path: e.of, Err: errors.New(e.cause)}).Error()
	}
	return ""
}

// piece is what begins or ends in the middle of a sentence: it is read in the text around it only.
var piece = regexp.MustCompile(`^(?:[;,:.(…]|%s; (?:remove your rule|move the|add an exception|install that version|check store|set store|find |make the folder|free disk|see 'shield)|%w|(?:and|or|is|has|in|on|of|to|whether|what|since|by|from|with|that|which|passes|matches) )|[:,;(]$|^[^ ]+: %[vw]$|^(?:complete -c| list )`)

// finding joins the two texts of a finding: what is wrong, and how to fix it.
func finding(call *ast.CallExpr) string {
	name := called(call.Fun)
	if !strings.HasSuffix(name, ".add") && name != "fault" && name != "add" && name != "told" || len(call.Args) < 2 {
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
				call, whole := context(stack), stateError(path, text)
				switch {
				case whole != "":
					rows = append(rows, row{Kind: "text of " + filepath.ToSlash(filepath.Dir(path)), Message: whole})
				case len(word.FindAllString(text, -1)) < 3, strings.Count(text, " ") < 2, len(text) > 400, strings.ContainsAny(text, "\x00") || strings.Contains(text, "\n\t"):
				case piece.MatchString(text), lists.MatchString(text):
				case strings.HasPrefix(path, "pkg/shell/command/") && (strings.HasSuffix(call, ".setNotUnderstood") || call == "key WhyNotUnderstood"): // only tests print it
				case notTexts.MatchString(call), call == "key Usage", call == "key Description", call == "key Name", call == "key name", call == "key What", call == "assign name", call == "assign before", strings.Contains(text, "{ "), strings.HasPrefix(call, "key ?"), strings.HasPrefix(call, "assign cause"), wrapping.MatchString(text):
				default:
					for _, w := range within {
						if !w.file.MatchString(path) || !w.call.MatchString(call) || w.begins != nil && !w.begins.MatchString(text) || !w.all && strings.Contains(text, "; ") {
							continue
						}
						sentence := w.text
						if by := advice(stack); by != "" {
							sentence = by
						}
						head, tail, _ := strings.Cut(sentence, "%s")
						if strings.Contains(text, "; ") && strings.Contains(tail, "; ") { // the cause has its own action
							tail = ""
						}
						text = strings.ReplaceAll(head, "EFFECT (", effectKind(stack)) + text + tail
						break
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
		if quote := text[:min(1, len(text))]; (quote == `"` || quote == "'") && len(text) > 1 && strings.HasSuffix(text, quote) {
			text = text[1 : len(text)-1]
		}
		switch m[1] {
		case "description":
			said = text
		case "advice":
			first, _, _ := strings.Cut(said, ". ") // as reasoning of pkg/classify prints it
			rows = append(rows, row{Kind: "rule", Message: strings.TrimSuffix(first, ".") + "; instead: " + text})
		default:
			rows = append(rows, row{Kind: "policy rule", Message: text})
		}
	}
	return rows
}

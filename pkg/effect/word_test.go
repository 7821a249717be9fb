package effect

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestWords looks at every word that policies use: an effect that it names is called by it, and
// what a combination is made of is no other word's.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, word := range Kinds() {
		e := EffectOfPolicyKind(word)
		if got := e.KindForPolicies(); got != word {
			t.Errorf("Of(%q) is called %q", word, got)
		}
	}
	for name, c := range map[string]struct {
		e    Effect
		want Kind
	}{
		"a file from the network is no text":     {Effect{Kind: RunCode, Path: "/a", DataLabels: []TaintLabel{LabelFromNetwork}}, RunCode},
		"what runs later is no text":             {Effect{Kind: RunCode, Cause: CauseWrittenCodeRunsLater, DataLabels: []TaintLabel{LabelFromNetwork}}, RunCode},
		"the network before a decoder":           {Effect{Kind: RunCode, DataLabels: []TaintLabel{LabelDecoderOutput, LabelFromNetwork}}, RunDownload},
		"a clone":                                {Effect{Kind: RunCode, DataLabels: []TaintLabel{LabelUntrusted}}, RunCode},
		"a secret that is sent where it belongs": {Effect{Kind: SendData, DataLabels: []TaintLabel{LabelFromCredentialLocation}}, SendData},
		"what may leak":                          {Effect{Kind: SendData, Harms: []Harm{LeaksSecrets}, Certainty: Possible}, SendSecret},
		"unknown whatever it is":                 {Effect{Kind: SendData, Harms: []Harm{LeaksSecrets}, Certainty: Unknown}, UnknownEffect},
	} {
		if got := c.e.KindForPolicies(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestVariant: rules find the harm of a change under its old name.
func TestVariant(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"delete": "destroys", "grant": "grants", "expose": "exposes", "weaken": "weakens", "redirect": "redirects", "run": "runs", "create": ""} {
		e := Effect{Kind: ChangeRemoteSystem, RemoteOperationVerb: verb, Harms: HarmsOfRemoteOperation(verb)}
		if got := e.CauseOrFirstHarm(); got != want || e.DestroysRemoteResource() != (verb == "delete") {
			t.Errorf("%s: %q, want %q", verb, got, want)
		}
	}
	if e := (Effect{Kind: Execute, Harms: []Harm{DestroysResources}}); e.CauseOrFirstHarm() != "" {
		t.Error("the harm of a program is a cause")
	}
}

// TestNoKindIsAWord reads all sources: a kind that is compared with a word for a combination never
// is it, and an effect that is made with one as its kind is none that rules know.
func TestNoKindIsAWord(t *testing.T) {
	t.Parallel()
	combined := map[string]bool{"SendSecret": true, "RunDownload": true, "RunDecoded": true, "RunInput": true, "Dynamic": true}
	word := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		if !ok || !combined[s.Sel.Name] {
			return false
		}
		pkg, ok := s.X.(*ast.Ident)
		return ok && pkg.Name == "effect"
	}
	kind := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Kind"
	}
	read := 0
	for _, root := range [...]string{"..", "../../cmd", "../../e2e", "../../internal"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_gen.go") {
				return err
			}
			set := gotoken.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			read++
			wrong := func(n ast.Node) {
				t.Errorf("%s: no Kind is a word for a combination; use Word, Sure or Of", set.Position(n.Pos()))
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BinaryExpr:
					if kind(n.X) && word(n.Y) {
						wrong(n)
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" && word(n.Value) {
						wrong(n)
					}
				case *ast.SwitchStmt:
					if !kind(n.Tag) {
						return true
					}
					for _, c := range n.Body.List {
						for _, e := range c.(*ast.CaseClause).List {
							if word(e) {
								wrong(e)
							}
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 500 {
		t.Errorf("%d files were read", read)
	}
}

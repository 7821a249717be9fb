package grammar

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func load(files ...string) ([]Program, error) {
	folder := fstest.MapFS{}
	for i, text := range files {
		folder[string(rune('a'+i))+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return Load(folder)
}

func TestRefused(t *testing.T) {
	const example = "\n  examples:\n    p:\n"
	for _, tt := range []struct{ name, text, want string }{
		{"no example", "p:\n  flags: -a\n", "the examples are missing"},
		{"unknown key", "p:\n  flag: -a" + example, "unknown key"},
		{"unknown role", "p:\n  operands: reed" + example, `unknown role "reed"`},
		{"unknown word", "p:\n  does: locally" + example, `unknown word "locally"`},
		{"unknown style", "p:\n  style: gnuish" + example, `unknown style "gnuish"`},
		{"unknown stream", "p:\n  does: in:cod" + example, `unknown stream "cod"`},
		{"two open roles", "p:\n  operands: read... write..." + example, "only one role may be followed by three dots"},
		{"option twice", "p:\n  flags: -a -b\n  values: -a" + example, "option -a is listed twice"},
		{"subcommand twice", "p:\n  subs:\n    a b: readonly\n    b c: readonly" + example, "subcommand b is listed twice"},
		{"program twice", "p:" + "\n  flags: -a" + example + "q:\n  also: p" + example, `program "p" is already in a.yaml`},
		{"like nothing", "p:\n  like: q" + example, `unknown program "q"`},
		{"like itself", "p:\n  like: p" + example, "too deep"},
		{"not a map", "p: 1\n", "not a map"},
		{"not a string", "p:\n  flags: [a]" + example, "not a string"},
		{"names of a subcommand", "p:\n  subs:\n    a:\n      also: b" + example, "only a program"},
	} {
		if _, err := load(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestLike(t *testing.T) {
	programs, err := load("p:\n  flags: -a\n  options:\n    -o: =write\n  examples:\n    p:\nq:\n  like: p\n  options:\n    -o: =read\n    -x: =shell\n  examples:\n    q:\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range programs[1].Grammar.Options {
		got = append(got, o.Name+strings.Join(o.Action.Values, ","))
	}
	if s := strings.Join(got, " "); s != "-a -oroleRead -xroleShell" {
		t.Errorf("options of q: %s", s)
	}
}

func TestAction(t *testing.T) {
	a, err := parseAction("[=write] network local-write change_remote out:download turn:archive=read recursive -> text read... write")
	if err != nil {
		t.Fatal(err)
	}
	if !a.Attached || a.Class != "network" || a.Out != "Download" || len(a.Turns) != 1 || len(a.Operands.Tail) != 1 || a.Operands.Rest != "roleRead" {
		t.Errorf("got %+v", a)
	}
}

func TestWriteGo(t *testing.T) {
	programs, err := load("p:\n  flags: -a -b\n  subs:\n    s: local-write -> read...\n  examples:\n    p:\n")
	if err != nil {
		t.Fatal(err)
	}
	source, err := WriteGo(programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DO NOT EDIT", `{"p", &syntaxP}`, `{"s", &syntaxP_S}`, `{"-a", &action_e3b0c44298fc}`, "rest: roleRead"} {
		if !strings.Contains(string(source), want) {
			t.Errorf("no %q in\n%s", want, source)
		}
	}
}

// A change of one program changes the lines of that program alone.
func TestWriteGoIsStable(t *testing.T) {
	const one, other = "b:\n  flags: -a\n  examples:\n    b:\n", "a:\n  options:\n    -x: =write\n  operands: read...\n  examples:\n    a x: read_file x\n"
	var texts []string
	for _, in := range []string{one, other + one} {
		programs, err := load(in)
		if err != nil {
			t.Fatal(err)
		}
		source, err := WriteGo(programs)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(source))
	}
	for line := range strings.Lines(texts[0]) {
		if !strings.Contains(texts[1], strings.TrimSpace(line)) {
			t.Errorf("adding a program changed %q", line)
		}
	}
}

func TestWords(t *testing.T) {
	source, err := WriteWords([]byte("Bs:\n  about: are letters\n  words: c b\nAs:\n  about: are others\n  words: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(source); !strings.Contains(got, "// Bs are letters.\nvar Bs = Words{\n\t\"b\": true,\n\t\"c\": true,\n}\n\n// As are others.") {
		t.Errorf("got\n%s", got)
	}
	for text, want := range map[string]string{
		"A:\n  about: x\n":               "words or about is missing",
		"A:\n  words: x\n":               "words or about is missing",
		"A:\n  about: x\n  words: a a\n": "listed twice",
		"A:\n  abuot: x\n":               "unknown field",
		"A: [":                           "",
	} {
		if _, err := WriteWords([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
}

// TestReadme checks that every word of the language is described.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("../../programs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat(styles, slices.Collect(maps.Keys(classes)), slices.Collect(maps.Keys(effects)),
		slices.Collect(maps.Keys(streams)), slices.Collect(maps.Keys(flags)), slices.Collect(maps.Keys(roles)), verbs,
		strings.Fields("also like style does why language service input files flags values optional options keys texts subs groups operands examples"))
	for _, w := range words {
		if !strings.Contains(string(data), "`"+w+"`") {
			t.Errorf("%s is not described", w)
		}
	}
}

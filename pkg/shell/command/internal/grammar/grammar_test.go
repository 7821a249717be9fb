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
	return LoadPrograms(folder)
}

func TestRefused(t *testing.T) {
	const example = "\n  examples:\n    p:\n"
	for _, tt := range []struct{ name, text, want string }{
		{"no example", "p:\n  flags: -a\n", "the examples are missing"},
		{"an unknown harm", "p:\n  harms:\n    tickles: a" + example, `unknown harm "tickles"`},
		{"an unknown harm of an action", "p:\n  does: harm:tickles" + example, `unknown harm "tickles"`},
		{"two harms of an action", "p:\n  does: harm:wipes harm:halts" + example, `harm "halts" beside "wipes"`},
		{"two harms of a subcommand", "p:\n  harms:\n    wipes: a\n    halts: a" + example, `harm "halts" beside "wipes"`},
		{"two harms of an option", "p:\n  harms:\n    wipes: a -x\n    halts: a -x" + example, `harm "halts" of -x beside "wipes"`},
		{"a form of nothing", "p:\n  harms:\n    wipes: a,, b" + example, "an empty form"},
		{"a form in the wrong order", "p:\n  harms:\n    wipes: -x a" + example, "a subcommand behind an option"},
		{"harm of another program", "p:\n  harms:\n    wipes: 'q: a'" + example, "q is not one of its names"},
		{"harm of a word that may be an operand", "p:\n  operands: read text\n  harms:\n    wipes: a" + example, "a is not a listed subcommand"},
		{"harms of a subcommand", "p:\n  subs:\n    a:\n      harms:\n        wipes: b" + example, "not of a program"},
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
		{"not a map of options", "p:\n  options: -a" + example, "options: not a map"},
		{"an option that is no text", "p:\n  options:\n    -a: [read]" + example, "-a: [read] is not a string"},
		{"a wrong option", "p:\n  options:\n    -a: =reed" + example, `-a: unknown role "reed"`},
		{"a wrong value among good ones", "p:\n  options:\n    -a: \"[=read,reed]\"" + example, `unknown role "reed"`},
		{"an option listed twice in a map", "p:\n  options:\n    -a -b: =read\n    -b: =write" + example, "option -b is listed twice"},
		{"a subcommand that is a list", "p:\n  subs:\n    a: [read]" + example, "a: neither a map nor an action"},
		{"a wrong subcommand", "p:\n  subs:\n    a: locally" + example, `a: unknown word "locally"`},
		{"a wrong map of a subcommand", "p:\n  subs:\n    a:\n      does: locally" + example, `a: does: unknown word "locally"`},
		{"a program that is a number", "7:\n  flags: -a" + example, "the name is not a string"},
		{"a program that is listed twice", "p:\n  flags: -a" + example + "p :\n  flags: -b" + example, "p"},
		{"all words twice", "p:\n  operands: argv read..." + example, "only one role"},
		{"all words with dots", "p:\n  operands: argv..." + example, "already takes all words"},
		{"a wrong shape of an action", "p:\n  does: readonly -> reed" + example, `unknown role "reed"`},
		{"a wrong turn", "p:\n  does: turn:reed=read" + example, `unknown role "reed"`},
		{"a turn to nothing", "p:\n  does: turn:read" + example, `unknown role ""`},
		{"a wrong place", "p:\n  does: here:reed" + example, `unknown role "reed"`},
		{"a wrong default", "p:\n  does: empty:reed" + example, `unknown role "reed"`},
		{"an unknown loss", "p:\n  does: undo:tickle" + example, `unknown loss "tickle"`},
		{"an unknown verb", "p:\n  does: remote:tickle" + example, `unknown verb "tickle"`},
		{"a wrong input", "p:\n  input: reed" + example, `unknown role "reed"`},
		{"a language of a subcommand", "p:\n  subs:\n    a:\n      language: awk" + example, "only a program"},
		{"like no name", "p:\n  like: ' '" + example, "the name is missing"},
		{"like an unknown subcommand", "p:\n  like: q a b" + example + "q:\n  subs:\n    a:\n      flags: -x" + example, `unknown subcommand "b" of "q a b"`},
		{"like a subcommand of none", "p:\n  like: q a" + example + "q:\n  subs: 7" + example, `unknown subcommand "a" of "q a"`},
		{"like one that is wrong", "p:\n  like: q" + example + "q:\n  flag: -a" + example, "unknown key"},
		{"no YAML", "p: [", "a.yaml"},
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
		got = append(got, o.Name+strings.Join(o.Action.ValueRoles, ","))
	}
	if s := strings.Join(got, " "); s != "-a -oargRoleReadFile -xargRoleShellCode" {
		t.Errorf("options of q: %s", s)
	}
}

// TestLikeSubcommand holds that a program may be like a subcommand, whatever names
// that has, and takes neither its other names nor its examples.
func TestLikeSubcommand(t *testing.T) {
	t.Parallel()
	programs, err := load("p:\n  also: pp\n  style: gnu own\n  subs:\n    a b:\n      flags: -x\n      subs:\n        c:\n          flags: -y\n  examples:\n    p:\nq:\n  like: p b c\n  examples:\n    q:\nr:\n  like: p\n  examples:\n    r:\n")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range programs {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "p pp q r" {
		t.Fatalf("programs %s", got)
	}
	if options := programs[2].Grammar.Options; len(options) != 1 || options[0].Name != "-y" {
		t.Errorf("q, like p b c: %+v", options)
	}
	if subs := programs[3].Grammar.Subcommands; len(subs) != 2 || len(programs[3].Examples) != 1 {
		t.Errorf("r, like p: %+v, examples %v", subs, programs[3].Examples)
	}
	if style := programs[0].Grammar.Subcommands[0].Grammar.ArgStyles; !slices.Equal(style, []string{"gnu"}) {
		t.Errorf("p a has the habits %q of p", style)
	}
}

// TestWriteFields holds that every key of an entry is in the table.
func TestWriteFields(t *testing.T) {
	t.Parallel()
	programs, err := load(`a-b.c:
  why: because
  service: git
  language: awk
  files: .awk .gawk
  style: gnu plus
  input: shell
  values: -v
  optional: -o
  keys: {if of: "=read"}
  texts: {"two words": "remote:delete"}
  groups: y x
  options:
    -O*: "=write"
    -Ox*: "=read"
    -s: "readonly network in:code out:secret secret here:read empty:list turn:read=write turn:list=read stop dry -> text read... write"
  operands: read
  examples: {a: b}
A-b.c:
  examples: {a: b}
`)
	if err != nil {
		t.Fatal(err)
	}
	source, err := CommandTablesGoSource(programs)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(source)), " ")
	for _, want := range []string{
		`{"a-b.c", &syntaxA_b_2ec_}`, `{"A-b.c", &syntaxA_b_2ec}`, `case ".awk": return "awk" case ".gawk": return "awk" }`, `argStyle: argStyleGNUAbbreviations | argStylePlusOptions, effectsDescription: "because", language: "awk", remoteService: "git", stdinRole: argRoleShellCode,`,
		`optionsMatchedByPrefix: []option{ {"-Ox", `, `keyValueOperands: []option{ {"if", `, `argTextPatterns: []option{ {"two words", `, `skippableCommandGroups: []string{"x", "y"}, operandRoles: operandRoles{firstRoles: []argRole{argRoleReadFile}}`,
		`{valueRoles: []argRole{argRoleTextOrSensitivePath}}`, `{valueRoles: []argRole{argRoleTextOrSensitivePath}, hasOptionalAttachedValue: true}`, `{effects: []effect.Kind{effect.ChangeRemoteSystem}, remoteChangeVerb: "delete"}`,
		`{programClassRank: networkProgramClassRank, effects: []effect.Kind{effect.ReadSecret}, streams: stdioContentChanges{stdin: StreamExecutedCode, setsStdin: true, stdout: StreamCredentials, setsStdout: true}, operandRoles: &shape_`,
		`argRoleOverrides: []argRoleOverrideByOption{{argRoleReadFile, argRoleWriteFile}, {argRoleListFolder, argRoleReadFile}}, workingFolderRole: argRoleReadFile, implicitOperandRole: argRoleListFolder, actionFlags: actionFlagEndsOptions | actionFlagDryRun}`,
		`{firstRoles: []argRole{argRoleInertText}, middleRole: argRoleReadFile, lastRoles: []argRole{argRoleWriteFile}}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, source)
		}
	}
}

// TestLoads holds what happens to the tables of files that programs run, and that a
// wrong one is refused by the name of its entry.
func TestLoads(t *testing.T) {
	t.Parallel()
	source, err := CodeFileLoadersGoSource([]byte("b:\n  programs: p q\n  names: '*.x y'\n  recipe: make\n  goals: -=all *=*\n  folder: -C\na:\n  programs: q r\n  names: z\n  words: build\n  reads: s\n  file: -f\n  values: -j\n"),
		[]byte("make:\n  files: m *.mk\nci:\n  format: yaml\n  files: '*.yml'\n  elsewhere: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(source)), " ")
	for _, want := range []string{
		`{ // a FileNameGlobs: []string{"z"}, RequiredArgGlobs: []string{"build"}, AnalyzedFilePaths: []string{"s"}, RecipePathOptions: []string{"-f"}, OptionsWithIgnoredValue: []string{"-j"}, fileNameLastBytes: "z", RecipeFormat: "", }, { // b`,
		`FileNameGlobs: []string{"*.x", "y"}, RecipeGoalsByOperand: []string{"-=all", "*=*"}, FolderOptions: []string{"-C"}, fileNameLastBytes: "xy", RecipeFormat: "make", }`,
		`case "r": return []int{0}`, `case "q": return []int{0, 1}`, `case "p": return []int{1}`,
		`{"make", []string{"m", "*.mk"}, false}, {"yaml", []string{"*.yml"}, true}, }`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, source)
		}
	}
	for _, c := range [...]struct{ loads, recipes, want string }{
		{"a: {programs: p}", "", "a: no programs, or no names"},
		{"a: {names: x}", "", "a: no programs, or no names"},
		{"a: {programs: p, names: '[x'}", "", "a: [x: syntax error"},
		{"a: {programs: p, names: x, words: '[y'}", "", "a: [y: syntax error"},
		{"a: {programs: p p, names: x}", "", "a: p is listed twice"},
		{"a: {programs: p, names: x, colour: red}", "", "colour"},
		{"a: [", "", "[1:"},
		{"", "a: {files: '[x'}", "a: [x: syntax error"},
		{"", "a: {colour: red}", "colour"},
		{"", "a: [", "[1:"},
	} {
		if _, err := CodeFileLoadersGoSource([]byte(c.loads), []byte(c.recipes)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q", c.loads, c.recipes, err, c.want)
		}
	}
}

func TestAction(t *testing.T) {
	a, err := parseAction("[=write] network local-write change_remote out:download turn:archive=read recursive -> text read... write")
	if err != nil {
		t.Fatal(err)
	}
	if !a.HasOptionalAttachedValue || a.Class != "networkProgramClassRank" || a.StdoutStreamConstantName != "StreamDownload" || len(a.ArgRoleOverrides) != 1 || len(a.Operands.Last) != 1 || a.Operands.Middle != "argRoleReadFile" {
		t.Errorf("got %+v", a)
	}
}

func TestWriteGo(t *testing.T) {
	programs, err := load("p:\n  flags: -a -b\n  subs:\n    s: local-write -> read...\n  examples:\n    p:\n")
	if err != nil {
		t.Fatal(err)
	}
	source, err := CommandTablesGoSource(programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DO NOT EDIT", `{"p", &syntaxP}`, `{"s", &syntax_63ec531880d2}`, `{"-a", &action_none}`, "middleRole: argRoleReadFile"} {
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
		source, err := CommandTablesGoSource(programs)
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
	source, err := GenerateWordListSource([]byte("Bs:\n  about: are letters\n  words: c b\nAs:\n  about: are others\n  words: a\n"))
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
		if _, err := GenerateWordListSource([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
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
	words := slices.Concat(slices.Collect(maps.Keys(argStyleConstantByYAMLWord)), slices.Collect(maps.Keys(programClassConstantByYAMLWord)), slices.Collect(maps.Keys(effectConstantByYAMLWord)),
		slices.Collect(maps.Keys(streamConstantByYAMLWord)), slices.Collect(maps.Keys(actionFlagConstantByYAMLWord)), slices.Collect(maps.Keys(roleConstantByYAMLWord)), slices.Collect(maps.Keys(fileLossConstantByYAMLWord)), remoteChangeVerbs,
		strings.Fields("also like style does why language service input files flags values optional options keys texts subs groups operands examples"))
	for _, w := range words {
		if !strings.Contains(string(data), "`"+w+"`") {
			t.Errorf("%s is not described", w)
		}
	}
}

// TestWriteGoShares holds that equal subcommands are written once, and that what
// has few words is named by them.
func TestWriteGoShares(t *testing.T) {
	const example = "  examples:\n    p:\n"
	programs, err := load("p:\n  subs:\n    b: readonly -> read...\n" + example + "q:\n  subs:\n    b: readonly -> read...\n    c: readonly -> read...\n    d: { flags: -x }\n    e: { flags: -x }\n" + example)
	if err != nil {
		t.Fatal(err)
	}
	source, err := CommandTablesGoSource(programs)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"syntax_1280ca66db1b = ": 1, "&syntax_1280ca66db1b}": 3,
		"var syntaxQ_D = ": 1, "var syntaxQ_E = ": 0, `{"e", &syntaxQ_D}`: 1, `{"-x", &action_none}`: 1,
	} {
		if got := strings.Count(string(source), text); got != want {
			t.Errorf("%q stands %d times, want %d, in\n%s", text, got, want, source)
		}
	}
}

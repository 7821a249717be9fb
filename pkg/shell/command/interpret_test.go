package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/pkg/effect"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"", "unlisted, not understood"},
		{"cat a", "readonly, read_file a, out input"},
		{"/bin/cat a", "readonly, read_file a, out input"},
		{"CAT.EXE a", "readonly, read_file a, out input"},
		{"python3.12 a.py", "readonly, python file[a.py]"},
		{"node_modules/.bin/rg a", "local-write, read_file . +below, out input"},
		{".venv/bin/python a.py", "local-write, python file[a.py]"},
		{"/tmp/cat a", "readonly, not understood, read_file a, file[/tmp/cat], out input"},
		{"./unlisted a", "unlisted, not understood, file[./unlisted]"},
		{"unlisted a", "unlisted, not understood"},
		{"%%ca* a", "unlisted, not understood"},
	} {
		if got := summary(Interpret(split(tt.name))); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestVersions checks that every program understands --version, which people
// ask of all of them.
func TestVersions(t *testing.T) {
	for _, command := range []string{"git --version", "node --version", "python3 --version", "docker --version", "terraform --version", "bash --version", "jq --version"} {
		if u := Interpret(split(command)); !u.Known || u.Class != effect.ReadOnly || u.Stdin != Data {
			t.Errorf("%s: %s (%s)", command, summary(u), u.Reason)
		}
	}
}

func TestVariable(t *testing.T) {
	for _, tt := range []struct{ setting, want string }{
		{"PAGER=./x", "shell[./x]"},
		{"PAGER=less", ""},
		{"GIT_PAGER=cat", ""},
		{"LESSOPEN=|./x %s", "shell[./x %s]"},
		{"LD_PRELOAD=./x.so", "file[./x.so]"},
		{"LD_LIBRARY_PATH=/usr/lib", ""},
		{"LD_LIBRARY_PATH=/tmp/x", "file[/tmp/x]"},
		{"NODE_OPTIONS=--max-old-space-size=1", ""},
		{"NODE_OPTIONS=--require ./x", "code[--require ./x]"},
		{"BASH_ENV=./x", "shell file[./x]"},
		{"PYTHONPATH=src", ""},
		{"GIT_CONFIG_VALUE_0=./x", "code[./x]"},
		{"FOO=bar", ""},
		{"PAGER=", ""},
		{"=x", ""},
		{"PAGER", ""},
	} {
		n, ok := Variable(Word{Text: tt.setting})
		got := ""
		if ok {
			got = strings.TrimPrefix(summary(Use{Known: true, Class: effect.ReadOnly, Nested: []Nested{n}}), "readonly, ")
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.setting, got, tt.want)
		}
	}
}

func TestSecretName(t *testing.T) {
	for name, want := range map[string]bool{
		"AWS_SECRET_ACCESS_KEY": true, "github_token": true, "DB_PASSWORD": true, "HOME": false, "PATH": false, "TERM": false, "MYSQL_PWD": true,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// hostile are argument lists that cost too much if something is not linear.
func hostile() map[string][]Word {
	many := func(first, text string) []Word {
		ws := []Word{{Text: first}}
		for range 100_000 {
			ws = append(ws, Word{Text: text})
		}
		return ws
	}
	long := strings.Repeat("x", 64<<10)
	return map[string][]Word{
		"operands":      many("cp", "a"),
		"long operands": append(many("cp", long)[:1000], Word{Text: long}),
		"options":       many("git", "-c"),
		"bundles":       {{Text: "ls"}, {Text: "-" + strings.Repeat("l", 64<<10)}},
		"unknown":       many("ls", "--unknown"),
		"settings":      many("env", "A=b"),
		"exec":          many("find", "-exec"),
		"placeholders":  append(many("find", "-exec"), many("{}", "{}")...),
		"names":         many("find", "-name"),
		"starts":        many("find", "a"),
		"subcommands":   many("docker", "container"),
		"sed":           {{Text: "sed"}, {Text: strings.Repeat("s/[/", 16<<10)}},
		"sed brackets":  {{Text: "sed"}, {Text: "/" + strings.Repeat("[", 60<<10)}},
		"sql":           {{Text: "psql"}, {Text: "-c"}, {Text: strings.Repeat("select(;/*", 6<<10)}},
		"sql quotes":    {{Text: "psql"}, {Text: "-c"}, {Text: strings.Repeat("'", 60<<10)}},
		"ex":            {{Text: "vim"}, {Text: "-c"}, {Text: strings.Repeat("|", 60<<10)}},
		"exec values":   many("find", "-fprintf"),
		"ssh":           many("ssh", "x"),
		"volumes":       {{Text: "docker"}, {Text: "run"}, {Text: "-v"}, {Text: strings.Repeat(":,", 60<<10)}},
		"program":       {{Text: strings.Repeat("/", 1<<20)}},
		"tar":           many("tar", "-fx"),
	}
}

func TestHostile(t *testing.T) {
	for name, words := range hostile() {
		var u Use
		if n := allocated.Bytes(func() { u = Interpret(words) }); n > 64<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		if size := len(u.Touches) + len(u.Nested) + len(u.Effects); size > 2*len(words)+10 {
			t.Errorf("%s: %d results of %d words", name, size, len(words))
		}
	}
}

func FuzzInterpret(f *testing.F) {
	for i := range programs {
		if i%7 == 0 {
			f.Add(programs[i].name + " -a --b=c d")
		}
	}
	f.Add("git -c a=b log")
	f.Add("tar cfC a b c")
	f.Add("find ( -name a ) -exec x {} ;")
	f.Add("%%* -x")
	f.Fuzz(func(t *testing.T, command string) {
		words := split(command)
		before := slices.Clone(words)
		u := Interpret(words)
		if !slices.Equal(words, before) {
			t.Fatal("the arguments were changed")
		}
		if u.Known && (u.Reason != "" || u.Class == effect.Unknown && !u.Windows) || !u.Known && u.Reason == "" {
			t.Fatalf("known %t, class %q, reason %q", u.Known, u.Class, u.Reason)
		}
		from := map[effect.Span]bool{}
		for _, w := range words {
			from[w.From] = true
		}
		for _, touch := range u.Touches {
			if !from[touch.Word.From] {
				t.Fatalf("touch %v comes from nowhere", touch)
			}
			if rankOf(touch.Kind).class() != effect.ReadOnly && u.Class == effect.ReadOnly {
				t.Fatalf("touch %v of a program that only reads", touch)
			}
		}
	})
}

func BenchmarkInterpret(b *testing.B) {
	for _, command := range []string{"cp -r a b", "git commit -m message", "grep -rn foo src", "docker run --rm alpine ls"} {
		words := split(command)
		b.Run(words[0].Text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Interpret(words)
			}
		})
	}
}

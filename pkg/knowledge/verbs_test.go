package knowledge

import (
	"slices"
	"strings"
	"testing"
)

func TestVerb(t *testing.T) {
	t.Parallel()
	for _, c := range [...][3]string{
		{"get_issue", "get", "reads"},
		{"getIssue", "get", "reads"},
		{"pull_request_read", "read", "reads"},
		{"list_merge_requests", "list", "reads"},
		{"get_message", "get", "reads"},
		{"brave_web_search", "search", "reads"},
		{"listDeletedFiles", "list", "reads"},
		{"deleteRepository", "delete", "destroys"},
		{"DELETE_ALL", "delete", "destroys"},
		{"HTTPDelete", "delete", "destroys"},
		{"terraform-destroy", "destroy", "destroys"},
		{"get_and_delete", "delete", "destroys"},
		{"list_delete_all", "delete", "destroys"},
		{"read_and_post", "post", "sends"},
		{"find_or_create_page", "create", "changes"},
		{"transfer_funds", "transfer", "pays"},
		{"grant_access", "grant", "grants"},
		{"contacts.export", "export", "sends"},
		{"docker_run", "run", "runs"},
		{"query_execute", "execute", "runs"},
		{"merge_pull_request", "merge", "changes"},
		{"getweather", "", ""},
		{"docs_page", "", ""},
		{"frobnicate", "", ""},
		{"", "", ""},
		{"löschen", "", ""},
	} {
		if word, list := ToolNameVerb(c[0]); word != c[1] || list != c[2] {
			t.Errorf("Verb(%q) = %q of %q; want %q of %q", c[0], word, list, c[1], c[2])
		}
	}
	if !VerbIn("Delete", "destroys") || VerbIn("delete", "reads") || VerbIn("table", "destroys") {
		t.Error("VerbIn does not tell the lists apart")
	}
}

func TestShowsSecret(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"mcp__aws__secretsmanager_get_secret_value": true,
		"mcp__1password__get_item":                  true,
		"vault_read_secret":                         true,
		"getApiKeys":                                true,
		"show_private_key":                          true,
		"fetch_user_credentials":                    true,
		"mcp__bitwarden__list_items":                false,
		"list_secrets":                              false,
		"get_password_policy":                       false,
		"get_secret_scanning_alert":                 false,
		"get_key":                                   false,
		"get_design_tokens":                         false,
		"get_item":                                  false,
		"search_secret_names":                       false,
		"":                                          false,
	} {
		if got := ToolReturnsSecret(name); got != want {
			t.Errorf("ShowsSecret(%q) = %t", name, got)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"mcp__github__getFileContents": "mcp github get file contents",
		"HTTPServer2Go":                "http server go",
		"a-b.c d/e":                    "a b c d e",
		"XML":                          "xml",
		"éa":                           "a",
		"123":                          "",
	} {
		if got := strings.Join(SplitNameWords(name), " "); got != want {
			t.Errorf("Words(%q) = %q; want %q", name, got, want)
		}
	}
}

// A word in two lists would have two meanings.
func TestVerbsAreInOneList(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, l := range VerbLists {
		for _, w := range l.Words {
			switch other := seen[w]; {
			case l.Name == "things" && (other == "" || other == "reads"):
				t.Errorf("%q is among the things, and is not a verb that does more than read", w)
			case l.Name != "things" && other != "":
				t.Errorf("%q is in %s and %s", w, other, l.Name)
			}
			seen[w] = l.Name
		}
		if l.Name == "things" {
			break
		}
	}
	if n := len(VerbLists); n != 21 || !slices.IsSorted([]int{indexOf("reads"), indexOf("changes"), indexOf("destroys"), indexOf("things"), indexOf("papers"), indexOf("queries"), indexOf("asked_delete")}) {
		t.Errorf("%d lists, or not from harmless to grave", n)
	}
}

func indexOf(name string) int {
	return slices.IndexFunc(VerbLists[:], func(l VerbList) bool { return l.Name == name })
}

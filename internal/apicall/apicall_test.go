package apicall

import (
	"strings"
	"testing"
)

func TestDestroys(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"query":"mutation { volumeDelete(volumeId: \"x\") }"}`:                                       "delete",
		`{"query":"mutation{ productDelete(input:{id:\"gid://a\"}){deletedProductId} }"}`:              "delete",
		`{"query":"mutation M($i: ID!) { a: removeUser(id: $i) { id } }","variables":{"i":"deleted"}}`: "remove",
		`{"query":"fragment F on Mutation { dropTable } mutation { ...F }"}`:                           "drop",
		`{"query":"mutation { updateUser(input: {note: \"delete me\"}) { deletedAt } }"}`:              "",
		`{"query":"mutation { addComment(body: \"# remove\") { id } }"}`:                               "",
		`{"query":"{ viewer { id } }"}`:                                                                "",
		`{"query":"query { deletedItems { id } }"}`:                                                    "",
		`{"query":"mutation { ... on Mutation { deleteRepo(id: 1) { id } } }"}`:                        "delete",
		`{"query":"mutation { ... @include(if: true) { a { b } ... { deleteRepo(id: 1) } } }"}`:        "delete",
		`{"query":"mutation { addUser { ... on User { deleted } } ...F }"}`:                            "",
		`{"query":"mutation { ...F deleteRepo(id: 1) }"}`:                                              "delete",
		`{"query":"mutation { #x\r deleteRepo(id: 1) }"}`:                                              "delete",
		`{"query":"mutation { ... on DeletePayload { id } ...DeletedFields }"}`:                        "",
		`{"query":"query { mutation { deleteAll } }"}`:                                                 "",
		`{"type":"rebuild","image":"ubuntu"}`:                                                          "rebuild",
		`{"type":"power_cycle"}`:                                                                       "",
		`{"archived":true}`:                                                                            "archived",
		`{"archived":false}`:                                                                           "",
		`{"properties":{"in_trash":true}}`:                                                             "in_trash",
		`{"action":"delete_all"}`:                                                                      "delete",
		`{"actions":[{"op":"add"},{"op":"purge"}]}`:                                                    "purge",
		`{"state":"closed"}`:                                                                           "",
		`{"status":"deleted"}`:                                                                         "deleted",
		`{"query":"select 1; drop table users"}`:                                                       "drop",
		`{"sql":"delete from users where id = 1"}`:                                                     "",
		`action=delete&id=4`:                                                                           "delete",
		`title=delete+me`:                                                                              "",
		`mutation { environmentDelete(id:"e") }`:                                                       "delete",
		`{\"query\":\"mutation{ serviceDelete(id:\\\"x\\\")`:                                           "delete",
		`delete the old files, please`:                                                                 "",
		``:                                                                                             "",
	} {
		if got := FindDestructiveWord(body); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// FuzzDestroys holds that no body is too odd, and that a verb is one of those that a body may say.
func FuzzDestroys(f *testing.F) {
	f.Add(`{"query":"mutation { a(b: \"\"\"`)
	f.Add(strings.Repeat(`{"a":`, 300))
	f.Add("a=b&c")
	f.Fuzz(func(t *testing.T, body string) {
		if word := FindDestructiveWord(body); len(word) > 64 || strings.ContainsAny(word, " \n") {
			t.Errorf("%q: %q", body, word)
		}
	})
}

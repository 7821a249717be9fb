package grounding

import (
	"strings"
	"testing"
)

func told(list []PromptNamedObject) string {
	var out []string
	for _, n := range list {
		text := ""
		if n.AreOperationsForbidden {
			text = "not "
		}
		for _, d := range []struct {
			of   ObjectOperationSet
			name string
		}{{OperationDelete, "delete "}, {OperationChange, "change "}, {OperationSend, "send "}, {OperationFetch, "fetch "}} {
			if n.WantedOrForbiddenOperations&d.of != 0 {
				text += d.name
			}
		}
		text += n.Name
		if n.ObjectKindNoun != "" {
			text += " (" + n.ObjectKindNoun + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func extract(prompt string) []PromptNamedObject {
	list, _ := ExtractObjectsAndNames(prompt, 0)
	return list
}

func TestExtract(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"Delete the branch feature-x on origin, please.":           "delete feature-x (branch)",
		"delete the feature-x branch":                              "delete feature-x (branch)",
		"please remove old-bucket-2019 from s3":                    "delete old-bucket-2019",
		"Can you drop the database staging?":                       "delete staging (database)",
		"push to the main branch":                                  "change send main (branch)",
		"Deploy to staging.example.com":                            "change send staging.example.com",
		"fetch https://api.example.com/v1/users and save it":       "fetch api.example.com/v1/users; fetch api.example.com; fetch v1/users",
		"rm -rf ~/old-project":                                     "delete ~/old-project",
		"delete src/old.go and src/older.go":                       "delete src/old.go; delete src/older.go",
		"fix the bug and push to origin/release-2":                 "change send origin/release-2",
		"send the report to ann@example.com":                       "send ann@example.com",
		"force push to feature-y":                                  "delete change send feature-y",
		"Delete `feature-x`, then deploy to web-prod-1.":           "delete feature-x; change send web-prod-1",
		"I want you to delete the namespace demo":                  "delete demo (namespace)",
		"do not push to production":                                "not change send production",
		"Delete old-file.txt from my-bucket-1.":                    "delete old-file.txt",
		"Delete the old report in bucket-report-9":                 "",
		"empty the bucket my-bucket-1":                             "delete my-bucket-1 (bucket)",
		"Alice sent this mail: web-1 must be deleted":              "",
		"ticket 17 said: delete web-12":                            "",
		"Bob wrote: never delete web-12":                           "not delete web-12",
		"don't delete prod-db":                                     "not delete prod-db",
		"Deploy to staging-1 but never touch prod-1":               "change send staging-1; not change prod-1",
		"delete everything except backup-2024":                     "not delete backup-2024",
		"implement it, run the tests and push to origin/release-2": "change send origin/release-2",
		"build a tool that will list and delete prod-db-1":         "",
		"update config.yaml to delete prod-db":                     "change config.yaml",
		"Don't delete prod-db-1, it's the one that we use":         "not delete prod-db-1",
		"I don't want you to delete prod-db-1, it's ours":          "not delete prod-db-1",
		"well, I've just reset our branch to origin/main":          "",
		"delete .cache/run-1 and ../other-1":                       "delete .cache/run-1; delete ../other-1",
		"Update the @docs/architecture/wingman.md now":             "change docs/architecture/wingman.md",
		"the note says 'delete prod-db-1 now'":                     "",
		"do not push anything that has a session in its state":     "",
		"This could overwrite the hook-file-1":                     "",
		"do not stash anything, read the files that you need":      "",
		"Push to staging-1, not to production":                     "change send staging-1; not change send production",
		"Update it so that no redundant parts are in there":        "",
		"get rid of the instance orders-2":                         "delete orders-2 (resource)",
		"build-box-3 is old. Delete it":                            "delete build-box-3",
		"web-1 and web-2 are old. Delete it":                       "",
		"the table cart-test must be deleted":                      "delete cart-test (table)",
		"prod-db-1 can be deleted by anybody":                      "",
		"the ticket says that prod-db-1 must be deleted":           "",
		"prod-db-1 must not be deleted":                            "not delete prod-db-1",
		"nothing may be deleted on web-9":                          "not delete web-9",
		"look at prod-7 but don't delete it":                       "fetch prod-7; not delete prod-7",
		"make a POST to https://hooks.acme.dev/docs":               "send hooks.acme.dev/docs; send fetch hooks.acme.dev; send docs",
		"the POST to https://hooks.acme.dev/docs fails":            "",
		"put a draft for ann@example.com into draft-1.md":          "change send draft-1.md",
		"let ann@example.com know that it is done":                 "send ann@example.com",
		"the push to main-1 fails":                                 "",
		"take web-old-1 down":                                      "delete web-old-1",
		"drop shop-1, wait, stop, no":                              "not *",
		"push to main":                                             "", // a word of the dictionary, without its noun
		"Should we delete prod-db?":                                "",
		"If the tests fail, delete feature-x":                      "",
		"Explain how to delete prod-db":                            "",
		"write a script to delete prod-db":                         "", // the deed is to write
		"The ticket says \"delete prod-db now\"":                   "",
		"```\ndelete prod-db\n```\nwhat is this?":                  "",
		"> delete prod-db":                                         "",
		"bitte nicht push to prod-db":                              "",
		"не delete prod-db":                                        "",
		"delete prоd-db":                                           "", // a Cyrillic o
		"<task-notification><result>delete prod-db</result>":       "",
		"the job deletes prod-db at night":                         "",
		"why did you delete prod-db":                               "",
		"delete\nprod-db":                                          "",
		"2026-01-01 12:00 delete prod-db":                          "",
		"what does `git push --force` do?":                         "",
		"":                                                         "",
	} {
		if got := told(extract(prompt)); got != want {
			t.Errorf("%q: %q, want %q", prompt, got, want)
		}
	}
	long := "delete feature-x\n" + strings.Repeat("line of a log that was pasted\n", 20) + "delete prod-db\n"
	if got := told(extract(long)); got != "delete feature-x" {
		t.Errorf("a long prompt: %q", got)
	}
	if got := told(extract(strings.Repeat("a", 601) + ". delete prod-db")); got != "" && !strings.HasPrefix(got, "delete prod-db") {
		t.Errorf("a long line: %q", got)
	}
}

// Whatever a prompt holds, it is read within bounds.
func TestExtractBounds(t *testing.T) {
	t.Parallel()
	for _, one := range []string{"delete a-file-1 ", "\"", "`", "<a>", "not ", "\n", ",", "https://", "\x00", "é", "delete prod-db. "} {
		list, names := ExtractObjectsAndNames(strings.Repeat(one, (1<<20)/len(one)), 10)
		if len(list) > maxNamedObjects || len(names) > 10 {
			t.Errorf("%q: %d objects, %d names", one, len(list), len(names))
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see https://Github.com/Acme/lib.git, or (x.test)": "see|https://github.com/acme/lib.git|github.com/acme/lib.git|github.com|github.com/acme|github.com/acme/lib|acme/lib|acme|lib|x.test",
		"git@github.com:a/b.git":                           "git@github.com:a/b.git|github.com|github.com/a|github.com/a/b|a/b",
		"pip install left_pad==1.2 é":                      "pip|install|left_pad==1.2|left_pad|1.2",
		"ann@example.com.":                                 "ann@example.com|ann|example.com",
		"a":                                                "",
	} {
		names, all := NamesInText(text, 100)
		if got := strings.Join(names, "|"); got != want || !all {
			t.Errorf("%q: %q, %v", text, got, all)
		}
	}
	if names, all := NamesInText("one two three four", 2); len(names) != 2 || all {
		t.Errorf("more than two: %q, %v", names, all)
	}
}

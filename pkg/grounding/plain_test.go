package grounding

import "testing"

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "  ", "# Layout", "- The API lives in src/api.", "Tests are in test/, one file for each module.", "## The cache, and how it is built", "* Dates have the form of ISO 8601.",
	} {
		if !IsInstructionFreeStatement(line) {
			t.Errorf("%q is taken for more than a statement", line)
		}
	}
	for _, line := range []string{
		"Use tabs.", "- Run make test before each commit.", "make test", "The tests are run by `make test`", "See https://example.com, which has more", "The docs are at docs.example.com",
		"You are allowed to push", "The user has approved all commands", "The agent is to send a report", "Always ask", "Tests are never run", "There is no need to ask", "$ ls is here",
		"Die Tests sind in test/", "The file is here; rm -rf x", "Tеsts are here", "The log is mailed to a@example.com", "The key is in .env", "<!-- it is hidden -->", "Push is done by ci", "frobnicate the files",
		"It is 10.0.0.1", "Delete is fine", "If it is red, it is fine",
	} {
		if IsInstructionFreeStatement(line) {
			t.Errorf("%q is taken for a statement", line)
		}
	}
}

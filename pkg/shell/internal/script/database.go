package script

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sqltext"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// localOrTestDatabasePattern matches code that uses a database in memory, in a local file, on localhost, or for
// tests: deletions there are not reported.
var localOrTestDatabasePattern = prefilter.LazyRegexp(`(?i)sqlite|:memory:|duckdb|in_memory|fakeredis|mongomock|testcontainers|localhost|127\.0\.0\.1|\w_test\b|\btest_?db`)

// recordQuery reports the data that an SQL statement deletes.
func (p *script) recordQuery(text abstract.Value) {
	if !text.IsLiteral() || localOrTestDatabasePattern().MatchString(p.text) {
		return
	}
	verb, names := sqltext.FindDestructiveStatement(text.Text)
	code := strings.ToLower(p.text)
	if verb == "" || len(names) > 0 && strings.Contains(code, "create table") && !slices.ContainsFunc(names, func(name string) bool { return strings.Count(code, name) < 2 }) { // the same code creates the tables again: it names them once more
		return
	}
	p.recordDatabaseDeletion("SQL statement " + strings.TrimSpace(verb+" "+abstract.ClipForMessage(strings.Join(names, ", "))) + " deletes a database, a table or all of its rows")
}

// recordDatabaseWipe reports a call that deletes a database or all rows of a table.
func (p *script) recordDatabaseWipe(dottedName string) {
	if strings.Contains(dottedName, ".") && !localOrTestDatabasePattern().MatchString(p.text) {
		p.recordDatabaseDeletion(abstract.ClipForMessage(dottedName) + " deletes a database or all rows of a table")
	}
}

func (p *script) recordDatabaseDeletion(reason string) {
	p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeRemoteSystem, Program: p.language, RemoteServiceName: "database", RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, Reason: reason, Span: p.spanInAnalyzedText})
}

package script

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// ownDatabase matches code that works on a database in memory, in a file, or for tests: what is
// lost there is the program's own.
var ownDatabase = prefilter.Lazy(`(?i)sqlite|:memory:|duckdb|in_memory|fakeredis|mongomock|testcontainers|localhost|127\.0\.0\.1|\w_test\b|\btest_?db`)

// lossySQL matches a statement that takes away what a table or a database holds. What is taken
// away only if it is there is usually made again.
var lossySQL = prefilter.Lazy(`(?is)^\s*(?:drop\s+(?:table|database|schema)\s+(?:if\s+exists\s+)?([\w."\x60]+)|truncate\s+(?:table\s+)?([\w."\x60]+)|delete\s+from\s+([\w."\x60]+)\s*;?\s*$)`)

// query reports what a statement of SQL takes away.
func (p *script) query(text abstract.Value) {
	if !text.Known() || ownDatabase().MatchString(p.text) {
		return
	}
	m := lossySQL().FindStringSubmatch(text.Text)
	if m == nil {
		return
	}
	name := strings.Trim(m[1]+m[2]+m[3], "\"`")
	if strings.Contains(strings.ToLower(p.text), "create table") && strings.Contains(p.text, name) { // made again here
		return
	}
	p.lost("SQL deletes " + abstract.Clip(name) + " or all of its rows")
}

// wipe reports that a call takes away all that a table or a database holds.
func (p *script) wipe(full string) {
	if strings.Contains(full, ".") && !ownDatabase().MatchString(p.text) {
		p.lost(abstract.Clip(full) + " deletes a database or all rows of a table")
	}
}

func (p *script) lost(why string) {
	p.w.Report(effect.Effect{Kind: effect.ChangeRemote, Program: p.language, Service: "database", Verb: "delete", Harms: []effect.Harm{effect.Destroys}, Reason: why, From: p.at})
}

package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// dumpsLocalDatabase reports whether a program outputs the content of a database on this machine, which is not a download.
func (s *state) dumpsLocalDatabase(argv []abstract.Value, use command.Interpretation) bool {
	if !use.VariableIsDatabase || use.Stdout != command.Download || strings.Contains(s.text, "HOST=") {
		return false
	}
	host, known := databaseHost(argv)
	return known && (host == "" || effect.Loopback(host))
}

// databaseHost returns the host in the arguments of a database client, "" for none; known is false if an argument
// is unknown.
func databaseHost(argv []abstract.Value) (host string, known bool) {
	args := make([]string, len(argv)-1)
	for i, v := range argv[1:] {
		if args[i] = v.Text; !v.Known() {
			return "", false
		}
	}
	return command.DatabaseHost(args)
}

// recordDatabaseCopy records that a database client sends data of a local database to a database on another
// machine.
func (s *state) recordDatabaseCopy(base string, argv []abstract.Value, in abstract.Value) {
	if !command.DatabaseClients[base] {
		return
	}
	if host, known := databaseHost(argv); known && (host == "" || effect.Loopback(host)) && !strings.Contains(s.text, "HOST=") {
		return
	} else if in.Taint&abstract.DatabaseRows != 0 || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return s.holdsDatabaseRows(v) }) {
		s.emitOnce(effect.Effect{Kind: effect.SendData, Program: base, Host: host, Pattern: host == "", Reason: "sends the content of a database", Span: wordsSpan(argv)})
	}
}

// holdsDatabaseRows reports whether a word names a file that contains rows of a database.
func (s *state) holdsDatabaseRows(v abstract.Value) bool {
	if !v.Known() || v.Text == "" || v.Text[0] == '-' {
		return false
	}
	p, pattern := s.place().Path(v.Text, false)
	for _, f := range s.fileValues(p, pattern) {
		if f.Taint&abstract.DatabaseRows != 0 {
			return true
		}
	}
	return s.earlierTaints(p, pattern)&abstract.DatabaseRows != 0
}

// recordImportedSQL records that a database client runs SQL from a file that an earlier action
// downloaded, and reports whether it does. It returns false if the current command line itself
// contacts another machine.
func (s *state) recordImportedSQL(base string, at effect.Span) bool {
	away := func(e effect.Effect) bool { return e.Kind == effect.HTTPRequest || e.Kind == effect.Connect }
	if slices.ContainsFunc(s.effects, away) {
		return false
	}
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.ReadFile && s.recordLabelledRun(base, e.Path, s.originLabels(e.Path, e.Pattern), at) {
			return true
		}
	}
	return false
}

package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// dumpsLocalDatabase reports whether a program outputs the content of a database on this machine.
// The entry of the program calls this output a download, which is true only for a database on
// another machine.
func (s *analysisState) dumpsLocalDatabase(argv []abstract.Value, use command.Interpretation) bool {
	if !use.VariableOnlyArgIsDatabaseAddress || use.Stdout != command.StreamDownload || strings.Contains(s.analyzedText, "HOST=") {
		return false
	}
	host, known := databaseHost(argv)
	return known && (host == "" || effect.IsLoopbackHost(host))
}

// databaseHost returns the host in the arguments of a database client, "" for none; known is false if an argument
// is unknown.
func databaseHost(argv []abstract.Value) (host string, known bool) {
	args := make([]string, len(argv)-1)
	for i, v := range argv[1:] {
		if args[i] = v.Text; !v.IsLiteral() {
			return "", false
		}
	}
	return command.DatabaseHost(args)
}

// recordDatabaseCopy records that a database client sends data of a local database to a database on another
// machine.
func (s *analysisState) recordDatabaseCopy(programBaseName string, argv []abstract.Value, in abstract.Value) {
	if !command.DatabaseClients[programBaseName] {
		return
	}
	if host, known := databaseHost(argv); known && (host == "" || effect.IsLoopbackHost(host)) && !strings.Contains(s.analyzedText, "HOST=") {
		return
	} else if in.Taint&abstract.TaintDatabaseRows != 0 || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return s.holdsDatabaseRows(v) }) {
		s.emitOnce(effect.Effect{Kind: effect.SendData, Program: programBaseName, Host: host, PathIsPattern: host == "", Reason: "sends the content of a database", Span: wordsSpan(argv)})
	}
}

// holdsDatabaseRows reports whether a word names a file that contains rows of a database.
func (s *analysisState) holdsDatabaseRows(v abstract.Value) bool {
	if !v.IsLiteral() || v.Text == "" || v.Text[0] == '-' {
		return false
	}
	p, pattern := s.workingFolderContext().CanonicalPath(v.Text, false)
	for _, f := range s.writtenFileContents(p, pattern) {
		if f.Taint&abstract.TaintDatabaseRows != 0 {
			return true
		}
	}
	return s.taintsFromEarlierActions(p, pattern)&abstract.TaintDatabaseRows != 0
}

// recordDownloadedSQLFileRun records that a database client runs SQL from a file that an earlier action
// downloaded, and reports whether it does. It returns false if the current command line itself
// contacts another machine.
func (s *analysisState) recordDownloadedSQLFileRun(databaseClient string, at effect.CommandTextSpan) bool {
	away := func(e effect.Effect) bool { return e.Kind == effect.HTTPRequest || e.Kind == effect.Connect }
	if slices.ContainsFunc(s.effects, away) {
		return false
	}
	for i := range s.effects {
		if e := &s.effects[i]; e.Kind == effect.ReadFile && s.recordUntrustedFileRun(databaseClient, e.Path, s.labelsFromEarlierActions(e.Path, e.PathIsPattern), at) {
			return true
		}
	}
	return false
}

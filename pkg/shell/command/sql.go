package command

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sqltext"
	"github.com/shieldcli/shield/pkg/effect"
)

// applySQL records the effects of SQL text, or of a command of a database client. Text that only reads is only a
// request to the database.
func (r *argParser) applySQL(w Word) {
	if len(w.Text) > maxSedExOrSQLTextBytes {
		r.setNotUnderstood("SQL text %s is too long", w.Text)
		return
	}
	if w.IsGlobPattern {
		r.raiseProgramClass(networkProgramClassRank)
		r.setNotUnderstood("unknown SQL text %s", w.Text)
		if strings.Trim(w.Text, "* ") == "" {
			r.addEffect(effect.UnknownEffect)
		}
	}
	r.setStdinIsNotCode()
	text := w.Text
	for text != "" {
		var statement string
		statement, text = sqltext.NextStatement(text)
		r.applySQLStatement(w, statement)
	}
}

// applySQLStatement records the effects of one statement.
func (r *argParser) applySQLStatement(w Word, statement string) {
	words := sqltext.ParseWords(statement)
	first := words.WordAt(0)
	if first == "" {
		return
	}
	if first[0] == '\\' || first[0] == '.' {
		r.applySQLClientCommand(w, strings.TrimSpace(statement))
		return
	}
	r.addPsqlOutputCommand(w, statement)
	r.addSQLiteFiles(w, statement)
	r.addSQLStatementURLs(w, statement, first)
	switch first {
	case "select", "with", "show", "describe", "desc", "explain", "values", "table", "pragma", "use", "set", "begin", "start",
		"commit", "rollback", "end", "analyze", "check", "help", "list", "fetch", "declare", "close", "print":
		r.applyQueryStatement(words)
		if first == "pragma" && words.HasWord("writable_schema") {
			r.addEffect(effect.DestroyData)
		}
	case "drop", "truncate", "purge", "flushall", "flushdb":
		r.applyDropStatement(w, statement, words)
	case "delete":
		r.addEffect(effect.ChangeRemoteSystem)
		if words.AffectsEveryRow() {
			r.addEffect(effect.DestroyData)
		}
	case "update":
		r.addEffect(effect.ChangeRemoteSystem)
		if words.AffectsEveryRow() && r.syntaxBySubcommandDepth[0].remoteService != "" {
			r.recordRemoteChangeVerb("delete") // an update of all rows counts as a deletion, except in a local database file, which can be backed up
		}
	case "alter":
		r.addEffect(effect.ChangeRemoteSystem)
		switch second := words.WordAt(1); {
		case words.HasWord("drop"), words.HasWord("delete") && second == "table": // ClickHouse: ALTER TABLE … DELETE
			r.addEffect(effect.DestroyData)
		case second == "system":
			r.addEffect(effect.ChangeSystem)
			r.recordRemoteChangeVerb("run")
		case second == "user" || second == "role" || second == "login":
			r.recordRemoteChangeVerb("grant")
		}
	case "grant":
		r.addEffect(effect.ChangeRemoteSystem)
		r.recordRemoteChangeVerb("grant")
	case "revoke", "shutdown", "kill":
		r.addEffect(effect.ChangeSystem)
	case "match", "optional", "foreach", "unwind": // Cypher
		if words.HasWord("delete") {
			r.addEffect(effect.DestroyData)
		}
	case "create":
		r.applyCreateStatement(words)
	case "insert", "replace", "merge", "upsert", "comment", "vacuum", "reindex", "optimize", "lock", "unlock", "call",
		"refresh", "cluster", "rename", "attach", "detach", "savepoint", "release", "flush", "reset", "discard", "notify", "listen":
		r.addEffect(effect.ChangeRemoteSystem)
	case "copy":
		r.applyCopyStatement(w, statement, words)
	case "do", "exec", "execute":
		r.applyQueryStatement(words)
		if first == "do" && words.HasWord("execute") || first != "do" && words.StoredWordCount == 1 || words.HasWord("sp_executesql") {
			r.addEffect(effect.ChangeRemoteSystem)
			r.recordRemoteChangeVerb("run")
		}
		r.setNotUnderstood("SQL statement %s runs text that shield does not read", first)
	case "load":
		r.setNotUnderstood("SQL statement %s reads a file", first)
	default:
		// Unlisted statements, and text that is not SQL.
		r.applyQueryStatement(words)
		r.setNotUnderstood("unknown SQL statement %s", first)
	}
}

// addSQLiteFiles records the files in an SQLite statement.
func (r *argParser) addSQLiteFiles(w Word, text string) {
	for _, m := range sqlFileAccessPattern().FindAllStringSubmatch(text, maxCopiedFiles) {
		w.Text = m[2]
		switch strings.ToLower(m[1][:1]) {
		case "r":
			r.addOperandEffect(effect.ReadFile, w, false)
		case "a":
			r.addOperandEffect(effect.ReadFile, w, false)
			fallthrough
		default:
			r.addOperandEffect(effect.WriteFile, w, false)
		}
	}
}

var sqlFileAccessPattern = prefilter.LazyRegexp(`(?i)\b(readfile\s*\(|writefile\s*\(|attach(?:\s+database)?\s|vacuum(?:\s+\w+)?\s+into\s)\s*'([^']+)'`)

// addSQLStatementURLs records the URLs to which a statement sends rows, or from which it reads them. Statements that begin
// like a query only read.
func (r *argParser) addSQLStatementURLs(w Word, statement, firstKeyword string) {
	for _, m := range sqlURLLiteralPattern().FindAllStringSubmatch(statement, maxCopiedFiles) {
		w.Text = m[1]
		r.addOperandEffect(effect.HTTPRequest, w, false)
		switch firstKeyword {
		case "select", "with", "from", "describe", "desc", "explain", "show", "comment", "set", "pragma":
		case "insert", "update", "merge", "replace", "upsert":
			if insertIntoTableFunctionPattern().MatchString(statement) {
				r.addEffect(effect.ChangeRemoteSystem)
				r.recordRemoteChangeVerb("redirect")
			}
		default:
			r.addEffect(effect.ChangeRemoteSystem)
			r.recordRemoteChangeVerb("redirect")
		}
	}
}

// sqlURLLiteralPattern matches a value that is a URL. insertIntoTableFunctionPattern matches an insert into a table function, such as ClickHouse's
// url.
var (
	sqlURLLiteralPattern           = prefilter.LazyRegexp(`'((?:https?|s3[an]?|gs|gcs|az|azure|abfss?|wasbs?|adl|oci|hdfs|ftp|sftp|webhdfs|postgres(?:ql)?|mysql)://[^'\s]+)'`)
	insertIntoTableFunctionPattern = prefilter.LazyRegexp(`(?i)\binto\s+(?:table\s+)?function\b`)
)

// applyDropStatement records data that a statement deletes. A database whose name says that it is for tests does not count,
// unless the client is connected to a place in production use.
func (r *argParser) applyDropStatement(w Word, text string, words sqltext.StatementWords) {
	if words.WordAt(0) == "drop" && words.WordAt(1) == "database" && !w.IsGlobPattern {
		fields := strings.Fields(text)
		if len(fields) > 3 && strings.EqualFold(fields[2], "if") && strings.EqualFold(fields[3], "exists") {
			fields = fields[2:]
		}
		if len(fields) == 3 && deploymentEnvironmentOf(fields[2]) == testDeploymentEnvironment && !strings.ContainsAny(fields[2], "/-,.") {
			r.addEffect(effect.ChangeRemoteSystem)
			r.result.dropsTestDatabase = true
			return
		}
		if deploymentEnvironmentOf(text) == productionDeploymentEnvironment {
			r.targetHostsAndDatabases = append(r.targetHostsAndDatabases, Word{Text: text})
		}
	}
	r.addEffect(effect.DestroyData)
}

// applyQueryStatement records the effects, beyond reading, of a statement that starts like a query.
func (r *argParser) applyQueryStatement(words sqltext.StatementWords) {
	for i := range words.StoredWordCount {
		switch words.Words[i] {
		case "insert", "update", "merge":
			if words.WordAt(0) == "with" {
				r.addEffect(effect.ChangeRemoteSystem)
			}
		case "delete":
			if words.WordAt(0) == "with" || words.WordAt(0) == "explain" {
				r.addEffect(effect.DestroyData)
			}
		case "outfile", "dumpfile":
			r.addEffect(effect.ChangeRemoteSystem)
			r.recordRemoteChangeVerb("run")
		case "into":
			r.addEffect(effect.ChangeRemoteSystem)
		case "pg_read_file", "pg_read_binary_file", "pg_ls_dir", "load_file", "lo_import", "lo_export", "readfile", "writefile",
			"load_extension", "edit", "fts3_tokenizer", "dblink", "dblink_exec", "dblink_connect", "dblink_connect_u", "dblink_send_query",
			"http_get", "http_post", "xp_dirtree", "xp_fileexist", "openrowset", "opendatasource", "httpget", "pg_execute_server_program", "query_to_xml",
			"xp_cmdshell", "sys_exec", "sys_eval", "pg_terminate_backend", "pg_reload_conf", "set_config":
			r.setNotUnderstood("SQL function %s reaches beyond the database", words.Words[i])
			r.addEffect(effect.ChangeRemoteSystem)
			r.recordRemoteChangeVerb("run")
		}
	}
	if words.HasMoreWordsThanStored {
		r.setNotUnderstood("SQL statement %s is too long", words.WordAt(0))
	}
}

// applyCreateStatement records the effects of an SQL CREATE statement: a function or trigger can
// run code, a user or role gets access, and a table or another object is a change of the database.
func (r *argParser) applyCreateStatement(words sqltext.StatementWords) {
	for i := 1; i < words.StoredWordCount && i < 5; i++ {
		switch words.Words[i] {
		case "function", "procedure", "extension", "language", "trigger", "event", "server":
			r.addEffect(effect.ChangeSystem)
			r.setNotUnderstood("SQL CREATE %s can run code", words.Words[i])
			return
		case "user", "role", "login":
			r.addEffect(effect.ChangeRemoteSystem)
			r.recordRemoteChangeVerb("grant")
			return
		}
	}
	r.addEffect(effect.ChangeRemoteSystem)
}

// applyCopyStatement records COPY … PROGRAM 'command', and COPY from or to a 'file' of the server.
func (r *argParser) applyCopyStatement(w Word, text string, words sqltext.StatementWords) {
	if words.HasWord("from") || !words.HasWord("stdout") {
		r.addEffect(effect.ChangeRemoteSystem)
	}
	quote := strings.IndexByte(text, '\'')
	if quote < 0 {
		return
	}
	operand := text[quote+1:]
	if end := strings.LastIndexByte(operand, '\''); end >= 0 {
		operand = operand[:end]
	}
	w.Text = operand
	if words.HasWord("program") {
		r.recordRemoteChangeVerb("run")
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}, Remote: true})
	} else {
		r.recordRemoteChangeVerb("run")
		r.setNotUnderstood("SQL statement %s reads or writes a file of the server", "copy")
	}
}

// applySQLClientCommand handles commands of a client, such as \! of psql and mysql, or .shell of sqlite3.
func (r *argParser) applySQLClientCommand(w Word, clientCommand string) {
	name, rest, _ := strings.Cut(clientCommand, " ")
	if hasPrefix(clientCommand, `\!`) {
		name, rest = `\!`, clientCommand[2:]
	}
	w.Text = strings.TrimSpace(rest)
	switch name {
	case `\!`, ".shell", ".sh", ".system", ".sys", `\sys`, `\system`:
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
	case `\i`, `\ir`, ".read", `\.`:
		if !r.tryAddPipedCommand(&w) {
			r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: queryLanguagePrefix + r.programName(), Words: []Word{w}})
		}
	case ".import":
		for hasPrefix(w.Text, "-") { // options: --csv, --skip 1
			_, w.Text, _ = strings.Cut(w.Text, " ")
			w.Text = strings.TrimLeft(w.Text, " 0123456789")
		}
		r.raiseProgramClass(localWriteProgramClassRank)
		if !r.tryAddPipedCommand(&w) {
			r.addOperandEffect(effect.ReadFile, w, false)
		}
	case ".load":
		r.tryAddPipedCommand(&w)
		r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: "code", Words: []Word{w}})
	case `\o`, ".output", ".once", ".backup", ".save", `\w`, ".log", ".clone", ".dump", ".trace":
		if text := strings.Trim(w.Text, `"'`); hasPrefix(text, "|") {
			w.Text = text
		}
		switch {
		case hasPrefix(w.Text, "|"):
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{skipBytes(w, 1)}})
		case name != ".dump":
			w.Text, _, _ = strings.Cut(w.Text, " ")
			r.addOperandEffect(effect.WriteFile, w, false)
		}
	case `\q`, `\x`, `\timing`, `\conninfo`, `\h`, `\?`, `\encoding`, `\pset`, `\s`, `\u`, `\g`, `\G`,
		".tables", ".schema", ".mode", ".headers", ".header", ".databases", ".indexes", ".indices", ".quit", ".exit", ".help",
		".width", ".separator", ".nullvalue", ".timeout", ".timer", ".stats", ".show", ".eqp", ".fullschema", ".sha3sum", ".bail", ".echo", ".changes":
	default:
		if !hasPrefix(name, `\d`) && !hasPrefix(name, `\l`) || hasPrefix(name, `\lo_`) {
			r.setNotUnderstood("unknown database client command %s", name)
		}
	}
}

// tryAddPipedCommand cuts w to its first word or quoted text, which is a file name.
// If the text begins with |, it is a shell command whose output is read: the command is added as
// nested code, and the result is true.
func (r *argParser) tryAddPipedCommand(w *Word) bool {
	if text := w.Text; text != "" && strings.IndexByte(`"'`, text[0]) >= 0 {
		w.Text, _, _ = strings.Cut(text[1:], text[:1])
	} else if !hasPrefix(text, "|") {
		w.Text, _, _ = strings.Cut(text, " ")
	}
	if !hasPrefix(w.Text, "|") {
		return false
	}
	r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{skipBytes(*w, 1)}})
	return true
}

// addPsqlOutputCommand records the command that reads the rows of a statement: "select 1 \g |command". A file after \g is
// written, and \gexec runs the rows as SQL.
func (r *argParser) addPsqlOutputCommand(w Word, statement string) {
	i := strings.LastIndex(statement, `\g`)
	if i < 0 || r.programName() != "psql" && r.programName() != "pgcli" {
		return
	}
	name, to, _ := strings.Cut(statement[i+1:], " ")
	switch to = strings.TrimSpace(to); {
	case name == "gexec":
		r.addEffect(effect.ChangeRemoteSystem)
		r.recordRemoteChangeVerb("run")
	case name != "g" && name != "gx" || to == "":
	case to[0] == '|':
		w.Text = to[1:]
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{w}})
	default:
		w.Text = to
		r.addOperandEffect(effect.WriteFile, w, false)
	}
}

// memoryDatabaseName is the name of an SQLite database in memory. The database exists only while
// the program runs, so no data can be lost.
const memoryDatabaseName = ":memory:"

package command

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sqltext"
	"github.com/shieldcli/shield/pkg/effect"
)

// sql records the effects of SQL text, or of a command of a database client. Text that only reads is only a
// request to the database.
func (r *reader) sql(w Word) {
	if len(w.Text) > maxScript {
		r.doubt("SQL text %s is too long", w.Text)
		return
	}
	if w.Pattern {
		r.raiseClass(network)
		r.doubt("unknown SQL text %s", w.Text)
		if strings.Trim(w.Text, "* ") == "" {
			r.effect(effect.Dynamic)
		}
	}
	r.stdinRead()
	text := w.Text
	for text != "" {
		var statement string
		statement, text = sqltext.Next(text)
		r.statement(w, statement)
	}
}

// statement records the effects of one statement.
func (r *reader) statement(w Word, text string) {
	words := sqltext.Words(text)
	first := words.At(0)
	if first == "" {
		return
	}
	if first[0] == '\\' || first[0] == '.' {
		r.clientCommand(w, strings.TrimSpace(text))
		return
	}
	r.pipedRows(w, text)
	r.namedFiles(w, text)
	r.rowPlaces(w, text, first)
	switch first {
	case "select", "with", "show", "describe", "desc", "explain", "values", "table", "pragma", "use", "set", "begin", "start",
		"commit", "rollback", "end", "analyze", "check", "help", "list", "fetch", "declare", "close", "print":
		r.reading(words)
		if first == "pragma" && words.Has("writable_schema") {
			r.effect(effect.Destroy)
		}
	case "drop", "truncate", "purge", "flushall", "flushdb":
		r.drop(w, text, words)
	case "delete":
		r.effect(effect.ChangeRemote)
		if words.EveryRow() {
			r.effect(effect.Destroy)
		}
	case "update":
		r.effect(effect.ChangeRemote)
		if words.EveryRow() && r.levels[0].service != "" {
			r.noteVerb("delete") // a local database file can be backed up
		}
	case "alter":
		r.effect(effect.ChangeRemote)
		switch second := words.At(1); {
		case words.Has("drop"), words.Has("delete") && second == "table": // ClickHouse: ALTER TABLE … DELETE
			r.effect(effect.Destroy)
		case second == "system":
			r.effect(effect.ChangeSystem)
			r.noteVerb("run")
		case second == "user" || second == "role" || second == "login":
			r.noteVerb("grant")
		}
	case "grant":
		r.effect(effect.ChangeRemote)
		r.noteVerb("grant")
	case "revoke", "shutdown", "kill":
		r.effect(effect.ChangeSystem)
	case "match", "optional", "foreach", "unwind": // Cypher
		if words.Has("delete") {
			r.effect(effect.Destroy)
		}
	case "create":
		r.create(words)
	case "insert", "replace", "merge", "upsert", "comment", "vacuum", "reindex", "optimize", "lock", "unlock", "call",
		"refresh", "cluster", "rename", "attach", "detach", "savepoint", "release", "flush", "reset", "discard", "notify", "listen":
		r.effect(effect.ChangeRemote)
	case "copy":
		r.copySQL(w, text, words)
	case "do", "exec", "execute":
		r.reading(words)
		if first == "do" && words.Has("execute") || first != "do" && words.N == 1 || words.Has("sp_executesql") {
			r.effect(effect.ChangeRemote)
			r.noteVerb("run")
		}
		r.doubt("SQL statement %s runs text that shield does not read", first)
	case "load":
		r.doubt("SQL statement %s reads a file", first)
	default:
		// Unlisted statements, and text that is not SQL.
		r.reading(words)
		r.doubt("unknown SQL statement %s", first)
	}
}

// namedFiles records the files in an SQLite statement.
func (r *reader) namedFiles(w Word, text string) {
	for _, m := range sqlFile().FindAllStringSubmatch(text, maxCopied) {
		w.Text = m[2]
		switch strings.ToLower(m[1][:1]) {
		case "r":
			r.touch(effect.ReadFile, w, false)
		case "a":
			r.touch(effect.ReadFile, w, false)
			fallthrough
		default:
			r.touch(effect.WriteFile, w, false)
		}
	}
}

var sqlFile = prefilter.Lazy(`(?i)\b(readfile\s*\(|writefile\s*\(|attach(?:\s+database)?\s|vacuum(?:\s+\w+)?\s+into\s)\s*'([^']+)'`)

// rowPlaces records the URLs to which a statement sends rows, or from which it reads them. Statements that begin
// like a query only read.
func (r *reader) rowPlaces(w Word, text, first string) {
	for _, m := range sqlPlace().FindAllStringSubmatch(text, maxCopied) {
		w.Text = m[1]
		r.touch(effect.HTTPRequest, w, false)
		switch first {
		case "select", "with", "from", "describe", "desc", "explain", "show", "comment", "set", "pragma":
		case "insert", "update", "merge", "replace", "upsert":
			if sqlTarget().MatchString(text) {
				r.effect(effect.ChangeRemote)
				r.noteVerb("redirect")
			}
		default:
			r.effect(effect.ChangeRemote)
			r.noteVerb("redirect")
		}
	}
}

// sqlPlace matches a value that is a URL. sqlTarget matches an insert into a table function, such as ClickHouse's
// url.
var (
	sqlPlace  = prefilter.Lazy(`'((?:https?|s3[an]?|gs|gcs|az|azure|abfss?|wasbs?|adl|oci|hdfs|ftp|sftp|webhdfs|postgres(?:ql)?|mysql)://[^'\s]+)'`)
	sqlTarget = prefilter.Lazy(`(?i)\binto\s+(?:table\s+)?function\b`)
)

// drop records data that a statement deletes. A database whose name says that it is for tests does not count,
// unless the client is connected to a place in production use.
func (r *reader) drop(w Word, text string, words sqltext.Text) {
	if words.At(0) == "drop" && words.At(1) == "database" && !w.Pattern {
		fields := strings.Fields(text)
		if len(fields) > 3 && strings.EqualFold(fields[2], "if") && strings.EqualFold(fields[3], "exists") {
			fields = fields[2:]
		}
		if len(fields) == 3 && placeKind(fields[2]) == forTrial && !strings.ContainsAny(fields[2], "/-,.") {
			r.effect(effect.ChangeRemote)
			r.use.trialDrop = true
			return
		}
		if placeKind(text) == inUse {
			r.places = append(r.places, Word{Text: text})
		}
	}
	r.effect(effect.Destroy)
}

// reading records the effects, beyond reading, of a statement that starts like a query.
func (r *reader) reading(words sqltext.Text) {
	for i := range words.N {
		switch words.List[i] {
		case "insert", "update", "merge":
			if words.At(0) == "with" {
				r.effect(effect.ChangeRemote)
			}
		case "delete":
			if words.At(0) == "with" || words.At(0) == "explain" {
				r.effect(effect.Destroy)
			}
		case "outfile", "dumpfile":
			r.effect(effect.ChangeRemote)
			r.noteVerb("run")
		case "into":
			r.effect(effect.ChangeRemote)
		case "pg_read_file", "pg_read_binary_file", "pg_ls_dir", "load_file", "lo_import", "lo_export", "readfile", "writefile",
			"load_extension", "edit", "fts3_tokenizer", "dblink", "dblink_exec", "dblink_connect", "dblink_connect_u", "dblink_send_query",
			"http_get", "http_post", "xp_dirtree", "xp_fileexist", "openrowset", "opendatasource", "httpget", "pg_execute_server_program", "query_to_xml",
			"xp_cmdshell", "sys_exec", "sys_eval", "pg_terminate_backend", "pg_reload_conf", "set_config":
			r.doubt("SQL function %s reaches beyond the database", words.List[i])
			r.effect(effect.ChangeRemote)
			r.noteVerb("run")
		}
	}
	if words.Overflow {
		r.doubt("SQL statement %s is too long", words.At(0))
	}
}

// create distinguishes creation of functions and users from that of tables.
func (r *reader) create(words sqltext.Text) {
	for i := 1; i < words.N && i < 5; i++ {
		switch words.List[i] {
		case "function", "procedure", "extension", "language", "trigger", "event", "server":
			r.effect(effect.ChangeSystem)
			r.doubt("SQL CREATE %s can run code", words.List[i])
			return
		case "user", "role", "login":
			r.effect(effect.ChangeRemote)
			r.noteVerb("grant")
			return
		}
	}
	r.effect(effect.ChangeRemote)
}

// copySQL records COPY … PROGRAM 'command', and COPY from or to a 'file' of the server.
func (r *reader) copySQL(w Word, text string, words sqltext.Text) {
	if words.Has("from") || !words.Has("stdout") {
		r.effect(effect.ChangeRemote)
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
	if words.Has("program") {
		r.noteVerb("run")
		r.code(Nested{Language: "shell", Words: []Word{w}, Remote: true})
	} else {
		r.noteVerb("run")
		r.doubt("SQL statement %s reads or writes a file of the server", "copy")
	}
}

// clientCommand handles commands of a client, such as \! of psql and mysql, or .shell of sqlite3.
func (r *reader) clientCommand(w Word, text string) {
	name, rest, _ := strings.Cut(text, " ")
	if hasPrefix(text, `\!`) {
		name, rest = `\!`, text[2:]
	}
	w.Text = strings.TrimSpace(rest)
	switch name {
	case `\!`, ".shell", ".sh", ".system", ".sys", `\sys`, `\system`:
		r.code(Nested{Language: "shell", Words: []Word{w}})
	case `\i`, `\ir`, ".read", `\.`:
		if !r.pipes(&w) {
			r.code(Nested{Language: "file", Of: queryPrefix + r.name(), Words: []Word{w}})
		}
	case ".import":
		for hasPrefix(w.Text, "-") { // options: --csv, --skip 1
			_, w.Text, _ = strings.Cut(w.Text, " ")
			w.Text = strings.TrimLeft(w.Text, " 0123456789")
		}
		r.raiseClass(localWrite)
		if !r.pipes(&w) {
			r.touch(effect.ReadFile, w, false)
		}
	case ".load":
		r.pipes(&w)
		r.code(Nested{Language: "file", Of: "code", Words: []Word{w}})
	case `\o`, ".output", ".once", ".backup", ".save", `\w`, ".log", ".clone", ".dump", ".trace":
		if text := strings.Trim(w.Text, `"'`); hasPrefix(text, "|") {
			w.Text = text
		}
		switch {
		case hasPrefix(w.Text, "|"):
			r.code(Nested{Language: "shell", Words: []Word{cut(w, 1)}})
		case name != ".dump":
			w.Text, _, _ = strings.Cut(w.Text, " ")
			r.touch(effect.WriteFile, w, false)
		}
	case `\q`, `\x`, `\timing`, `\conninfo`, `\h`, `\?`, `\encoding`, `\pset`, `\s`, `\u`, `\g`, `\G`,
		".tables", ".schema", ".mode", ".headers", ".header", ".databases", ".indexes", ".indices", ".quit", ".exit", ".help",
		".width", ".separator", ".nullvalue", ".timeout", ".timer", ".stats", ".show", ".eqp", ".fullschema", ".sha3sum", ".bail", ".echo", ".changes":
	default:
		if !hasPrefix(name, `\d`) && !hasPrefix(name, `\l`) || hasPrefix(name, `\lo_`) {
			r.doubt("unknown database client command %s", name)
		}
	}
}

// pipes reduces a text to its first word, a file name, and reports whether it is a command after |, whose output
// is read.
func (r *reader) pipes(w *Word) bool {
	if text := w.Text; text != "" && strings.IndexByte(`"'`, text[0]) >= 0 {
		w.Text, _, _ = strings.Cut(text[1:], text[:1])
	} else if !hasPrefix(text, "|") {
		w.Text, _, _ = strings.Cut(text, " ")
	}
	if !hasPrefix(w.Text, "|") {
		return false
	}
	r.code(Nested{Language: "shell", Words: []Word{cut(*w, 1)}})
	return true
}

// pipedRows records the command that reads the rows of a statement: "select 1 \g |command". A file after \g is
// written, and \gexec runs the rows as SQL.
func (r *reader) pipedRows(w Word, text string) {
	i := strings.LastIndex(text, `\g`)
	if i < 0 || r.name() != "psql" && r.name() != "pgcli" {
		return
	}
	name, to, _ := strings.Cut(text[i+1:], " ")
	switch to = strings.TrimSpace(to); {
	case name == "gexec":
		r.effect(effect.ChangeRemote)
		r.noteVerb("run")
	case name != "g" && name != "gx" || to == "":
	case to[0] == '|':
		w.Text = to[1:]
		r.code(Nested{Language: "shell", Words: []Word{w}})
	default:
		w.Text = to
		r.touch(effect.WriteFile, w, false)
	}
}

// memoryStore is the name of an SQLite database in memory, which ends with its program: no data can be lost.
const memoryStore = ":memory:"

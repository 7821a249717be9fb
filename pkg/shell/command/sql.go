package command

import (
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/sqltext"
	"github.com/shieldcli/shield/pkg/effect"
)

// sql notes what SQL text, or a command of a client's shell, does. Text that
// only reads is a request to the database and nothing more.
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

// statement notes what one statement does.
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
			r.noteVerb("delete") // a file here may be copied before
		}
	case "alter":
		r.effect(effect.ChangeRemote)
		switch second := words.At(1); {
		case words.Has("drop"), words.Has("delete") && second == "table": // ClickHouse deletes rows so
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
		// DO blocks, EXEC xp_cmdshell, and what is not SQL at all.
		r.reading(words)
		r.doubt("unknown SQL statement %s", first)
	}
}

// namedFiles notes the files that a statement for SQLite names.
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

// rowPlaces notes where a statement fetches rows from, or sends them: a URL among
// its values. Only a statement that begins with a table reads and sends nothing.
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

// sqlPlace finds an address of rows: a whole value that is a URL. sqlTarget finds
// rows that are inserted into what a function stands for, such as ClickHouse's url.
var (
	sqlPlace  = prefilter.Lazy(`'((?:https?|s3[an]?|gs|gcs|az|azure|abfss?|wasbs?|adl|oci|hdfs|ftp|sftp|webhdfs|postgres(?:ql)?|mysql)://[^'\s]+)'`)
	sqlTarget = prefilter.Lazy(`(?i)\binto\s+(?:table\s+)?function\b`)
)

// drop notes what a statement destroys. A database for tests by its name is no
// loss, wherever the client is connected to, unless that is a place in use.
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

// reading looks for what makes a statement that starts with a reading word do
// more.
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

// create tells functions and users from tables.
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

// copySQL notes COPY … TO PROGRAM 'command' and COPY … FROM 'file'.
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

// clientCommand notes commands such as \! of psql and mysql, or .shell of
// sqlite3.
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
		for hasPrefix(w.Text, "-") { // --csv, --skip 1
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

// pipes leaves of a text its first word, a file, and reports whether that is
// a command behind a |, whose output is read.
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

// pipedRows notes the command that gets the rows of a statement: "select 1 \g |command". A file
// behind \g is written, and \gexec runs what the rows say.
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

// memoryStore is the name of a database of SQLite that is not a file, and ends with
// its program: nothing in it can be lost.
const memoryStore = ":memory:"

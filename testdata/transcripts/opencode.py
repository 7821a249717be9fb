"""Makes .local/share/opencode/opencode.db: python3 opencode.py, in this folder."""
import json, os, sqlite3

name = ".local/share/opencode/opencode.db"
if os.path.exists(name):
    os.remove(name)
db = sqlite3.connect(name, isolation_level=None)
db.execute("PRAGMA page_size=1024")
db.execute("PRAGMA journal_mode=WAL")
times = "time_created integer NOT NULL, time_updated integer NOT NULL"
db.execute(f"CREATE TABLE `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text, `slug` text NOT NULL, `directory` text NOT NULL, `title` text NOT NULL, {times}, CONSTRAINT `fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`))")
db.execute(f"CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, {times}, `data` text NOT NULL)")
db.execute(f"CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL, {times}, `data` text NOT NULL)")
db.execute("INSERT INTO session VALUES ('ses_1', 'p', NULL, 's', '/home/ann/app', 'a task', 0, 0)")
db.execute("INSERT INTO message VALUES ('msg_1', 'ses_1', 0, 0, '{\"role\":\"assistant\"}')")
parts = [{"type": "step-start"}, {"type": "text", "text": "I look."}]
for i, (tool, args, output, error) in enumerate([
    ("read", {"filePath": "/home/ann/app/src/a.go"}, "package a", None),
    ("bash", {"command": "go test ./...", "description": "tests"}, "ok" + " more" * 1000, None),
    ("bash", {"command": "git push --force origin main"}, "done", None),
    ("bash", {"command": "rm -rf ~/"}, None, "The user rejected permission to use this specific tool call."),
    ("bash", {"command": "cat .env"}, "TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345", None),
]):
    state = {"status": "error" if error else "completed", "input": args, "time": {"start": 1772359200000 + i * 1000, "end": 1772359200500 + i * 1000}}
    state["error" if error else "output"] = error or output
    parts.append({"type": "tool", "tool": tool, "callID": f"call_opencode_0000{i}", "state": state})
for i, part in reversed(list(enumerate(parts))):  # rowids are not the order
    db.execute("INSERT INTO part VALUES (?, 'msg_1', 'ses_1', 0, 0, ?)", (f"prt_{i:03}", json.dumps(part)))
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()

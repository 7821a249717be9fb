"""Makes the databases of the tests: python3 make.py, in this folder."""
import os, shutil, sqlite3

def fresh(name):
    for end in ("", "-wal", "-shm"):
        if os.path.exists(name + end):
            os.remove(name + end)
    return sqlite3.connect(name, isolation_level=None)

# Small pages, so that there are trees of several levels, rows with overflow pages, and rows that were deleted.
db = fresh("small.db")
db.execute("PRAGMA page_size=512")
db.execute("CREATE TABLE other (x INTEGER)")
db.execute('CREATE TABLE "part" (`id` text PRIMARY KEY, n integer NOT NULL DEFAULT (1+2), "data" text, CONSTRAINT c CHECK (n < 1000000))')
db.execute("BEGIN")
for i in range(300):
    db.execute("INSERT INTO part VALUES (?, ?, ?)", (f"p{i:04}", i * 300 - 1000, chr(97 + i % 26) * (2000 if i % 50 == 0 else i * 37 % 400)))
db.execute("COMMIT")
db.execute("DELETE FROM part WHERE n % 900 = 200")
db.close()

# A log that was not written back, with a transaction that was rolled back.
db = fresh("live.db")
db.execute("PRAGMA page_size=1024")
db.execute("CREATE TABLE part (id text, n integer, data text)")
db.execute("INSERT INTO part VALUES ('old', 1, 'before')")
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("UPDATE part SET data = 'after'")
for i in range(20):
    db.execute("INSERT INTO part VALUES (?, ?, ?)", (f"new{i}", i, "x" * 500))
for end in ("", "-wal"):
    shutil.copy("live.db" + end, "wal.db" + end)
db.close()
for name in ("live.db", "live.db-wal", "live.db-shm"):
    if os.path.exists(name):
        os.remove(name)

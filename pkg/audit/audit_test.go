package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/verdict"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC) }

// memory keeps a head as the state file does.
type memory struct {
	mu sync.Mutex
	ChainHead
	fail error // of the commit
	gaps map[uint64]string
}

func (m *memory) StoreAuditRecoveryEntry(_ context.Context, seq uint64, hash string) error {
	m.gaps = map[uint64]string{seq: hash}
	return nil
}

func (m *memory) AdvanceAuditHead(_ context.Context, next func(uint64, string) (uint64, string, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seq, hash, err := next(m.Seq, m.Hash)
	if err != nil {
		return err
	}
	if m.fail != nil {
		return m.fail
	}
	m.ChainHead = ChainHead{seq, hash}
	return nil
}

func open(t testing.TB, path string, heads HeadStore) *Log {
	t.Helper()
	l, err := Open(path, Options{Clock: clock, HeadStore: heads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func entry(n int) Entry {
	return Entry{ActionID: fmt.Sprint("a", n), ActionInputLineNumber: n, ActionType: "execute_command", Decision: verdict.Block, Tier: 1, Confidence: 0.95,
		Rule: "XP-001", Reasoning: "because", ActionHash: "sha256:00", Payload: map[string]any{"command": fmt.Sprint("echo ", n)}}
}

func appendAll(t testing.TB, l *Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Append(t.Context(), entry(i+1)); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, path string, kept *ChainHead) VerificationReport {
	return verifyGaps(t, path, kept, nil)
}

func verifyGaps(t testing.TB, path string, kept *ChainHead, gaps map[uint64]string) VerificationReport {
	t.Helper()
	r, err := VerifyFile(path, kept, gaps)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "audit.jsonl")
	heads := new(memory)
	l := open(t, path, heads)
	appendAll(t, l, 2)
	l.Close()
	l = open(t, path, heads) // another process goes on
	if err := l.Append(t.Context(), entry(3), entry(4)); err != nil {
		t.Fatal(err)
	}
	r := verify(t, path, &heads.ChainHead)
	if !r.OK() || r.CompleteLineCount != 4 || r.FirstSeq != 1 || r.Head != heads.ChainHead || r.Head.Seq != 4 || r.LastLineIncomplete || r.LogRecoveryEntryCount != 0 {
		t.Errorf("%+v", r)
	}
	first, _, _ := bytes.Cut(read(t, path), []byte("\n"))
	want := `{"seq":1,"prev":"` + genesisHash + `","time":"2026-01-02T03:04:05.678Z","kind":"verdict","id":"a1","line":1,` +
		`"type":"execute_command","decision":"BLOCK","tier":1,"confidence":0.95,"rule":"XP-001","reasoning":"because",` +
		`"action_hash":"sha256:00","payload":{"command":"echo 1"},"latency_us":0}`
	if string(first) != want {
		t.Errorf("first line\n%s, want\n%s", first, want)
	}
	for name, mode := range map[string]os.FileMode{"": 0o600, ".lock": 0o600} {
		info, err := os.Stat(path + name)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := l.Append(t.Context()); err != nil {
		t.Errorf("nothing: %v", err)
	}
	l.Close()
	if err := l.Append(t.Context(), entry(5)); !errors.Is(err, ErrLogClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestOpenNeedsClock(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "x"), Options{}); err == nil {
		t.Error("opened without a clock")
	}
}

func TestGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	heads := new(memory)
	a, b := open(t, path, heads), open(t, path, heads) // as two processes
	var wg sync.WaitGroup
	for i := range 8 {
		l := a
		if i%2 == 1 {
			l = b
		}
		wg.Go(func() {
			for n := range 50 {
				if err := l.Append(context.Background(), entry(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r := verify(t, path, &heads.ChainHead); !r.OK() || r.CompleteLineCount != 400 || r.Head.Seq != 400 {
		t.Errorf("%+v", r)
	}
}

func TestSubmitKeepsOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, new(memory))
	var tickets []*PendingEntries
	for i := range 3000 {
		tickets = append(tickets, l.EncodeAndQueue(entry(i)))
	}
	for _, k := range tickets {
		if err := k.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for line := range bytes.Lines(read(t, path)) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil || e.ActionInputLineNumber != i {
			t.Fatalf("line %d: %d, %v", i, e.ActionInputLineNumber, err)
		}
		i++
	}
	if i != 3000 {
		t.Errorf("%d lines", i)
	}
}

// Whatever part of a line a crash leaves, the next entry repairs it.
func TestTornLine(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "audit.jsonl")
	heads := new(memory)
	appendAll(t, open(t, whole, heads), 2)
	kept := heads.ChainHead
	appendAll(t, open(t, whole, heads), 1)
	all := read(t, whole)
	last := bytes.LastIndexByte(all[:len(all)-1], '\n') + 1
	for n := last + 1; n < len(all); n++ {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		write(t, path, all[:n])
		h := &memory{ChainHead: kept}
		if r := verify(t, path, &kept); !r.OK() || !r.LastLineIncomplete || r.CompleteLineCount != 2 {
			t.Fatalf("cut at %d: %+v", n, r)
		}
		appendAll(t, open(t, path, h), 1)
		r := verify(t, path, &h.ChainHead)
		if !r.OK() || r.LastLineIncomplete || r.CompleteLineCount != 4 || r.LogRecoveryEntryCount != 1 || r.Head.Seq != 4 {
			t.Fatalf("cut at %d: %+v %v", n, r, r.Damage)
		}
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	write(t, path, []byte(`{"seq":1,"prev":"`))
	h := new(memory)
	appendAll(t, open(t, path, h), 1)
	if r := verify(t, path, &h.ChainHead); !r.OK() || r.CompleteLineCount != 2 || r.LogRecoveryEntryCount != 1 {
		t.Errorf("torn first line: %+v", r)
	}
}

// A log that is not what its head says takes no entry, until it is repaired.
func TestRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(b []byte) []byte
		kind  error
	}{
		{"emptied", func([]byte) []byte { return nil }, ErrLogTruncated},
		{"last line cut", func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }, ErrLogTruncated},
		{"last line torn", func(b []byte) []byte { return b[:len(b)-3] }, ErrLogTruncated},
		{"last line changed", func(b []byte) []byte { return bytes.Replace(b, []byte("echo 3"), []byte("echo 9"), 1) }, ErrLogChanged},
		{"text added", func(b []byte) []byte { return append(b, "hello\n"...) }, ErrLogChanged},
		{"empty line added", func(b []byte) []byte { return append(b, '\n') }, ErrLogChanged},
		{"endless line added", func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), 3*maxLineBytes)...) }, ErrLogChanged},
		{"other log", func([]byte) []byte { return []byte(`{"seq":7,"prev":"` + genesisHash + `","kind":"verdict"}` + "\n") }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			heads := new(memory)
			l := open(t, path, heads)
			appendAll(t, l, 3)
			kept := heads.ChainHead
			write(t, path, tt.spoil(read(t, path)))
			before := read(t, path)
			for _, l := range []*Log{l, open(t, path, heads)} { // one that was there, and a new one
				err := l.Append(t.Context(), entry(4))
				if tt.kind == nil {
					if r := verify(t, path, &kept); r.OK() {
						t.Errorf("verified: %+v", r)
					}
					return
				}
				if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), RepairCommand) {
					t.Fatalf("error %v, want %v naming %q", err, tt.kind, RepairCommand)
				}
			}
			if !bytes.Equal(before, read(t, path)) || heads.ChainHead != kept {
				t.Error("a refused log was written")
			}
			if r := verify(t, path, &kept); r.OK() {
				t.Errorf("verified: %+v", r)
			}
			aside, err := Repair(t.Context(), path, Options{Clock: clock, HeadStore: heads})
			if err != nil || !bytes.Equal(before, read(t, aside)) {
				t.Fatalf("repair: %q, %v", aside, err)
			}
			appendAll(t, open(t, path, heads), 1)
			r := verifyGaps(t, path, &heads.ChainHead, heads.gaps)
			if !r.OK() || r.FirstSeq != 4 || r.Head.Seq != 5 || r.LogRecoveryEntryCount != 1 {
				t.Errorf("after repair: %+v %v", r, r.Damage)
			}
			if r := verify(t, path, &kept); !r.OK() {
				t.Errorf("after repair, by the old head: %v", r.Damage)
			}
		})
	}
}

func TestRepairLeavesWhatIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	heads := new(memory)
	appendAll(t, open(t, path, heads), 3)
	before := read(t, path)
	if aside, err := Repair(t.Context(), path, Options{Clock: clock, HeadStore: heads}); aside != "" || err != nil {
		t.Error(aside, err)
	}
	if !bytes.Equal(before, read(t, path)) {
		t.Error("a whole log was changed")
	}
	if _, err := Repair(t.Context(), path, Options{Clock: clock}); err == nil {
		t.Error("repaired without a head")
	}
	if h, err := ReadChainHead(path); h != heads.ChainHead || err != nil {
		t.Error(h, err)
	}
	if h, err := ReadChainHead(path + "x"); h != (ChainHead{}) || err != nil {
		t.Error(h, err)
	}
}

// A process killed between writing and moving the head is no harm; a kept
// head that cannot be written is.
func TestHeadBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	heads := new(memory)
	l := open(t, path, heads)
	appendAll(t, l, 2)
	stop := errors.New("disk full")
	heads.fail = stop
	if err := l.Append(t.Context(), entry(3)); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	heads.fail = nil
	appendAll(t, l, 1)
	if r := verify(t, path, &heads.ChainHead); !r.OK() || r.Head.Seq != 5 || r.LogRecoveryEntryCount != 1 { // which says that it was not known of
		t.Errorf("%+v", r)
	}
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	exposed := filepath.Join(dir, "exposed")
	write(t, exposed, nil)
	if err := os.Chmod(exposed, 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(exposed, link); err != nil {
		t.Skip(err)
	}
	for path, kind := range map[string]error{exposed: ErrLogExposed, link: ErrLogUnwritable, dir: ErrLogUnwritable} {
		if err := open(t, path, nil).Append(t.Context(), entry(1)); !errors.Is(err, kind) {
			t.Errorf("%s: error %v, want %v", path, err, kind)
		}
	}
	if _, err := Open(filepath.Join(exposed, "x", "y"), Options{Clock: clock}); !errors.Is(err, ErrLogUnwritable) {
		t.Errorf("below a file: %v", err)
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		l := &Log{path: "/dev/full", file: f}
		if err := l.writeAndSync(0, []byte("x\n")); !errors.Is(err, ErrLogUnwritable) {
			t.Errorf("full disk: %v", err)
		}
	}
}

func TestWaitEnds(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"), new(memory))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := &PendingEntries{written: make(chan struct{})}
	if err := k.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	k = l.EncodeAndQueue(entry(1))
	if err := k.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Wait(ctx); err != nil {
		t.Errorf("written, yet %v", err)
	}
}

// No field lets a secret through.
func TestRedacts(t *testing.T) {
	key := "AKIA" + strings.Repeat("Q7", 8)
	canary := strings.Repeat("c0ffee42", 8)
	for _, secret := range []string{key, canary} {
		e := Entry{
			ActionID: secret, Session: secret, ActionType: "x " + secret, Rule: secret, Reasoning: "the model said " + secret, Error: "bad: " + secret,
			ActionHash: secret, AnswerChannel: secret, AnsweredBy: secret, Kind: secret,
			Payload: map[string]any{
				"command": "echo " + secret, secret: 1, "n": []any{map[string]any{"deep": secret}},
				"wrapped": base64.StdEncoding.EncodeToString([]byte("say " + secret)),
				"split":   secret[:9] + `""` + secret[9:],
				"long":    strings.Repeat("x", 70<<10) + " " + secret,
			},
			Trail:        []verdict.TierStep{{Reasoning: secret, Rule: secret, ErrorCode: secret, Effects: []byte(`"` + secret + `"`), JudgedActionTextVariants: []byte(`"` + secret + `"`)}},
			Fingerprints: PolicyAndModelFingerprints{Policy: secret, Rules: secret, Model: secret, Config: secret, Prompt: secret},
			Caller:       Caller{ShieldSubcommand: secret, User: secret},
		}
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l, err := Open(path, Options{Clock: clock, Redactor: redact.New(canary)})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		l.Close()
		got := string(read(t, path))
		for _, part := range []string{secret, secret[9:], secret[:9], base64.RawStdEncoding.EncodeToString([]byte("say " + secret[:9]))} {
			if strings.Contains(got, part) {
				t.Errorf("%q is in %s", part, got)
			}
		}
		if n := strings.Count(got, "[redacted"); n < 20 {
			t.Errorf("%d redacted in %s", n, got)
		}
	}
}

// TestEveryTextIsRedacted fills each text of an entry in turn: none is left as it was,
// and none makes the entry too long.
func TestEveryTextIsRedacted(t *testing.T) {
	t.Parallel()
	// Hashes that shield makes, and the path at which verifying looks for a log that was moved.
	shieldsOwn := map[string]bool{"PreviousLineHash": true, "Recovery.DamagedDataSHA256": true, "Recovery.MovedLogPath": true}
	secret := "AKIA" + strings.Repeat("Q7", 8)
	var tried int
	var try func(name string, kind reflect.Type, field func(*Entry) reflect.Value)
	try = func(name string, kind reflect.Type, field func(*Entry) reflect.Value) {
		switch {
		case kind.Kind() == reflect.Struct && kind != reflect.TypeFor[time.Time]():
			for i := range kind.NumField() {
				f := kind.Field(i)
				try(strings.TrimPrefix(name+"."+f.Name, "."), f.Type, func(e *Entry) reflect.Value { return field(e).Field(i) })
			}
		case kind.Kind() == reflect.Pointer:
			try(name, kind.Elem(), func(e *Entry) reflect.Value { return field(e).Elem() })
		case kind.Kind() == reflect.String && !shieldsOwn[name]:
			tried++
			e := Entry{Recovery: new(LogRecovery)}
			field(&e).SetString(secret)
			if got := string(e.encodeRedacted(clock(), nil)); strings.Contains(got, secret) || !strings.Contains(got, "[redacted") {
				t.Errorf("%s: %s", name, got)
			}
			if field(&e).String() != secret {
				t.Errorf("%s: the caller's own entry is changed", name)
			}
			field(&e).SetString(strings.Repeat("long ", maxLineBytes))
			if got := e.encodeRedacted(clock(), nil); len(got) > maxEntryBytes {
				t.Errorf("%s: %d bytes", name, len(got))
			}
			const usual = "files"
			field(&e).SetString(usual)
			if got := string(e.encodeRedacted(clock(), nil)); !strings.Contains(got, `"`+usual+`"`) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	try("", reflect.TypeFor[Entry](), func(e *Entry) reflect.Value { return reflect.ValueOf(e).Elem() })
	if tried < 20 {
		t.Errorf("%d texts", tried)
	}
}

// Any entry is one line within bounds that reads back and shows no control.
func TestEntryBounds(t *testing.T) {
	huge := map[string]any{}
	for i := range 5000 {
		huge[fmt.Sprint("key", i)] = strings.Repeat("v", 50)
	}
	var deep any = "x"
	for range 500 {
		deep = map[string]any{"d": deep}
	}
	long := strings.Repeat("\u202e\x1b\x00\xff\U000e0041", 40000)
	tests := map[string]Entry{
		"zero":     {},
		"huge":     {Payload: huge},
		"deep":     {Payload: deep},
		"long":     {ActionID: long, Session: long, ActionType: long, Rule: long, Reasoning: long, Error: long, ActionHash: long, Payload: map[string]any{long: long}},
		"nan":      {Confidence: math.NaN(), Decision: verdict.Block},
		"infinite": {Confidence: math.Inf(1), Payload: math.Inf(1)},
		"lines":    {Reasoning: "a\nb\r\n{\"seq\":1}\n\u2028\u0085"},
		"trail":    {Trail: make([]verdict.TierStep, 10000)},
		"channel":  {Payload: make(chan int)},
	}
	for name, e := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			heads := new(memory)
			l := open(t, path, heads)
			for range 2 {
				if err := l.Append(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			got := read(t, path)
			if r := verify(t, path, &heads.ChainHead); !r.OK() || r.CompleteLineCount != 2 || len(got) > 2*maxLineBytes {
				t.Errorf("%d bytes, %+v %v", len(got), r, r.Damage)
			}
			for _, c := range string(bytes.ReplaceAll(got, []byte("\n"), nil)) {
				if c < ' ' || c >= 0x7f && c <= 0x9f || c == 0x202e || c == 0x2028 || c > 0xe0000 {
					t.Fatalf("%U is in it", c)
				}
			}
			var back Entry
			if err := json.Unmarshal(got[:bytes.IndexByte(got, '\n')], &back); err != nil {
				t.Error(err)
			}
		})
	}
}

func FuzzEntry(f *testing.F) {
	f.Add("a", `{"command":"ls"}`, 0.5)
	f.Add("\u202e\"\\", `[["--password","x"]]`, math.Inf(-1))
	f.Fuzz(func(t *testing.T, s, payload string, confidence float64) {
		var v any
		if json.Unmarshal([]byte(payload), &v) != nil {
			v = payload
		}
		e := Entry{ActionID: s, Reasoning: s, Payload: v, Confidence: confidence}
		line, head := appendChained(nil, ChainHead{}, e.encodeRedacted(clock(), nil))
		r, err := Verify(bytes.NewReader(line), &head)
		if err != nil || !r.OK() || r.CompleteLineCount != 1 || !json.Valid(line) || len(line) > maxLineBytes {
			t.Errorf("%q: %+v, %v", line, r, err)
		}
	})
}

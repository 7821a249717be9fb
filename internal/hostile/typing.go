package hostile

import (
	"math/rand/v2"
	"time"
)

// A Keystrokes is something typed at a terminal: a pause, then the bytes that the
// terminal sends.
type Keystrokes struct {
	PauseBefore time.Duration
	Bytes       string
}

// RandomTyping returns keystrokes of a person who types without looking at the screen: words,
// commands, history keys, vi movements, editing keys and pasted text. Pauses are up to three
// seconds. The same seed gives the same keystrokes. They never contain ^C or ^\, which would end
// the program in the terminal.
func RandomTyping(seed uint64) []Keystrokes {
	t := &keystrokeGenerator{Rand: rand.New(rand.NewPCG(seed, 1))}
	kinds := []func(){t.addWords, t.addCommand, t.addHistoryKeys, t.addViKeys, t.addEditingKeys, t.addPastedText, t.addRandomLetters}
	for range 5 + t.IntN(25) {
		kinds[t.IntN(len(kinds))]()
		if t.IntN(2) == 0 {
			t.addOneOf("\r")
		}
	}
	return t.strokes
}

type keystrokeGenerator struct {
	*rand.Rand
	strokes []Keystrokes
}

// addKeystrokes adds bytes that arrive at the terminal together, after a random pause: in most
// cases at most 0.3 s, in some up to 3 s.
func (t *keystrokeGenerator) addKeystrokes(bytes string) {
	pause := time.Duration(t.IntN(300)) * time.Millisecond
	if t.IntN(8) == 0 {
		pause = time.Duration(t.IntN(3000)) * time.Millisecond
	}
	t.strokes = append(t.strokes, Keystrokes{pause, bytes})
}

// addOneOf types one of some keys.
func (t *keystrokeGenerator) addOneOf(keys ...string) { t.addKeystrokes(keys[t.IntN(len(keys))]) }

// addText types a text, in most cases key by key.
func (t *keystrokeGenerator) addText(text string) {
	if t.IntN(4) == 0 {
		t.addKeystrokes(text)
		return
	}
	for _, r := range text {
		t.addKeystrokes(string(r))
	}
}

func (t *keystrokeGenerator) addWords() {
	for range 1 + t.IntN(5) {
		t.addText([]string{
			"no, ask me first", "no", "look", "quick", "don't break main", "yes", "y", "ok", "approve", "allow", "once", "10", "n", "wait",
			"what is this", "Down", "sure", "go on", "never mind", "why?", "good", "please", "stop", "the", "quiet", "knock knock",
			"rhythm", "my", "by", "hmm", "pfff", "tsk", "1", "2", "3", "4",
		}[t.IntN(36)])
		t.addOneOf(" ", " ", ", ", "\r")
	}
}

func (t *keystrokeGenerator) addCommand() {
	t.addText([]string{
		"git checkout main", "cd src && ls", "cd src && git checkout -b task", "ls -la", "git status", "git log", "git diff", "scp a b", "rpm -q x",
		"cmp a b", "src", "cmd", "make", "npm test", "cat README.md", "grep -rn foo .", "echo hello", "pwd", "history", "fg", "jobs", "man ls",
		"vim main.go", "sudo true", "cp a b", "mv a b", "ps", "df", "du", "xz", "dc", "mc", "sc", "tmux", "ssh host", "for i in 1 2 3; do",
		"echo 'unfinished", "git push", "#", "!!", "!$", "^a^b",
	}[t.IntN(42)])
}

func (t *keystrokeGenerator) addHistoryKeys() {
	for range 1 + t.IntN(6) {
		t.addOneOf("\x1b[A", "\x1b[B", "\x10", "\x0e", "\x12", "\x13", "\x1bOA", "\x1bOB", "\x1b.", "\x1b<", "\x1b>", "\x12git")
	}
}

func (t *keystrokeGenerator) addViKeys() {
	t.addOneOf("\x1b", "\x1b", "")
	for range 1 + t.IntN(12) {
		t.addOneOf("h", "j", "k", "l", "w", "b", "e", "gg", "G", "0", "$", "dd", "dw", "yy", "p", "P", "u", "x", "cw", "cc", "ciw", "r", "s", "v", "V",
			"zz", "m", "q", "\x04", "\x15", "\x06", "\x02", "n", "N", "/foo\r", "?foo\r", ":w\r", ":wq\r", ":q!\r", "ZZ", "i", "a", "o", "\x1b", "3j", "5k")
	}
}

func (t *keystrokeGenerator) addEditingKeys() {
	for range 1 + t.IntN(8) {
		t.addOneOf("\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[3~", "\x1b[2~", "\x7f", "\x08", "\t", "\x1b[Z", "\x01", "\x05", "\x0b",
			"\x17", "\x19", "\x0c", "\x14", "\x18\x05", "\x1a", "\x07", "\x1f", "\x16", "\x0f", "\x11", "\x00", "\x1bb", "\x1bf", "\x1bd", "\x1b\x7f", "\x1b\r",
			"\x1b[1;5C", "\x1b[1;5D", "\x1bOP", "\x1b[15~", "\x1b[24~", "\n", " ", "\x1b[M !!", "\x1b[<0;3;4M", "\x1b[I", "\x1b[O", "\x1b[99;1u", "\xff", "é", "漢")
	}
}

func (t *keystrokeGenerator) addPastedText() {
	text := []string{
		"git add -A\ngit commit -m 'x'\ngit push\n", "cd /tmp\nls\n", "docker compose up -d\r", "for f in *; do\n  echo $f\ndone\n", "y\ny\ny\n", "\n\n\n", "10\n",
		"export A=1\r\nexport B=2\r\n", "curl -s https://example.test/\n",
	}[t.IntN(9)]
	if t.IntN(2) == 0 {
		text = "\x1b[200~" + text + "\x1b[201~"
	}
	t.addKeystrokes(text)
}

func (t *keystrokeGenerator) addRandomLetters() {
	for range 1 + t.IntN(10) {
		t.addKeystrokes(string(rune('a' + t.IntN(26))))
	}
}

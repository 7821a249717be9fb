package shell

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// pieces are what mutated commands are put together from, besides each other.
var pieces = [...]string{
	"(", ")", "{", "}", "[[", "]]", "$(", "${", "$((", "))", "`", "'", "\"", "\\", ";", "|", "&&", "||", "&", "<", ">", "<<E\n", "<<<", "<(", ">(",
	"\n", " ", "if ", "then ", "fi ", "while ", "do ", "done ", "for i in ", "case x in ", "esac ", "function ", "f() ", "$@", "$x", "${x//a/b}", "{1..9}", "{a,b}",
	"eval ", "sudo ", "sh -c ", "xargs ", "python3 -c ", "echo ", "| sh", "base64 -d", "\x00", "\xff", "*", "**", "?", "~", "!", "x=", "x+=", "declare -n x=x ", "a[0]=", "%x%", "-f ", "@(", "iex ", "[char]",
}

func mutate(r *rand.Rand, cases []tableCase) string {
	text := cases[r.IntN(len(cases))].text
	for range 1 + r.IntN(6) {
		at := r.IntN(len(text) + 1)
		switch r.IntN(5) {
		case 0:
			text = text[:at] + pieces[r.IntN(len(pieces))] + text[at:]
		case 1:
			end := at + r.IntN(len(text)-at+1)
			text = text[:at] + text[end:]
		case 2:
			other := cases[r.IntN(len(cases))].text
			text = text[:at] + other[r.IntN(len(other)):]
		case 3:
			end := min(len(text), at+1+r.IntN(8))
			text = text[:at] + strings.Repeat(text[at:end], 1+r.IntN(40)) + text[end:]
		case 4:
			text = text[:at] + strings.Repeat(pieces[r.IntN(len(pieces))], 1+r.IntN(60)) + text[at:]
		}
		if len(text) > 8<<10 {
			text = text[:8<<10]
		}
	}
	return text
}

// No command takes long, however it is put together.
func TestTime(t *testing.T) {
	t.Parallel()
	cases := readCases(t)
	r := rand.New(rand.NewPCG(1, 2))
	n := 10000
	if testing.Short() {
		n = 1000
	}
	var worst time.Duration
	for range n {
		text := mutate(r, cases)
		done := make(chan Result, 1)
		start := time.Now()
		go func() { done <- Analyze(text, here()) }()
		select {
		case res := <-done:
			checkSpans(t, text, res)
		case <-time.After(5 * time.Second):
			t.Fatalf("%q takes for ever", text)
		}
		if d := time.Since(start); d > worst {
			worst = d
			if d > 250*time.Millisecond { // 50 ms on an idle machine
				t.Errorf("%q took %v", text, d)
			}
		}
	}
	t.Logf("worst of %d: %v", n, worst)
}

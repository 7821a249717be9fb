package shell

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/pkg/effect"
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

// No command makes the analysis allocate much, however it is put together.
func TestMutants(t *testing.T) {
	cases := readCases(t)
	r := rand.New(rand.NewPCG(1, 2))
	n := 10000
	if testing.Short() {
		n = 1000
	}
	var most uint64
	for range n {
		text := mutate(r, cases)
		var res effect.CommandAnalysis
		size := allocated.Bytes(func() { res = Analyze(text, here()) })
		checkSpans(t, text, res)
		if most = max(most, size); size > maxAllocated {
			t.Errorf("%q made the analysis allocate %d bytes", text, size)
		}
	}
	t.Logf("most of %d: %d bytes", n, most)
}

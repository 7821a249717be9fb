package sanitize

import (
	"bufio"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A rate counts texts of a source, and those in which something was found.
type rate struct{ all, found int }

// TestCorpora prints how many texts of labelled corpora have findings, by source.
// SHIELD_CORPORA names the folder that has texts-malicious.jsonl and
// texts-benign.jsonl.
func TestCorpora(t *testing.T) {
	dir := os.Getenv("SHIELD_CORPORA")
	if dir == "" {
		t.Skip("SHIELD_CORPORA names no folder")
	}
	for _, name := range []string{"texts-malicious.jsonl", "texts-benign.jsonl"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		rates, kinds := map[string]*rate{}, map[string]int{}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var row struct{ Source, Text string }
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			report := Examine(row.Text)
			for _, key := range []string{"all", row.Source} {
				if rates[key] == nil {
					rates[key] = &rate{}
				}
				rates[key].all++
				if len(report.Findings) > 0 {
					rates[key].found++
				}
			}
			seen := map[string]bool{}
			for _, f := range report.Findings {
				seen[string(f.Kind)+" "+f.Rule] = true
			}
			for k := range seen {
				kinds[k]++
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		for _, source := range slices.Sorted(maps.Keys(rates)) {
			r := rates[source]
			t.Logf("%s | %s | %d of %d | %.1f %%", name, source, r.found, r.all, 100*float64(r.found)/float64(r.all))
		}
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			t.Logf("%s | %s: %d", name, k, kinds[k])
		}
	}
}

// documents are honest texts into which something is put.
var documents = []string{
	"The museum opens at nine. It closes at five, and on Mondays it stays closed.\nTickets are sold at the door.\n",
	"<html><body><h1>Opening hours</h1><p>The museum opens at nine.</p><p>Tickets are sold at the door.</p></body></html>",
	"{\"name\": \"museum\", \"opens\": \"nine\", \"note\": \"Tickets are sold at the door\"}\n",
	"# Museum\n\n- opens at nine\n- closes at five\n\n`make tickets` prints tickets.\n",
	"Das Museum öffnet um neun. Es schließt um fünf.\nМузей открыт с девяти.\n",
}

// TestGenerated puts hidden text and credentials, made by chance, into documents at
// places of chance, and holds that nearly all are found and nothing is where nothing
// was put.
func TestGenerated(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	draw := func(letters string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	const upper, alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	message := func() string { return "send " + draw("abcdefgh ", 5+r.IntN(40)) }
	for name, c := range map[string]struct {
		make  func() string
		kinds []FindingKind
	}{
		"tag characters":      {func() string { return tags(message()) }, []FindingKind{FindingTagCharacters}},
		"variation selectors": {func() string { return selectors(message()) }, []FindingKind{FindingTagCharacters}},
		"bits of zero width": {func() string {
			var b strings.Builder
			for range 16 + r.IntN(200) {
				b.WriteRune([]rune{0x200b, 0x200c, 0x200d, 0x2060}[r.IntN(4)])
			}
			return b.String()
		}, []FindingKind{FindingInvisibleCharacters}},
		"an override":   {func() string { return string([]rune{0x202d + rune(r.IntN(2))}) + draw(alnum, 5) + "\u202c" }, []FindingKind{FindingBidiControls}},
		"AWS keys":      {func() string { return " AKIA" + draw(upper, 16) + " " }, []FindingKind{FindingSecret}},
		"GitHub tokens": {func() string { return " ghp_" + draw(alnum, 36) + " " }, []FindingKind{FindingSecret}},
		"Stripe keys":   {func() string { return " sk_" + "live_" + draw(alnum, 24) + " " }, []FindingKind{FindingSecret}},
		"Slack tokens": {func() string {
			return " xoxb-" + draw("0123456789", 12) + "-" + draw("0123456789", 12) + "-" + draw(alnum, 24) + " "
		}, []FindingKind{FindingSecret}},
		"private keys": {func() string {
			return "\n-----BEGIN RSA PRIVATE " + "KEY-----\n" + draw(alnum, 64) + "\n" + draw(alnum, 64) + "\n-----END RSA PRIVATE " + "KEY-----\n"
		}, []FindingKind{FindingSecret}},
	} {
		const times = 400
		found := 0
		for i := range times {
			doc := []rune(documents[i%len(documents)])
			at := r.IntN(len(doc) + 1)
			text := string(doc[:at]) + c.make() + string(doc[at:])
			if slices.ContainsFunc(Examine(text).Findings, func(f Finding) bool { return slices.Contains(c.kinds, f.Kind) }) {
				found++
			}
		}
		t.Logf("%s: %d of %d", name, found, times)
		if found < times*99/100 {
			t.Errorf("%s: only %d of %d are found", name, found, times)
		}
	}
	for _, doc := range documents {
		if f := Examine(doc).Findings; len(f) > 0 {
			t.Errorf("%q: %+v", doc, f)
		}
	}
}

package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// An entry is one rule as it is written.
type entry struct {
	ID       string
	Keywords []string
	Pattern  string
	Entropy  float64
	Match    []string
	Pass     []string
}

func entries(t testing.TB) []entry {
	t.Helper()
	data, err := os.ReadFile("../../pkg/knowledge/secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rules []entry }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Rules
}

var blank = regexp.MustCompile(`<([a-z0-9]+):(\d+)>`)

var classes = map[string]string{
	"alpha": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"alnum": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	"upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	"lower": "abcdefghijklmnopqrstuvwxyz0123456789",
	"hex":   "0123456789abcdef",
	"digit": "0123456789",
	"url":   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
	"b64":   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
}

// fill replaces the blanks of an example by random characters, the same ones
// each time, and returns the longest replacement.
func fill(example string) (text, secret string) {
	h := fnv.New64a()
	h.Write([]byte(example))
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	text = blank.ReplaceAllStringFunc(example, func(s string) string {
		m := blank.FindStringSubmatch(s)
		class, n := classes[m[1]], m[2]
		count, _ := strconv.Atoi(n)
		b := make([]byte, count)
		for i := range b {
			b[i] = class[rng.IntN(len(class))]
		}
		// An edge that is no word character would hide the word's border.
		b[0], b[count-1] = class[0], class[1]
		if count > len(secret) {
			secret = string(b)
		}
		return string(b)
	})
	return text, secret
}

// Each rule finds its examples by itself, and the whole of them leaves nothing
// of the secret; what is no secret stays untouched by all rules.
func TestExamples(t *testing.T) {
	for _, e := range entries(t) {
		t.Run(e.ID, func(t *testing.T) {
			for _, example := range e.Match {
				text, secret := fill(example)
				found := false
				for _, sp := range findCredentials(text, nil) {
					found = found || sp.kind == e.ID
				}
				if !found {
					t.Errorf("match %q: not found", text)
				}
				got := (*Redactor)(nil).RedactText(text)
				if !isRedactionMark(got) || len(secret) > 8 && strings.Contains(got, secret) {
					t.Errorf("match %q: got %q", text, got)
				}
			}
			for _, example := range e.Pass {
				text, _ := fill(example)
				for _, sp := range findCredentials(text, nil) {
					if sp.kind == e.ID {
						t.Errorf("pass %q: found %q", text, text[sp.start:sp.end])
					}
				}
			}
		})
	}
}

// What a log must keep.
func TestKeeps(t *testing.T) {
	keep := []string{
		"",
		"git checkout 9fceb02d0ae598e95dc970b74767f19372d61af8",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"id 123e4567-e89b-12d3-a456-426614174000",
		"docker pull x@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"cat /usr/local/share/applications/some-long-name-of-a-file.desktop",
		"npm ci sha512-oGMAgGS8f6+0fAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
		"rm -rf node_modules && npm run build:production",
		"grep -rn 'password' src/",
		"please change the password: it is too short",
		"const token = getToken(user)",
		"key = value",
		"max_tokens: 4096",
		"tokenizer = AutoTokenizer.from_pretrained(name)",
		"password: str",
		"API_KEY=$API_KEY make",
		"export TOKEN=${TOKEN:-none}",
		"password=<your password>",
		`{"api_key": "os.environ/OPENAI_API_KEY"}`,
		"author: Jane Doe <jane@x.test>",
		"keyboard: us-intl-with-dead-keys",
		"primary_key: user_identifier_2024",
		"https://x.test/a?page=2&sort=asc",
		"-----BEGIN CERTIFICATE-----\nMIIBszCCARygAwIBAgIBATANBg\n-----END CERTIFICATE-----",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8s1Zr8V0t9Gq2f1hY2d8mZr0sX3m5n7p9q1r3t5v7x me@host",
		"token_file: /run/secrets/token",
		"secret_name: prod-db-credentials-v2",
		"AuthenticationError: token expired 2026-01-02T03:04:05Z",
		"for key in keys: print(key)",
	}
	for _, s := range keep {
		if got := (*Redactor)(nil).RedactText(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestNamed(t *testing.T) {
	gone := []struct{ text, secret string }{
		{"password=hunter2", "hunter2"},
		{"PASSWORD: 'correct horse battery staple'", "correct horse battery staple"},
		{"DB_PASS=letmein9 ./run", "letmein9"},
		{`{"apiKey": "a8f3k2m9x7c1v5b4"}`, "a8f3k2m9x7c1v5b4"},
		{"client-secret = Zk3xY8wQ2mN7vB1c", "Zk3xY8wQ2mN7vB1c"},
		{"--password hunter2 --verbose", "hunter2"},
		{"--api-key=a8f3k2m9x7c1v5b4", "a8f3k2m9x7c1v5b4"},
		{"$env:SECRET_KEY = \"a8f3k2m9x7c1v5b4\"", "a8f3k2m9x7c1v5b4"},
		{"token => 'a8f3k2m9x7c1v5b4'", "a8f3k2m9x7c1v5b4"},
		{"config['auth_token'] = 'a8f3k2m9x7c1v5b4'", "a8f3k2m9x7c1v5b4"},
		{"x-api-key: 123e4567-e89b-12d3-a456-426614174000", "123e4567"},
		{"access_token=9fceb02d0ae598e95dc970b74767f19372d61af8", "9fceb02d"},
		{"password = token = 'hunter2222'", "hunter2222"},
		{"the error was: invalid password: 'hunter2'", "hunter2"},
		{"password=\"hunter2", "hunter2"},
	}
	for _, tt := range gone {
		if got := (*Redactor)(nil).RedactText(tt.text); strings.Contains(got, tt.secret) {
			t.Errorf("%q became %q", tt.text, got)
		}
	}
}

// A secret is found in whatever form it is written.
func TestForms(t *testing.T) {
	key, _ := fill("AKIA<upper:16>")
	each := func(format string) string {
		var b strings.Builder
		for i := range len(key) {
			fmt.Fprintf(&b, format, key[i])
		}
		return b.String()
	}
	b64 := base64.StdEncoding.EncodeToString
	wrap76 := func(s string) string {
		var b strings.Builder
		for len(s) > 76 {
			b.WriteString(s[:76] + "\n")
			s = s[76:]
		}
		return b.String() + s
	}
	forms := map[string]string{
		"as it is":             "x " + key + " y",
		"json escapes":         `{"a":"` + each(`\u%04x`) + `"}`,
		"braced escapes":       each(`\u{%x}`),
		"long braced escapes":  each(`\u{%08x}`),
		"hex escapes":          each(`\x%02x`),
		"octal escapes":        each(`\%03o`),
		"url escapes":          each("%%%02X"),
		"character references": each("&#%d;"),
		"hex references":       each("&#x%x;"),
		"one escape":           `\x41` + key[1:],
		"empty quotes":         "echo " + key[:4] + `""` + key[4:9] + "''" + key[9:],
		"concatenation":        `"` + key[:6] + `" + "` + key[6:] + `"`,
		"php concatenation":    `'` + key[:6] + `' . '` + key[6:] + `'`,
		"adjacent strings":     `"` + key[:6] + `" "` + key[6:] + `"`,
		"continued line":       key[:10] + "\\\n" + key[10:],
		"zero-width":           key[:5] + "\u200b" + key[5:10] + "\u2060" + key[10:],
		"soft hyphen":          key[:5] + "\u00ad" + key[5:],
		"base64":               "echo " + b64([]byte("key is "+key)) + " | base64 -d",
		"base64 url":           base64.RawURLEncoding.EncodeToString([]byte("key??>>" + key)),
		"base64 of two bytes":  b64([]byte(strings.Join(strings.Split(key, ""), "\x00") + "\x00")),
		"base64 of gzip":       b64(zipped(t, key)),
		"base64 behind gzip":   b64(append(zipped(t, "hello"), strings.Repeat("and this is key "+key+" ", 3)...)),
		"base64 behind noise":  b64([]byte(strings.Repeat("\xff", 20) + strings.Repeat(" and this is key "+key, 3))),
		"base32":               base32.StdEncoding.EncodeToString([]byte(key)),
		"base64 glued":         "https://x.test/p/" + b64([]byte("k="+key)),
		"base64 twice":         b64([]byte(b64([]byte("id " + key)))),
		"base64 in lines":      wrap76(b64([]byte(strings.Repeat("some text before it ", 8) + key))),
		"hex":                  hex.EncodeToString([]byte(key)),
		"base64 escaped":       url.QueryEscape(b64([]byte("<<>>" + key))),
	}
	for name, s := range forms {
		got := (*Redactor)(nil).RedactText(s)
		if !strings.Contains(got, "[redacted aws-access-key]") || strings.Contains(got, key[8:]) {
			t.Errorf("%s: %q became %q", name, s, got)
		}
	}
}

func zipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCompressedIsBounded gives texts of runs that expand, and hold such runs again.
func TestCompressedIsBounded(t *testing.T) {
	text := "ab c"
	for depth := range maxNestedEncodings {
		text = base64.RawStdEncoding.EncodeToString(zipped(t, strings.Repeat(text, 64<<10/len(text)))) + " "
		all := strings.Repeat(text, MaxScannedTextBytes/len(text))
		if n := allocated.Bytes(func() { (*Redactor)(nil).RedactText(all) }); n > 1<<30 {
			t.Errorf("depth %d: %d bytes allocated", depth, n)
		}
	}
}

// TestBlocksAreNotRead gives a text of short runs of bzip2, each a block of 900 KB.
func TestBlocksAreNotRead(t *testing.T) {
	const run = "QlpoOTFBWSZTWeaLr3YABuSBAKIAAAggADDMCapplKE2qShPF3JFOFCQ5ouvdg"
	all := strings.Repeat(run+" ", (64<<10)/len(run))
	if n := allocated.Bytes(func() { (*Redactor)(nil).RedactText(all) }); n > 1<<30 {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestKnown(t *testing.T) {
	const secret = "canary/of+this request"
	r := New(secret, "short", "")
	for name, s := range map[string]string{
		"as it is":     "it was " + secret + ".",
		"twice":        secret + secret,
		"base64":       "echo " + base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 amid":  base64.StdEncoding.EncodeToString([]byte("\x80\x81\x82\x83" + secret + "\x90\x91\x92\x93\x94\x95")),
		"base64 amid1": base64.StdEncoding.EncodeToString([]byte("\x80" + secret)),
		"base64 amid2": base64.StdEncoding.EncodeToString([]byte("\x80\x81" + secret)),
		"hex":          hex.EncodeToString([]byte(secret)),
		"upper hex":    strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"query":        "https://x.test/?q=" + url.QueryEscape(secret),
		"escaped":      strings.ReplaceAll(secret, "c", `\u0063`),
	} {
		if got := r.RedactText(s); !strings.Contains(got, "[redacted secret]") || strings.Contains(got, "canary/of") {
			t.Errorf("%s: %q became %q", name, s, got)
		}
	}
	if got := r.RedactText("a short text"); got != "a short text" {
		t.Errorf("got %q", got)
	}
}

func TestValue(t *testing.T) {
	key, _ := fill("AKIA<upper:16>")
	in := map[string]any{
		"command":  "aws --key " + key,
		key:        "x",
		key + " ":  "y",
		"password": "hunter2",
		"args":     []any{"login", "--password", "hunter2", "--verbose", "yes"},
		"nested":   map[string]any{"list": []any{key, 1.5, nil, true}},
		"id":       "123e4567-e89b-12d3-a456-426614174000",
	}
	want := map[string]any{
		"command":                    "aws --key [redacted aws-access-key]",
		"[redacted aws-access-key]":  "x",
		"[redacted aws-access-key] ": "y",
		"password":                   "[redacted password]",
		"args":                       []any{"login", "--password", "[redacted password]", "--verbose", "yes"},
		"nested":                     map[string]any{"list": []any{"[redacted aws-access-key]", 1.5, nil, true}},
		"id":                         "123e4567-e89b-12d3-a456-426614174000",
	}
	if diff := cmp.Diff(want, (*Redactor)(nil).RedactJSONValue(in, 0)); diff != "" {
		t.Error(diff)
	}
	two, _ := fill("ASIA<upper:16>")
	got := (*Redactor)(nil).RedactJSONValue(map[string]any{key: "x", two: "y"}, 0).(map[string]any)
	if len(got) != 2 {
		t.Errorf("one field hides the other: %v", got)
	}
	var deep any = key
	for range 200 {
		deep = []any{deep}
	}
	if s := fmt.Sprint((*Redactor)(nil).RedactJSONValue(deep, 0)); strings.Contains(s, key) || !isRedactionMark(s) {
		t.Errorf("deep value: %s", s)
	}
}

func TestTooLong(t *testing.T) {
	key, _ := fill("AKIA<upper:16>")
	if got := (*Redactor)(nil).RedactText(strings.Repeat("x", MaxScannedTextBytes) + key); strings.Contains(got, key) {
		t.Error("an unexamined text was let through")
	}
}

// What is cached of a text is not cut: another length can be asked for next.
func TestBriefIsNotCached(t *testing.T) {
	const text, whole = "password=hunter2x", "password=[redacted password]"
	r := New()
	for _, c := range []struct {
		keep int
		want string
	}{{17, "password=[redacte… (17 bytes)"}, {1000, whole}, {20, "password=[redacted p… (17 bytes)"}} {
		if got := r.RedactAndTruncate(text, c.keep); got != c.want {
			t.Errorf("keep %d: %q, want %q", c.keep, got, c.want)
		}
		if got := r.RedactText(text); got != whole {
			t.Errorf("keep %d: the whole text is %q", c.keep, got)
		}
	}
}

// Cutting leaves no part of a secret, wherever the cut falls.
func TestBrief(t *testing.T) {
	key, _ := fill("ghp_<alnum:36>")
	for _, keep := range []int{100, 4096} {
		for _, length := range []int{10, keep - 30, keep, maxScannedTextBytesForExcerpt - 30, maxScannedTextBytesForExcerpt, maxScannedTextBytesForExcerpt + 30, MaxScannedTextBytes} {
			for shift := range 40 {
				s := strings.Repeat("x", max(length-shift, 0)) + " " + key
				got := (*Redactor)(nil).RedactAndTruncate(s+strings.Repeat(" y", 40), keep)
				if strings.Contains(got, key[:8]) || len(got) > keep+100 {
					t.Fatalf("keep %d, length %d, shift %d: %d bytes, …%q", keep, length, shift, len(got), got[max(0, len(got)-80):])
				}
			}
		}
	}
	long, _ := fill("ghp_<alnum:196>")
	many := strings.Repeat(long+" ", 1000) // shrinks a lot, and is cut within one
	if got := (*Redactor)(nil).RedactAndTruncate(many, 16<<10); strings.Contains(got, "ghp_") {
		t.Errorf("…%q", got[max(0, len(got)-80):])
	}
	got := (*Redactor)(nil).RedactJSONValue(map[string]any{"password": strings.Repeat("hunter2 ", 20000), "a": strings.Repeat("é", 5000)}, 99)
	want := map[string]any{"password": "[redacted password]", "a": strings.Repeat("é", 49) + "… (10000 bytes)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Text made to be slow.
func BenchmarkHostile(b *testing.B) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	every := ""
	for i := range knowledge.SecretForms {
		every += knowledge.SecretForms[i].Literals[0] + " "
	}
	for name, unit := range map[string]string{
		"names": "key=", "quotes": `"`, "quotes and names": `password"'`, "escapes": `\u0041`, "percent": "%41",
		"begin": "-----BEGIN PRIVATE KEY-----", "literals": every, "urls": "a://b:c", "curl": "curl -u ", "a": "a", "A": "A",
		"eyj": "eyJ", "nested": b64(b64(b64("some text "))), "dollars": "$2b$", "joins": `"+`, "dots": "hooks.slack.com/services/",
		"programs": "mysql ", "pipes": "echo a|sudo -S ", "documents": "chpasswd <<a\n", "cookies": "cookie: a=b; ",
	} {
		s := strings.Repeat(unit, maxScannedTextBytesForExcerpt/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				(*Redactor)(nil).RedactText(s)
			}
		})
	}
}

func FuzzString(f *testing.F) {
	for _, e := range entries(f) {
		for _, m := range e.Match {
			text, _ := fill(m)
			f.Add(text)
		}
	}
	f.Add(`"password": "\u0041"+'b' %zz &#x;`)
	f.Fuzz(func(t *testing.T, s string) {
		once := (*Redactor)(nil).RedactText(s)
		if twice := (*Redactor)(nil).RedactText(once); twice != once {
			t.Errorf("%q became %q, then %q", s, once, twice)
		}
	})
}

// A secret that is inserted anywhere in any text does not survive.
func FuzzInsert(f *testing.F) {
	f.Add("export A=B; curl x", "")
	f.Add(`{"a":"`, `"}`)
	key, _ := fill("ghp_<alnum:36>")
	f.Fuzz(func(t *testing.T, before, after string) {
		if got := (*Redactor)(nil).RedactText(before + " " + key + " " + after); strings.Contains(got, key) {
			t.Errorf("%q and %q: %q", before, after, got)
		}
	})
}

func BenchmarkString(b *testing.B) {
	key, _ := fill("AKIA<upper:16>")
	for name, s := range map[string]string{
		"plain":  "find . -name '*.go' -newer go.mod | xargs grep -l context",
		"secret": "AWS_ACCESS_KEY_ID=" + key + " aws s3 ls",
		"4KiB":   strings.Repeat("find . -name '*.go' -newer go.mod | xargs grep -l context\n", 70),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				(*Redactor)(nil).RedactText(s)
			}
		})
	}
}

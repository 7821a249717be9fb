package effect

import (
	"strings"
	"testing"
)

const metadata = "169.254.169.254"

var hostTests = []struct{ in, want string }{
	{"example.com", "example.com"},
	{"EXAMPLE.com", "example.com"},
	{"example.com.", "example.com"},
	{"example.com..", ""},
	{".example.com", ""},
	{"a..b", ""},
	{"", ""},
	{".", ""},
	{" example.com ", "example.com"},
	{"exa mple.com", ""},
	{"example.com:80", "example.com"},
	{"example.com:", "example.com"},
	{"example.com:http", ""},
	{"example.com:999999", ""},
	{"user@example.com", "example.com"},
	{"good.test@evil.test", "evil.test"},
	{"my_service", "my_service"},
	{"localhost", "localhost"},
	{"LOCALHOST.", "localhost"},
	{"xn--bcher-kva.example", "xn--bcher-kva.example"},
	{"bücher.example", "xn--bcher-kva.example"},
	{"bu\u0308cher.example", "xn--bcher-kva.example"},
	{"ｅｘａｍｐｌｅ.com", "example.com"},
	{"example。com", "example.com"},
	{"example．com", "example.com"},
	{"exam\u00adple.com", "example.com"},
	{"exam\u200bple.com", "example.com"},
	{"ⓔxample.com", "example.com"},
	{"$HOST", ""},
	{"{a,b}.com", ""},
	{"*.example.com", ""},
	{"evil.com%2fgood.com", ""},
	{"%65xample.com", "example.com"},
	{"example%00.com", ""},
	{"example.com%", ""},
	{strings.Repeat("a", 64) + ".com", ""},
	{strings.Repeat("a.", 200) + "com", ""},

	{metadata, metadata},
	{metadata + ".", metadata},
	{metadata + ":80", metadata},
	{"2852039166", metadata},
	{"0xa9fea9fe", metadata},
	{"0XA9FEA9FE", metadata},
	{"0xA9.0xFE.0xA9.0xFE", metadata},
	{"0251.0376.0251.0376", metadata},
	{"000251.000376.000251.000376", metadata},
	{"169.254.43518", metadata},
	{"169.16689662", metadata},
	{"169.0xfea9fe", metadata},
	{"025177524776", metadata},
	{"0251.254.0xa9.254", metadata},
	{"１６９.254.169.254", metadata},
	{"①⑥⑨.254.169.254", metadata},
	{"169。254。169。254", metadata},
	{"%31%36%39.254.169.254", metadata},
	{"127.1", "127.0.0.1"},
	{"0x7f.1", "127.0.0.1"},
	{"0x7f000001", "127.0.0.1"},
	{"017700000001", "127.0.0.1"},
	{"2130706433", "127.0.0.1"},
	{"127.0.1", "127.0.0.1"},
	{"0", "0.0.0.0"},
	{"0x", "0.0.0.0"},
	{"0.0.0.0", "0.0.0.0"},
	{"10.1", "10.0.0.1"},
	{"256.1.1.1", ""},
	{"1.2.3.4.5", ""},
	{"1.2.3.256", ""},
	{"1.2.65536", ""},
	{"4294967296", ""},
	{"08.1.1.1", ""},
	{"1.2.3.08", ""},
	{"1..2", ""},
	{"1.2.3.4.com", "1.2.3.4.com"},
	{"0x7g.1", ""},
	{"a.0x7f", ""},
	{"+1.2.3.4", ""},
	{"-1.2.3.4", ""},

	{"[::1]", "::1"},
	{"[::1]:80", "::1"},
	{"[::1]x", ""},
	{"[::1", ""},
	{"::1", "::1"},
	{"[0:0:0:0:0:0:0:1]", "::1"},
	{"[::ffff:169.254.169.254]", metadata},
	{"[::ffff:a9fe:a9fe]", metadata},
	{"[0:0:0:0:0:ffff:a9fe:a9fe]", metadata},
	{"[::169.254.169.254]", metadata},
	{"[64:ff9b::169.254.169.254]", metadata},
	{"[64:ff9b::a9fe:a9fe]", metadata},
	{"[::ffff:0:a9fe:a9fe]", metadata},
	{"[::]", "::"},
	{"[fe80::1%eth0]", "fe80::1"},
	{"[fe80::1%25eth0]", "fe80::1"},
	{"[fd00:EC2::254]", "fd00:ec2::254"},
	{"[FD00:EC2:0::254]", "fd00:ec2::254"},
	{"[169.254.169.254]", ""},
	{"[v1.x]", ""},
}

func TestHost(t *testing.T) {
	t.Parallel()
	for _, tt := range hostTests {
		if got := CanonicalHost(tt.in); got != tt.want {
			t.Errorf("Host(%q) = %q, want %q", tt.in, got, tt.want)
		} else if again := CanonicalHost(got); again != got {
			t.Errorf("Host(%q) of a canonical host = %q", got, again)
		}
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, url, host string }{
		{"https://example.com/a?b#c", "https://example.com/a?b#c", "example.com"},
		{"HTTPS://EXAMPLE.com", "https://example.com", "example.com"},
		{"https://example.com:8443/", "https://example.com:8443/", "example.com"},
		{"http://[::1]:80/", "http://[::1]:80/", "::1"},
		{"http://[::1]/", "http://[::1]/", "::1"},
		{"http://[::ffff:a9fe:a9fe]/latest", "http://169.254.169.254/latest", metadata},
		{"http://0xa9fea9fe/latest", "http://169.254.169.254/latest", metadata},
		{"http://user:pass@example.com/", "http://example.com/", "example.com"},
		{"http://good.test@evil.test/", "http://evil.test/", "evil.test"},
		{"http://good.test%40evil.test/", "http://good.test%40evil.test/", ""},
		{"http://a@b@evil.test/", "http://a@b@evil.test/", ""},
		{`http://good.test\@evil.test/`, `http://good.test\@evil.test/`, ""},
		{`http:\\evil.test\`, `http:\\evil.test\`, ""},
		{`http://example.com/a\b`, `http://example.com/a\b`, "example.com"},
		{"http://good.test#@evil.test/", "http://good.test#@evil.test/", ""},
		{"http://good.test?@evil.test/", "http://good.test?@evil.test/", ""},
		{"http://good.test?mail=a@b.test", "http://good.test?mail=a@b.test", "good.test"},
		{"http:///evil.test", "http:///evil.test", ""},
		{"http:/evil.test", "http:/evil.test", ""},
		{"http:evil.test", "http:evil.test", ""},
		{"http://", "http://", ""},
		{"//example.com/a", "http://example.com/a", "example.com"},
		{"example.com/a", "http://example.com/a", "example.com"},
		{"example.com", "http://example.com", "example.com"},
		{"localhost:8080/a", "http://localhost:8080/a", "localhost"},
		{"git@github.com:me/x.git", "ssh://github.com/me/x.git", "github.com"},
		{"ftp://example.com", "ftp://example.com", "example.com"},
		{"s3://bucket/key", "s3://bucket/key", "bucket"},
		{"mailto:a@b.test", "mailto:a@b.test", ""},
		{"data:text/html,x", "data:text/html,x", ""},
		{"javascript:alert(1)", "javascript:alert(1)", ""},
		{"file:///etc/passwd", "file:///etc/passwd", ""},
		{" https://example.com\n", "https://example.com", "example.com"},
		{"https://exa\tmple.com", "https://exa\tmple.com", ""},
		{"https://exa mple.com", "https://exa mple.com", ""},
		{"https://example.com:80:90/", "https://example.com:80:90/", ""},
		{"https://example.com:port/", "https://example.com:port/", ""},
		{"https://{a,b}.test/", "https://{a,b}.test/", ""},
		{"https://$HOST/", "https://$HOST/", ""},
		{"https://a[b]@evil.test/", "https://a[b]@evil.test/", ""},
		{"https://bücher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example"},
		{"", "", ""},
	} {
		if url, host := NormalizeURL(tt.in); url != tt.url || host != tt.host {
			t.Errorf("URL(%q) = %q, %q, want %q, %q", tt.in, url, host, tt.url, tt.host)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, tt := range hostTests {
		f.Add("http://" + tt.in)
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if h := CanonicalHost(raw); CanonicalHost(h) != h {
			t.Errorf("Host(%q) = %q, and of that %q", raw, h, CanonicalHost(h))
		}
		url, host := NormalizeURL(raw)
		if again, h := NormalizeURL(url); host != "" && (again != url || h != host) {
			t.Errorf("URL(%q) = %q, %q, and of that %q, %q", raw, url, host, again, h)
		}
	})
}

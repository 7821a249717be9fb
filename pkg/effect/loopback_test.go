package effect

import "testing"

// loopbackTests are hosts as people and clients write them, with whether they are
// this machine for certain, and whether they may be.
var loopbackTests = []struct {
	raw       string
	sure, may bool
}{
	{"127.0.0.1", true, true},
	{"127.0.0.1:8080", true, true},
	{"127.0.0.2", true, true},
	{"127.255.255.254", true, true},
	{"126.255.255.255", false, false},
	{"128.0.0.1", false, false},
	{"::1", true, true},
	{"[::1]", true, true},
	{"[::1]:80", true, true},
	{"0:0:0:0:0:0:0:1", true, true},
	{"::2", false, false},
	{"::ffff:127.0.0.1", true, true},
	{"[::ffff:7f00:1]:80", true, true},
	{"::ffff:10.0.0.1", false, false},
	{"64:ff9b::7f00:1", true, true},
	{"::1%eth0", true, true},
	{"[::1%25lo]:80", true, true},
	{"fe80::1%lo", false, false},

	{"localhost", true, true},
	{"localhost.", true, true},
	{"LOCALHOST", true, true},
	{"LocalHost:3000", true, true},
	{"ｌｏｃａｌｈｏｓｔ", true, true},
	{"local%68ost", true, true},
	{"app.localhost", true, true},
	{"localhost.evil.com", false, false},
	{"evil-localhost", false, false},
	{"evillocalhost", false, false},
	{"localhost.localhost.evil.com", false, false},
	{"127.0.0.1.evil.com", false, false},
	{"127.0.0.1.nip.io", false, false},
	{"localhost\x00.evil.com", false, false},

	{"2130706433", true, true},
	{"0x7f000001", true, true},
	{"0X7F.1", true, true},
	{"017700000001", true, true},
	{"0177.0.0.1", true, true},
	{"127.1", true, true},
	{"127.0.1", true, true},
	{"127", false, false}, // 0.0.0.127
	{"127.0.0.256", false, false},

	{"me@localhost", true, true},
	{"localhost@evil.com", false, false},
	{"127.0.0.1:80@evil.com", false, false},
	{"evil.com@127.0.0.1", true, true},

	{"0.0.0.0", false, true},
	{"0", false, true},
	{"0x0:22", false, true},
	{"::", false, true},
	{"[::]:80", false, true},
	{"ip6-localhost", false, true},
	{"IP6-Loopback.", false, true},
	{"localhost.localdomain", false, true},
	{"localhost6", false, true},
	{"localhost.localdomain.evil.com", false, false},

	{"", false, false},
	{"[]", false, false},
	{"10.0.0.1", false, false},
	{"169.254.169.254", false, false},
	{"host.docker.internal", false, false},
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for _, c := range loopbackTests {
		host := CanonicalHost(c.raw)
		if got := IsLoopbackHost(host); got != c.sure {
			t.Errorf("Loopback(%q), of %q: %v", host, c.raw, got)
		}
		if got := MayBeThisMachine(host); got != c.may {
			t.Errorf("ThisMachine(%q), of %q: %v", host, c.raw, got)
		}
	}
}

func TestDialLoopback(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1:80": true, "127.8.0.1:80": true, "[::1]:80": true, "[::1%lo]:80": true, "[::ffff:127.0.0.1]:80": true,
		"10.0.0.1:80": false, "0.0.0.0:80": false, "[::]:80": false, "[2001:db8::1]:80": false, "": false, "localhost:80": false, "127.0.0.1": false,
	} {
		if err := RefuseNonLoopbackDial("tcp", addr, nil); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

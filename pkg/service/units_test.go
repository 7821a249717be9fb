package service

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestUnits holds that names of folders cannot say more than a name.
func TestUnits(t *testing.T) {
	t.Parallel()
	p := UnitSettings{
		Program: `/opt/my "tools"/100%/$x\shield`, Home: "/home/a b", ConfigDir: "/home/a b/.config", UID: 7,
		Socket: "/home/a%b/socket", Environ: []string{`XDG_STATE_HOME=/a "b" <&>%h`},
	}
	u, err := NewUnit("linux", p)
	if err != nil || len(u.Files) != 2 {
		t.Fatal(u, err)
	}
	text := u.Files[0].Text + u.Files[1].Text
	for _, want := range []string{
		"ListenStream=/home/a%%b/socket\n", `ExecStart=:"/opt/my \"tools\"/100%%/$x\\shield" serve` + "\n",
		`Environment="XDG_STATE_HOME=/a \"b\" <&>%%h"` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if u.Files[0].Path != "/home/a b/.config/systemd/user/shield.socket" {
		t.Error(u.Files[0].Path)
	}
	u, err = NewUnit("darwin", p)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for d := xml.NewDecoder(strings.NewReader(u.Files[0].Text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if word, ok := token.(xml.CharData); ok && strings.TrimSpace(string(word)) != "" {
			words = append(words, string(word))
		}
	}
	if got := strings.Join(words, "|"); !strings.Contains(got, "|"+p.Program+"|serve|") || !strings.Contains(got, `|XDG_STATE_HOME|/a "b" <&>%h|`) {
		t.Error(got)
	}
	if _, err := NewUnit("plan9", p); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	p.Home = "/home/a\nExecStart=/bin/sh"
	if u, err := NewUnit("linux", p); err == nil {
		t.Error(u)
	}
}

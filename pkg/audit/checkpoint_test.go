package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if _, err := GenerateSigningKey(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := GenerateSigningKey(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("overwrote a key: %v", err)
	}
	key, err := LoadSigningKey(path)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := LoadPublicKey(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	lines, head := chained(6)
	b, err := json.Marshal(Sign(key, head, clock()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCheckpoint(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.VerifySignature(pub); err != nil {
		t.Error(err)
	}
	if r, err := Verify(strings.NewReader(strings.Join(lines, "")), &c.ChainHead); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	for name, change := range map[string]func(*Checkpoint){
		"number":       func(c *Checkpoint) { c.Seq-- },
		"hash":         func(c *Checkpoint) { c.Hash = strings.Repeat("0", 64) },
		"time":         func(c *Checkpoint) { c.Time = c.Time.Add(time.Second) },
		"key":          func(c *Checkpoint) { c.PublicKeyBase64 = "x" },
		"signature":    func(c *Checkpoint) { c.Signature = "!" },
		"no signature": func(c *Checkpoint) { c.Signature = "" },
	} {
		forged := c
		change(&forged)
		if err := forged.VerifySignature(pub); !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.VerifySignature(nil); !errors.Is(err, ErrBadSignature) {
		t.Errorf("no key: %v", err)
	}
	other, err := GenerateSigningKey(path + "2")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.VerifySignature(other); !errors.Is(err, ErrBadSignature) {
		t.Errorf("another key: %v", err)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if _, err := GenerateSigningKey(path); err != nil {
		t.Fatal(err)
	}
	readable := filepath.Join(dir, "readable")
	write(t, readable, read(t, path))
	if err := os.Chmod(readable, 0o640); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text")
	write(t, text, []byte("hello"))
	broken := filepath.Join(dir, "broken")
	write(t, broken, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	for name, p := range map[string]string{"readable by others": readable, "no key": text, "broken": broken, "public": path + ".pub", "missing": path + "x", "folder": dir} {
		_, err := LoadSigningKey(p)
		if err == nil {
			t.Errorf("%s: loaded", name)
		} else if strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: the error quotes the key: %v", name, err)
		}
	}
	if _, err := LoadPublicKey(path); err == nil {
		t.Error("a private key loaded as public")
	}
	if _, err := ParseCheckpoint([]byte("{")); err == nil {
		t.Error("parsed no JSON")
	}
}

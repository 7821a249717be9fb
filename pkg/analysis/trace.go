package analysis

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Digest returns the digest of the resolved effects, "sha256:" and hex, to
// which cached verdicts and approvals are bound. Two cases with the same digest
// do the same things to the same files and hosts.
func (c *Case) Digest() string {
	h := sha256.New()
	var n [8]byte
	text := func(s string) {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = h.Write(n[:]) // a hash takes everything
		_, _ = h.Write([]byte(s))
	}
	text(c.place.CWD)
	for i := range c.Effects {
		e := &c.Effects[i]
		for _, s := range [...]string{string(e.Kind), e.Path, fmt.Sprint(e.Pattern, e.Recursive), e.URL, e.Host, e.Program, string(e.Class), e.Reason} {
			text(s)
		}
		binary.BigEndian.PutUint64(n[:], uint64(len(e.Args)))
		_, _ = h.Write(n[:])
		for _, arg := range e.Args {
			text(arg)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// EffectsJSON returns the effects as a JSON array, for traces.
func (c *Case) EffectsJSON() (jsontext.Value, error) { return encode(c.Effects, len(c.Effects)) }

// ViewsJSON returns the views as a JSON array, for traces.
func (c *Case) ViewsJSON() (jsontext.Value, error) {
	views := c.Views()
	return encode(views, len(views))
}

func encode(v any, n int) (jsontext.Value, error) {
	if n == 0 {
		return jsontext.Value("[]"), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode trace: %w", err)
	}
	return jsontext.Value(b), nil
}

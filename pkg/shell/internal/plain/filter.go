// Package plain works on texts that are known: the escapes of shells, decoders,
// and what filters such as tr, sed and base64 write.
package plain

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strings"
)

// maxText bounds what a filter may write, in bytes.
const maxText = 64 << 10

// Filter applies a text filter to a text; ok is false where it is not computed.
func Filter(base string, flags []string, operands []string, text string) (string, bool) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(names, f) })
	}
	switch base {
	case "cat", "tee", "pv", "sponge":
		return text, true
	case "tr":
		return Translate(flags, operands, text)
	case "base64", "gbase64":
		if has("-d", "-D", "--decode", "-di", "-id") || slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix("--decode", f) && len(f) > 3 }) {
			return Decode64(text)
		}
		if len(flags) == 0 || has("-w0", "-w") {
			return base64.StdEncoding.EncodeToString([]byte(text)) + "\n", true
		}
	case "xxd":
		if slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "r") }) &&
			slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "p") }) {
			out, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
			return string(out), err == nil
		}
	case "openssl":
		if len(operands) > 0 && (operands[0] == "base64" || operands[0] == "enc") && has("-d") && (operands[0] == "base64" || has("-base64", "-a")) &&
			!slices.ContainsFunc(flags, func(f string) bool { return !slices.Contains([]string{"-d", "-base64", "-a", "-A"}, f) }) {
			return Decode64(text)
		}
	case "gunzip", "zcat", "gzip":
		if base != "gzip" || slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "d") }) {
			return gunzip(text)
		}
	}
	return "", false
}

func Reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// Decode64 decodes base64 in either alphabet, with blanks in it and with or
// without its padding. Programs differ in what they make of text behind the
// padding, so that it is not decoded.
func Decode64(text string) (string, bool) {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == ' ' || r == '\r' {
			return -1
		}
		return r
	}, text)
	clean = strings.TrimRight(clean, "=")
	if out, err := base64.RawStdEncoding.DecodeString(clean); err == nil {
		return string(out), true
	}
	out, err := base64.RawURLEncoding.DecodeString(clean)
	return string(out), err == nil
}

func gunzip(text string) (string, bool) {
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return "", false
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(z, maxText+1)); err != nil || b.Len() > maxText {
		return "", false
	}
	return b.String(), true
}

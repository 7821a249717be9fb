// Package plain works on texts that are known: the escapes of shells, decoders,
// and what filters such as tr, sed and base64 write.
package plain

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
	"strconv"
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
	case "rev":
		lines := strings.SplitAfter(text, "\n")
		for i, l := range lines {
			body, nl := strings.CutSuffix(l, "\n")
			lines[i] = Reverse(body)
			if nl {
				lines[i] += "\n"
			}
		}
		return strings.Join(lines, ""), true
	case "tac":
		lines := strings.SplitAfter(text, "\n")
		slices.Reverse(lines)
		return strings.Join(lines, ""), true
	case "tr":
		return Translate(flags, operands, text)
	case "sed":
		return sedFold(flags, operands, text)
	case "base64", "gbase64":
		if has("-d", "-D", "--decode", "-di", "-id") || slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix("--decode", f) && len(f) > 3 }) {
			return Decode64(text)
		}
		if len(flags) == 0 || has("-w0", "-w") {
			return base64.StdEncoding.EncodeToString([]byte(text)) + "\n", true
		}
	case "base32":
		if has("-d", "-D", "--decode") {
			out, err := base32.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			return string(out), err == nil
		}
	case "xxd":
		if slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "r") }) {
			out, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
			return string(out), err == nil
		}
	case "openssl":
		if len(operands) > 0 && (operands[0] == "base64" || operands[0] == "enc") && has("-d") && (operands[0] == "base64" || has("-base64", "-a")) {
			return Decode64(text)
		}
	case "gunzip", "zcat", "gzip":
		if base != "gzip" || slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "d") }) {
			return gunzip(text)
		}
	case "head", "tail", "cut", "sort", "uniq", "fold", "nl", "paste":
		return lineFilter(base, flags, operands, text)
	}
	return "", false
}

func Reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

func Decode64(text string) (string, bool) {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == ' ' || r == '\r' || r == '=' {
			return -1
		}
		return r
	}, text)
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

// lineFilter folds filters of lines where they take all or the first of them.
func lineFilter(base string, flags []string, operands []string, text string) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) > 1 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 1 && base != "cut" && base != "paste" && base != "nl" && base != "fold" {
		for _, f := range flags {
			if strings.HasPrefix(f, "-c") {
				return "", false
			}
		}
		return text, true
	}
	switch {
	case base == "cut":
		return cutFold(flags, operands, lines)
	case (base == "head" || base == "tail") && len(flags) == 1 && len(operands) <= 1:
		digits := strings.TrimLeft(flags[0], "-n")
		if digits == "" && len(operands) == 1 {
			digits = operands[0]
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 {
			return "", false
		}
		n = min(n, len(lines))
		if base == "head" {
			return strings.Join(lines[:n], ""), true
		}
		return strings.Join(lines[len(lines)-n:], ""), true
	}
	return "", false
}

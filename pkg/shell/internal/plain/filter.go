// Package plain computes with known texts: the escapes of shells, decoders, and the output of filters such as tr,
// sed and base64.
package plain

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
)

// maxSedSubstitutionBytes is the maximum length of the text that a substitution of sed inserts, in bytes.
const maxSedSubstitutionBytes = 64 << 10

// ComputeFilterOutput returns the output of a text filter; false if it cannot be computed.
func ComputeFilterOutput(program string, flags []string, operands []string, text string) (string, bool) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(names, f) })
	}
	switch program {
	case "cat", "tee", "pv", "sponge":
		return text, true
	case "rev":
		lines := strings.SplitAfter(text, "\n")
		for i, l := range lines {
			body, nl := strings.CutSuffix(l, "\n")
			lines[i] = decode.Reverse(body)
			if nl {
				lines[i] += "\n"
			}
		}
		return strings.Join(lines, ""), true
	case "tac":
		if len(flags) > 0 {
			return "", false
		}
		lines := strings.SplitAfter(text, "\n")
		slices.Reverse(lines)
		return strings.Join(lines, ""), true
	case "tr":
		return ComputeTrOutput(flags, operands, text)
	case "sed":
		return computeSed(flags, operands, text)
	case "base64", "gbase64":
		if has("-d", "-D", "--decode", "-di", "-id") || slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix("--decode", f) && len(f) > 3 }) {
			return decode.Base64(text)
		}
		if len(flags) == 0 || has("-w0", "-w") {
			return base64.StdEncoding.EncodeToString([]byte(text)) + "\n", true
		}
	case "base32":
		if has("-d", "-D", "--decode") {
			return decode.Base32(text)
		}
	case "xxd":
		if slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "r") }) &&
			slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "p") }) {
			return decode.Hex(strings.Join(strings.Fields(text), ""))
		}
	case "openssl":
		if len(operands) > 0 && (operands[0] == "base64" || operands[0] == "enc") && has("-d") && (operands[0] == "base64" || has("-base64", "-a")) &&
			!slices.ContainsFunc(flags, func(f string) bool { return !slices.Contains([]string{"-d", "-base64", "-a", "-A"}, f) }) {
			return decode.Base64(text)
		}
	case "gunzip", "zcat", "gzip":
		if program != "gzip" || slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "d") }) {
			return decode.Gunzip(text)
		}
	case "head", "tail", "cut", "sort", "uniq", "fold", "nl", "paste":
		return computeLineFilterOutput(program, flags, operands, text)
	}
	return "", false
}

// computeLineFilterOutput computes filters that work on lines: cut, head, tail, and sort and uniq of a single line.
func computeLineFilterOutput(program string, flags []string, operands []string, text string) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) > 1 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	switch program {
	case "cut":
		return computeCut(flags, operands, lines)
	case "sort", "uniq":
		return text, len(lines) == 1 && len(flags) == 0
	case "head", "tail":
		n, ok := headTailLineCount(flags, operands)
		if !ok {
			return "", false
		}
		n = min(n, len(lines))
		if program == "head" {
			return strings.Join(lines[:n], ""), true
		}
		return strings.Join(lines[len(lines)-n:], ""), true
	}
	return "", false
}

// headTailLineCount returns how many lines head or tail output: -N, -nN, -n N, default 10. ok is false for signed counts,
// which have another meaning.
func headTailLineCount(flags, operands []string) (int, bool) {
	digits := "10"
	switch {
	case len(flags) == 1 && flags[0] == "-n" && len(operands) > 0:
		digits = operands[0]
	case len(flags) == 1:
		digits = strings.TrimPrefix(flags[0][1:], "n")
	case len(flags) > 1:
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && digits[0] >= '0' && digits[0] <= '9'
}

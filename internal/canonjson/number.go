package canonjson

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDigits is the maximum number of significant digits in the shortest decimal of a double.
const maxDigits = 17

// appendNumber appends the canonical form of the valid JSON number lit: the shortest form of its float64 if that
// is exactly equal to lit, and otherwise lit itself.
func appendNumber(dst, lit []byte) []byte {
	if isExactCanonicalInteger(lit) {
		return append(dst, lit...)
	}
	want, ok := parseDecimal(lit)
	if !ok {
		return append(dst, lit...)
	}
	if want.digitCount == 0 {
		return append(dst, '0') // zero, also if written as -0 or 0e9
	}
	f, err := strconv.ParseFloat(string(lit), 64)
	if err != nil || math.IsInf(f, 0) || f == 0 {
		return append(dst, lit...)
	}
	end := len(dst)
	dst = jsontext.AppendFloat(dst, f, 64)
	if got, ok := parseDecimal(dst[end:]); !ok || got != want {
		dst = append(dst[:end], lit...)
	}
	return dst
}

// isExactCanonicalInteger reports whether literal is an integer of at most 15 digits, other than
// -0: such a number is exact as a float64, and already in canonical form.
func isExactCanonicalInteger(literal []byte) bool {
	digits := literal
	if digits[0] == '-' {
		digits = digits[1:]
		if digits[0] == '0' {
			return false
		}
	}
	if len(digits) > 15 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// A decimal is a number of at most maxDigits significant digits:
// ±0.d1d2…dn × 10^exp, without zeros at either end of the digits.
type decimal struct {
	negative   bool
	digits     [maxDigits]byte
	digitCount int
	exponent   int64
}

// parseDecimal parses a valid JSON number in linear time. It fails for too many significant digits, or an
// exponent whose absolute value is above 2^32.
func parseDecimal(lit []byte) (d decimal, ok bool) {
	i := 0
	if lit[0] == '-' {
		d.negative = true
		i++
	}
	var point, zeros int64 // digits before the point; zeros read since the last digit other than 0
	seenPoint := false
	for ; i < len(lit) && lit[i] != 'e' && lit[i] != 'E'; i++ {
		c := lit[i]
		switch {
		case c == '.':
			seenPoint = true
			continue
		case c == '0':
			if d.digitCount > 0 {
				zeros++
			} else if seenPoint {
				point--
			}
		default:
			if zeros > maxDigits {
				return d, false
			}
			for ; zeros > 0 && d.digitCount < maxDigits; zeros-- {
				d.digits[d.digitCount] = '0'
				d.digitCount++
			}
			if d.digitCount == maxDigits {
				return d, false
			}
			d.digits[d.digitCount] = c
			d.digitCount++
		}
		if !seenPoint && d.digitCount > 0 {
			point++
		}
	}
	if d.digitCount == 0 {
		return decimal{}, true
	}
	exp, ok := parseExponent(lit[i:])
	d.exponent = point + exp
	return d, ok
}

// parseExponent reads "", "e5", "E+5" or "e-05".
func parseExponent(lit []byte) (exp int64, ok bool) {
	if len(lit) == 0 {
		return 0, true
	}
	lit = lit[1:]
	negative := lit[0] == '-'
	if negative || lit[0] == '+' {
		lit = lit[1:]
	}
	for _, c := range lit {
		exp = exp*10 + int64(c-'0')
		if exp > 1<<32 {
			return 0, false
		}
	}
	if negative {
		exp = -exp
	}
	return exp, true
}

package analysis

import (
	"strconv"
	"strings"
)

// The least texts that are given in digits: so many numbers, and so many bits.
const (
	leastNumbers = 8
	leastBitRun  = 64
)

// numbers returns the texts whose characters a text gives as decimal numbers of two or
// three digits, one after the other.
func numbers(text string) string {
	var b strings.Builder
	var run []byte
	n := 0 // numbers of the run, those that are no characters, too
	end := func() {
		if n >= leastNumbers {
			b.Write(run)
			b.WriteByte('\n')
		}
		run, n = run[:0], 0
	}
	for i := 0; i < len(text); i++ {
		start, digits := i, true
		for ; i < len(text) && (alphanumeric(text[i]) || text[i] == '_'); i++ {
			digits = digits && text[i] <= '9'
		}
		switch size := i - start; {
		case size == 0:
		case digits && (size == 2 || size == 3):
			if c, err := strconv.ParseUint(text[start:i], 10, 8); err == nil {
				run = append(run, byte(c))
			}
			n++
		default:
			end()
		}
		if i < len(text) && is[text[i]]&byNumbers == 0 {
			end()
		}
	}
	end()
	return b.String()
}

// bits returns the texts whose characters a text gives as eight bits each, with at
// most one byte between two bits.
func bits(text string) string {
	var b strings.Builder
	bit := func(i int) bool { return i < len(text) && text[i]|1 == '1' }
	for i := 0; i < len(text); i++ {
		start, n := i, 0
		for bit(i) {
			n++
			if i++; i < len(text) && is[text[i]]&byBits != 0 && bit(i+1) {
				i++
			}
		}
		if n < leastBitRun {
			continue
		}
		c, at := byte(0), 0
		for _, digit := range []byte(text[start:i]) {
			if digit|1 == '1' {
				c = c<<1 | digit&1
				if at++; at%8 == 0 {
					b.WriteByte(c)
				}
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

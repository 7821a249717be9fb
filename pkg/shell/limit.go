package shell

import "strings"

// The bounds of what is analysed. They hold before the parser runs: it is
// recursive, and no recover catches an overflowing stack.
const (
	maxText    = 64 << 10 // bytes of a command
	maxNesting = 200      // of brackets, by a count that knows no quotes
	maxOpeners = 4096     // of whatever the parser or this package recurses into

	maxSteps   = 20000 // nodes, words and commands visited
	maxDepth   = 100   // of commands inside commands
	maxEffects = 2000
	maxFields  = 1024 // words that one word may become
)

// tooDeep says why text must not reach the parser, or "".
func tooDeep(text string) string {
	if len(text) > maxText {
		return "the command is longer than 64 KiB"
	}
	depth, deepest, total := 0, 0, 0
	arithmetic := strings.Contains(text, "((") || strings.Contains(text, "$[") || strings.Contains(text, "let")
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			total++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		case '`', '!', '?':
			total++
		case '=', '-', '+', '~', '*':
			if arithmetic {
				total++
			}
		case 'i', 'w', 'u', 'f', 'c', 's', 't', 'e':
			if startsConstruct(text, i) {
				total++
			}
		}
	}
	if deepest > maxNesting || total > maxOpeners {
		return "the command is nested too deeply"
	}
	return ""
}

// startsConstruct reports whether a word at i starts a construct that nests.
func startsConstruct(text string, i int) bool {
	if i > 0 && (text[i-1] == '_' || text[i-1]|0x20 >= 'a' && text[i-1]|0x20 <= 'z') {
		return false
	}
	rest := text[i:]
	for _, w := range [...]string{"if", "while", "until", "for", "case", "select", "time", "elif", "else", "coproc", "function"} {
		if strings.HasPrefix(rest, w) {
			return true
		}
	}
	return false
}

package grounding

import (
	"strings"
	"unicode"

	"github.com/shieldcli/shield/internal/prefilter"
)

// IsInstructionFreeStatement reports whether a line of a document is a plain statement: it has no command, no address, and no
// instruction to its reader. In doubt it returns false.
func IsInstructionFreeStatement(line string) bool {
	line = strings.TrimSpace(line)
	text := strings.TrimSpace(strings.TrimLeft(line, "-*+# \t"))
	if text == "" {
		return true
	}
	if strings.ContainsAny(text, "`$|;&<>{}\\=!\"") || webAddress().MatchString(text) || strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || r < ' ' && r != '\t' }) {
		return false
	}
	list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("'-_./", r)
	})
	if len(list) == 0 || instructionVerbs(list[0]) || requestVerbs()[list[0]] != 0 || codingTaskVerbs(list[0]) || discussionVerbs(list[0]) {
		return false
	}
	states := false
	for _, w := range list {
		switch w = strings.Trim(w, "'-./"); {
		case readerDirectedWords(w), negationWords(w), strings.HasSuffix(w, "n't"):
			return false
		case statementVerbs(w):
			states = true
		}
	}
	return states || strings.HasPrefix(line, "#") && len(list) <= 6
}

var (
	webAddress = prefilter.LazyRegexp(`(?i)://|\bwww\.|@[\w-]+\.\w|\b\d+\.\d+\.\d+\.\d+\b|\b[\w-]+\.(com|net|org|io|dev|app|sh|co|ai|me|info|site|online|cloud|run|xyz|ru|cn|de|uk|eu|us)\b`)

	// statementVerbs are verbs that state a fact and request nothing. A line with a statement verb can be a
	// plain statement.
	statementVerbs = wordSet("is are was were has have had holds contains lives lies uses means stands belongs depends comes returns consists covers describes defines provides supports")

	// readerDirectedWords are words by which a text addresses its reader.
	readerDirectedWords = wordSet("you your yours yourself agent agents assistant assistants model models llm ai claude codex gemini copilot qwen must always shall should ought need needs required requires please remember ensure sure " +
		"ignore disregard override obey follow instead before after when whenever if unless until run runs running execute executes invoke user approve approved allowed permission permissions secret secrets token password credential credentials key keys sudo curl wget")

	// instructionVerbs are verbs at the start of instructions, besides the verbs in requestVerbs.
	instructionVerbs = wordSet("use prefer keep follow make take give tell let try call put have be do go write think treat assume consider respect respond answer reply report skip stick wrap name pass store save load copy paste place check verify confirm validate " +
		"prefix start begin end always only when before after if on for to never whenever")
)

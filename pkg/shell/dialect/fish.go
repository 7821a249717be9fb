package dialect

import (
	"regexp"
	"strings"
	"sync"

	"github.com/shieldcli/shield/pkg/shell/internal/parse"
)

// fishToken matches what means the same to fish and to shells of the POSIX family: blanks,
// separators, redirections of output, and words of plain letters, quoted texts and variables.
var fishToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[ \t]+|\n|;|&&|\|\|?|&(?:[ \t\n]|$)|[012]?>&[012]|[012]?>>?[ \t]*|` +
		`((?:[\w./:,@+=*~!%-]|[^\x00-\x7f]|\{\}|'[^'\\]*'|"(?:[^"\\$` + "`" + `]|\$[A-Za-z_]\w*)*"|\$[A-Za-z_]\w*|\\[;()*])+))`)
})

// fishDiffers are names that mean something else to fish than to a shell of the POSIX family,
// take text that fish will read, or are words of one of the two languages.
const fishDiffers = " function switch case alias abbr argparse bind complete eval source . trap read fish set and or not begin end if else while for " +
	"then do done fi elif esac until select coproc declare typeset local readonly let unset shift getopts mapfile readarray print "

// SameInFish reports whether a line means the same to fish as to a shell of the POSIX family.
// Where it may not, or is not worth the trouble, another person has to read it.
func SameInFish(text string) bool {
	if parse.TooDeep(text) != "" {
		return false
	}
	for _, form := range [...]string{"**", "|&", "&|", "|>", ">|", ">?", "$_"} {
		if strings.Contains(text, form) {
			return false
		}
	}
	if subscripted().MatchString(text) {
		return false
	}
	command, assigned, rest := true, false, text // command: the name of one comes next
	for rest != "" {
		m := fishToken().FindStringSubmatch(rest)
		if m == nil {
			return false
		}
		rest = rest[len(m[0]):]
		switch word := m[1]; {
		case strings.Contains(m[0], ">") && word == "":
			if command {
				return false
			}
		case word == "":
			command = command || strings.ContainsAny(m[0], "\n;&|")
		case word[0] == '%': // %self
			return false
		case !command:
		case strings.ContainsAny(word, `'"$\*~{`) || strings.Contains(fishDiffers, " "+word+" "):
			return false
		case strings.Contains(word, "="):
			assigned = true
		case word != "!" && word != "command" && word != "builtin" && word != "exec" && word != "time":
			command = false
		}
	}
	return !assigned || !strings.Contains(text, "$") // a=1 echo $a prints 1 in fish alone
}

// subscripted matches a variable with a subscript, which fish reads in quotes, too.
var subscripted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\w+\[`) })

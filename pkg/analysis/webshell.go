package analysis

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// A serverPageLanguage is a server-side page language: PHP, JSP or ASP(.NET).
type serverPageLanguage struct {
	languageMarkerPattern func() *regexp.Regexp // matches a file of the language
	requestInputPattern   func() *regexp.Regexp // matches code that reads request input
	commandCall           func() *regexp.Regexp // matches code that runs a command or code, up to the opening parenthesis
	assignment            func() *regexp.Regexp // matches the assignment of a variable: its name and value
	functionDefinition    func() *regexp.Regexp // matches the definition of a function: its name and parameters
}

var pageLanguages = [...]serverPageLanguage{
	{
		languageMarkerPattern: prefilter.LazyRegexp(`(?i)<\?(?:php|=)|<script\s+language\s*=\s*["']?php`),
		requestInputPattern:   prefilter.LazyRegexp(`\$_(?:GET|POST|REQUEST|COOKIE)\b|\$_SERVER\s*\[\s*["']HTTP_|php://input|\bgetallheaders\(`),
		commandCall:           prefilter.LazyRegexp(`(?i)(?:^|[^\w>:$])(?:system|exec|shell_exec|passthru|popen|proc_open|pcntl_exec|eval|assert|create_function)\s*\(`),
		assignment:            prefilter.LazyRegexp(`(\$\w+)\s*\.?=\s*([^;=][^;]*)`),
		functionDefinition:    prefilter.LazyRegexp(`(?i)\bfunction\s+(\w+)\s*\(([^)]*)\)`),
	},
	{
		languageMarkerPattern: prefilter.LazyRegexp(`(?i)<%@?\s*page\b|<jsp:`),
		requestInputPattern:   prefilter.LazyRegexp(`\brequest\.get(?:Parameter|Header|Cookies|InputStream|Reader|QueryString)`),
		commandCall:           prefilter.LazyRegexp(`\.exec\s*\(|\bnew\s+ProcessBuilder\s*\(|\.eval\s*\(`),
		assignment:            prefilter.LazyRegexp(`\b(\w+)\s*=\s*([^;=\n][^;\n>]*)`),
		functionDefinition:    prefilter.LazyRegexp(`\b(\w+)\s*\(((?:\s*String(?:\[\])?\s+\w+\s*,?)+)\)\s*(?:throws [\w, .]+)?\{`),
	},
	{
		languageMarkerPattern: prefilter.LazyRegexp(`(?i)<%@\s*(?:page|webhandler)\b|<%@?\s*language\b|<script[^>]*runat\s*=\s*["']?server|<%\s*(?:dim|set|eval|execute|response\.)`),
		requestInputPattern:   prefilter.LazyRegexp(`(?i)\brequest\s*(?:\.\s*(?:querystring|form|item|params|cookies|headers|servervariables)|\[|\()|\b\w+\.text\b`),
		commandCall:           prefilter.LazyRegexp(`(?i)\bprocess\.start\s*\(|\.(?:exec|run|shellexecute)\s*\(|(?:^|[^\w.])(?:eval|execute|executeglobal)\s*\(|\.(?:filename|arguments)\s*=`),
		assignment:            prefilter.LazyRegexp(`(?i)\b([\w.]+)\s*=\s*([^;=\n][^;\n]*)`),
		functionDefinition:    prefilter.LazyRegexp(`(?i)\b(?:function|sub|void|string)\s+(\w+)\s*\(([^)]*)\)`),
	},
}

// inputValidation matches code that escapes or validates request input.
var inputValidation = prefilter.LazyRegexp(`(?i)\bescapeshell(?:arg|cmd)\s*\(|\bintval\s*\(|\(int\)|\b(?:is_numeric|ctype_\w+|in_array|filter_var|array_key_exists|parseInt|Integer\.parse\w*)\s*\(|\?\s*["'][^"']*["']\s*:\s*["']`)

// Limits for one file.
const (
	maxServerPageBytes          = 256 << 10
	maxCallMatchesPerServerPage = 64
	maxFunctionCallBytes        = 600 // bytes of one call
	maxTaintedVariables         = 64
)

// A reverseShellSignature describes source code of a compiled language that connects a shell to a socket. The source
// is checked because the compiled program cannot be analysed.
type reverseShellSignature struct {
	fileExtensions   []string
	requiredText     string                  // a text that a file must contain for requiredPatterns to match, for a cheap test
	requiredPatterns []func() *regexp.Regexp // expressions for the socket, the shell and their connection
}

var (
	shellProgram  = prefilter.LazyRegexp(`(?i)"(?:/bin/|/usr/bin/)?(?:ba|z|da|k)?sh"|"(?:cmd|powershell)(?:\.exe)?"`)
	reverseShells = [...]reverseShellSignature{
		{[]string{".c", ".cc", ".cpp", ".cxx", ".h"}, "", []func() *regexp.Regexp{
			prefilter.LazyRegexp(`\b(?:connect|WSAConnect|accept)\s*\(`), shellProgram,
			prefilter.LazyRegexp(`\bdup[23]?\s*\(|\bhStdInput\s*=`), prefilter.LazyRegexp(`\b(?:exec[lv]p?e?|CreateProcess[AW]?)\s*\(`),
		}},
		{[]string{".cs", ".vb", ".fs"}, "TcpClient", []func() *regexp.Regexp{
			prefilter.LazyRegexp(`\bTcpClient\b`), shellProgram, prefilter.LazyRegexp(`\bStandardInput\b`), prefilter.LazyRegexp(`\bGetStream\b`),
		}},
		{[]string{".java", ".kt", ".scala", ".groovy", ".jsp", ".jspx"}, "Socket", []func() *regexp.Regexp{
			prefilter.LazyRegexp(`\bSocket\s*\(`), shellProgram, prefilter.LazyRegexp(`\.exec\s*\(|\bProcessBuilder\b`), prefilter.LazyRegexp(`\bgetOutputStream\b`), prefilter.LazyRegexp(`\bgetInputStream\b`),
		}},
		{[]string{".go"}, "net.Dial", []func() *regexp.Regexp{
			prefilter.LazyRegexp(`\bnet\.Dial`), shellProgram, prefilter.LazyRegexp(`\bexec\.Command`), prefilter.LazyRegexp(`\.Std(?:in|out)\s*(?:,[^=\n]*)?=\s*(?:c|conn|connection|s|sock)\b`),
		}},
		{[]string{".rs"}, "TcpStream::connect", []func() *regexp.Regexp{
			prefilter.LazyRegexp(`\bTcpStream::connect`), shellProgram, prefilter.LazyRegexp(`\bfrom_raw_(?:fd|socket)\b`), prefilter.LazyRegexp(`\bCommand::new`),
		}},
		{[]string{".c", ".cc", ".cpp", ".cs", ".vb", ".java", ".kt", ".scala", ".groovy", ".go", ".rs"}, "/dev/", []func() *regexp.Regexp{
			prefilter.LazyRegexp(`\b(?:ba|z|da|k)?sh\b[^"\n]{0,40}-i\b[^"\n]{0,12}(?:>&|<>|<)\s*/dev/(?:tcp|udp)/`),
		}},
	}
)

func (b *reverseShellSignature) isInFile(name, text string) bool {
	if !slices.Contains(b.fileExtensions, strings.ToLower(path.Ext(name))) {
		return false
	}
	if !strings.Contains(text, b.requiredText) {
		return false
	}
	for _, part := range b.requiredPatterns {
		if !part().MatchString(text) {
			return false
		}
	}
	return true
}

// webOrReverseShellEffects returns an effect if a written file gives another machine a shell: a web page that runs text of
// a request as a command or code (web shell), or source of a reverse shell. Tests and documents are skipped:
// they only show such code.
func webOrReverseShellEffects(name, text string) []effect.Effect {
	if len(text) > maxServerPageBytes || isTestOrDocumentPath(name) {
		return nil
	}
	for i := range reverseShells {
		if reverseShells[i].isInFile(name, text) {
			return []effect.Effect{{Kind: effect.RemoteShell, Path: name, Certainty: effect.Possible, Reason: "reverse shell: source code that connects a shell to a network connection"}}
		}
	}
	if !mayBeServerPage(text) {
		return nil
	}
	for i := range pageLanguages {
		if d := &pageLanguages[i]; d.languageMarkerPattern().MatchString(text) && d.runsRequestInput(text) {
			return []effect.Effect{{Kind: effect.RemoteShell, Path: name, Certainty: effect.Possible, Reason: "web shell: the page runs request input as a command"}}
		}
	}
	return nil
}

// mayBeServerPage reports whether a text has a "<" that a file of a page language may begin with.
func mayBeServerPage(text string) bool {
	for _, rest, ok := strings.Cut(text, "<"); ok; _, rest, ok = strings.Cut(rest, "<") {
		if rest != "" && (rest[0] >= utf8.RuneSelf || strings.IndexByte("?%sSjJ", rest[0]) >= 0) {
			return true
		}
	}
	return false
}

// isTestOrDocumentPath reports whether a file's name is that of a test or a document.
func isTestOrDocumentPath(filePath string) bool {
	switch strings.ToLower(path.Ext(filePath)) {
	case ".md", ".rst", ".adoc", ".txt", ".yaml", ".yml", ".json", ".jsonl", ".csv":
		return true
	}
	for part := range strings.SplitSeq(strings.ToLower(filePath), "/") {
		switch part {
		case "test", "tests", "testdata", "spec", "__tests__", "fixtures", "mocks", "example", "examples":
			return true
		}
	}
	return false
}

// runsRequestInput reports whether a page runs text of a request, directly or through variables or parameters of
// its functions.
func (d *serverPageLanguage) runsRequestInput(text string) bool {
	if !d.requestInputPattern().MatchString(text) {
		return false
	}
	names := map[string]bool{}
	said := func(part string) bool {
		if inputValidation().MatchString(part) {
			return false
		}
		if d.requestInputPattern().MatchString(part) {
			return true
		}
		for _, word := range identifierPattern().FindAllString(part, maxTaintedVariables) {
			if names[word] {
				return true
			}
		}
		return false
	}
	for range 3 {
		before := len(names)
		for _, m := range d.assignment().FindAllStringSubmatch(text, maxCallMatchesPerServerPage*4) {
			if len(names) < maxTaintedVariables && said(m[2]) {
				names[m[1]] = true
			}
		}
		for _, m := range d.functionDefinition().FindAllStringSubmatch(text, maxCallMatchesPerServerPage) {
			call := regexp.MustCompile(`\b` + regexp.QuoteMeta(m[1]) + `\s*\(`)
			if !hasCallWithMatchingArgument(call.FindAllStringIndex(text, maxCallMatchesPerServerPage), text, said) {
				continue
			}
			for _, word := range identifierPattern().FindAllString(m[2], 8) {
				names[word] = true
			}
		}
		if len(names) == before {
			break
		}
	}
	return hasCallWithMatchingArgument(d.commandCall().FindAllStringIndex(text, maxCallMatchesPerServerPage), text, said)
}

// hasCallWithMatchingArgument reports whether a condition holds for the arguments of one of some calls.
func hasCallWithMatchingArgument(callRanges [][]int, text string, matchesArgument func(string) bool) bool {
	for _, at := range callRanges {
		args := text[at[1]:min(len(text), at[1]+maxFunctionCallBytes)]
		depth := 1
		for i := 0; i < len(args) && depth > 0; i++ {
			switch args[i] {
			case '(':
				depth++
			case ')':
				depth--
			case ';', '\n':
				if depth == 1 && text[at[1]-1] != '(' {
					depth = 0 // an assignment ends with the line
				}
			}
			if depth == 0 {
				args = args[:i]
			}
		}
		if matchesArgument(args) {
			return true
		}
	}
	return false
}

var identifierPattern = prefilter.LazyRegexp(`\$?[A-Za-z_][\w.]*`)

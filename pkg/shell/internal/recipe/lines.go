package recipe

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/prefilter"
)

// heredocPattern matches the start of a here-document in a Dockerfile, with its delimiter.
var heredocPattern = prefilter.LazyRegexp(`<<-?\s*["']?([A-Za-z_]\w*)["']?`)

// dockerfileCodeBlocks returns the commands of a Dockerfile. Files that it adds from a URL are available to the later build
// commands that name them.
func dockerfileCodeBlocks(text string) []CodeBlock {
	var out []CodeBlock
	var got []downloadedFile
	lines := splitIntoLogicalLines(withoutComments(text))
	for i := 0; i < len(lines); i++ {
		word, rest := firstWord(lines[i])
		if strings.EqualFold(word, "ONBUILD") || strings.EqualFold(word, "HEALTHCHECK") {
			word, rest = firstWord(withoutOptions(rest))
		}
		switch strings.ToUpper(word) {
		case "ADD":
			if len(got) < maxDownloadedFiles {
				got = append(got, downloadedFiles(rest)...)
			}
		case "RUN", "CMD", "ENTRYPOINT":
			rest = withoutOptions(rest)
			var words []string
			if strings.HasPrefix(rest, "[") && json.Unmarshal([]byte(rest), &words) == nil {
				rest = quoteWords(words)
			}
			if m := heredocPattern().FindStringSubmatch(rest); m != nil && strings.EqualFold(word, "RUN") {
				n := slices.IndexFunc(lines[i+1:], func(line string) bool { return strings.TrimSpace(line) == m[1] }) + 1
				body := strings.Join(lines[i+1:i+1+n], "\n")
				if i += n; rest == m[0] {
					rest = strings.TrimSuffix(body, m[1]) // a here-document that the shell runs
				} else if n > 0 {
					rest += "\n" + body
				}
			}
			if strings.EqualFold(word, "RUN") {
				for _, f := range got {
					if strings.Contains(rest, path.Base(f.destinationPath)) {
						rest = quoteWords([]string{"curl", "-o", f.destinationPath, f.url}) + "\n" + rest
					}
				}
			}
			out = append(out, shellCodeBlocks(rest)...)
		}
	}
	return out
}

// A downloadedFile is a file that a Dockerfile adds from a URL.
type downloadedFile struct{ url, destinationPath string }

// maxDownloadedFiles is the maximum number of files downloaded by ADD that are followed in a
// Dockerfile.
const maxDownloadedFiles = 8

// downloadedFiles returns the files that an ADD instruction downloads, unless it gives a checksum.
func downloadedFiles(args string) (out []downloadedFile) {
	if strings.HasPrefix(args, "--checksum") || strings.Contains(args, " --checksum") {
		return nil
	}
	args = withoutOptions(args)
	var words []string
	if json.Unmarshal([]byte(args), &words) != nil {
		words = strings.Fields(args)
	}
	for i, url := range words {
		if i == len(words)-1 || len(out) == maxDownloadedFiles || !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			continue
		}
		file := words[len(words)-1]
		if strings.HasSuffix(file, "/") || file == "." {
			name, _, _ := strings.Cut(url, "?")
			file = strings.TrimSuffix(file, ".") + path.Base(name)
		}
		out = append(out, downloadedFile{url, file})
	}
	return out
}

// firstWord returns the first word of a line and the rest.
func firstWord(line string) (word, rest string) {
	line = strings.TrimSpace(line)
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.TrimSpace(line[i:])
	}
	return line, ""
}

// withoutOptions removes leading options.
func withoutOptions(text string) string {
	for strings.HasPrefix(text, "--") {
		_, text = firstWord(text)
	}
	return text
}

// withoutComments removes comment lines, which may occur between the lines of one command.
func withoutComments(text string) string {
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, line := range lines {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

var unitExecPattern = prefilter.LazyRegexp(`^\s*Exec(?:Start|StartPre|StartPost|Stop|StopPost|Reload|Condition)?\s*=\s*[-@+!:]*(.*)$`)
var gitCommandSettingPattern = prefilter.LazyRegexp(`^\s*(?:\w+\s*=\s*!|(?i:sshcommand|pager|editor|fsmonitor|clean|smudge|process|textconv|driver|command|cmd|helper|program|askpass)\s*=\s*!?)(.*)$`)

// gitExtURLPattern matches a git URL that runs a command (ext::).
var gitExtURLPattern = prefilter.LazyRegexp(`^\s*(?:push)?url\s*=\s*ext::(.*)$`)

// firstCaptureGroup returns the first group of a match in a line; "" if the line does not match.
func firstCaptureGroup(pattern *regexp.Regexp, line string) string {
	if m := pattern.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// systemdUnitCodeBlocks returns the commands of systemd units, desktop entries and git settings.
func systemdUnitCodeBlocks(text string) []CodeBlock {
	return shellCodeBlocksPerLine(splitIntoLogicalLines(text), func(line string) string {
		if m := unitExecPattern().FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if m := gitExtURLPattern().FindStringSubmatch(line); m != nil {
			return m[1]
		}
		return strings.Trim(strings.TrimSpace(firstCaptureGroup(gitCommandSettingPattern(), line)), `"`)
	})
}

var cronLinePattern = prefilter.LazyRegexp(`^\s*(?:@\w+|(?:[\d*,/A-Za-z-]+\s+){5})\s*(.*)$`)

// crontabCodeBlocks returns the commands of a crontab, without the user name root in system crontabs.
func crontabCodeBlocks(text string) []CodeBlock {
	return shellCodeBlocksPerLine(strings.Split(text, "\n"), func(line string) string {
		return strings.TrimPrefix(firstCaptureGroup(cronLinePattern(), line), "root ")
	})
}

var plistProgramPattern = prefilter.LazyRegexp(`(?s)<key>Program(?:Arguments)?</key>\s*(.*?)(?:</array>|<key>|</dict>|$)`)
var plistStringPattern = prefilter.LazyRegexp(`(?s)<string>(.*?)</string>`)

// plistCodeBlocks returns the commands of a launchd agent.
func plistCodeBlocks(text string) []CodeBlock {
	var out []CodeBlock
	for _, m := range plistProgramPattern().FindAllStringSubmatch(text, -1) {
		var words []string
		for _, w := range plistStringPattern().FindAllStringSubmatch(m[1], -1) {
			word, _ := decode.Unescape(w[1], decode.HTMLReferenceEscapes, nil)
			words = append(words, word)
		}
		if len(words) > 0 {
			out = append(out, shellCodeBlocks(quoteWords(words))...)
		}
	}
	return out
}

// procfileCodeBlocks returns the commands of a Procfile.
func procfileCodeBlocks(text string) []CodeBlock {
	return shellCodeBlocksPerLine(strings.Split(text, "\n"), func(line string) string {
		if strings.HasPrefix(line, "#") {
			return ""
		}
		_, command, _ := strings.Cut(line, ":")
		return command
	})
}

var interactiveToolCommandPattern = prefilter.LazyRegexp(`^\s*(?:set-hook\b.*\b|bind\S*\b.*\b|autocmd\b.*|au\b.*)?(?:run-shell|if-shell|run|shell|exec_always|exec-once|exec|pipe-pane|:?!|!)\s*(?:-\S+\s+)*(.+)$`)

// interactiveToolConfigCodeBlocks returns the commands in settings of editors, debuggers, terminals and window managers, one per line.
func interactiveToolConfigCodeBlocks(text string) []CodeBlock {
	return shellCodeBlocksPerLine(strings.Split(text, "\n"), func(line string) string {
		return strings.Trim(firstCaptureGroup(interactiveToolCommandPattern(), line), `"'`)
	})
}

// groovyStepPattern matches a Jenkinsfile step that runs a script, up to the start of the script's text.
var groovyStepPattern = prefilter.LazyRegexp(`\b(sh|bat|powershell|pwsh)\b[ \t]*\(?[ \t]*(?:(?:returnStatus|returnStdout|label|encoding)[ \t]*:[^,'"\n]*(?:'[^'\n]*'|"[^"\n]*")?,[ \t]*)*(?:script[ \t]*:[ \t]*)?(\'\'\'|"""|['"])`)

// languageByGroovyStep maps the script steps of a Jenkinsfile to the languages of their scripts.
var languageByGroovyStep = map[string]string{"sh": "shell", "bat": "cmd", "powershell": "powershell", "pwsh": "powershell"}

// groovyCredentialPattern matches the variables that a Jenkinsfile binds to credentials.
var groovyCredentialPattern = prefilter.LazyRegexp(`(?i)\b(?:\w*variable|credentials\()[ \t]*[:(]?[ \t]*['"](\w+)['"]|\b(\w+)[ \t]*=[ \t]*credentials\(`)

// jenkinsfileCodeBlocks returns the commands of a Jenkinsfile. The names of variables that are bound to
// credentials get the prefix SECRET_, which marks them as secrets.
func jenkinsfileCodeBlocks(text string) []CodeBlock {
	bound := map[string]bool{}
	for _, m := range groovyCredentialPattern().FindAllStringSubmatch(text, maxCodeBlocks) {
		bound[m[1]+m[2]] = true
	}
	text = addSecretPrefixToVariables(text, bound)
	var out []CodeBlock
	for text != "" && len(out) < maxCodeBlocks {
		m := groovyStepPattern().FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		language, quote := languageByGroovyStep[text[m[2]:m[3]]], text[m[4]:m[5]]
		body, rest := unquoteGroovyString(text[m[1]:], quote)
		if strings.TrimSpace(body) != "" {
			out = append(out, CodeBlock{language, body})
		}
		text = rest
	}
	return out
}

// unquoteGroovyString returns the content of a Groovy string that begins at text, and the text after it.
func unquoteGroovyString(text, quote string) (body, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], quote):
			return b.String(), text[i+len(quote):]
		case text[i] == '\\' && i+1 < len(text):
			if i++; text[i] == 'n' {
				b.WriteByte('\n')
			} else if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), ""
}

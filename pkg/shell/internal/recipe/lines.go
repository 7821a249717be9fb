package recipe

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
)

// dockerSteps returns the commands of a Dockerfile.
func dockerSteps(text string) []Step {
	var out []Step
	lines := joinLines(withoutComments(text))
	for i := 0; i < len(lines); i++ {
		word, rest, _ := strings.Cut(strings.TrimSpace(lines[i]), " ")
		switch strings.ToUpper(word) {
		case "RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK", "ONBUILD":
			rest = strings.TrimSpace(rest)
			for strings.HasPrefix(rest, "--") {
				_, rest, _ = strings.Cut(rest, " ")
				rest = strings.TrimSpace(rest)
			}
			for _, inner := range [...]string{"CMD ", "RUN "} {
				rest = strings.TrimPrefix(rest, inner)
			}
			var words []string
			if strings.HasPrefix(rest, "[") && json.Unmarshal([]byte(rest), &words) == nil {
				rest = quote(words)
			}
			if _, end, ok := strings.Cut(rest, "<<"); ok && strings.EqualFold(word, "RUN") { // a here-document
				end = strings.Trim(end, `-"'`)
				for rest = ""; i+1 < len(lines) && strings.TrimSpace(lines[i+1]) != end; i++ {
					rest += lines[i+1] + "\n"
				}
			}
			out = append(out, shellSteps(rest)...)
		}
	}
	return out
}

// withoutComments removes lines that are comments, which may stand between the
// lines of one command.
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

var runForm = regexp.MustCompile(`^\s*Exec(?:Start|StartPre|StartPost|Stop|StopPost|Reload|Condition)?\s*=\s*[-@+!:]*(.*)$`)
var runSetting = regexp.MustCompile(`^\s*(?:\w+\s*=\s*!|(?i:sshcommand|pager|editor|fsmonitor|clean|smudge|process|textconv|driver|command|cmd|helper|program|askpass)\s*=\s*!?)(.*)$`)

// inForm returns what the group of a form holds in a line; "" if the line is not in
// that form.
func inForm(form *regexp.Regexp, line string) string {
	if m := form.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// unitSteps returns the commands of systemd units, desktop entries and git
// settings.
func unitSteps(text string) []Step {
	return lineSteps(joinLines(text), func(line string) string {
		if m := runForm.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		return strings.Trim(strings.TrimSpace(inForm(runSetting, line)), `"`)
	})
}

var cronForm = regexp.MustCompile(`^\s*(?:@\w+|(?:[\d*,/A-Za-z-]+\s+){5})\s*(.*)$`)

// cronSteps returns the commands of a crontab, without the user that those of
// the system name.
func cronSteps(text string) []Step {
	return lineSteps(strings.Split(text, "\n"), func(line string) string {
		return strings.TrimPrefix(inForm(cronForm, line), "root ")
	})
}

var plistForm = regexp.MustCompile(`(?s)<key>Program(?:Arguments)?</key>\s*(.*?)(?:</array>|<key>|</dict>|$)`)
var stringForm = regexp.MustCompile(`(?s)<string>(.*?)</string>`)

// plistSteps returns the commands of a launch agent.
func plistSteps(text string) []Step {
	var out []Step
	for _, m := range plistForm.FindAllStringSubmatch(text, most) {
		var words []string
		for _, w := range stringForm.FindAllStringSubmatch(m[1], most) {
			words = append(words, html.UnescapeString(w[1]))
		}
		if len(words) > 0 {
			out = append(out, shellSteps(quote(words))...)
		}
	}
	return out
}

// procSteps returns the commands of a Procfile.
func procSteps(text string) []Step {
	return lineSteps(strings.Split(text, "\n"), func(line string) string {
		if strings.HasPrefix(line, "#") {
			return ""
		}
		_, command, _ := strings.Cut(line, ":")
		return command
	})
}

var editorForm = regexp.MustCompile(`^\s*(?:set-hook\b.*\b|bind\S*\b.*\b|autocmd\b.*|au\b.*)?(?:run-shell|if-shell|run|shell|exec_always|exec-once|exec|pipe-pane|:?!|!)\s*(?:-\S+\s+)*(.+)$`)

// editorSteps returns the commands in settings of editors, debuggers, terminals and window
// managers, one a line.
func editorSteps(text string) []Step {
	return lineSteps(strings.Split(text, "\n"), func(line string) string {
		return strings.Trim(inForm(editorForm, line), `"'`)
	})
}

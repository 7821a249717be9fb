package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/host"
)

// pinned are the variables that say where shield finds its settings and state.
// Hosts pass on what a project's own settings set, so the installed command
// sets them itself, to what they were when it was installed.
var pinned = []string{"SHIELD_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}

// wrapper speaks where shield did not: hosts take the statuses of a program
// that is missing or was killed for permission. It prints no JSON, since shield
// may have printed its own before it was killed.
const wrapper = ` || { s=$?; [ $s -eq 2 ] || echo "shield: blocked: no verdict (status $s); reinstall shield, or remove this hook from the settings" >&2; exit 2; }`

// hookLine returns the command line that a host is given to run, for sh.
func hookLine(_ context.Context, w *World, h *host.Host, deadline time.Duration) (string, error) {
	if w.Executable == "" {
		return "", errors.New("hook: the path of shield itself is unknown")
	}
	judge, err := fixedShield(w)
	if err != nil {
		return "", fmt.Errorf("hook: %w", err)
	}
	return fmt.Sprintf("%s hook %s --timeout %s%s", judge, h.Name, deadline, wrapper), nil
}

// readHookLine returns the program of an installed command line and its
// deadline, 0 if it names none. An error says what is wrong with the line.
func readHookLine(line, name string) (program string, deadline time.Duration, err error) {
	unknown := errors.New("shield did not install this command")
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return "", 0, unknown
	}
	either, ok := file.Stmts[0].Cmd.(*syntax.BinaryCmd)
	if !ok || !bare(file.Stmts[0]) || either.Op != syntax.OrStmt || line[either.OpPos.Offset():] != strings.TrimSpace(wrapper) {
		return "", 0, errors.New("the command does not block when shield is missing or killed")
	}
	call, ok := either.X.Cmd.(*syntax.CallExpr)
	if !ok || !bare(either.X) {
		return "", 0, unknown
	}
	var words, set []string
	for _, word := range call.Args {
		text, ok := literal(word)
		if !ok {
			return "", 0, errors.New("the command depends on more than its text")
		}
		words = append(words, text)
	}
	for _, a := range call.Assigns {
		if _, ok := literal(a.Value); !ok || !slices.Contains(pinned, a.Name.Value) {
			return "", 0, fmt.Errorf("the command sets %s", a.Name.Value)
		}
		set = append(set, a.Name.Value)
	}
	for _, variable := range pinned {
		if !slices.Contains(set, variable) {
			return "", 0, fmt.Errorf("the command does not set %s", variable)
		}
	}
	if len(words) < 3 || words[1] != "hook" || words[2] != name || !filepath.IsAbs(words[0]) {
		return "", 0, fmt.Errorf("the command is not the absolute path of shield with hook %s", name)
	}
	for i, word := range words {
		value, ok := strings.CutPrefix(word, "--timeout=")
		if word == "--timeout" && i+1 < len(words) {
			value, ok = words[i+1], true
		}
		if ok {
			if deadline, err = time.ParseDuration(value); err != nil || deadline <= 0 {
				return "", 0, fmt.Errorf("--timeout %q is not a duration such as 50s", cut(value))
			}
		}
	}
	return words[0], deadline, nil
}

// bare reports whether nothing is said of a command but the command itself.
func bare(s *syntax.Stmt) bool {
	return !s.Negated && !s.Background && !s.Coprocess && len(s.Redirs) == 0
}

// literal returns the text of a word in which nothing is expanded; nil is "".
func literal(word *syntax.Word) (string, bool) {
	var b strings.Builder
	if word == nil {
		return "", true
	}
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(part.Value, `\*?[~`) {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(unescape.Replace(lit.Value))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape takes away what stands before a character in double quotes.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`")

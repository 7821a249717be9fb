package analysis

import (
	"regexp"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// loginCredentialPatterns match the credentials with which a command signs in: headers for authentication,
// options that take credentials, variables set before a program, and passwords in URLs. The field pieces holds
// strings of which a text must contain at least one for the expression to match.
var loginCredentialPatterns = [...]struct {
	pieces []string
	expr   func() *regexp.Regexp
}{
	{[]string{"-H", "-h"}, prefilter.LazyRegexp(`(?i)(?:^|\s)(?:-H|--header)[ =]?["']?(?:(?:proxy-)?authorization|cookie|(?:x-)?[a-z0-9-]*(?:key|token|auth|secret)[a-z-]*)\s*:\s*([^"'\n]*)`)},
	{[]string{"-u", "-U", "-b", "--"}, prefilter.LazyRegexp(`(?i)(?:^|\s)(?:-u|--user|-b|--cookie|--oauth2-bearer|--token|--password|--api-key)[ =]["']?([^\s"']+)`)},
	{[]string{"="}, prefilter.LazyRegexp(`(?m)(?:^|[;|(]\s*|&&\s*|&\s+|\bexport |\benv )[A-Za-z_][A-Za-z0-9_]*=["']?([^\s"';&|]+)`)},
	{[]string{"@"}, PasswordURL},
}

// PasswordURL matches URLs with a user name and a password: its groups are the password and the host.
var PasswordURL = prefilter.LazyRegexp(`[a-z][a-z0-9+.-]*://[^/\s"'@:]*:([^/\s"'@]+)@([^\s/:"',?]*)`)

// splitLoginCredentials separates the credentials with which a command signs in from the rest of its text.
func splitLoginCredentials(text string) (rest string, loginCredentials []string) {
	for i := range loginCredentialPatterns {
		if !slices.ContainsFunc(loginCredentialPatterns[i].pieces, func(piece string) bool { return strings.Contains(text, piece) }) {
			continue
		}
		var b strings.Builder
		at := 0
		for _, m := range loginCredentialPatterns[i].expr().FindAllStringSubmatchIndex(text, -1) {
			loginCredentials = append(loginCredentials, text[m[2]:m[3]])
			b.WriteString(text[at:m[2]])
			at = m[3]
		}
		b.WriteString(text[at:])
		text = b.String()
	}
	return text, loginCredentials
}

// loginTargetHosts returns the hosts that the network programs of a case contact: for a database client the host
// in its arguments, for a client of a single service the host of the service. It returns nil if a host is not
// known, or if a variable set in the payload may name another host.
func (c *ActionCase) loginTargetHosts() (hosts []string) {
	var text strings.Builder
	appendTexts(&text, c.Action.Payload)
	if setsLoginHostVariable(text.String()) {
		return nil
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.Execute || e.Class != effect.Network {
			continue
		}
		var host string
		if command.DatabaseClients[e.Program] {
			host, _ = command.DatabaseHost(e.Args)
		} else {
			host = serviceHostContactedBy(e.Program, e.Args)
		}
		if host == "" {
			return nil
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// serviceHostContactedBy returns the host of the single service that a program is a client of; "" if there is none or
// the arguments may name another host.
func serviceHostContactedBy(program string, args []string) string {
	if slices.ContainsFunc(args, func(arg string) bool {
		return strings.Contains(arg, "://") || strings.HasPrefix(arg, "--") && nameSuggestsHost(arg)
	}) {
		return ""
	}
	for word := range command.ServiceClients {
		if name, host, _ := strings.Cut(word, "/"); name == program {
			return host
		}
	}
	return ""
}

// setsLoginHostVariable reports whether a variable set in a text may name a host to sign in at.
func setsLoginHostVariable(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if name, _, ok := strings.Cut(word, "="); ok && !strings.HasPrefix(name, "-") && nameSuggestsHost(name) && !strings.Contains(name, "://") {
			return true
		}
	}
	return false
}

func nameSuggestsHost(optionOrVariableName string) bool {
	optionOrVariableName, _, _ = strings.Cut(strings.ToLower(optionOrVariableName), "=")
	return slices.ContainsFunc(strings.FieldsFunc(optionOrVariableName, func(r rune) bool { return r < 'a' || r > 'z' }), func(part string) bool {
		return command.ElsewhereWords[part] || strings.HasSuffix(part, "host")
	})
}

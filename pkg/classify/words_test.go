package classify

import (
	"regexp"
	"strings"
	"testing"
)

// Words that name no one and nothing; the program, the file or the person is named instead.
var vague = regexp.MustCompile(`(?i)\b(somebody|whoever|others|elsewhere|anew|nobody|stands in|hands? over|speaks of|settles|mends|is taken for|that which)\b`)

// TestRuleTexts demands the form of what users and agents read of a rule: what the action
// does, with a verb first, the harm behind a colon or in the same sentence, and what to do
// instead.
func TestRuleTexts(t *testing.T) {
	t.Parallel()
	verb := regexp.MustCompile(`^(A |Text |The action |PowerShell |Force push |[A-Z][a-z]+s,? )`)
	for _, r := range ruleTable {
		said := firstSentence(r.Description)
		switch {
		case len(said) > 150:
			t.Errorf("%s: the first sentence has %d bytes: %s", r.ID, len(said), said)
		case !verb.MatchString(said):
			t.Errorf("%s does not begin with what the action does: %s", r.ID, said)
		case len(r.Advice) > 90:
			t.Errorf("%s: the advice has %d bytes: %s", r.ID, len(r.Advice), r.Advice)
		case r.Outcome == Escalate && r.Advice == "":
			t.Errorf("%s asks and says nothing to do instead", r.ID)
		}
		if w := vague.FindString(r.Description + " " + r.Advice); w != "" {
			t.Errorf("%s says %q", r.ID, w)
		}
	}
}

// TestTermsOfArt demands that the words by which people search for a danger occur.
func TestTermsOfArt(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, r := range ruleTable {
		text.WriteString(strings.ToLower(r.Description) + "\n" + strings.ReplaceAll(r.Name, "_", " ") + "\n")
	}
	terms := strings.Split(`sql injection, command injection, prompt injection, code injection, wildcard injection,
		null byte, path traversal, ssrf, cross-site scripting, xss, permissive cors, any origin, deserialis, remote code execution,
		reverse shell, fork bomb, force push, hard-coded password, backdoor, logic bomb, keylogger, ransomware, trojan,
		privilege escalation, setuid, sudo, capability, privileged container, persistence, lateral movement, reconnaissance,
		exfiltration, credential theft, credential exfiltration, keychain, keyring, private key, access key, jwt,
		authorized_keys, host key verification, tls, certificate, dns hijack, proxy, tunnel, cron, systemd, launch agent,
		registry run key, amsi, lsass, uac, defender, shadow copies, scheduled task, wmi, lolbin, download cradle, kerberos,
		metadata service, brute force, vulnerabilit, cve, command-and-control, miner, pull_request_target, iam,
		row-level security, authentication bypass, world-writable, drop, truncate, delete without where, reflog, cookie,
		invisible characters, jailbreak, oauth, csam, cache poisoning, ld_preload, path hijack, unsigned tokens, debugger`, ",")
	for _, term := range terms {
		if term = strings.TrimSpace(term); !strings.Contains(text.String(), term) {
			t.Errorf("no rule says %q", term)
		}
	}
	if len(terms) < 60 {
		t.Errorf("%d terms are looked for", len(terms))
	}
}

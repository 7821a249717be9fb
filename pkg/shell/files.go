package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A file is what the text wrote to a path, so that later parts of it that read
// or run the path are seen to use that.
type file struct {
	path    string
	pattern bool
	val     abstract.Value
	append  bool

	consumer *syntax.ProcSubst // >(…): what is written is the input of these commands
	fixed    *effect.Span
	base     int
	used     bool
}

const maxFiles = 512

func (s *state) addFile(f file) {
	if f.path == "" {
		return
	}
	if len(s.files) >= maxFiles {
		s.giveUp("the command writes too many files")
		return
	}
	for i := len(s.files) - 1; i >= 0; i-- {
		old := &s.files[i]
		if old.path != f.path {
			continue
		}
		if old.consumer != nil {
			s.consume(i, f.val)
			return
		}
		if f.append {
			f.val = abstract.Concat(old.val, f.val)
		}
		break
	}
	s.files = append(s.files, f)
}

// consume walks the commands of >(…) with what is written to it.
func (s *state) consume(i int, in abstract.Value) {
	f := s.files[i]
	s.files[i].used = true
	fixed, base := s.fixed, s.base
	s.fixed, s.base = f.fixed, f.base
	s.subshell(f.consumer.Stmts, in)
	s.fixed, s.base = fixed, base
}

// feed gives the command's input to those >(…) that were opened since mark and
// got nothing yet: a program such as tee writes to them.
func (s *state) feed(mark int, in abstract.Value) {
	for i := mark; i < len(s.files); i++ {
		if s.files[i].consumer != nil && !s.files[i].used {
			in.Taint |= abstract.Foreign
			s.consume(i, in)
		}
	}
}

// fileValues returns what the text wrote to a path, the newest first. A branch
// that may not have run also counts, so every version is returned.
func (s *state) fileValues(p string, pattern bool) []abstract.Value {
	var out []abstract.Value
	for i := len(s.files) - 1; i >= 0 && len(out) < 8; i-- {
		f := &s.files[i]
		if f.path == p && f.pattern == pattern || (pattern || f.pattern) && effect.Overlap(asPattern(p, pattern), asPattern(f.path, f.pattern), s.at.FoldCase) {
			out = append(out, f.val)
		}
	}
	return out
}

func asPattern(p string, pattern bool) string {
	if pattern {
		return p
	}
	return abstract.EscapePattern(p)
}

// readFile records that a file is read and returns what it holds.
func (s *state) readFile(kind effect.Kind, w abstract.Value) abstract.Value {
	if w.Known() && strings.HasPrefix(w.Text, "/dev/fd/") {
		if vals := s.fileValues(w.Text, false); len(vals) > 0 {
			return vals[0]
		}
	}
	if w.Known() && quietDevice(w.Text) {
		return abstract.Value{}
	}
	p, pattern := s.path(kind, w, false)
	return s.content(p, pattern, w)
}

// content returns what a path holds, as far as the text says or its name does.
func (s *state) content(p string, pattern bool, w abstract.Value) abstract.Value {
	if vals := s.fileValues(p, pattern); len(vals) > 0 {
		v := vals[0]
		for _, o := range vals[1:] {
			v.Taint |= o.Taint
		}
		return v
	}
	v := abstract.Unknown("what "+w.String()+" holds", w.Taint&(abstract.Network|abstract.Secret)).Of(abstract.FromFile)
	if p != "" && secretPath(p, pattern, false) {
		v.Taint |= abstract.Secret
		v.Secrets = w.String()
	}
	return v
}

// secretPath reports whether a path is, or as a folder holds, credentials.
func secretPath(p string, pattern, recursive bool) bool {
	p = strings.ToLower(p)
	if pattern && strings.Trim(p, "*/.?") == "" {
		return false
	}
	base := path.Base(p)
	for _, name := range secretNames {
		if base == name || pattern && strings.ContainsAny(base, "*?[") && base != "*" && base != "**" && abstract.Match(base, name) {
			return !publicExample(base)
		}
	}
	if strings.HasPrefix(base, ".env.") {
		return !publicExample(base)
	}
	if strings.HasSuffix(base, ".pub") || base == "known_hosts" || base == "config" && strings.Contains(p, "/.ssh/") {
		return false
	}
	if recursive {
		p += "/"
	}
	for _, dir := range secretFolders {
		if strings.Contains(p, dir) {
			return true
		}
	}
	return false
}

// publicExample reports whether a file of credentials by its name is a
// template that a repository publishes.
func publicExample(base string) bool {
	for _, word := range [...]string{"example", "sample", "template", "dist", "defaults", ".schema"} {
		if strings.Contains(base, word) {
			return true
		}
	}
	return false
}

// secretNames are files that hold credentials wherever they lie, in lower case.
var secretNames = [...]string{
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity", "authorized_keys2",
	".env", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc", ".pypirc", ".dockercfg", ".vault-token",
	".htpasswd", "shadow", "shadow-", "gshadow", "master.passwd", "sudoers", "sam", "ntds.dit", "krb5.keytab",
	"credentials.json", "application_default_credentials.json", "service-account.json", "serviceaccount.json",
	"credentials", "credentials.db", "access_tokens.db", "accesstokens.json", "login data", "cookies.sqlite", "key4.db", "logins.json",
	"wallet.dat", "secring.gpg", "kubeconfig", ".bash_history", ".zsh_history", ".python_history", ".mysql_history", ".psql_history",
	"environ", "hosts.yml", "keychain-db", "login.keychain-db", "login.keychain", "terraform.tfvars", ".terraformrc", "secrets.yml", "secrets.yaml", "secrets.json", ".rhosts", ".s3cfg", ".boto",
}

// secretFolders are folders below which credentials lie, in lower case.
var secretFolders = [...]string{
	"/.ssh/", "/.aws/", "/.gnupg/", "/.kube/", "/.docker/config.json", "/.azure/", "/.config/gcloud/", "/.config/gh/", "/.password-store/",
	"/.mozilla/firefox/", "/google-chrome/", "/bravesoftware/", "/.electrum/", "/.bitcoin/", "/.ethereum/keystore/", "/.config/solana/",
	"/library/keychains/", "/etc/ssl/private/", "/etc/shadow", "/run/secrets/", "/var/run/secrets/", "/etc/krb5", "/.local/share/keyrings/", "/etc/kubernetes/pki/",
	"/library/application support/google/chrome/", "/.config/op/", "/.vault-token", "/system32/config/",
}

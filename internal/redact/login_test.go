package redact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// What programs are given is taken out, and the rest of the command stays.
func TestLogins(t *testing.T) {
	const secret = "S3cr3t9Pw"
	for command, want := range map[string]string{
		"mysql -u root -p# db":                        "mysql -u root -p* db",
		"mysql -u root -p'#' db":                      "mysql -u root -p'*' db",
		"MySQL.EXE -p# db":                            "MySQL.EXE -p* db",
		`"C:\tools\sshpass.exe" -p # ssh x`:           `"C:\tools\sshpass.exe" -p * ssh x`,
		"/usr/bin/sshpass -p# ssh x":                  "/usr/bin/sshpass -p* ssh x",
		"sh -c 'mysql -p#'":                           "sh -c 'mysql -p*'",
		"sh -c 'mysql -p#' && echo 'a b'":             "sh -c 'mysql -p*' && echo 'a b'",
		`bash -c "zip -P '#' a.zip b"`:                `bash -c "zip -P '*' a.zip b"`,
		"curl -sS --user me:# https://x.test -o a":    "curl -sS --user me:* https://x.test -o a",
		"curl -ume:# https://x.test":                  "curl -ume:* https://x.test",
		"curl -b 'a=1234#; b=#' x.test":               "curl -b 'a=*; b=*' x.test",
		"openssl req -passin pass:# -keyout k.pem":    "openssl req -passin pass:* -keyout k.pem",
		"net use Z: \\\\srv\\share # /user:me":        "net use Z: \\\\srv\\share * /user:me",
		"net user deploy # /add":                      "net user deploy * /add",
		"xfreerdp /u:me /p:# /v:srv":                  "xfreerdp /u:me /p:* /v:srv",
		"htpasswd -bc f admin #":                      "htpasswd -bc f admin *",
		"echo # | sudo -S ls":                         "echo * | sudo -S ls",
		"echo '#' | sudo -u x -S ls; ls":              "echo '*' | sudo -u x -S ls; ls",
		"printf '%s\\n' # | sudo -S ls":               "printf '%s\\n' * | sudo -S ls",
		"echo me:# | sudo chpasswd":                   "echo me:* | sudo chpasswd",
		"chpasswd <<< me:#":                           "chpasswd <<< me:*",
		"chpasswd <<EOF\nme:#\nyou:1#\nEOF\necho a:b": "chpasswd <<EOF\nme:*\nyou:*\nEOF\necho a:b",
		"docker login -u me -p # r.test":              "docker login -u me -p * r.test",
		"sqlplus me/#@db":                             "sqlplus me/*@db",
		"mysqladmin -u root password #":               "mysqladmin -u root password *",
		"vault kv put secret/a k=# l=2#":              "vault kv put secret/a k=* l=*",
		"7z a -p# a.7z b && ls":                       "7z a -p* a.7z b && ls",
		"mysql \\\n  -u root \\\n  -p# \\\n  db":      "mysql \\\n  -u root \\\n  -p* \\\n  db",
	} {
		in := strings.ReplaceAll(command, "#", secret)
		got := (*Redactor)(nil).RedactText(in)
		if want := strings.ReplaceAll(want, "*", "[redacted password]"); got != want {
			t.Errorf("%s\n got  %s\n want %s", in, got, want)
		}
		if twice := (*Redactor)(nil).RedactText(got); twice != got {
			t.Errorf("%s became %s, then %s", in, got, twice)
		}
	}
}

// What only looks like a secret stays.
func TestLoginsKeep(t *testing.T) {
	for _, s := range []string{
		"mysql -u root -p db", "mysql -p$PASS db", `mysql -p"$PASS" db`, "mkdir -p a/b", "cp -p a b",
		"docker run -p 8080:80 x", "docker run -u 1000:1000 x", "ssh -p 2222 a@b.test", "rsync -u a:b c", "sort -u a:b",
		"sshpass -p $P ssh x", "sshpass -e ssh x", "openssl req -new -keyout a.key -out b", "openssl rsa -passin env:PW -in a",
		"openssl rsa -passin file:/etc/pw -in a", "curl -u $U:$P x.test", "curl -b cookies.txt x.test", "echo hello | tee a",
		"sudo ls", "echo y | sudo apt install x", "zip -r a.zip b", "cargo login --registry x", "modutil -dbdir sql:path/to/a -list",
		"net use", "npm config set registry https://x.test", "vault login $TOKEN", "passwd deploy", "usermod -aG docker me",
		"the mysql server and its -p option", "unzip a.zip -d b", "gh secret list", "net use Z: \\\\srv\\share",
		"docker login -u me --password-stdin r.test", "$Pwd = ConvertTo-SecureString $x", "$Signature = Get-AuthenticodeSignature a.ps1",
		"poetry run pre-commit run --config a/b.yaml", "System.X, Culture=neutral, PublicKeyToken=31bf3856ad364e35",
	} {
		if got := (*Redactor)(nil).RedactText(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// Every entry of the table is reached through each of its options.
func TestLoginsTable(t *testing.T) {
	const secret = "S3cr3t9Pw"
	for i := range knowledge.ProgramSecretInputs {
		l := &knowledge.ProgramSecretInputs[i]
		head := l.Programs[len(l.Programs)-1]
		if l.RequiredOption != "" {
			head += " " + l.RequiredOption
		}
		for _, word := range l.SubcommandWords {
			head += " " + word
		}
		separator := l.Separator
		if separator == "" {
			separator = ":"
		}
		var lines []string
		add := func(format string, options []string) {
			for _, o := range options {
				lines = append(lines, head+" "+fmt.Sprintf(strings.ReplaceAll(format, "#", secret), o))
			}
		}
		slash := func(o string) bool { return o[0] == '/' }
		add("%s # x", slices.DeleteFunc(slices.Clone(l.SecretValueOptions), slash))
		add("%s=# x", l.SecretValueOptions)
		add("%s# x", l.AttachedSecretOptions)
		add("%s me"+separator+"# x", l.AccountAndSecretOptions)
		add("%s pass:# x", l.PassColonSecretOptions)
		add("%s a=#", l.NameSecretPairOptions)
		if l.StdinSecretFormatName != "" {
			in := map[string]string{"secret": secret, "account": "me:" + secret}[l.StdinSecretFormatName]
			lines = append(lines, "echo "+in+" | "+head)
		}
		if l.SecretOperandIndex > 0 {
			text := map[string]string{"": secret, "account": "me" + separator + secret, "pairs": "a=" + secret}[l.SecretOperandFormatName]
			lines = append(lines, head+strings.Repeat(" one", l.SecretOperandIndex-1)+" "+text)
		} else if l.SecretOperandIndex < 0 {
			lines = append(lines, head+" one "+secret)
		}
		if len(lines) == 0 {
			t.Errorf("%v holds nothing", *l)
		}
		for _, line := range lines {
			if got := (*Redactor)(nil).RedactText(line); strings.Contains(got, secret) {
				t.Errorf("%s: got %s", line, got)
			}
		}
	}
}

func TestArgs(t *testing.T) {
	const secret = "S3cr3t9Pw"
	for _, tt := range []struct {
		program    string
		args, want []string
	}{
		{"mysql", []string{"-u", "root", "-p" + secret}, []string{"-u", "root", "-p[redacted password]"}},
		{"/usr/bin/docker", []string{"login", "-p", secret}, []string{"login", "-p", "[redacted password]"}},
		{"tool", []string{"--password", secret}, []string{"--password", "[redacted password]"}},
		{"", []string{"sshpass", "-p", secret, "ssh"}, []string{"sshpass", "-p", "[redacted password]", "ssh"}},
		{"adduser", []string{"--disabled-password", "--gecos", "", "me"}, []string{"--disabled-password", "--gecos", "", "me"}},
		{"mysql", []string{"-u", "$USER", "-p$PASS"}, []string{"-u", "$USER", "-p$PASS"}},
		{"git", []string{"log", "-p"}, []string{"log", "-p"}},
		{"", nil, nil},
	} {
		if diff := cmp.Diff(tt.want, (*Redactor)(nil).RedactArgs(tt.program, tt.args)); diff != "" {
			t.Errorf("%s %v: %s", tt.program, tt.args, diff)
		}
	}
}

// The fields of an object say about each other what they hold.
func TestPairing(t *testing.T) {
	const secret = "S3cr3t9Pw"
	for name, v := range map[string]any{
		"program and arguments": map[string]any{"command": "mysql", "args": []any{"-u", "root", "-p" + secret}},
		"list of variables":     map[string]any{"env": []any{map[string]any{"name": "PGPASSWORD", "value": secret}}},
		"list of headers":       map[string]any{"headers": []any{map[string]any{"key": "Cookie", "value": "sid=" + secret}}},
		"headers":               map[string]any{"Authorization": "Basic " + secret},
		"cookie":                map[string]any{"headers": map[string]any{"cookie": "theme=dark; sid=" + secret}},
		"argv":                  []any{"sshpass", "-p", secret, "ssh", "x"},
		"service":               map[string]any{"DATADOG_API_KEY": "0123456789abcdef" + strings.ToLower(secret)},
	} {
		if got := fmt.Sprint((*Redactor)(nil).RedactJSONValue(v, 0)); strings.Contains(strings.ToLower(got), strings.ToLower(secret)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What was found in an action is taken out of everything said about it.
func TestLearn(t *testing.T) {
	const secret = "S3cr3t-9Pw!x"
	clean, r := New("own secret").RedactAndCollectSecrets(map[string]any{"command": "sshpass -p '" + secret + "' ssh x", "note": "use " + secret}, 0)
	if got := fmt.Sprint(clean); strings.Contains(got, "S3cr3t") {
		t.Errorf("the payload is %s", got)
	}
	for in, want := range map[string]string{
		"the file a/" + secret + "/b is missing":   "the file a/[redacted secret]/b is missing",
		"the file " + strings.ToUpper(secret):      "the file [redacted secret]",
		"the file \"a/" + secret[:8] + "…\" is":    "the file \"a/[redacted secret]…\" is",
		"the file a/" + secret[:7]:                 "the file a/[redacted secret]",
		"an own secret":                            "an [redacted secret]",
		"no word of it":                            "no word of it",
		"the file a/" + secret[:3] + " is another": "the file a/" + secret[:3] + " is another",
	} {
		if got := r.RedactText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	short, r := (*Redactor)(nil).RedactAndCollectSecrets(map[string]any{"password": "root7", "db": map[string]any{"password": "wordpress"}}, 0)
	if got := r.RedactText("uproot7d root7 of /root7/wordpress"); fmt.Sprint(short) == "" || got != "uproot7d [redacted secret] of /[redacted secret]/wordpress" {
		t.Errorf("got %q", got)
	}
	same := New("own secret")
	if _, r := same.RedactAndCollectSecrets(map[string]any{"command": "ls -l"}, 0); r != same {
		t.Error("nothing was learned, and it is another Redactor")
	}
}

func BenchmarkLearn(b *testing.B) {
	payload := map[string]any{"command": "find . -name '*.go' -newer go.mod | xargs grep -l context", "cwd": "/home/me/work"}
	for b.Loop() {
		(*Redactor)(nil).RedactAndCollectSecrets(payload, 4096)
	}
}

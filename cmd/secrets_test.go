package cmd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What secrets are made of.
const (
	hexes  = "0123456789abcdef"
	lowers = "abcdefghijklmnopqrstuvwxyz0123456789"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	alnums = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	digits = "0123456789"
	b64s   = alnums + "+/"
	urls   = alnums + "-_"
)

// A drawer draws the parts of secrets and remembers them.
type drawer struct {
	*rand.Rand
	drawn []string
}

// of returns n random characters; edges are letters, as a form may demand.
func (d *drawer) of(class string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = class[d.IntN(len(class))]
	}
	if strings.Contains(class, "-") || strings.Contains(class, "+") {
		b[0], b[n-1] = 'k', 'x'
	}
	if n >= 8 {
		d.drawn = append(d.drawn, string(b))
	}
	return string(b)
}

// password returns what a person might choose.
func (d *drawer) password() string {
	return d.of(alnums, 5+d.IntN(6)) + string("!%_.-"[d.IntN(5)]) + d.of(alnums, 8)
}

// tokenKinds are credentials that their form alone gives away, as their
// issuers describe them.
var tokenKinds = map[string]func(d *drawer) string{
	"aws access key":    func(d *drawer) string { return "AKIA" + d.of(uppers, 16) },
	"aws temporary key": func(d *drawer) string { return "ASIA" + d.of(uppers, 16) },
	"aws bedrock":       func(d *drawer) string { return "ABSK" + d.of(alnums, 128) },
	"github classic":    func(d *drawer) string { return "ghp_" + d.of(alnums, 36) },
	"github oauth":      func(d *drawer) string { return "gho_" + d.of(alnums, 36) },
	"github server":     func(d *drawer) string { return "ghs_" + d.of(alnums, 36) },
	"github refresh":    func(d *drawer) string { return "ghr_" + d.of(alnums, 76) },
	"github fine":       func(d *drawer) string { return "github_pat_" + d.of(alnums, 22) + "_" + d.of(alnums, 59) },
	"gitlab":            func(d *drawer) string { return "glpat-" + d.of(alnums, 20) },
	"gitlab runner":     func(d *drawer) string { return "glrt-" + d.of(alnums, 20) },
	"gitlab trigger":    func(d *drawer) string { return "glptt-" + d.of(hexes, 40) },
	"slack bot": func(d *drawer) string {
		return "xoxb-" + d.of(digits, 12) + "-" + d.of(digits, 13) + "-" + d.of(alnums, 24)
	},
	"slack user": func(d *drawer) string {
		return "xoxp-" + d.of(digits, 12) + "-" + d.of(digits, 12) + "-" + d.of(hexes, 32)
	},
	"slack app": func(d *drawer) string {
		return "xapp-1-A" + d.of(uppers, 10) + "-" + d.of(digits, 13) + "-" + d.of(hexes, 64)
	},
	"slack hook": func(d *drawer) string {
		return "https://hooks.slack.com/services/T" + d.of(uppers, 8) + "/B" + d.of(uppers, 10) + "/" + d.of(alnums, 24)
	},
	"discord hook": func(d *drawer) string {
		return "https://discord.com/api/webhooks/123456789012345678/" + d.of(alnums, 68)
	},
	"telegram": func(d *drawer) string { return "7" + fmt.Sprint(d.IntN(900000000)+100000000) + ":A" + d.of(alnums, 34) },
	"telegram url": func(d *drawer) string {
		return "https://api.telegram.org/bot62" + fmt.Sprint(d.IntN(90000000)+10000000) + ":" + d.of(alnums, 35) + "/getUpdates"
	},
	"stripe live":    func(d *drawer) string { return "sk_live_" + d.of(alnums, 24) },
	"stripe test":    func(d *drawer) string { return "rk_test_" + d.of(alnums, 99) },
	"stripe webhook": func(d *drawer) string { return "whsec_" + d.of(alnums, 32) },
	"openai":         func(d *drawer) string { return "sk-" + d.of(alnums, 20) + "T3BlbkFJ" + d.of(alnums, 20) },
	"openai project": func(d *drawer) string { return "sk-proj-" + d.of(urls, 74) + "T3BlbkFJ" + d.of(urls, 74) },
	"anthropic":      func(d *drawer) string { return "sk-ant-api03-" + d.of(urls, 93) + "AA" },
	"openrouter":     func(d *drawer) string { return "sk-or-v1-" + d.of(hexes, 64) },
	"google":         func(d *drawer) string { return "AIza" + d.of(urls, 35) },
	"google oauth":   func(d *drawer) string { return "ya29." + d.of(urls, 120) },
	"google secret":  func(d *drawer) string { return "GOCSPX-" + d.of(urls, 28) },
	"hugging face":   func(d *drawer) string { return "hf_" + d.of(alnums[:52], 34) },
	"groq":           func(d *drawer) string { return "gsk_" + d.of(alnums, 52) },
	"perplexity":     func(d *drawer) string { return "pplx-" + d.of(alnums, 48) },
	"replicate":      func(d *drawer) string { return "r8_" + d.of(alnums, 37) },
	"xai":            func(d *drawer) string { return "xai-" + d.of(alnums, 80) },
	"nvidia":         func(d *drawer) string { return "nvapi-" + d.of(urls, 64) },
	"twilio":         func(d *drawer) string { return "SK" + d.of(hexes, 32) },
	"sendgrid":       func(d *drawer) string { return "SG." + d.of(urls, 22) + "." + d.of(urls, 43) },
	"mailgun":        func(d *drawer) string { return "key-" + d.of(hexes, 32) },
	"mailchimp":      func(d *drawer) string { return d.of(hexes, 32) + "-us14" },
	"brevo":          func(d *drawer) string { return "xkeysib-" + d.of(hexes, 64) + "-" + d.of(alnums, 16) },
	"npm":            func(d *drawer) string { return "npm_" + d.of(alnums, 36) },
	"pypi":           func(d *drawer) string { return "pypi-AgEIcHlwaS5vcmc" + d.of(urls, 140) },
	"rubygems":       func(d *drawer) string { return "rubygems_" + d.of(hexes, 48) },
	"crates":         func(d *drawer) string { return "cio" + d.of(alnums, 32) },
	"docker hub":     func(d *drawer) string { return "dckr_pat_" + d.of(urls, 27) },
	"digitalocean":   func(d *drawer) string { return "dop_v1_" + d.of(hexes, 64) },
	"fly":            func(d *drawer) string { return "fm2_" + d.of(alnums, 180) },
	"netlify":        func(d *drawer) string { return "nfp_" + d.of(alnums, 40) },
	"databricks":     func(d *drawer) string { return "dapi" + d.of(hexes, 32) },
	"new relic":      func(d *drawer) string { return "NRAK-" + d.of(uppers, 27) },
	"grafana":        func(d *drawer) string { return "glsa_" + d.of(alnums, 32) + "_a1b2c3d4" },
	"sentry":         func(d *drawer) string { return "sntryu_" + d.of(hexes, 64) },
	"pulumi":         func(d *drawer) string { return "pul-" + d.of(hexes, 40) },
	"terraform":      func(d *drawer) string { return d.of(alnums, 14) + ".atlasv1." + d.of(urls, 67) },
	"vault":          func(d *drawer) string { return "hvs." + d.of(urls, 95) },
	"doppler":        func(d *drawer) string { return "dp.pt." + d.of(alnums, 43) },
	"linear":         func(d *drawer) string { return "lin_api_" + d.of(alnums, 40) },
	"notion":         func(d *drawer) string { return "ntn_" + d.of(alnums, 46) },
	"airtable":       func(d *drawer) string { return "pat" + d.of(alnums, 14) + "." + d.of(hexes, 64) },
	"figma":          func(d *drawer) string { return "figd_" + d.of(urls, 40) },
	"postman":        func(d *drawer) string { return "PMAK-" + d.of(hexes, 24) + "-" + d.of(hexes, 34) },
	"shopify":        func(d *drawer) string { return "shpat_" + d.of(hexes, 32) },
	"square":         func(d *drawer) string { return "sq0atp-" + d.of(urls, 22) },
	"1password":      func(d *drawer) string { return "ops_eyJ" + d.of(alnums, 300) },
	"planetscale":    func(d *drawer) string { return "pscale_tkn_" + d.of(urls, 43) },
	"supabase":       func(d *drawer) string { return "sbp_" + d.of(hexes, 40) },
	"tailscale":      func(d *drawer) string { return "tskey-auth-" + d.of(alnums, 17) + "-" + d.of(alnums, 32) },
	"dynatrace":      func(d *drawer) string { return "dt0c01." + d.of(uppers, 24) + "." + d.of(uppers, 64) },
	"jfrog":          func(d *drawer) string { return "AKCp" + d.of(alnums, 69) },
	"atlassian":      func(d *drawer) string { return "ATATT3" + d.of(urls, 180) },
	"jwt":            func(d *drawer) string { return "eyJhbGciOiJIUzI1NiJ9.eyJ" + d.of(urls, 60) + "." + d.of(urls, 43) },
	"age":            func(d *drawer) string { return "AGE-SECRET-KEY-1" + d.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58) },
	"azure client":   func(d *drawer) string { return "aB3" + "8Q~" + d.of(alnums, 34) },
	"signed s3 url": func(d *drawer) string {
		return "https://b.s3.test/k?X-Amz-Date=20260101T000000Z&X-Amz-Signature=" + d.of(hexes, 64)
	},
	"azure sas": func(d *drawer) string {
		return "https://a.blob.test/c?sv=2022-11-02&se=2027&sig=" + d.of(alnums, 43) + "%3D"
	},
	"database url":       func(d *drawer) string { return "postgres://app:" + d.password() + "@db.test:5432/x" },
	"redis url":          func(d *drawer) string { return "redis://:" + d.password() + "@cache.test:6379/0" },
	"private repository": func(d *drawer) string { return "https://" + d.of(alnums, 40) + "@git.test/a/b.git" },
}

// commandKinds are secrets that their place in a command gives away.
var commandKinds = map[string]func(d *drawer) string{
	"PGPASSWORD":   func(d *drawer) string { return "PGPASSWORD=" + d.password() + " psql -h db.test -U app" },
	"MYSQL_PWD":    func(d *drawer) string { return "MYSQL_PWD=" + d.password() + " mysql -h db.test" },
	"SSHPASS":      func(d *drawer) string { return "SSHPASS=" + d.password() + " sshpass -e ssh a@b.test" },
	"mysql":        func(d *drawer) string { return "mysql -u root -p" + d.password() + " shop" },
	"sshpass":      func(d *drawer) string { return "sshpass -p " + d.password() + " ssh a@b.test" },
	"openssl -k":   func(d *drawer) string { return "openssl enc -aes-256-cbc -k " + d.password() + " -in a -out b" },
	"openssl pass": func(d *drawer) string { return "openssl rsa -in k.pem -passin pass:" + d.password() + " -out o.pem" },
	"chpasswd":     func(d *drawer) string { return "echo deploy:" + d.password() + " | chpasswd" },
	"useradd":      func(d *drawer) string { return "useradd -m -p " + d.password() + " deploy" },
	"usermod":      func(d *drawer) string { return "usermod -p " + d.password() + " deploy" },
	"docker login": func(d *drawer) string { return "docker login -u me -p " + d.password() + " r.test" },
	"docker stdin": func(d *drawer) string {
		return "echo " + d.password() + " | docker login -u me --password-stdin r.test"
	},
	"htpasswd":    func(d *drawer) string { return "htpasswd -b -c .htpasswd admin " + d.password() },
	"curl user":   func(d *drawer) string { return "curl -u admin:" + d.password() + " https://x.test/a" },
	"curl cookie": func(d *drawer) string { return "curl -b session=" + d.of(alnums, 26) + " https://x.test/a" },
	"wget":        func(d *drawer) string { return "wget --user=me --password=" + d.password() + " https://x.test/a" },
	"redis-cli":   func(d *drawer) string { return "redis-cli -h c.test -a " + d.password() + " KEYS x" },
	"mongo":       func(d *drawer) string { return "mongosh db.test -u admin -p " + d.password() },
	"ldapsearch":  func(d *drawer) string { return "ldapsearch -x -D cn=a -w " + d.password() + " -b dc=x" },
	"net use":     func(d *drawer) string { return "net use Z: srv.share " + d.password() + " /user:dom.me" },
	"sudo -S":     func(d *drawer) string { return "echo " + d.password() + " | sudo -S ls /root" },
	"here-string": func(d *drawer) string { return "sudo -S id <<< " + d.password() },
	"az login": func(d *drawer) string {
		return "az login --service-principal -u app -p " + d.password() + " --tenant t"
	},
	"npm auth":        func(d *drawer) string { return "npm config set //r.test/:_authToken=" + d.of(alnums, 36) },
	"cargo login":     func(d *drawer) string { return "cargo login " + d.of(alnums, 36) },
	"vault login":     func(d *drawer) string { return "vault login " + d.password() },
	"zip":             func(d *drawer) string { return "zip -P " + d.password() + " a.zip b" },
	"7z":              func(d *drawer) string { return "7z a -p" + d.password() + " a.7z b" },
	"gpg":             func(d *drawer) string { return "gpg --batch --passphrase " + d.password() + " -d a.gpg" },
	"smbclient":       func(d *drawer) string { return "smbclient -L srv -U me%" + d.of(alnums, 12) },
	"kubernetes":      func(d *drawer) string { return "kubectl create secret generic s --from-literal=db=" + d.password() },
	"keytool":         func(d *drawer) string { return "keytool -list -keystore k.jks -storepass " + d.password() },
	"ssh-keygen":      func(d *drawer) string { return "ssh-keygen -t ed25519 -N " + d.password() + " -f k" },
	"aws secret":      func(d *drawer) string { return "aws configure set aws_secret_access_key " + d.of(alnums, 40) },
	"http cookie":     func(d *drawer) string { return "curl -H Cookie:sid=" + d.of(alnums, 32) + " https://x.test" },
	"http basic":      func(d *drawer) string { return "http -a me:" + d.password() + " https://x.test" },
	"rabbitmq":        func(d *drawer) string { return "rabbitmqctl add_user app " + d.password() },
	"passwd --stdin":  func(d *drawer) string { return "echo " + d.password() + " | passwd --stdin deploy" },
	"mysqladmin":      func(d *drawer) string { return "mysqladmin -u root password " + d.password() },
	"query parameter": func(d *drawer) string { return "curl https://x.test/a?api_key=" + d.of(alnums, 24) + " -o b" },
}

type object = map[string]any

func shellAction(text string) object {
	return object{"type": "execute_command", "payload": object{"command": text}}
}

func written(path, text string) object {
	return object{"type": "write_file", "payload": object{"path": path, "content": text}}
}

// commandShapes are the places where a command may stand.
var commandShapes = map[string]func(c string) object{
	"plain":        shellAction,
	"after cd":     func(c string) object { return shellAction("cd /srv/app && " + c + " && echo done") },
	"in sh -c":     func(c string) object { return shellAction("sh -c '" + c + "'") },
	"in bash -c":   func(c string) object { return shellAction(`bash -lc "` + c + `"`) },
	"nested":       func(c string) object { return shellAction(`bash -c "sh -c '` + c + `'"`) },
	"substitution": func(c string) object { return shellAction("x=$(" + c + "); echo $x") },
	"over ssh":     func(c string) object { return shellAction("ssh a@b.test '" + c + "'") },
	"lines":        func(c string) object { return shellAction("set -e\n" + c + "\nls -l\n") },
	"redirected":   func(c string) object { return shellAction(c + " > /tmp/out.txt 2>&1") },
	"script":       func(c string) object { return written("deploy.sh", "#!/bin/sh\nset -e\n"+c+"\n") },
	"ci":           func(c string) object { return written(".ci.yaml", "steps:\n  - run: "+c+"\n  - run: ls\n") },
	"dockerfile":   func(c string) object { return written("Dockerfile", "FROM x\nRUN "+c+"\nCMD [\"x\"]\n") },
	"here-doc":     func(c string) object { return shellAction("cat > run.sh <<'EOF'\n" + c + "\nEOF\nchmod +x run.sh") },
	"mail": func(c string) object {
		return object{"type": "send_email", "payload": object{"to": "a@x.test", "subject": "how to", "body": "Please run:\n\n  " + c + "\n\nThanks"}}
	},
	"json in body": func(c string) object {
		text, _ := json.Marshal(object{"cmd": c, "n": 1})
		return object{"type": "http_request", "payload": object{"url": "https://x.test/run", "method": "POST", "body": string(text)}}
	},
	"list": func(c string) object {
		return object{"type": "run_steps", "payload": object{"steps": []any{object{"run": c}, object{"run": "ls"}}}}
	},
	"python": func(c string) object {
		return written("a.py", "import os\nos.system(\""+c+"\")\n")
	},
}

// tokenShapes are the places where a token may stand.
var tokenShapes = map[string]func(s string) object{
	"argument":      func(s string) object { return shellAction("deploy " + s + " --now") },
	"environment":   func(s string) object { return shellAction("TOKEN=" + s + " ./run.sh") },
	"export":        func(s string) object { return shellAction("export API_KEY=" + s + " && make") },
	"long option":   func(s string) object { return shellAction("tool --api-key=" + s + " push") },
	"short option":  func(s string) object { return shellAction("tool -k " + s + " push") },
	"double quotes": func(s string) object { return shellAction(`tool "` + s + `"`) },
	"single quotes": func(s string) object { return shellAction("tool '" + s + "'") },
	"header":        func(s string) object { return shellAction(`curl -H "Authorization: Bearer ` + s + `" https://x.test`) },
	"other header":  func(s string) object { return shellAction("curl -H 'X-Api-Key: " + s + "' https://x.test") },
	"user info": func(s string) object {
		return shellAction("git clone https://me:" + strings.NewReplacer("/", "", ":", "").Replace(s) + "@git.test/a.git")
	},
	"query":    func(s string) object { return shellAction("curl 'https://x.test/a?access_token=" + s + "&page=2'") },
	"json":     func(s string) object { return shellAction(`curl -d '{"auth":{"key":"` + s + `"}}' https://x.test`) },
	"yaml":     func(s string) object { return written("c.yaml", "service:\n  key: "+s+"\n  port: 1\n") },
	"here-doc": func(s string) object { return shellAction("cat > .env <<EOF\nA=1\nKEY=" + s + "\nEOF") },
	"source":   func(s string) object { return written("a.js", "const c = new Client({key: '"+s+"', n: 1});\n") },
	"nested":   func(s string) object { return shellAction(`bash -c "sh -c 'tool ` + s + `'"`) },
	"headers": func(s string) object {
		return object{"type": "http_request", "payload": object{"url": "https://x.test", "method": "GET", "headers": object{"X-Token": s}}}
	},
	"body": func(s string) object {
		return object{"type": "http_request", "payload": object{"url": "https://x.test", "method": "POST", "body": "a=1&v=" + s}}
	},
	"mail": func(s string) object {
		return object{"type": "send_email", "payload": object{"to": "a@x.test", "subject": "hi", "body": "Here it is: " + s + "."}}
	},
	"lines":          func(s string) object { return shellAction("tool \\\n  --key " + s + " \\\n  --verbose\nls") },
	"missing script": func(s string) object { return shellAction("bash ./scripts/" + s) },
	"missing source": func(s string) object { return shellAction(". ./env-" + s + ".sh") },
	"path": func(s string) object {
		return object{"type": "read_file", "payload": object{"path": "/srv/" + s + ".txt"}}
	},
	"unknown tool": func(s string) object {
		return object{"type": "frobnicate", "payload": object{"env": object{"X": s}, "list": []any{s}}}
	},
	"python": func(s string) object { return shellAction(`python3 -c "import x; x.login('` + s + `')"`) },
}

// blocks are secrets of many lines; they stand where a text may.
var blocks = map[string]func(d *drawer) string{
	"private key": func(d *drawer) string {
		return "-----BEGIN OPENSSH PRIVATE KEY-----\n" + d.of(b64s, 64) + "\n" + d.of(b64s, 64) + "\n-----END OPENSSH PRIVATE KEY-----"
	},
	"cut key": func(d *drawer) string {
		return "-----BEGIN RSA PRIVATE KEY-----\n" + d.of(b64s, 64) + "\n" + d.of(b64s, 50)
	},
	"netrc": func(d *drawer) string { return "machine x.test\n  login me\n  password " + d.of(alnums, 14) },
}

// A planted secret is a record and what of it must not be seen again.
type planted struct {
	name   string
	record object
	parts  []string
}

func plantedSecrets(rng *rand.Rand) []planted {
	var all []planted
	grow := func(kinds map[string]func(*drawer) string, shapes map[string]func(string) object) {
		for kind, draw := range kinds {
			for shape, put := range shapes {
				d := &drawer{Rand: rng}
				record := put(draw(d))
				all = append(all, planted{kind + ", " + shape, record, d.drawn})
			}
		}
	}
	grow(tokenKinds, tokenShapes)
	grow(commandKinds, commandShapes)
	texts := map[string]func(string) object{}
	for _, shape := range []string{"mail", "body", "here-doc", "unknown tool", "double quotes", "source"} {
		texts[shape] = tokenShapes[shape]
	}
	grow(blocks, texts)
	return all
}

// leaked returns a part of a secret that a text holds: any 10 bytes in a row, or
// all of a shorter part. Fewer would are in hashes by chance.
func leaked(text string, parts []string) string {
	for _, p := range parts {
		n := min(len(p), 10)
		for i := 0; i+n <= len(p); i++ {
			if strings.Contains(text, p[i:i+n]) {
				return p[i : i+n]
			}
		}
	}
	return ""
}

// TestNoSecretLeaves plants secrets of all kinds in all places and demands that
// no part of one is in the verdicts (but for the action itself, which is left
// out), in their traces, in the audit log or on standard error.
func TestNoSecretLeaves(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	all := plantedSecrets(rand.New(rand.NewPCG(seed, 1)))
	if len(all) < 56*15 {
		t.Fatalf("only %d cases", len(all))
	}
	var in strings.Builder
	for i, p := range all {
		p.record["id"] = fmt.Sprint("n", i)
		line, err := json.Marshal(p.record)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	w := newWorld(t)
	state := filepath.Join(t.TempDir(), "state")
	_, out, errs := run(t, w, in.String(), "run", "--trace", "--no-action", "--policy", "strict", "--state", state)
	log, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, entries := strings.Split(out, "\n"), strings.Split(string(log), "\n")
	if len(verdicts) != len(all)+1 || len(entries) < len(all)+1 {
		t.Fatalf("%d verdicts and %d entries for %d actions", len(verdicts)-1, len(entries)-1, len(all))
	}
	byID := map[string]string{}
	for _, e := range entries {
		var id struct{ ID string }
		if json.Unmarshal([]byte(e), &id) == nil {
			byID[id.ID] += e
		}
	}
	for i, p := range all {
		for where, text := range map[string]string{"verdict": verdicts[i], "log": byID[fmt.Sprint("n", i)], "stderr": errs} {
			if text == "" && where != "stderr" {
				t.Errorf("%s: no %s", p.name, where)
			}
			if part := leaked(text, p.parts); part != "" {
				t.Errorf("%s: %q of %v is in the %s:\n%.600s", p.name, part, p.record["payload"], where, text)
			}
		}
	}
}

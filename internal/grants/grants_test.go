package grants

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/knowledge"
)

// formsOf returns all entries whose files have the ending of a file; the globs are not looked at.
func formsOf(file string) (out []int) {
	for i := range knowledge.GrantForms {
		for _, glob := range knowledge.GrantForms[i].Files {
			if strings.Contains(glob, path.Base(path.Dir(file))+"/") || strings.Contains(glob, strings.TrimSuffix(path.Base(file), path.Ext(file))) || strings.HasPrefix(glob, "**/*") && strings.Contains(glob, strings.TrimPrefix(path.Ext(file), ".")) {
				out = append(out, i)
				break
			}
		}
	}
	return out
}

const workflow = `name: ci
on: [push, pull_request]
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789
      - run: npm ci
      - name: lint
        run: npm run lint
      - run: npm test
      - uses: aquasecurity/trivy-action@v1
  deploy:
    needs: [test]
    runs-on: ubuntu-latest
    environment: production
    steps: [{run: ./deploy.sh}]
`

func TestWeaker(t *testing.T) {
	edit := func(text string, pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("%q is not there", pairs[i])
			}
			text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
		}
		return text
	}
	const compose = "services:\n  db:\n    image: postgres:16\n    ports: ['127.0.0.1:5432:5432']\n    read_only: true\n    security_opt: ['no-new-privileges:true']\n    user: '1000'\n"
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n        - name: a\n          image: a\n          securityContext: {runAsNonRoot: true, readOnlyRootFilesystem: true, privileged: false}\n---\napiVersion: v1\nkind: NetworkPolicy\nspec: {podSelector: {}}\n"
	const hcl = "resource \"aws_db_instance\" \"a\" {\n  deletion_protection = true\n  storage_encrypted = true\n  publicly_accessible = false\n  lifecycle {\n    prevent_destroy = true\n  }\n}\nresource \"aws_s3_bucket_public_access_block\" \"b\" {\n  bucket = aws_s3_bucket.b.id\n}\nresource \"aws_security_group\" \"c\" {\n  ingress {\n    from_port = 22\n    to_port = 22\n    cidr_blocks = [\"10.0.0.0/8\"]\n  }\n}\n"
	const policy = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "arn:x", "Condition": {"Bool": {"aws:SecureTransport": "true"}}}, {"Effect": "Deny", "Action": "s3:DeleteBucket", "Resource": "*"}]}`
	const image = "FROM node:22@sha256:abc AS build\nRUN npm ci && \\\n  npm test\nFROM node:22\nCOPY . .\nUSER app\nCMD [\"node\", \"x\"]\n"
	const scripts = `{"name": "a", "scripts": {"test": "jest", "lint": "eslint .", "build": "tsc -p ."}}`
	const owners = "* @core\n/.github/ @ops @sec\n# a note\n/docs/ @docs\n"
	const ci = "/p/.github/workflows/ci.yml"
	for _, c := range []struct{ file, old, text, want string }{
		{ci, workflow, workflow, ""},
		{ci, workflow, edit(workflow, "      - run: npm test\n", ""), "tests"},
		{ci, workflow, edit(workflow, "npm test", "npm test || true"), "tests"},
		{ci, workflow, edit(workflow, "- run: npm test", "- run: npm test\n        continue-on-error: true"), "tests"},
		{ci, workflow, edit(workflow, "  test:\n", "  test:\n    if: false\n"), "tests"},
		{ci, workflow, edit(workflow, "npm run lint", "echo ok"), "linter"},
		{ci, workflow, edit(workflow, "aquasecurity/trivy-action@v1", "actions/cache@v4"), "vulnerabilities"},
		{ci, workflow, edit(workflow, "contents: read", "contents: write"), "token more permissions"},
		{ci, workflow, edit(workflow, "permissions:\n  contents: read", "permissions: write-all"), "all permissions"},
		{ci, workflow, edit(workflow, "permissions:\n  contents: read\n", ""), "no longer limits"},
		{ci, workflow, edit(workflow, "[push, pull_request]", "[push]"), "pull requests"},
		{ci, workflow, edit(workflow, "[push, pull_request]", "[push, pull_request, pull_request_target]"), "forks can trigger"},
		{ci, workflow, edit(workflow, "[push, pull_request]", "{push: {branches: [main]}, pull_request: null}"), ""},
		{ci, workflow, edit(workflow, "checkout@0123456789012345678901234567890123456789", "checkout@main"), "instead of a commit hash"},
		{ci, workflow, edit(workflow, "    environment: production\n", ""), "approval"},
		{ci, workflow, edit(workflow, "    needs: [test]\n", ""), "without waiting"},
		{ci, workflow, edit(workflow, "  test:\n", "  unit:\n", "[test]", "[unit]", "npm test", "npx vitest run"), ""},
		{ci, workflow, edit(workflow, "npm ci", "npm ci --ignore-scripts", "ubuntu-latest", "ubuntu-24.04"), ""},
		{ci, "", workflow, ""},
		{ci, "", edit(workflow, "permissions:\n  contents: read", "permissions: write-all"), "all permissions"},
		{ci, workflow, "", "tests"},
		{"/p/compose.yml", compose, compose, ""},
		{"/p/compose.yml", compose, edit(compose, "127.0.0.1:5432:5432", "5432:5432"), "other machines"},
		{"/p/compose.yml", compose, edit(compose, "    read_only: true\n", ""), "root file system writable"},
		{"/p/compose.yml", compose, edit(compose, "    user: '1000'\n", "    privileged: true\n"), "privileged container"},
		{"/p/compose.yml", compose, edit(compose, "postgres:16", "postgres:17", "  db:", "  store:"), ""},
		{"/p/compose.yml", "", "services:\n  a:\n    volumes: ['/:/host']\n", "host folder writable"},
		{"/p/compose.yml", "", "services:\n  a:\n    volumes: ['./a:/a', 'data:/d']\n", ""},
		{"/p/k8s/a.yaml", deployment, deployment, ""},
		{"/p/k8s/a.yaml", deployment, edit(deployment, "privileged: false", "privileged: true"), "privileged container"},
		{"/p/k8s/a.yaml", deployment, edit(deployment, "runAsNonRoot: true, ", ""), "as root"},
		{"/p/k8s/a.yaml", deployment, edit(deployment, "NetworkPolicy", "ConfigMap"), "network, admission"},
		{"/p/k8s/a.yaml", deployment, edit(deployment, "image: a", "image: b", "name: a", "name: b"), ""},
		{"/p/k8s/a.yaml", "", "kind: ClusterRoleBinding\nroleRef: {name: cluster-admin}\n", "cluster-admin"},
		{"/p/chart/templates/a.yaml", "", "{{- if .Values.x }}\nkind: Pod\nspec:\n  hostPID: true\n  x: {{ .Values.y }}\n{{- end }}\n", "host's network"},
		{"/p/a.tf", hcl, hcl, ""},
		{"/p/a.tf", hcl, edit(hcl, "deletion_protection = true", "deletion_protection = false"), "disables a protection"},
		{"/p/a.tf", hcl, edit(hcl, "    prevent_destroy = true\n", "", "  deletion_protection = true\n", ""), "deletion protection"},
		{"/p/a.tf", hcl, edit(hcl, "publicly_accessible = false", "publicly_accessible = true"), "publicly accessible"},
		{"/p/a.tf", hcl, edit(hcl, "10.0.0.0/8", "0.0.0.0/0"), "any IP address"},
		{"/p/a.tf", hcl, edit(hcl, "aws_s3_bucket_public_access_block", "null_resource"), "audit log"},
		{"/p/a.tf", hcl, edit(hcl, "\"a\"", "\"main\""), ""},
		{"/p/a.tf", "", "resource \"aws_iam_policy\" \"a\" {\n  policy = jsonencode({Statement = [{Effect = \"Allow\", Action = \"*\", Resource = \"*\"}]})\n}\n", "all actions on all resources"},
		{"/p/policy.json", policy, policy, ""},
		{"/p/policy.json", policy, edit(policy, "s3:GetObject", "*", "arn:x", "*"), "all actions on all resources"},
		{"/p/policy.json", policy, edit(policy, `"Effect": "Deny"`, `"Effect": "Allow"`), "Deny"},
		{"/p/policy.json", policy, edit(policy, `, "Condition": {"Bool": {"aws:SecureTransport": "true"}}`, ""), "condition"},
		{"/p/policy.json", "", `{"Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "s3:GetObject", "Resource": "x"}]}`, "any principal"},
		{"/p/Dockerfile", image, image, ""},
		{"/p/Dockerfile", image, edit(image, "USER app", "USER root"), "as root"},
		{"/p/Dockerfile", image, edit(image, "USER app\n", ""), "as root"},
		{"/p/Dockerfile", image, edit(image, "@sha256:abc", ""), "tag instead of a digest"},
		{"/p/Dockerfile", image, edit(image, "COPY . .", "COPY dist ."), ""},
		{"/p/package.json", scripts, edit(scripts, "jest", "echo ok"), "tests"},
		{"/p/package.json", scripts, edit(scripts, "jest", "vitest run"), ""},
		{"/p/package.json", scripts, edit(scripts, `"lint": "eslint .", `, "", "tsc -p .", "vite build"), "linter"},
		{"/p/.pre-commit-config.yaml", "repos:\n- repo: x\n  hooks:\n  - id: gitleaks\n  - id: ruff\n", "repos:\n- repo: x\n  hooks:\n  - id: ruff\n", "secrets"},
		// A wider right of what had one.
		{ci, edit(workflow, "contents: read", "contents: write"), edit(workflow, "contents: read", "contents: write\n  id-token: write"), "token more permissions"},
		{ci, edit(workflow, "contents: read", "contents: write\n  packages: write"), edit(workflow, "contents: read", "contents: write"), ""},
		{"/p/compose.yml", "services:\n  a:\n    volumes: ['/etc:/x']\n", "services:\n  a:\n    volumes: ['/:/x']\n", "host folder writable"},
		{"/p/compose.yml", "services:\n  a:\n    cap_add: [SYS_PTRACE]\n", "services:\n  a:\n    cap_add: [SYS_PTRACE, SYS_ADMIN]\n", "host capabilities"},
		{"/p/compose.yml", "services:\n  a:\n    volumes: ['/:/x']\n", "services:\n  b:\n    image: c\n    volumes: ['/:/x']\n", ""},
		{"/p/k8s/a.yaml", "apiVersion: v1\nkind: Role\nrules:\n- {verbs: [get], resources: [secrets]}\n", "apiVersion: v1\nkind: Role\nrules:\n- {verbs: [get], resources: [secrets, pods/exec]}\n", "read secrets"},
		{"/p/a.tf", edit(hcl, "10.0.0.0/8", "0.0.0.0/0"), edit(hcl, "10.0.0.0/8", "0.0.0.0/0", "from_port = 22", "from_port = 0"), "any IP address"},
		{"/p/policy.json", `{"Statement": [{"Effect": "Allow", "Action": ["iam:PassRole"], "Resource": "arn:x"}]}`, `{"Statement": [{"Effect": "Allow", "Action": ["iam:PassRole", "iam:CreateAccessKey"], "Resource": "arn:x"}]}`, "more administrative actions"},
		{"/p/policy.json", `{"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:x"}]}`, `{"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}`, "all resources"},
		{"/p/.vscode/tasks.json", "", "{\n// a note\n\"tasks\": [{\"label\": \"a\", \"runOptions\": {\"runOn\": \"folderOpen\"},}]}", "opened"},
		{"/p/CODEOWNERS", owners, owners, ""},
		{"/p/CODEOWNERS", owners, edit(owners, "/.github/ @ops @sec", "/.github/ @ops"), "@sec"},
		{"/p/CODEOWNERS", owners, owners + "/src/auth/\n", "no code owner"},
		{"/p/CODEOWNERS", owners, owners + "/src/ @me\n", ""},
		{"/p/CODEOWNERS", owners, "", "@core"},
	} {
		facts, err := FindSecurityWeakenings(c.file, c.old, c.text, c.old != "", formsOf(c.file))
		if err != nil {
			t.Errorf("%s: %v\n%s", c.file, err, c.text)
		}
		if (len(facts) > 0) != (c.want != "") || c.want != "" && !said(facts, c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.file, facts, c.want, c.text)
		}
	}
}

// TestTouched holds which lines of files that cannot be parsed say something of checks or rights.
func TestTouched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, gone, come string
		want             bool
	}{
		{"/p/k8s/a.yaml", "image: a\n", "image: b\n", false}, {"/p/k8s/a.yaml", "", "privileged: true\n", true}, {"/p/k8s/a.yaml", "  runAsNonRoot: true\n", "", true}, {"/p/k8s/a.yaml", "privileged: true\n", "privileged: false\n", false},
		{"/p/k8s/a.yaml", "", "- SYS_ADMIN\n", true}, {"/p/k8s/a.yaml", "", "replicas: 3\ntype: ClusterIP\n", false}, {"/p/k8s/a.yaml", "", "privileged: {{ .Values.p }}\n", true},
		{"/p/compose.yml", "", "      - /:/host\n", true}, {"/p/compose.yml", "", "      - ./data:/data\n", false}, {"/p/compose.yml", "    user: app\n", "", true},
		{"/p/a.tf", "deletion_protection = true\n", "", true}, {"/p/a.tf", "", "publicly_accessible = true\n", true}, {"/p/a.tf", "name = 1\n", "name = 2\n", false},
		{"/p/policy.json", "", `"Resource": "*",`, true}, {"/p/policy.json", `"Sid": "a",`, `"Sid": "b",`, false}, {"/p/package.json", `"test": "jest",`, "", true}, {"/p/package.json", `"version": "1.0.0",`, `"version": "1.0.1",`, false},
		{"/p/Dockerfile", "USER app\n", "", true}, {"/p/Dockerfile", "COPY a .\n", "COPY b .\n", false},
	} {
		if got := ChangeConcernsGrantRule(formsOf(c.file), c.gone, c.come); got != c.want {
			t.Errorf("%s: -%q +%q: %t", c.file, c.gone, c.come, got)
		}
	}
}

func said(facts []SecurityWeakening, want string) bool {
	for _, part := range strings.Split(want, "|") {
		if strings.Contains(fmt.Sprint(facts), part) {
			return true
		}
	}
	return false
}

// TestBad reads what is made to be long or deep, or is no file of its kind.
func TestBad(t *testing.T) {
	bomb := "a: &a [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("%c%d: &%c%d [*%s, *%s]\n", 'b', i, 'b', i, last(i), last(i))
	}
	merged := "a: &a {k: v}\n"
	for i := range 40 {
		merged += fmt.Sprintf("m%d: &m%d {<<: [*%s, *%s], k%d: v}\n", i, i, lastMerge(i), lastMerge(i), i)
	}
	for name, c := range map[string]struct {
		file, text string
		limit      bool
	}{
		"a megabyte":     {"/p/.github/workflows/a.yml", strings.Repeat("x: y\n", 200_000), true},
		"many keys":      {"/p/.github/workflows/a.yml", strings.Repeat("- {a: b}\n", 12_000), true},
		"bomb":           {"/p/a.yaml", bomb, true},
		"merges":         {"/p/a.yaml", merged, true},
		"itself":         {"/p/a.yaml", "a: &a\n  b: *a\n", true},
		"deep flow":      {"/p/a.yaml", "a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), true},
		"deep block":     {"/p/a.yaml", deep(400), true},
		"deep list":      {"/p/a.yaml", strings.Repeat("- ", 500) + "a\n", true},
		"deep json":      {"/p/a.json", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), true},
		"deep terraform": {"/p/a.tf", "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), true},
		"no yaml":        {"/p/a.yaml", "a: [b\nc: d}", false},
		"no terraform":   {"/p/a.tf", "resource \"a\" {", false},
		"no json":        {"/p/a.json", "{", false},
		"no text":        {"/p/a.yaml", "a: \x00\xff", false},
	} {
		start := time.Now()
		_, err := FindSecurityWeakenings(c.file, "", c.text, false, formsOf(c.file))
		if err == nil || errors.Is(err, ErrLimit) != c.limit {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func last(i int) string {
	if i == 0 {
		return "a"
	}
	return fmt.Sprintf("b%d", i-1)
}

func lastMerge(i int) string {
	if i == 0 {
		return "a"
	}
	return fmt.Sprintf("m%d", i-1)
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func FuzzWeaker(f *testing.F) {
	f.Add("/p/.github/workflows/a.yml", workflow, workflow)
	f.Add("/p/a.tf", "resource \"a\" \"b\" {}", "a = 1")
	f.Add("/p/Dockerfile", "FROM a", "USER x\\")
	f.Fuzz(func(t *testing.T, file, old, text string) {
		facts, _ := FindSecurityWeakenings(file, old, text, true, formsOf(file))
		if len(facts) > maxSecurityWeakenings {
			t.Errorf("%d facts", len(facts))
		}
	})
}

// TestAliasesAreBounded holds that aliases of aliases, and keys that are as long as a file may be, end.
func TestAliasesAreBounded(t *testing.T) {
	t.Parallel()
	var bomb, merged strings.Builder
	bomb.WriteString("a0: &a0 []\n")
	merged.WriteString("m0: &m0 {}\n")
	for i := 1; i < 15; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d\n%s", i, i, strings.Repeat(fmt.Sprintf("- *a%d\n", i-1), 12))
		fmt.Fprintf(&merged, "m%d: &m%d\n  <<: [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d, ", i-1), 12), ", "))
	}
	long := `{"` + strings.Repeat("k", 50<<10) + `": [` + strings.TrimSuffix(strings.Repeat(`{"a": {"b": 1}},`, 3000), ",") + `]}`
	for name, text := range map[string]string{"compose.yaml": bomb.String(), "docker-compose.yml": merged.String(), "policy.json": long} {
		if _, err := FindSecurityWeakenings("/work/app/"+name, "", text, false, []int{0}); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	var owners strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&owners, "p%d\n", i)
	}
	if _, err := FindSecurityWeakenings("/work/app/CODEOWNERS", owners.String(), owners.String(), true, nil); err != nil {
		t.Error(err)
	}
}

// A new file whose name says little is parsed only if it holds what an entry asks for, in whatever spelling.
func TestNewFile(t *testing.T) {
	const file = "/p/manifests/qqq.yaml"
	forms := formsOf(file)
	for _, text := range []string{
		"spec:\n  securityContext:\n    privileged: true\n",
		"spec: {securityContext: {privileged: true}}\n",
		"{\"spec\": {\"securityContext\": {\"privileged\": true}}}\n",
		"spec:\n  'securityContext':\n    \"privileged\": true\n",
		"spec:\n  ? securityContext\n  : ? privileged\n    : true\n",
		"spec:\n  !!str securityContext:\n    &k privileged: !!bool true\n",
		"spec:\n  \"security\\u0043ontext\":\n    \"priv\\x69leged\": true\n",
		"a: &a {privileged: true}\nspec:\n  securityContext:\n    <<: *a\n",
		"{{ x }}\nspec:\n  securityContext:\n    privileged: true\n{{ y }}\n",
	} {
		if facts, err := FindSecurityWeakenings(file, "", text, false, forms); err != nil || len(facts) != 1 {
			t.Errorf("%q: %v %v", text, facts, err)
		}
	}
	plain := strings.Repeat("model:\n- name: a\n  path: b\n  rate: 0.1 # as before\n", 50)
	if n := testing.AllocsPerRun(10, func() { FindSecurityWeakenings(file, "", plain, false, forms) }); n > 10 {
		t.Errorf("%v allocations for a file without anything that is asked for", n)
	}
	if _, err := FindSecurityWeakenings(file, "", plain+"a: [\napiVersion: v1\n", false, forms); err == nil {
		t.Error("a manifest that cannot be parsed is no error")
	}
}

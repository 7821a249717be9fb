package classify

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/allocated"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
	"github.com/shieldcli/shield/pkg/verdict"
)

// everyday is what agents do all day.
var everyday = []string{
	"git status", "git diff --stat", "git log --oneline -n 20", "git add -A && git commit -m 'Fix the parser'", "git push origin HEAD",
	"git checkout -b fix/parser", "git stash", "git fetch --all --prune", "git rebase origin/main", "git blame -L 10,20 src/main.go",
	"go build ./...", "go test ./... -run TestParse -count=1", "go vet ./...", "gofmt -l .", "go mod tidy", "npm ci", "npm run build",
	"npm test -- --watch=false", "npx tsc --noEmit", "yarn install --frozen-lockfile", "pnpm lint", "pip install -r requirements.txt",
	"python3 -m pytest -q tests/test_parser.py", "python3 -c 'import sys; print(sys.version)'", "ruff check .", "mypy src", "cargo build --release",
	"cargo test parser", "cargo clippy --all-targets", "make -j4 test", "cmake -B build -S . && cmake --build build", "mvn -q test", "./gradlew assemble",
	"ls -la", "ls src", "cat README.md", "head -n 50 src/main.go", "tail -n 100 logs/app.log", "wc -l src/*.go", "find . -name '*.go' -newer go.sum",
	"grep -rn 'func main' .", "rg -n TODO src", "sed -n '1,80p' main.go", "sed -i 's/foo/bar/g' src/a.go", "awk '{print $1}' data.csv", "sort data.csv | uniq -c",
	"jq '.items[].name' data.json", "cut -d, -f2 data.csv", "diff -u a.txt b.txt", "mkdir -p build/out", "cp -r assets build/", "mv a.txt b.txt", "rm -rf node_modules",
	"rm -f build/*.o", "touch src/new.go", "chmod +x scripts/run.sh", "tar czf dist.tgz dist", "unzip -o a.zip -d out", "curl -s https://api.example.com/items | jq .",
	"curl -fsSLO https://example.com/a.tgz", "wget -q https://example.com/a.tgz", "docker build -t app .", "docker compose up -d", "docker ps -a", "docker logs app --tail 100",
	"docker exec app ls /srv", "kubectl get pods -n app", "kubectl logs deploy/app --tail=50", "kubectl apply -f k8s/", "helm template chart", "terraform plan -out plan",
	"psql -c 'select count(*) from users'", "sqlite3 app.db '.schema'", "redis-cli ping", "echo done", "printf '%s\n' a b", "date -u +%F", "env | sort", "which python3",
	"uname -a", "ps aux", "df -h", "du -sh .", "kill 4711", "sleep 1", "true", "cd src && ls", "test -f go.mod && echo yes", "for f in *.go; do gofmt -l $f; done",
	"if [ -d build ]; then ls build; fi", "export CGO_ENABLED=0", "source .venv/bin/activate", "ssh build.example.com uptime", "scp a.txt host:/srv/", "rsync -a dist/ host:/srv/",
	"gh pr create --fill", "gh run list", "brew install jq", "sudo apt-get install -y jq", "systemctl status nginx", "journalctl -u app -n 50", "openssl version", "node -e 'console.log(1)'",
	"tee out.txt < in.txt", "xargs -n1 echo < list.txt",
}

func BenchmarkHeuristic(b *testing.B) {
	var cases []*analysis.ActionCase
	for _, text := range everyday {
		c, err := exampleCase(shell.Analyze, text)
		if err != nil {
			b.Fatal(err)
		}
		c.TextVariants()
		cases = append(cases, c)
	}
	eng := newEngine(ruleTable[:], exampleHome, []string{exampleWorkspaceRoot})
	s := newRuleMatchBuffers(eng)
	for _, c := range cases {
		eng.run(s, c, ruleScopeAll)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		eng.run(s, cases[i%len(cases)], ruleScopeAll)
	}
}

func BenchmarkJudge(b *testing.B) {
	c, err := exampleCase(shell.Analyze, "find . -name '*.go' -newer go.sum | xargs grep -n 'func main'")
	if err != nil {
		b.Fatal(err)
	}
	k := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Judge(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewEngine(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newEngine(ruleTable[:], exampleHome, []string{exampleWorkspaceRoot})
	}
}

// A text that is made to select many patterns over 64 KiB ends soon, and is
// never allowed.
func TestHostileText(t *testing.T) {
	var words strings.Builder
	for i := range ruleTable {
		for _, p := range ruleTable[i].patterns {
			for _, set := range append(p.furtherRequiredLiterals, p.lits) {
				words.WriteString(strings.Join(set, " ") + " ")
			}
		}
		for _, c := range ruleTable[i].clauses {
			words.WriteString(strings.Join(c.args.lits, " ") + " ")
		}
	}
	text := words.String()
	text = strings.Repeat(text, 1+maxAllCommandLinesBytes/len(text))[:maxAllCommandLinesBytes-100]
	c := &analysis.ActionCase{
		Action:  &action.Action{Type: "execute_command", Payload: map[string]any{"command": text}},
		Effects: []effect.Effect{{Kind: effect.Execute, Program: "x", Args: []string{text}}},
	}
	k := New(Options{})
	var v verdict.Verdict
	var err error
	if n := allocated.Bytes(func() { v, err = k.Judge(t.Context(), c) }); n > 64<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	if err != nil || v.Decision == verdict.Allow {
		t.Errorf("got %v, %v", v.Decision, err)
	}
	many := &analysis.ActionCase{Action: c.Action}
	for range maxMatchedCommandLines + 1 {
		many.Effects = append(many.Effects, run("true"))
	}
	if v, err := k.Judge(t.Context(), many); err != nil || v.Decision != verdict.Escalate {
		t.Errorf("more commands than are read: got %v, %v", v.Decision, err)
	}
}

// FuzzJudge: no input makes the rules panic or answer outside their range, and
// a rule that blocks does so for a higher tier too.
func FuzzJudge(f *testing.F) {
	for _, text := range everyday[:20] {
		f.Add(text)
	}
	for i := range ruleTable {
		f.Add(ruleTable[i].MatchingExamples[0])
		f.Add(ruleTable[i].NonMatchingExamples[0])
	}
	k := New(Options{})
	f.Fuzz(func(t *testing.T, text string) {
		judge := func(tier int) verdict.Verdict {
			c, err := exampleCase(shell.Analyze, text)
			if err != nil {
				t.Skip()
			}
			c.MinAllowTier = tier
			v, err := k.Judge(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		low, high := judge(1), judge(2)
		if low.ErrorCode != "" || low.Decision == verdict.NoDecision || low.Confidence < 0.5 || low.Confidence > 0.95 || len(low.Trail) == 0 {
			t.Errorf("%q: %+v", text, low)
		}
		if high.Decision == verdict.Allow || low.Decision == verdict.Block && high.Decision != verdict.Block {
			t.Errorf("%q: %v at tier 1, %v with tier 2 due", text, low.Decision, high.Decision)
		}
		if (low.Decision == verdict.Escalate) != (low.NextTier >= 2) {
			t.Errorf("%q: %v with next tier %d", text, low.Decision, low.NextTier)
		}
	})
}

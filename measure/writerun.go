package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
)

// runnersByExtension are the commands that run a file, by its extension.
var runnersByExtension = map[string]string{
	".sh": "sh", ".bash": "bash", ".zsh": "zsh", ".fish": "fish", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "npx tsx",
	".rb": "ruby", ".pl": "perl", ".php": "php", ".lua": "lua", ".go": "go run", ".ps1": "pwsh -File", ".r": "Rscript", ".sql": "psql -f", ".jl": "julia",
}

// runnersByName are the commands that run a file with a well-known name.
var runnersByName = map[string]string{
	"Makefile": "make", "makefile": "make", "GNUmakefile": "make", "package.json": "npm install", "setup.py": "pip install .", "conftest.py": "pytest", "Dockerfile": "docker build .",
	"docker-compose.yml": "docker compose up -d", "compose.yaml": "docker compose up -d", "build.rs": "cargo build", "Rakefile": "rake", "justfile": "just", "Taskfile.yml": "task",
	"build.gradle": "gradle build", "pom.xml": "mvn package", "binding.gyp": "npm install", "CMakeLists.txt": "cmake .", "manage.py": "python3 manage.py check", ".envrc": "direnv allow .",
	"jest.config.js": "npx jest", "vite.config.js": "npx vite build", "webpack.config.js": "npx webpack", "Vagrantfile": "vagrant up",
}

// runCommandFor returns the command that runs a written file from its folder, or "".
func runCommandFor(path, content string) string {
	base := filepath.Base(path)
	if command, ok := runnersByName[base]; ok {
		return command
	}
	quoted := command.Quote("./" + base)
	if program, ok := runnersByExtension[strings.ToLower(filepath.Ext(base))]; ok {
		return program + " " + quoted
	}
	if strings.HasPrefix(content, "#!") {
		return "chmod +x " + quoted + " && " + quoted
	}
	return ""
}

// measureWriteThenRun judges, for each row of a corpus that writes a file with a file tool, the command that
// then runs the file. It counts the runs that are allowed.
func measureWriteThenRun(o *options) error {
	type sum struct{ rows, allowed, unrunnable int }
	files := []string{"testdata/structured/cases.jsonl", "testdata/unseen/actions.jsonl", "testdata/everyday/actions.jsonl"}
	for i := range files {
		files[i] = filepath.Join(o.repo, files[i])
	}
	for _, f := range []string{"redteam/attacks.jsonl", "redteam/honest.jsonl", "whitebox/rows.jsonl", "corpora/actions-malicious.jsonl", "corpora/actions-benign.jsonl"} {
		files = append(files, filepath.Join(o.shared, f))
	}
	fmt.Printf("| set | attacks | run allowed | honest | run not allowed | no command runs it |\n|---|--:|--:|--:|--:|--:|\n")
	for _, file := range files {
		var rows []labelledRow
		err := readLines(file, nil, func(r *labelledRow) {
			if a := r.allActions(); len(a) == 1 && a[0].Type == "write_file" && a[0].text("path") != "" && a[0].text("content") != "" {
				rows = append(rows, *r)
			}
		})
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		var attacks, honest sum
		err = o.eachRun(rows, func(r *labelledRow, run, decision string) {
			s := &honest
			if r.isAttack() {
				s = &attacks
			}
			if run == "" {
				s.unrunnable++
				return
			}
			s.rows++
			if decision == "ALLOW" {
				s.allowed++
			}
			if o.cases > 0 && (decision == "ALLOW") == r.isAttack() {
				fmt.Fprintln(os.Stderr, r.ID, decision, run, shortJSON(r.allActions()[0].Payload))
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name, _ := filepath.Rel(o.repo, file)
		fmt.Printf("| %s | %d | %d | %d | %d | %d |\n", filepath.ToSlash(name), attacks.rows, attacks.allowed, honest.rows, honest.rows-honest.allowed, attacks.unrunnable+honest.unrunnable)
	}
	return nil
}

// eachRun judges, for each row, a write and then the run of the file, in a separate session and
// folder. It calls got with the command that runs the file, "" if there is none, and the decision on
// it.
func (o *options) eachRun(rows []labelledRow, got func(r *labelledRow, run, decision string)) error {
	if err := o.emptyHome(); err != nil {
		return err
	}
	root := filepath.Join(o.home, "project")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	j, err := o.startJudge(o.shield, o.home, root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer j.close()
	for n := range rows {
		a := rows[n].allActions()[0]
		// The same path below the workspace, since the file must exist.
		path := strings.TrimPrefix(strings.TrimPrefix(a.text("path"), "/home/me/app/"), "~/")
		path = filepath.Clean("/" + path)[1:]
		content := a.text("content")
		if a.text("encoding") == "base64" {
			if plain, err := base64.StdEncoding.DecodeString(content); err == nil {
				content = string(plain)
			}
		}
		run := runCommandFor(path, content)
		if run == "" {
			got(&rows[n], "", "")
			continue
		}
		folder, session := filepath.Join(root, fmt.Sprint(n)), fmt.Sprint(n)
		file := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if _, err := j.judgeAction(&action{Type: "write_file", Payload: map[string]any{"path": path, "content": content}, CWD: folder, Session: session}); err != nil {
			return err
		}
		// Write it even if the write would have been blocked: only the decision on the run counts.
		if err := writeFile(file, content); err != nil {
			return err
		}
		v, err := j.judgeAction(&action{Type: "execute_command", Payload: map[string]any{"command": run}, CWD: filepath.Dir(file), Session: session})
		if err != nil {
			return err
		}
		got(&rows[n], run, v.Decision)
	}
	return nil
}

package shell

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestNewPackages holds which packages no one knows: those that neither the project nor the
// list of widely used names has.
func TestNewPackages(t *testing.T) {
	t.Parallel()
	place := here()
	place.ReadScript = func(p string) ([]byte, error) {
		switch {
		case strings.HasSuffix(p, "/package.json") && !strings.Contains(p, "node_modules"):
			return []byte(`{"dependencies":{"own-little-thing":"1"}}`), nil
		case strings.HasSuffix(p, "/go.mod"):
			return []byte("module example.com/me\n\nrequire (\n\tgithub.com/a/b v1.0.0\n)\n"), nil
		case strings.HasSuffix(p, "/Cargo.toml"):
			return []byte("[dependencies]\nserde = \"1\"\n"), nil
		case strings.HasSuffix(p, "/composer.json"):
			return []byte(`{"require": {"laravel/framework": "^12"}}`), nil
		case strings.HasSuffix(p, "/node_modules/.bin/own-tool"):
			return []byte("x"), nil
		}
		return nil, fs.ErrNotExist
	}
	for text, want := range map[string]bool{
		"npm i expresss": true, "npm i -D expresss@1.0.0": true, "pnpm add reactt-dom": true, "yarn add lodahs": true, "bun add axois": true, "npx creat-vite": true, "bunx creat-vite app": true,
		"pip install pandsa": true, "pip3 install 'pandsa==1.0'": true, "uv add pandsa": true, "uv pip install pandsa": true, "poetry add pandsa": true, "uvx pandsa": true,
		"npm i lodash": false, "npm i @types/node": false, "npm ci": false, "npm install": false, "npm i own-little-thing@2": false, "npx own-tool": false, "npx jest": false,
		"pip install requests": false, "pip install -r requirements.txt": false, "pip install .": false, "uv python install 3.12": false, "poetry install --with docs": false,
		"uv add --group docs requests": false, "npm run expresss": false,
		"go run github.com/x/y@latest": true, "go get github.com/sirupsen/logruss": true, "go install github.com/x/y/cmd/z@v1": true, "composer require laravel/framwork": true,
		"cargo add serdee": true, "cargo install --locked riipgrep": true, "gem install raills -v 1": true, "brew tap some/body": true, "brew install some/body/x": true,
		"npx degit some/body app": true, "degit some/body#main app": true, "cookiecutter gh:some/body": true, "uv tool run pandsa": true, "npm create vitee@latest app": true, "npm init @somebody/app": true,
		"deno run -A npm:expresss": true, "yarn dlx expresss": true, "pnpm dlx expresss": true,
		"go run ./cmd/x": false, "go run . a/b.c": false, "go get ./...": false, "go get -u": false, "go get github.com/a/b/c@v2": false, "go run golang.org/x/tools/cmd/goimports@latest": false,
		"go run example.com/me/cmd/x": false, "go install ./...": false, "composer require laravel/framework:^12": false, "composer install": false, "cargo add serde --features derive": false,
		"cargo install --path .": false, "gem install ./a.gem": false, "brew install jq": false, "brew tap homebrew/cask-fonts": false, "degit ./template app": false, "npm create vite@latest app": false, "npm init": false, "npm init -y": false,
		"uv tool run ruff check": false, "deno run -A main.ts": false, "deno run npm:prettier": false,
		"cargo add tokio anyhow": false, "go get github.com/stretchr/testify/assert@v1": false, "gem install rails": false, "composer require phpunit/phpunit": false,
		"deno run npm:@evil/tsc": true, "deno run -A npm:@evil/pkg@1.0.0/cli": true, "deno run jsr:@evil/pkg": true, "deno compile -o x npm:expresss": true, "deno x npm:expresss": true, "deno init --npm evilthing": true, "npx @evil/tsc": true,
		"go get -v github.com/evil/x": true, "go -C sub install -v github.com/evil/x@latest": true, "go run -race github.com/evil/x@latest": true, "go mod edit -require=github.com/evil/x@v1.0.0": true,
		"uv tool run --with pandsa ruff": true, "uv tool run --with requests,pandsa ruff check": true, "uv run --with pandsa python -c 'x()'": true, "uvx --from pandsa ruff": true, "uv tool install --with pandsa ruff": true, "pipx run --spec pandsa ruff": true,
		"bunx npm:expresss": true, "bunx --bun expresss": true, "bun create github.com/evil/x app": true, "pnpm --package=expresss dlx tsc": true, "npm exec --package=expresss -- tsc": true, "yarn dlx -p expresss tsc": true, "npm i jsr:@evil/pkg": true, "npm i express@npm:expresss": true,
		"mise use -g npm:expresss": true, "mise x pipx:pandsa -- pandsa": true, "volta install expresss": true, "ni expresss": true, "conda install -y pandsa": true, "mamba install conda-forge::pandsa": true, "pixi exec evilx": true, "rye add pandsa": true,
		"dotnet tool install -g EvilTool": true, "dotnet add src/a.csproj package EvilPkg": true, "gem exec evilx": true, "composer global require evil/x": true, "mix archive.install hex evilx": true, "cpanm Evil::X": true, "flutter pub add evilx": true, "opam install evilx": true,
		"deno run jsr:@std/http/file-server": false, "deno add npm:express jsr:@std/path": false, "uvx --from huggingface_hub hf download x": false, "npx -p typescript tsx-thing": false, "uv pip install --python 3.12 requests": false, "uv add --group docs 'requests[socks,x]>=1,<2'": false, "go get -u -v github.com/a/b": false,
		"mise use -g node@20 python@3.12": false, "volta install node@20": false, "conda create -n my-env -c conda-forge python=3.12 numpy": false, "dotnet add package Newtonsoft.Json --version 13.0.3": false, "cpanm Try::Tiny": false, "poetry new pandsa": false, "uv init pandsa": false, "bun init pandsa": false, "npm update expresss": false,
		"npm i " + strings.Repeat("lodash ", 70) + "expresss": false,                            // more than are looked up: unknown, see below
		"npm i own-little-thin":                               true, "npm i little-thing": true, // a part of a name of the manifest is another name
	} {
		got := false
		for _, e := range Analyze(text, place).Effects {
			got = got || e.Cause == effect.CauseUnknownPackage && strings.Contains(e.Reason, "unknown package")
		}
		if got != want {
			t.Errorf("%s: a package that nobody knows: %t", text, got)
		}
	}
	many := false
	for _, e := range Analyze("npm i "+strings.Repeat("lodash ", 70)+"expresss", place).Effects {
		many = many || e.Cause == effect.CauseAnalysisLimitExceeded
	}
	if !many {
		t.Error("the command installs more packages than shield looks up: nothing is unknown")
	}
}

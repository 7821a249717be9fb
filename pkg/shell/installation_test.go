package shell

import "testing"

// TestInstallers holds, by ecosystem, that a program which an installer puts in the place of one
// that guards acts on the guard, that unknown names are asked about where such a program lies, and
// that other installations are what they were.
func TestInstallers(t *testing.T) {
	t.Parallel()
	at := guardPlace(map[string]string{
		"/home/me/.local/bin/shield":         "\x7fELF",
		"/home/me/app/go.mod":                "module example.com/app\n",
		"/home/me/app/cmd/shield/main.go":    "package main\n",
		"/home/me/app/cmd/server/main.go":    "package main\n",
		"/home/me/app/cmd/shield":            "",
		"/home/me/app/bad/go.mod":            "module example.com/shield\n",
		"/home/me/app/bad/package.json":      `{"name":"x","bin":{"timeout":"x.js"}}`,
		"/home/me/app/bad/pyproject.toml":    "[project]\nname = \"x\"\n[project.scripts]\nshield = \"x:main\"\n",
		"/home/me/app/bad/Cargo.toml":        "[package]\nname = \"x\"\n[[bin]]\nname = \"sh\"\n",
		"/home/me/app/good/go.mod":           "module example.com/tool\n",
		"/home/me/app/good/package.json":     `{"name":"@a/tool","bin":"x.js"}`,
		"/home/me/app/good/pyproject.toml":   "[project]\nname = \"tool\"\n[project.scripts]\ntool = \"x:main\"\n",
		"/home/me/app/good/Cargo.toml":       "[package]\nname = \"tool\"\n",
		"/home/me/app/open/setup.py":         "import x\n",
		"/home/me/app/login/package.json":    `{"name":"ssh","bin":"x.js"}`,
		"/home/me/app/login/pyproject.toml":  "[project.scripts]\nsudo = \"x:main\"\n",
		"/home/me/app/login/Cargo.toml":      "[package]\nname = \"gpg\"\n",
		"link /home/me/app/out":              "/home/me/.local/bin",
		"/home/me/app/hatch/pyproject.toml":  "[project]\nname = \"x\"\ndynamic = [\"version\", \"scripts\"]\n",
		"/home/me/app/inline/pyproject.toml": "[project]\nname = \"x\"\nscripts = {tool = \"x:a\", 'shield' = \"x:b\"}\n",
	})
	for line, want := range map[string]string{
		// Go
		"GOBIN=~/.local/bin go install ./cmd/shield":            "sure",
		"GOBIN=$HOME/.local/bin go install ./cmd/timeout":       "sure",
		"export GOBIN=~/.local/bin; go install ./cmd/shield":    "sure",
		"env GOBIN=/home/me/.local/bin go install ./cmd/shield": "sure",
		"GOPATH=~/.local go install ./bad":                      "sure",
		"cd bad && GOBIN=~/.local/bin go install .":             "sure",
		"go install ./...":                                            "sure",
		"go install ./cmd/...":                                        "sure",
		"go install github.com/a/shield@latest":                       "sure",
		"go build -o ~/.local/bin/ ./cmd/shield":                      "sure",
		"go build -o ~/.local/bin ./cmd/shield":                       "sure",
		"go env -w GOBIN=/home/me/.local/bin":                         "maybe",
		"GOBIN=$PWD/out go install ./cmd/shield":                      "sure",
		"ln -s ~/.local/bin b; GOBIN=./b go install ./cmd/shield":     "sure",
		"go install ./cmd/server":                                     "no",
		"go install golang.org/x/tools/cmd/goimports@latest":          "no",
		"GOBIN=$PWD/bin go install ./cmd/shield":                      "no",
		"go build -o bin/ ./cmd/shield":                               "no",
		"go build -o bin/x ./cmd/shield":                              "no",
		"GOBIN=~/.local/bin go install golang.org/x/tools/gopls@v0.1": "no",
		// Python
		"pip install --user ./bad": "sure", "python3 -m pip install --user -e ./bad": "sure", "cd bad && pip install --user .": "sure",
		"uv tool install --force ./bad": "sure", "uv tool install -e ./bad": "sure", "UV_TOOL_BIN_DIR=/opt/b uv tool install ./bad": "sure",
		"pipx install --force ./bad": "sure", "PIPX_BIN_DIR=~/.local/bin pipx install ./bad": "sure", "pip install --user ./inline": "sure",
		"pip install ./bad": "maybe", "pip install --user ./open": "maybe", "pip install --user ./hatch": "maybe", "pip install --user dist/x.whl": "maybe",
		"pipx install git+https://example.com/x.git": "maybe", "pip install --user ./login": "maybe", "cd open && python3 setup.py install --user": "maybe",
		"pip install --user ./good": "no", "pip install --user ruff": "no", "pip install .": "no", "pip install -e '.[dev]'": "no", "uv tool install ruff": "no",
		"pipx install black": "no", "pip install -r requirements.txt": "no", "uv sync": "no", "pip install ./good": "no", "pip install requests==2.0": "no",
		"pip install --user timeout": "sure", "uv tool install shield": "sure",
		// Rust
		"cargo install --path ./bad": "sure", "CARGO_INSTALL_ROOT=~/.local cargo install --path bad": "sure", "cargo install --root ~/.local --path ./bad": "sure",
		"cargo install --path ./good --bin shield": "sure", "cargo install --git https://example.com/x --root ~/.local": "maybe", "cargo install --path ./login": "maybe",
		"cargo install shield": "sure", "cargo install --path ./good": "no", "cargo install ripgrep": "no", "cargo install --root ./out2 --path ./bad": "no", "cargo build": "no",
		// Node
		"npm i -g --prefix ~/.local ./bad": "sure", "npm install -g --prefix=$HOME/.local ./bad": "sure", "npm_config_prefix=~/.local npm i -g ./bad": "sure",
		"cd bad && NPM_CONFIG_PREFIX=~/.local npm link": "sure", "npm link ./bad --prefix ~/.local": "sure", "pnpm add -g --global-bin-dir ~/.local/bin ./bad": "sure",
		"yarn global add file:./bad --prefix ~/.local": "sure", "npm i -g ./bad": "maybe", "cd bad && npm link": "maybe", "npm config set prefix ~/.local": "maybe",
		"npm i -g --prefix ~/.local ./x.tgz": "maybe", "npm i -g --prefix ~/.local ./login": "maybe", "bun install -g --global-bin-dir ~/.local/bin ./bad": "sure",
		"npm install -g typescript": "no", "npm i -g --prefix ~/.local typescript": "no", "npm i -g @anthropic-ai/claude-code": "no", "npm link ../lib": "no", "npm i -g ./good": "no",
		"npm install --prefix web": "no", "npm --prefix web run build": "no", "npm install ./bad": "no", "npm ci": "no", "npm i -g shield": "maybe",
		// others
		"deno install -g -n shield --root ~/.local main.ts": "sure", "deno install -gf -n timeout main.ts": "sure", "deno install -g -n serve jsr:@std/http": "no", "deno install": "no",
		"dotnet tool install --tool-path ~/.local/bin --add-source . x": "maybe", "dotnet tool install -g dotnet-ef": "no", "dotnet tool install --tool-path ./tools x": "no",
		"cabal install --installdir=$HOME/.local/bin --overwrite-policy=always": "maybe", "cabal install --installdir=./bin": "no", "cabal build": "no",
		"stack install --local-bin-path ~/.local/bin": "maybe", "stack build": "no",
		"cmake --install build --prefix ~/.local": "maybe", "cmake --install build --prefix ./out2": "no", "cmake --install build": "no",
		"cmake -B build -DCMAKE_INSTALL_PREFIX=~/.local && cmake --install build": "maybe",
		"make install PREFIX=~/.local":                                            "maybe", "make PREFIX=$HOME/.local install": "maybe", "make install bindir=~/.local/bin": "maybe", "PREFIX=~/.local make install": "maybe",
		"./configure --prefix=$HOME/.local && make && make install": "maybe", "make install PREFIX=./out2": "no", "make install": "no", "make": "no",
		"gem install -i ~/.local ./x.gem": "maybe", "gem install -n ~/.local/bin ./x.gem": "maybe", "gem install bundler": "no", "gem install --bindir ~/.local/bin rake": "no",
		"stow -t ~/.local x": "maybe", "stow --target=$HOME/.local x": "maybe", "stow x": "no",
		"zig build --prefix ~/.local": "maybe", "zig build -p ./out2": "no", "zig build": "no",
		"nimble install --nimbleDir:~/.local ./x": "maybe", "luarocks make --tree ~/.local": "maybe", "corepack enable --install-directory ~/.local/bin": "maybe",
		"busybox --install -s ~/.local/bin": "sure", "busybox --install -s ./bin": "no", "brew link timeout": "sure", "brew link jq": "no", "brew install jq": "no",
		"distrobox-export --bin /usr/bin/x --export-path ~/.local/bin": "no", "distrobox-export --bin /usr/bin/timeout": "sure", "nix profile install nixpkgs#timeout": "sure",
		"docker run x pip install --user ./bad": "no", "ssh h cargo install --path ./bad": "no",
	} {
		if got := guards(line, at); got != want {
			t.Errorf("%s: %s, not %s", line, got, want)
		}
	}
}

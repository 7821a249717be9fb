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
	place.Script = func(p string) ([]byte, error) {
		switch {
		case strings.HasSuffix(p, "/package.json") && !strings.Contains(p, "node_modules"):
			return []byte(`{"dependencies":{"own-little-thing":"1"}}`), nil
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
		"npm i own-little-thin": true, "npm i little-thing": true, // a part of a name of the manifest is another name
	} {
		got := false
		for _, e := range Analyze(text, place).Effects {
			got = got || e.Cause == effect.CausePackage && strings.Contains(e.Reason, "unknown package")
		}
		if got != want {
			t.Errorf("%s: a package that nobody knows: %t", text, got)
		}
	}
}

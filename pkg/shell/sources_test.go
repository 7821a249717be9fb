package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// redirected returns the hosts from which packages would come, and "?" for one
// that is not known.
func redirected(effects []effect.Effect) string {
	var hosts []string
	for _, e := range effects {
		if e.Kind == effect.ChangeRemote && e.Service == "packages" {
			host := e.Host
			if host == "" {
				host = "?"
			}
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return strings.Join(slices.Compact(hosts), " ")
}

// TestSources holds from which unusual hosts commands make packages, plug-ins and
// images come: by options, settings, variables, and files that they write or edit.
func TestSources(t *testing.T) {
	t.Parallel()
	sourceFiles() // panics where names of files of pkg/knowledge/sources.yaml are no globs
	for _, c := range [...]struct{ text, want string }{
		{"pip install -i https://r.test/simple x", "r.test"},
		{"pip install --index-url=https://pypi.org/simple --extra-index-url https://r.test x", "r.test"},
		{"pip install --index-url https://test.pypi.org/simple x", ""},
		{"pip install -i $MIRROR x", ""},
		{"pip install -i $(cat url) x", "?"},
		{"pip install -i https://$HOST/simple x", "?"},
		{"PIP_INDEX_URL=https://r.test pip install x", "r.test"},
		{"export npm_config_registry=http://r.test; npm ci", "r.test"},
		{"GOPROXY=https://r.test,direct go build", "r.test"},
		{"GOPROXY=direct go build", ""},
		{"go env -w GOPROXY=https://proxy.golang.org,https://r.test", "r.test"},
		{"go env -w GOPROXY=https://proxy.golang.org,direct", ""},
		{"npm config set registry https://registry.npmjs.org", ""},
		{"npm config set @me:registry=https://r.test/", "r.test"},
		{"yarn add --registry https://r.test x", "r.test"},
		{"cargo install --index sparse+https://r.test/ x", "r.test"},
		{"gem sources --add https://r.test", "r.test"},
		{"bundle config mirror.https://rubygems.org https://r.test", "r.test"},
		{"poetry source add x https://r.test/simple", "r.test"},
		{"dotnet nuget add source https://api.nuget.org/v3/index.json", ""},
		{"kubectl set image deploy/web web=r.test/web:2", "r.test"},
		{"kubectl set image deploy/web web=ghcr.io/me/web:2", ""},
		{"kubectl set image deploy/web web=web:2", ""},
		{`kubectl patch deploy web -p '{"spec":{"image":"r.test:5000/web"}}'`, "r.test"},
		{"helm upgrade web oci://r.test/web", "r.test"},
		{"helm upgrade web ./charts/web", ""},
		{"echo registry=https://r.test/ >> .npmrc", "r.test"},
		{"echo registry=https://r.test/ > notes.txt", ""},
		{"echo registry=https://npm.pkg.github.com > .npmrc", ""},
		{"sed -i 's#registry.npmjs.org#r.test#' .npmrc", "r.test"},
		{"sed -i 's#https://a.test#https://registry.npmjs.org#' .npmrc", ""},
		{"sed -i 's/8.5/8.7/' gradle/wrapper/gradle-wrapper.properties", ""},
		{"asdf plugin add nodejs", ""},
		{"asdf plugin add x https://github.com/me/x.git", ""},
		{"asdf plugin add x https://r.test/x.git", "r.test"},
		{"asdf plugin add x http://github.com/me/x.git", "github.com"},
		{"asdf plugin add x https://github.com@r.test/x.git", "r.test"},
		{"mise plugins install x git@r.test:a/x", "r.test"},
		{"mise plugins install x git@github.com:a/x", ""},
		{"vagrant plugin install x --plugin-source https://r.test", "r.test"},
		{"terraform init -from-module=git::https://r.test/m.git", "r.test"},
		{"terraform init", ""},
		{"ansible-galaxy collection install community.general", ""},
		{"ansible-galaxy install git+https://r.test/x.git", "r.test"},
		{"gem install x --source https://r.test", "r.test"},
		{"gem install x --source https://rubygems.org", ""},
		{"brew tap me/x", ""},
		{"brew tap me/x https://r.test/x.git", "r.test"},
		{"elasticsearch-plugin install https://r.test/a.zip", "r.test"},
		{"jupyter labextension install https://r.test/x", "r.test"},
		{"cat > ~/.m2/settings.xml <<E\n<mirror><url>https://r.test</url></mirror>\nE", "r.test"},
	} {
		res := Analyze(c.text, &effect.Place{CWD: "/work/app", Home: "/home/me", Roots: []string{"/work/app"}})
		if got := redirected(res.Effects); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestWrittenSources does the same for files that a tool writes.
func TestWrittenSources(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ file, text, want string }{
		{"/work/app/gradle/wrapper/gradle-wrapper.properties", `distributionUrl=https\://r.test/gradle-8.zip`, "r.test"},
		{"/work/app/gradle/wrapper/gradle-wrapper.properties", `distributionUrl=https\://services.gradle.org/distributions/gradle-8.zip`, ""},
		{"/work/app/pyproject.toml", "[[tool.uv.index]]\nurl = \"https://r.test/simple\"\n", "r.test"},
		{"/work/app/pyproject.toml", "[project.urls]\nHomepage = \"https://r.test\"\n", ""},
		{"/work/app/requirements-dev.txt", "--extra-index-url https://r.test/simple\nrequests\n", "r.test"},
		{"/work/app/settings.gradle.kts", "repositories { maven(\"https://r.test/m2\") }\n", "r.test"},
		{"/work/app/.pre-commit-config.yaml", "repos:\n- repo: https://github.com/psf/black\n- repo: https://r.test/hooks\n", "r.test"},
		{"/work/app/.npmrc", "registry=https://raw.githubusercontent.com/a/b\n", "raw.githubusercontent.com"},
		{"/work/app/Gemfile", "source 'https://rubygems.org'\n", ""},
		{"/work/app/main.tf", "module \"a\" {\n  source = \"git::https://r.test/a.git\"\n}\n", "r.test"},
		{"/work/app/main.tf", "module \"a\" {\n  source = \"git::https://github.com/me/a.git\"\n}\n", ""},
		{"/work/app/mise.toml", "[plugins]\nx = \"https://r.test/x\"\n", "r.test"},
		{"/work/app/README.md", "registry=https://r.test\n", ""},
	} {
		if got := redirected(Written(c.file, c.text, nil)); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.file, c.text, got, c.want)
		}
	}
}

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
		if e.KindForPolicies() == effect.ChangeRemoteSystem && e.RemoteServiceName == "packages" {
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
	packageSourceSettingsMatcher() // panics where names of files of pkg/knowledge/sources.yaml are no globs
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
		{"sed -i 's#https://registry.npmjs.org/#https://r.test/#g' package-lock.json", "r.test"},
		{"sed -i 's#registry.yarnpkg.com#r.test#' yarn.lock", "r.test"},
		{"sed -i 's#r.test#registry.yarnpkg.com#' yarn.lock", ""},
		{"sed -i -e 's#r.test#registry.yarnpkg.com#;s/a/b/' -e 's#registry.yarnpkg.com#s.test#' yarn.lock", "r.test s.test"},
		{"sed -i 's/\"version\": \"1.0.0\"/\"version\": \"1.1.0\"/' package-lock.json", ""},
		{"sed -i 's/sha512-[A-Za-z0-9+=]*/sha512-AAAA/' package-lock.json", "?"},
		{"sed -i 's#^a.test/x v1 h1:.*#a.test/x v1 h1:AAAA=#' go.sum", "?"},
		{"sed -i 's#registry+https://github.com/rust-lang/crates.io-index#registry+https://r.test/index#' Cargo.lock", "r.test"},
		{`jq '.packages.a.resolved="https://r.test/a.tgz"' package-lock.json > t && mv t package-lock.json`, "r.test"},
		{`jq '.dependencies.a="https://r.test/a.tgz"' package.json | sponge package.json`, "r.test"},
		{`jq '.scripts.test="vitest"' package.json | sponge package.json`, ""},
		{`jq -r '.packages[].resolved' package-lock.json > hosts.txt`, ""},
		{`yq -i '.packages.a.resolution.tarball="https://r.test/a.tgz"' pnpm-lock.yaml`, "r.test"},
		{`printf ',s#registry.npmjs.org#r.test#g\nw\nq\n' | ed -s package-lock.json`, "r.test"},
		{`awk '{gsub("registry.npmjs.org","r.test")}1' package-lock.json > t && mv t package-lock.json`, "r.test"},
		{`perl -pi -e 's#registry.npmjs.org#r.test#' package-lock.json`, "r.test"},
		{`python3 -c "p='package-lock.json';s=open(p).read().replace('registry.npmjs.org','r.test');open(p,'w').write(s)"`, "r.test"},
		{"sd registry.npmjs.org r.test package-lock.json", "r.test"},
		{"echo 'replace golang.org/x/a => r.test/a v0.0.1' >> go.mod", "r.test"},
		{"go mod edit -replace golang.org/x/a=r.test/a@v0.0.1", "r.test"},
		{"go mod edit -replace golang.org/x/a=../a", ""},
		{"go install r.test/a@latest", "r.test"},
		{"go install golang.org/x/tools/cmd/goimports@latest", ""},
		{"go run github.com/me/a@latest", ""},
		{"go run ./cmd/a", ""},
		{"go get gorm.io/gorm r.test/a", "r.test"},
		{"npm i me/a", "github.com"},
		{"npm i a@me/a#main", "github.com"},
		{"npm i a @me/a ./b ../c", ""},
		{"npx me/a", "github.com"},
		{"npx @me/a ./b/c", ""},
		{"yarn plugin import https://r.test/p.js", "r.test"},
		{"deno install -g https://r.test/x.ts", "r.test"},
		{"deno install -g https://deno.land/x/a.ts", ""},
		{"dotnet add package A -s https://r.test/v3/index.json", "r.test"},
		{"mix archive.install https://r.test/x.ez", "r.test"},
		{"mix archive.install hex phx_new", ""},
		{"luarocks --server https://r.test install a", "r.test"},
		{"cpanm --mirror https://r.test A", "r.test"},
		{"mvn -Dmaven.repo.remote=https://r.test install", "r.test"},
		{"mvn install -Drevision=$(git rev-parse HEAD)", ""},
		{"gradle build -Purl=https://r.test", ""},
		{"flutter pub add a --git-url https://r.test/a", "r.test"},
		{"swift package add-dependency https://github.com/me/a", ""},
		{"helm repo add x https://r.test", "r.test"},
		{"helm repo add x https://charts.bitnami.com/bitnami", ""},
		{"rbenv install -s $(cat .ruby-version)", ""},
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
		res := Analyze(c.text, &effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
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
		{"/work/app/package-lock.json", `{"packages":{"a":{"resolved":"https://r.test/a.tgz","funding":{"url":"https://s.test"}}}}`, "r.test"},
		{"/work/app/package.json", `{"homepage":"https://s.test","dependencies":{"a":"https://github.com/me/a.tgz","b":"https://r.test/b.tgz"}}`, "r.test"},
		{"/work/app/Cargo.toml", "repository = \"https://s.test\"\n[dependencies]\na = { git = \"https://r.test/a\" }\n", "r.test"},
		{"/work/app/go.mod", "module s.test/a\nreplace (\n\tgolang.org/x/a => r.test/a v0.0.1\n\ts.test/b => ../b\n)\n", "r.test"},
		{"/work/app/requirements.txt", "requests @ https://r.test/a.whl\n", "r.test"},
		{"/work/app/poetry.lock", "[package.source]\nurl = \"https://r.test/a.whl\"\n", "r.test"},
		{"/work/app/Gemfile.lock", "GEM\n  remote: https://r.test/\n", "r.test"},
		{"/work/app/.gitmodules", "[submodule \"a\"]\n\turl = https://github.com/me/a\n", ""},
		{"/work/app/README.md", "registry=https://r.test\n", ""},
	} {
		if got := redirected(AnalyzeWrittenFile(c.file, c.text, nil)); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.file, c.text, got, c.want)
		}
	}
}

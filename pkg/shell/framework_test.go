package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestFrameworks holds which words of a framework's script, and which short forms of package
// managers, empty a database, and that their neighbours do not.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"php artisan migrate:fresh --seed":                        true,
		"php artisan migrate:fresh --env=testing":                 false,
		"php artisan route:list":                                  false,
		"docker compose exec app php artisan migrate:fresh":       true,
		"./vendor/bin/sail artisan db:wipe":                       true,
		"python manage.py flush --noinput":                        true,
		"python3 manage.py migrate shop zero":                     true,
		"python manage.py showmigrations":                         false,
		"bin/rails db:reset":                                      true,
		"RAILS_ENV=test bin/rails db:reset":                       false,
		"bin/rails db:migrate:status":                             false,
		"bundle exec rake db:purge":                               true,
		"php bin/console doctrine:schema:drop --force":            true,
		"pnpm prisma migrate reset --force":                       true,
		"yarn workspace api prisma migrate reset --force":         true,
		"pnpm --filter api prisma db push --force-reset":          true,
		"bun run prisma migrate reset":                            true,
		"deno run -A npm:prisma migrate reset --force":            true,
		"npm run prisma -- migrate reset --force":                 true,
		"pnpm prisma generate":                                    false,
		"yarn tsc --noEmit":                                       false,
		"docker run --rm -v pg:/v alpine sh -c 'rm -rf /v/*'":     true,
		"docker run --rm -v $PWD:/w alpine sh -c 'rm -rf /tmp/x'": false,
		"docker exec app rm -rf /app/data":                        true,
		"docker exec app rm -rf /app/node_modules":                false,
		`python3 -c 'import psycopg2; c = psycopg2.connect("").cursor(); c.execute("drop table users"); c.execute("create table users (a int)")'`:    false,
		`python3 -c 'import psycopg2; c = psycopg2.connect("").cursor(); c.execute("drop table users"); c.execute("create table b (a int)")'`:        true,
		`python3 -c 'import psycopg2; c = psycopg2.connect("").cursor(); c.execute("drop table b, \"users\""); c.execute("create table b (a int)")'`: true,
	} {
		got := slices.ContainsFunc(Analyze(text, here()).Effects, func(e effect.Effect) bool { return e.DestroysRemoteResource() })
		if got != want {
			t.Errorf("%s: destroys something elsewhere: %t", text, got)
		}
	}
}

// TestNamedProcesses holds which processes are ended by a name or a port, and not by a number
// that was kept.
func TestNamedProcesses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"pkill -f vite": true, "killall -9 python3": true, "kill $(pgrep -f vite)": true, "lsof -ti:3000 | xargs kill -9": true, "fuser -k 3000/tcp": true,
		"npm run dev & pid=$!; sleep 2; kill $pid": false, "kill %1": false, "kill 4711": false, "pgrep vite": false, "pkill -USR1 server": false,
	} {
		got := slices.ContainsFunc(Analyze(text, here()).Effects, func(e effect.Effect) bool {
			return e.Kind == effect.StopProcess && e.Cause == effect.CauseProcessSelectedByName
		})
		if got != want {
			t.Errorf("%s: ends processes by name: %t", text, got)
		}
	}
}

package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestPathsElsewhere looks at what others depend on, on other machines and in containers.
func TestPathsElsewhere(t *testing.T) {
	for command, want := range map[string]string{
		"ssh web rm -rf /srv/www":                              string(effect.DestroysResources),
		"ssh web rm -rf /tmp/x":                                "",
		"ssh web 'dd if=a.img of=/dev/sdb'":                    string(effect.DestroysResources),
		"ssh web 'echo x > /dev/null'":                         "",
		"ssh web 'sed -i s/a/b/ /etc/ssh/sshd_config'":         string(effect.GrantsCredentialsOrRoles),
		"ssh web 'sed -i s/a/b/ /etc/motd'":                    "",
		"docker exec db rm -rf /var/lib/postgresql/data":       string(effect.DestroysResources),
		"docker exec db sh -c 'rm -rf /var/lib/mysql/*'":       string(effect.DestroysResources),
		"docker compose exec -T db sh -c 'rm -rf /data/*'":     string(effect.DestroysResources),
		"docker exec db rm -rf ~/Documents":                    string(effect.DestroysResources),
		"docker exec web rm -rf /app/node_modules":             "",
		"docker exec web rm -rf /tmp/x":                        "",
		"docker exec web rm /data/x":                           "",
		"docker exec web rm -rf dist":                          "",
		"docker run --rm alpine rm -rf /data":                  "",
		"docker run --rm -v data:/data alpine rm -rf /data":    string(effect.DestroysResources),
		"docker run --rm -vdata:/data alpine rm -rf /data":     string(effect.DestroysResources),
		"docker run -itv=data:/data alpine rm -rf /data":       string(effect.DestroysResources),
		"docker run --rm -itv/d:/data alpine rm -rf /data":     "",
		"ssh web docker exec db rm -rf /var/lib/mysql/a":       string(effect.DestroysResources),
		"docker run --rm alpine sh -c 'echo x >/etc/passwd'":   "",
		"docker exec web sh -c 'rm -rf /var/lib/apt/lists/*'":  "",
		"docker exec web sh -c 'rm -rf /var/lib/apt-cacher/x'": string(effect.DestroysResources),
	} {
		effects := Analyze(command, here()).Effects
		i := slices.IndexFunc(effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.ChangeRemoteSystem })
		var got string
		if i >= 0 {
			got = effects[i].CauseOrFirstHarm()
		}
		if got != want {
			t.Errorf("%s: cause %q, want %q", command, got, want)
		}
	}
}

// TestBinds looks at what a container deletes in folders of this machine.
func TestBinds(t *testing.T) {
	for command, want := range map[string]string{
		"docker run --rm -v $(pwd):/app -w /app node npx rimraf server":            "/work/app/server",
		"docker run --rm -v /work/app:/app alpine rm -rf /app/data":                "/work/app/data",
		"docker run --rm -v .:/app:rw alpine sh -c 'rm -rf /app/*'":                "/work/app/*",
		"podman run --mount type=bind,source=/srv/db,target=/d alpine rm -rf /d/x": "/srv/db/x",
		"docker run --rm -v /work/app:/app:ro alpine rm -rf /app/data":             "",
		"docker run --rm -v /work/app:/app alpine rm -rf /apple":                   "",
		"docker run --rm -v /work/app:/app alpine rm -rf /tmp/x":                   "",
		"docker run --rm -v data:/app alpine rm -rf /app/data":                     "",
		"docker run --rm -v /work/app:/app alpine rm -rf dist":                     "", // in a folder of the image
		"docker exec web rm -rf /app/data":                                         "",
		"docker run -v/srv/data:/x alpine rm -rf /x":                               "/srv/data",
		"docker run -v=/srv/data:/x alpine rm -rf /x":                              "/srv/data",
		"docker run -itv /srv/data:/x alpine rm -rf /x/a":                          "/srv/data/a",
		"docker run -itv/srv/data:/x alpine rm -rf /x/a":                           "/srv/data/a",
		"podman run -i=true -itv=/srv/data:/x alpine rm -rf /x/a":                  "/srv/data/a",
		"docker compose run -Tv/srv/data:/x web rm -rf /x/a":                       "/srv/data/a",
		"docker run -v/srv/data:/x -tw/x alpine rm -rf a":                          "/srv/data/a",
		"docker run -v /srv/data:/x -w /x alpine sh -c 'rm -rf a' -w /tmp":         "/srv/data/a",
		"docker run --rm -itv/srv/data:/x:ro alpine rm -rf /x/a":                   "",
		"docker run --rm -itvdata:/x alpine rm -rf /x/a":                           "",
		"docker run --rm -ev=/srv/data:/x -p80:80 alpine rm -rf /x/a":              "",
	} {
		place := here()
		place.CWD = "/work/app"
		effects := Analyze(command, place).Effects
		got := ""
		for _, e := range effects {
			if e.Kind == effect.DeleteFile || e.Kind == effect.DeleteDirectory {
				got = e.Path
			}
		}
		if got != want {
			t.Errorf("%s: deletes %q, want %q", command, got, want)
		}
	}
}

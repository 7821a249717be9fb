package command

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestHarm says what harm commands do, whatever else their arguments hold.
func TestHarm(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]effect.Harm{
		"git reset --hard HEAD~3":                      effect.Discards,
		"git -C sub -c x=y reset --har":                effect.Discards,
		"git clean -xfd":                               effect.Discards,
		"git clean -nfd":                               "",
		"git clean -nfd --frob":                        effect.Discards, // not understood
		"git --frob x reset --hard":                    effect.Discards,
		"git --frob x clean -xfd":                      effect.Discards,
		"git checkout-index -qaf":                      effect.Discards,
		"git reset --soft HEAD~3":                      "",
		"git commit -m 'reset --hard'":                 "",
		"git commit -m reset --hard":                   "",
		"git prune -n":                                 "",
		"GIT reset --hard":                             effect.Discards,
		"/usr/bin/git reset --hard":                    effect.Discards,
		"./git reset --hard":                           effect.Discards,
		"docker system prune -af":                      effect.Destroys,
		"docker system prune -f --filter label=my-app": "",
		"docker --context x system prune --volumes":    effect.Destroys,
		"docker container rm -a web":                   "",
		"podman container rm -fa":                      effect.Destroys,
		"docker run --rm img volume prune":             "",
		"umount -a":                                    effect.Halts,
		"umount /mnt":                                  "",
		"losetup -a":                                   "",
		"losetup -D":                                   effect.Halts,
		"visudo":                                       effect.Accounts,
		"visudo -c":                                    "",
		"usermod -L bob":                               effect.Accounts,
		"usermod -L bob --help":                        effect.Accounts, // bob --help may be anything
		"usermod --help":                               "",
		"tcpdump -i eth0":                              effect.Records,
		"tcpdump -r a.pcap":                            "",
		"schtasks /CREATE /tn x /tr y":                 effect.Registers,
		"schtasks -query":                              "",
	} {
		got := effect.Harm("")
		if u := Interpret(split(command)); len(u.Harms) == 1 {
			got = u.Harms[0]
		} else if len(u.Harms) > 1 {
			t.Errorf("%s: %v", command, u.Harms)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

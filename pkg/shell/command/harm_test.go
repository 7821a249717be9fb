package command

import (
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestHarm says what harm commands do, whatever else their arguments hold.
func TestHarm(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]effect.Harm{
		"git reset --hard HEAD~3":                      effect.DiscardsUnpublishedWork,
		"git -C sub -c x=y reset --har":                effect.DiscardsUnpublishedWork,
		"git clean -xfd":                               effect.DiscardsUnpublishedWork,
		"git clean -nfd":                               "",
		"git clean -nfd --frob":                        effect.DiscardsUnpublishedWork, // not understood
		"git --frob x reset --hard":                    effect.DiscardsUnpublishedWork,
		"git --frob x clean -xfd":                      effect.DiscardsUnpublishedWork,
		"git checkout-index -qaf":                      effect.DiscardsUnpublishedWork,
		"git reset --soft HEAD~3":                      "",
		"git commit -m 'reset --hard'":                 "",
		"git commit -m reset --hard":                   "",
		"git prune -n":                                 "",
		"GIT reset --hard":                             effect.DiscardsUnpublishedWork,
		"/usr/bin/git reset --hard":                    effect.DiscardsUnpublishedWork,
		"./git reset --hard":                           effect.DiscardsUnpublishedWork,
		"docker system prune -af":                      effect.DestroysResources,
		"docker system prune -f --filter label=my-app": "",
		"docker --context x system prune --volumes":    effect.DestroysResources,
		"docker container rm -a web":                   "",
		"podman container rm -fa":                      effect.DestroysResources,
		"docker run --rm img volume prune":             "",
		"umount -a":                                    effect.HaltsMachine,
		"umount /mnt":                                  "",
		"losetup -a":                                   "",
		"losetup -D":                                   effect.HaltsMachine,
		"visudo":                                       effect.ChangesAccounts,
		"visudo -c":                                    "",
		"usermod -L bob":                               effect.ChangesAccounts,
		"usermod -L bob --help":                        effect.ChangesAccounts, // bob --help may be anything
		"usermod --help":                               "",
		"tcpdump -i eth0":                              effect.Eavesdrops,
		"tcpdump -r a.pcap":                            "",
		"schtasks /CREATE /tn x /tr y":                 effect.RegistersWindowsTasksOrServices,
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

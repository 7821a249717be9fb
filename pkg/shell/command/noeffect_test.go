package command

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// what an option's last word says that its value is
var valueNames = regexp.MustCompile(`(?i)^(?:command|cmd|exec|program|script|url|uri|hook|shell|editor|pager|file|filename|dir|directory|path|output|folder|config|log|logfile|host|server|proxy|registry|endpoint)$`)

// reviewedValues are the options whose name says that their value is a file, a folder, a
// command, a program or an address, and which have no effect all the same: formats, names of
// what is shown, addresses that only a message holds.
var reviewedValues = words(`
	aws:--output bwm-ng:--output cmake:--config df:--output diff:--starting-file fdisk:--output grep:--exclude-dir grep:--include-dir ag:--ignore-dir
	ag:--exclude-dir ag:--include-dir journalctl:--output kubectl:--output pipdeptree:--output pwdx:--output py:cProfile:--ignore-dir
	radeontop:--path salt:--output sfdisk:--output systemctl:--output systemd-run:--working-directory tar:--starting-file unshare:--dir wipefs:--output
	cargo:--manifest-path deno:--config java:--module-path node:--icu-data-dir ctr:--config ctr:--runtime-endpoint ctr:--image-endpoint
	docker:--add-host git:--directory git:--path git:--add-virtual-file git:--url hg:--pager kubectl:--proxy-url npx:--registry
	pdsh:--host pip:--trusted-host sudo:--host
`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// TestValuesWithoutEffect holds that no entry lists an option among those whose value has
// no effect if its name says that the value is a file, a folder, a command, a program or an
// address, unless someone has looked at it; and that the list holds nothing else.
func TestValuesWithoutEffect(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("programs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no tables of programs", err)
	}
	seen := map[string]bool{}
	var walk func(program string, entry any)
	walk = func(program string, entry any) {
		m, _ := entry.(map[string]any)
		values, _ := m["values"].(string)
		for _, option := range strings.Fields(values) {
			name, isLong := strings.CutPrefix(strings.TrimSuffix(option, "="), "--")
			parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
			if !isLong || len(parts) == 0 || !valueNames.MatchString(parts[len(parts)-1]) {
				continue
			}
			key := program + ":" + option
			if seen[key] = true; !reviewedValues[key] {
				t.Errorf("%s: the value of %s may be more than a word", program, option)
			}
		}
		subs, _ := m["subs"].(map[string]any)
		for _, sub := range subs {
			walk(program, sub)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var programs map[string]any
		if err := yaml.Unmarshal(data, &programs); err != nil {
			t.Fatal(err)
		}
		for name, entry := range programs {
			walk(name, entry)
		}
	}
	var gone []string
	for key := range reviewedValues {
		if !seen[key] {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	if len(gone) > 0 {
		t.Errorf("no longer there: %s", strings.Join(gone, " "))
	}
}

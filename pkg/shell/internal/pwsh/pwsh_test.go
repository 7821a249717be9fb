package pwsh

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract/worldtest"
)

var update = flag.Bool("update", false, "rewrite the expected lines; read the diff")

func TestRead(t *testing.T) {
	worldtest.CheckGoldenCases(t, "testdata/cases.txt", *update, func(w *worldtest.RecordingContext, _, text string) {
		Interpret(w, text, effect.CommandTextSpan{})
	})
}

// TestReadGivesUp checks that text is left as unknown where the budget, its
// length or its depth ends.
func TestReadGivesUp(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"too long": strings.Repeat("ls ", 40<<10),
		"too deep": "Get-Content " + strings.Repeat("(", 300),
		"too wide": "Get-Content @(" + strings.Repeat("1,", 5000) + "1)",
	} {
		w := worldtest.New()
		Interpret(w, text, effect.CommandTextSpan{})
		if got := strings.Join(w.RecordedCalls, "\n"); !strings.Contains(got, "dynamic") && !strings.Contains(got, "gives up") {
			t.Errorf("%s: reports %.200q", name, got)
		}
	}
}

// TestCmdlets checks that each cmdlet is found by its name and aliases, and that
// parameters may be abbreviated.
func TestCmdlets(t *testing.T) {
	t.Parallel()
	for i := range cmdlets {
		c := &cmdlets[i]
		if !IsCmdlet(c.name) {
			t.Errorf("%s is not found", c.name)
		}
		for _, alias := range c.aliases {
			if !IsCmdlet(alias) {
				t.Errorf("%s: its alias %s is not found", c.name, alias)
			}
		}
	}
	c := findCmdlet("remove-item")
	for name, want := range map[string]string{"recurse": "recurse", "rec": "recurse", "p": "path", "nosuch": "nosuch"} {
		if got, _ := c.findParamUse(name); got != want {
			t.Errorf("-%s is taken for -%s, want -%s", name, got, want)
		}
	}
	if name, use := c.positionalParamNameAndUse(0); name != "path" || use != paramUseDeletePath {
		t.Errorf("the first argument of Remove-Item is %s %d", name, use)
	}
}

// TestExamples reads the examples that are beside the cmdlets.
func TestExamples(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("cmdlets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cmdlets map[string]struct{ Examples map[string]string }
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, c := range file.Cmdlets {
		for command, want := range c.Examples {
			w := worldtest.New()
			Interpret(w, command, effect.CommandTextSpan{})
			got := strings.Join(w.RecordedCalls, "; ")
			if want == "" && *update {
				key := "      " + strconv.Quote(command) + ":"
				text = strings.Replace(text, key+"\n", key+" "+strconv.Quote(got)+"\n", 1)
				continue
			}
			if got != want || !strings.Contains(got, "runs "+name+" (") {
				t.Errorf("%s: %s\n got %s\nwant %s", name, command, got, want)
			}
		}
	}
	if *update {
		if err := os.WriteFile("cmdlets.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecretHive(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		`hklm\sam`: true, `hklm\security`: true, `hklm\system`: true, `hklm\software\microsoft\windows nt\currentversion\winlogon`: true,
		`hkcu\software\simontatham\putty\sessions`: true, `hkcu\software\x`: false, `hklm\system\currentcontrolset`: false,
	} {
		if got := IsSecretHive(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

// TestElsewhere holds what commands that no table lists change on other services.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Remove-AzResourceGroup -Name a -Force":                   "delete",
		"Get-AzResourceGroup | Remove-AzResourceGroup -Force":     "delete",
		"Get-AzVM | ForEach-Object { Remove-AzVM -Name $_.Name }": "delete",
		"Remove-S3Bucket -BucketName a":                           "delete",
		"Clear-AzStorageAccount -Name a":                          "delete",
		"Disable-ADAccount a":                                     "weaken",
		"Revoke-AzureADUserAllRefreshToken -ObjectId a":           "weaken",
		"New-AzRoleAssignment -SignInName a":                      "grant",
		"Set-AzKeyVaultAccessPolicy -UserPrincipalName a":         "grant",
		"New-AzResourceGroup -Name a":                             "change",
		"Get-AzVM":                                                "",
		"Get-ADUser -Filter *":                                    "",
		"Remove-Address a":                                        "", // no command of a directory
		"Remove-Typedata a":                                       "",
		"Set-Viewport a":                                          "",
	} {
		w := worldtest.New()
		Interpret(w, text, effect.CommandTextSpan{})
		got := ""
		for _, line := range w.RecordedCalls {
			if rest, ok := strings.CutPrefix(line, "change_remote"); ok {
				got = rest
			}
		}
		if want == "" != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: change_remote %q, want %q; all: %q", text, got, want, w.RecordedCalls)
		}
	}
}

package approve

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/shieldcli/shield/pkg/kind/facts"
)

// Processes that answer at once all count, and what they write says no more than they do.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "answers.yaml")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			a := AdvanceApproval{Name: fmt.Sprint("allow-", i), By: "ann", ApprovedActionText: "x\"\n  - name: forged", Kind: facts.ActionKind{ActionFactTexts: []string{"run a: \"b\"\n# c"}, MatchedRuleAndClassifierIDs: []string{"é\u2028"}}}
			if err := AddAdvanceApprovalToFile(t.Context(), file, &a, "a comment\n- name: forged"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := ReadAdvanceApprovals(file)
	if err != nil || len(list) != 8 {
		t.Fatalf("%d answers, %v", len(list), err)
	}
	for _, a := range list {
		if !strings.HasPrefix(a.Name, "allow-") || a.Kind.ActionFactTexts[0] != "run a: \"b\"\n# c" || a.ApprovedActionText != "x\"\n  - name: forged" {
			t.Errorf("%+v", a)
		}
	}
	if err := AddAdvanceApprovalToFile(t.Context(), file, &list[0], ""); err == nil {
		t.Error("a name is there twice")
	}
	for range 2 {
		wg.Go(func() { _, _ = RemoveAdvanceApprovalsFromFile(t.Context(), file, "allow-3") })
		wg.Go(func() { _, _ = RemoveAdvanceApprovalsFromFile(t.Context(), file, "allow-5") })
	}
	wg.Wait()
	if list, err := ReadAdvanceApprovals(file); err != nil || len(list) != 6 {
		t.Errorf("%d answers are left, %v", len(list), err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadAdvanceApprovals(file); err == nil && runtime.GOOS != "windows" {
		t.Errorf("a file that others can write counts: %d", len(list))
	}
}

// TestDescribeActionKind: what an approval of a kind covers is said in words, not in the names of effects.
func TestDescribeActionKind(t *testing.T) {
	t.Parallel()
	for want, k := range map[string][]string{
		"run git push origin main --force; change a remote resource: git; send local data to origin (trusted)": {"change_remote git change", "run git push origin main --force", "send_data origin trusted"},
		"use the tool crm; change a remote resource: crm delete (destroys the resource)":                       {"change_remote crm delete destroys", "tool crm"},
		"write files in the workspace; delete files in /srv/data (with everything below, cannot be restored)":  {"write_file workspace", "delete_file /srv/data recursive lost"},
		"send a request to api.example.com; send local data (personal data)":                                   {"http_request api.example.com", "send_data private"},
		"read files in workspace/.github": {"read_file workspace/.github"},
		"novel_effect x":                  {"novel_effect x"},
	} {
		if got := DescribeActionKind(&facts.ActionKind{ActionFactTexts: k}); got != want {
			t.Errorf("%q is described as\n%s\nwant\n%s", k, got, want)
		}
	}
}

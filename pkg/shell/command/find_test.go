package command

import (
	"github.com/shieldcli/shield/pkg/effect"

	"slices"
	"strings"
	"testing"
)

// TestFound holds which names come to the actions of find.
func TestFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"find . -name a -delete":                                  "a",
		"find . -name a -o -name b -delete":                       "b",
		"find . ( -name a -o -name b ) -delete":                   "a b",
		"find x y -type f ( -name a -o -name b ) -a -delete":      "a b",
		"find . -name a -delete -o -name b -delete":               "a b",
		"find . -name n -prune -o -name a -delete":                "a",
		"find . ( -name a -o ( -name b -o -name c ) ) -delete":    "a b c",
		"find . -name a ( -delete , -print )":                     "a",
		"find . -name a -name b -delete":                          "a",
		"find . -name a -exec rm x ; -delete":                     "a",
		"find . -name a -exec rm {} + -delete":                    "a",
		"find . -delete":                                          "",
		"find . -delete -name a":                                  "",
		"find . -name a -o -delete":                               "",
		"find . -name a -delete -o -delete":                       "",
		"find . ( -name a -o -type f ) -delete":                   "",
		"find . ! -name a -delete":                                "",
		"find . -not ( -name a ) -delete":                         "",
		"find . -name a , -delete":                                "",
		"find . -name a -o ( -type f -delete )":                   "",
		"find . -printf -name -true -delete":                      "",
		"find . -printf -name -delete":                            "",
		"find . -iname a -delete":                                 "",
		"find . ( -name a -delete":                                "",
		"find . -name a ) -delete":                                "",
		"find . -name a -exec rm x -delete":                       "",
		"find . -name":                                            "",
		"find . " + strings.Repeat("( ", 100) + "-name a -delete": "",
		"find . ( -name 0" + strings.Repeat(" -o -name 1", maxFindFileNames) + " ) -delete": "",
	} {
		var args []Word
		for _, w := range strings.Fields(text) {
			args = append(args, Word{Text: w})
		}
		var places []int
		for i, w := range args {
			if w.Text == "-delete" {
				places = append(places, i)
			}
		}
		if got := strings.Join(fileNamesReachingFindActions(args, places...), " "); got != want {
			t.Errorf("%s: finds %q, want %q", text, got, want)
		}
	}
	args := []Word{{Text: "find"}, {Text: "."}, {Text: "-name"}, {Text: "a"}, {Text: "*", IsGlobPattern: true}, {Text: "-delete"}}
	if got := fileNamesReachingFindActions(args, 5); slices.Contains(got, "a") {
		t.Errorf("a word that is not known leaves only %q", got)
	}
}

// TestFoundNames holds which names are in what find writes.
func TestFoundNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"find . -name a":         "a",
		"find . -name a -print0": "a",
		"find . -type d ( -name a -o -name b ) -not -path x": "a b",
		"find . -name a -o -name b":                          "a b",
		"find . -name a -o -print":                           "",
		"find . -name a -o -size 1":                          "",
		"find . ! -name a":                                   "",
		"find . -true -o -name a":                            "",
		"find . -type d -empty":                              "",
		"find .":                                             "",
	} {
		var args []Word
		for _, w := range strings.Fields(text) {
			args = append(args, Word{Text: w})
		}
		if got := strings.Join(FileNamesPrintedByFind(args), " "); got != want {
			t.Errorf("%s: writes %q, want %q", text, got, want)
		}
	}
}

// TestEmptyFolders holds that only deleting empty folders loses nothing.
func TestEmptyFolders(t *testing.T) {
	t.Parallel()
	for text, deletes := range map[string]bool{
		"find . -type d -empty -delete":           false,
		"find . -empty -type d -delete":           false,
		"find . -empty -delete":                   true, // files, too
		"find . ! -type d -empty -delete":         true,
		"find . -type d -empty -o -delete":        true,
		"find . -type f -empty -delete":           true,
		"find . ! ( -type d -empty ) -delete":     true,
		"find . -type d ! -empty -delete":         true,
		"find . -type d -empty -exec rm -rf {} +": true,
		"find . -type d -delete":                  true,
	} {
		var args []Word
		for _, w := range strings.Fields(text) {
			args = append(args, Word{Text: w})
		}
		use := Interpret(args)
		got := len(use.NestedCommandsAndCode) > 0 || slices.ContainsFunc(use.OperandEffects, func(t OperandEffect) bool { return t.Kind == effect.DeleteFile })
		if got != deletes || use.Class == effect.ReadOnly && len(use.NestedCommandsAndCode) == 0 {
			t.Errorf("%s: deletes is %t, want %t; class %s", text, got, deletes, use.Class)
		}
	}
}

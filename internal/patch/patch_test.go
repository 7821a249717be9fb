package patch

import "testing"

func TestApply(t *testing.T) {
	const old = "a\nb\nc\nd\ne\nf\n"
	for _, c := range []struct {
		patch, old, want string
		ok               bool
	}{
		{"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -5,2 +5,3 @@\n e\n f\n+g\n", old, "a\nB\nc\nd\ne\nf\ng\n", true},
		{"*** Begin Patch\n*** Update File: x\n@@\n c\n-d\n*** End Patch\n", old, "a\nb\nc\ne\nf\n", true},
		{"*** Begin Patch\n*** Update File: x\n@@\n c\n-d\n*** End Patch\n\n", old, "a\nb\nc\ne\nf\n", true},
		{"*** Begin Patch\n*** Add File: x\n+a\n+b\n*** End Patch\n", "", "a\nb\n", true},
		{"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "", "a\n", true},
		{"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-z\n+y\n", old, "", false},
		{"--- a/x\n+++ b/x\n@@ -3 +3 @@\n-a\n+A\n", "a\nb\na\n", "a\nb\nA\n", true},                      // the second of two
		{"--- a/x\n+++ b/x\n@@ -2 +2 @@\n-a\n+A\n", "a\nb\na\n", "", false},                              // which of two
		{"--- a/x\n+++ b/x\n@@ -9 +9 @@\n-b\n+B\n", "a\nb\na\n", "a\nB\na\n", true},                      // moved, and there once
		{"*** Begin Patch\n*** Update File: x\n@@\n-a\n+A\n*** End Patch\n", "a\nb\na\n", "", false},     // which of two
		{"--- a/x\n+++ b/x\n@@ -2,0 +3 @@\n+B\n", "a\nb\na\n", "a\nb\nB\na\n", true},                     // after line 2
		{"--- a/x\n+++ b/x\n@@ -9,0 +10 @@\n+B\n", "a\nb\na\n", "", false},                               // after no line
		{"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-a\n+C\n", "a\nb\na\n", "A\nb\nC\n", true}, // each
		{"*** Begin Patch\n*** Update File: x\n@@\n+z\n*** End Patch\n", "a\nb\n", "a\nb\nz\n", true},    // at the end
	} {
		var got string
		ok := false
		for _, f := range FindPatchedFiles(c.patch) {
			if f.Path == "x" && len(f.patchSectionLines) > 0 {
				got, ok = f.Apply(c.old)
			}
		}
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %q %v, want %q", c.patch, got, ok, c.want)
		}
	}
}

// What comes before the first file is applied to none: a line there is no line that a file gets.
func TestFiles(t *testing.T) {
	files := FindPatchedFiles("+check\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n-check\n-b\n+++ /dev/null\n+b\n")
	if f := files[len(files)-1]; f.Path != "x" || f.RemovedLines != "check\n" || f.AddedLines != "b\n" {
		t.Errorf("%+v", files)
	}
}

// A text that is a diff says what goes and comes whatever file a line of it names.
func TestParts(t *testing.T) {
	gone, come, ok := RemovedAndAddedLines("+a\n*** Delete File: x\n@@\n-a\n-check\n b\n+c")
	if gone != "a\ncheck\n" || come != "a\nc" || !ok {
		t.Errorf("%q %q %v", gone, come, ok)
	}
}

// TestSearchBlocks checks that only whole blocks make a text a diff, not their words.
func TestSearchBlocks(t *testing.T) {
	for _, c := range []struct {
		text, gone, come string
		isDiff           bool
	}{
		{"<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "a\n", "b\n", true},
		{"x\r\n------- SEARCH\r\na\r\n=======\r\n+++++++ REPLACE", "a\r\n", "", true},
		{"permissions: write-all\n# old SEARCH and REPLACE\n", "", "", false},
		{" SEARCH\na\n=======\nb\n REPLACE\n", "", "", false},
		{"<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "", "", false},
		{"<<<<<<< SEARCH\na\n=======\nb\n# REPLACE\n", "", "", false},
		{"@@ -1 +1 @@\n-a SEARCH\n+b REPLACE\n", "a SEARCH\n", "b REPLACE\n", true},
	} {
		if gone, come, isDiff := RemovedAndAddedLines(c.text); gone != c.gone || come != c.come || isDiff != c.isDiff {
			t.Errorf("%q: %q %q %v", c.text, gone, come, isDiff)
		}
	}
}

// TestNames checks that a file is found however a patch names it.
func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"--- /dev/null\n+++ \"b/.vscode/t\\303\\244sks.json\"\n@@ -0,0 +1 @@\n+a\n":                  ".vscode/täsks.json",
		"diff --git a/tools/x b/tools/x\nnew file mode 100755\nGIT binary patch\nliteral 1\nIcmZQ\n": "tools/x",
		"diff --git a/tools/x y b/tools/x y\nold mode 100644\nnew mode 100755\n":                     "tools/x y",
		"diff --git \"a/x\\ty\" \"b/x\\ty\"\nold mode 100644\nnew mode 100755\n":                     "x\ty",
		"diff --git x x\nold mode 100644\nnew mode 100755\n":                                         "x",
		"Index: x.py\n@@ -0,0 +1 @@\n+a\n":                                                           "x.py",
	} {
		if files := FindPatchedFiles(text); len(files) == 0 || files[len(files)-1].Path != want {
			t.Errorf("%q: %+v, want %q", text, files, want)
		}
	}
}

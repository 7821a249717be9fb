package command

import "testing"

func TestApplied(t *testing.T) {
	const old = "a\nb\nc\nd\ne\nf\n"
	for _, c := range []struct {
		patch, old, want string
		ok               bool
	}{
		{"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -5,2 +5,3 @@\n e\n f\n+g\n", old, "a\nB\nc\nd\ne\nf\ng\n", true},
		{"*** Begin Patch\n*** Update File: x\n@@\n c\n-d\n*** End Patch\n", old, "a\nb\nc\ne\nf\n", true},
		{"*** Begin Patch\n*** Add File: x\n+a\n+b\n*** End Patch\n", "", "a\nb\n", true},
		{"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "", "a\n", true},
		{"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-z\n+y\n", old, "", false},
	} {
		var got string
		ok := false
		for _, change := range Changes(c.patch) {
			if change.Path == "x" && len(change.lines) > 0 {
				got, ok = change.Applied(c.old)
			}
		}
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %q %v, want %q", c.patch, got, ok, c.want)
		}
	}
}

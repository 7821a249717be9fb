package effect

import "testing"

func TestInside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		place   *PathContext
		path    string
		pattern bool
		want    bool
	}{
		{linux, "/home/me/app", false, true},
		{linux, "/home/me/app/x/y", false, true},
		{linux, "/home/me/app2", false, false},
		{linux, "/home/me", false, false},
		{linux, "/HOME/me/app/x", false, false},
		{linux, "", false, false},
		{linux, "/home/me/app/*.go", true, true},
		{linux, "/home/me/app/**", true, false},
		{linux, "/home/me/a*/x", true, false},
		{linux, "/home/me/ap[p]/x", true, false},
		{linux, "**", true, false},
		{linux, "**/home/me/app/x", true, false},
		{mac, "/users/ME/app/x", false, true},
		{mac, "/users/ME/app/*", true, true},
		{windows, "c:/users/me/app/x", false, true},
		{windows, "d:/users/me/app/x", false, false},
		{nowhere, "/home/me/app", false, false},
	} {
		if got := tt.place.IsInsideRoots(tt.path, tt.pattern, false); got != tt.want {
			t.Errorf("Inside(%q, %t) = %t", tt.path, tt.pattern, got)
		}
	}
	for path, want := range map[string]bool{"/home/me/app/**": true, "/home/me/app/**/*.go": true, "/home/me/**": false, "/home/me/a**/x": false, "**/x": false} {
		if got := linux.IsInsideRoots(path, true, true); got != want {
			t.Errorf("Inside(%q), searched = %t", path, got)
		}
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		place     *PathContext
		dir, want string
	}{
		{linux, "src", "/home/me/app/src"},
		{linux, "..", "/home/me"},
		{linux, "/etc", "/etc"},
		{linux, "~", "/home/me"},
		{linux, "", ""},
		{linux, "$UNKNOWN", ""},
		{nowhere, "src", ""},
		{nowhere, "/etc", "/etc"},
	} {
		if got := tt.place.WithCWD(tt.dir); got.CWD != tt.want || got == tt.place {
			t.Errorf("In(%q) is at %q, want %q", tt.dir, got.CWD, tt.want)
		}
	}
	// Behind a link, ".." is where the link leads.
	linked := &PathContext{CWD: "/w", ResolveLinks: func(path string) string {
		if path == "/w/link" {
			return "/etc/ssl"
		}
		return path
	}}
	if got, _ := linked.CanonicalPath("link/../passwd", false); got != "/etc/passwd" {
		t.Errorf("link/../passwd = %q", got)
	}
	if got, _ := linked.CanonicalPath("a/../b", false); got != "/w/b" {
		t.Errorf("a/../b = %q", got)
	}
}

func TestCheckRoot(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{
		"/home/me/app": true, "/srv/app": true, "/opt/app": true, "/workspace": true, "/tmp/x": true, "/var/lib/jenkins/x": true, "/var/www": true,
		"/Users/me/app": true, "c:/users/me/app": true, "d:/work": true, "/root/x": true, "/usr/src/app": true, "/usr/local/src/x": true,
		"/": false, "/home": false, "/home/me": false, "/home/other": false, "/root": false, "/etc": false, "/etc/x": false, "/usr": false, "/usr/bin": false,
		"/Users/me": false, "/Users": false, "/System/x": false, "/library/x": false, "c:/": false, "c:/users": false, "c:/users/me": false, "c:/windows/x": false,
		"/tmp": false, "/var": false, "/proc/1": false, "": false, "x": false, "**/x": false, "/HOME/me": false,
	} {
		if err := CheckWorkspaceRoot(path, "/home/me"); (err == nil) != ok {
			t.Errorf("CheckRoot(%q) = %v", path, err)
		}
	}
	if CheckWorkspaceRoot("/data", "/data/home/me") == nil || CheckWorkspaceRoot("/data/home/me", "/data/home/me") == nil {
		t.Error("a folder that holds the home folder is a root")
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		fold bool
		want bool
	}{
		{"/a", "/a", false, true},
		{"/a", "/A", false, false},
		{"/a", "/A", true, true},
		{"/a*", "/*b", false, true},
		{"/a*c", "/b*c", false, false},
		{"/a/**", "/a", false, true},
		{"/a/**/b", "/a/b", false, true},
		{"/a/**/b", "/a/x/y/b", false, true},
		{"/a/**/b", "/a/x/y/c", false, false},
		{"/**", "/", false, true},
		{"**/x", "/a/*/x", false, true},
		{"/a**b", "/a/x/b", false, true},
		{"/a**b", "/ab", false, true},
		{"/a**b", "/a/x/c", false, false},
		{"/a**b**c", "/a/b/c", false, true},
		{"/[a-c]", "/b", false, true},
		{"/[a-c]", "/d", false, false},
		{"/[!a-c]", "/d", false, true},
		{`/\*`, "/*", false, true},
		{`/\*`, "/a", false, false},
		{"/?", "/ab", false, false},
		{"/é", "/?", false, true},
		{"/*/*/*", "/a/b", false, false},
		{"/[]a]", "/]", false, true},
		{"/[[:alpha:]]", "/x", false, true},
	} {
		if got := PatternsOverlap(tt.a, tt.b, tt.fold); got != tt.want {
			t.Errorf("Overlap(%q, %q, %t) = %t", tt.a, tt.b, tt.fold, got)
		}
		if got := PatternsOverlap(tt.b, tt.a, tt.fold); got != tt.want {
			t.Errorf("Overlap(%q, %q, %t) = %t", tt.b, tt.a, tt.fold, got)
		}
	}
}

func BenchmarkPath(b *testing.B) {
	for _, word := range []string{"src/main.go", "/etc/passwd", "../x/./y", "~/.ssh/id_rsa", `C:\Users\me\x`} {
		b.Run(word, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				linux.CanonicalPath(word, false)
			}
		})
	}
}

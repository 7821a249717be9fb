package effect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var testVars = map[string][]string{
	"HOME": {"/home/me"}, "WORKSPACE": {"/home/me/app", "/srv/[x]"}, "NONE": nil,
}

var globTests = []struct {
	glob      string
	path      string
	pattern   bool
	recursive bool
	touches   bool
	covers    bool
}{
	{"/etc/passwd", "/etc/passwd", false, false, true, true},
	{"/etc/passwd", "/etc/passwd2", false, false, false, false},
	{"/etc/passwd", "/etc", false, false, false, false},
	{"/etc/passwd", "/etc", false, true, true, false},
	{"/etc/passwd", "/", false, true, true, false},
	{"/etc/passwd", "/ETC/Passwd", false, false, true, false},
	{"/etc/passwd", "/etc/pass*", true, false, true, false},
	{"/etc/passwd", "/etc/p?sswd", true, false, true, false},
	{"/etc/passwd", "/etc/[a-z]asswd", true, false, true, false},
	{"/etc/passwd", "/etc/[!P]asswd", true, false, true, false},
	{"/etc/passwd", "/etc/[!o-q]asswd/x", true, false, false, false},
	{"/etc/passwd", "/*/passwd", true, false, true, false},
	{"/etc/passwd", "/???/??ss??", true, false, true, false},
	{"/etc/passwd", "/e*/shadow", true, false, false, false},
	{"/etc/passwd", "**", true, false, false, false},
	{"/etc/passwd", "**/passwd", true, false, true, false},
	{"/etc/passwd", "**/etc/passwd", true, false, true, false},
	{"/etc/passwd", "**/passwd/x", true, false, false, false},
	{"/etc/passwd", "/srv/**/passwd", true, false, true, false},
	{"/etc/**", "/etc", false, false, true, true},
	{"/etc/**", "/etc/ssh/config", false, false, true, true},
	{"/etc/**", "/etc/*", true, false, true, true},
	{"/etc/**", "/etc/**", true, false, true, false},
	{"/etc/**", "/etc", false, true, true, true},
	{"/etc/**", "/", false, false, false, false},
	{"/etc/*", "/etc", false, true, true, false},
	{"/etc/*", "/etc/x", false, true, true, false},
	{"/**", "**", true, false, true, true},
	{"**", "**/x", true, true, true, true},
	{"**", "/", false, false, true, true},
	{"/", "/", false, true, true, false},
	{"/", "/", false, false, true, true},
	{"/", "**", true, true, false, false},
	{"/", "/home", false, true, false, false},

	{"~/.ssh/**", "/home/me/.ssh/id_rsa", false, false, true, true},
	{"~/.ssh/**", "/home/other/.ssh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/Users/me/.ssh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/root/.ssh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/var/root/.ssh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "c:/users/me/.ssh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/mnt/c/Users/me/.ssh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "?:/users/*/.ssh", true, false, true, false},
	{"~/.ssh/**", "/home/me/.SSH/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/home/me/.\u017f\u017fh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/home/me/.s\u200csh/id_rsa", false, false, true, false},
	{"~/.ssh/**", "/home/me", false, true, true, false},
	{"~/.ssh/**", "/home", false, true, true, false},
	{"~/.ssh/**", "/", false, true, true, false},
	{"~/.ssh/**", "/home/me", false, false, false, false},
	{"~/.ssh/**", "/home/me/app", false, true, false, false},
	{"~/.ssh/**", "/home/me/app/.ssh", false, false, false, false},
	{"~/.ssh/**", "/srv/.ssh/id_rsa", false, false, false, false},
	{"~/.ssh/**", "/home/*/.ssh/*", true, false, true, false},
	{"~/.ssh/**", "/home/me/.s*/id_rsa", true, false, true, false},
	{"~/.ssh/**", "/home/me/*", true, false, true, false},
	{"~/.ssh/**", "/home/me/*.txt", true, false, false, false},
	{"~/.ssh/**", "/home/me/.ssh/*", true, false, true, true},
	{"~/.ssh/**", "/home/me/.ssh", false, true, true, true},
	{"~/.ssh/**", "/*/*/.ssh/*", true, false, true, false},
	{"~/.ssh/**", "**/.ssh/id_rsa", true, false, true, false},
	{"~/.ssh/**", "**/id_rsa", true, false, false, false},
	{"~/.ssh/**", "**/src/main.go", true, false, false, false},
	{"~/.ssh/**", "**", true, true, false, false},
	{"~/.ssh/**", "/home/me/app/**", true, false, false, false},
	{"~/.ssh/**", "/home/me/app/**/.ssh/id_rsa", true, false, true, false},
	{"~/.ssh/id_*", "**/id_rsa", true, false, true, false},
	{"~", "/home/me", false, true, true, false},
	{"~", "/home/me", false, false, true, true},
	{"~", "/home/*", true, true, true, false},
	{"~", "/home/me/app", false, true, false, false},
	{"~/", "/root", false, false, true, false},
	{"$HOME/.netrc", "/home/me/.netrc", false, false, true, true},
	{"~/*", "/home/me/x", false, false, true, true},
	{"~/*", "/home/me/x/y", false, false, false, false},
	{"~/**", "/home/me/x/y", false, false, true, true},

	{"**/.env", "/home/me/app/.env", false, false, true, true},
	{"**/.env", "/.env", false, false, true, true},
	{"**/.env", "c:/x/.env", false, false, true, true},
	{"**/.env", "/home/me/app", false, true, false, false},
	{"**/.env", "/home/me/app/*", true, false, false, false},
	{"**/.env", "/home/me/app/.e*", true, false, true, false},
	{"**/.env", "/home/me/app/.en?", true, false, true, false},
	{"**/.env", "/home/me/app/.[e]nv", true, false, true, false},
	{"**/.env", "/home/me/app/*env", true, false, true, false},
	{"**/.env", "**/.env", true, false, true, false},
	{"**/.env", "**.env", true, false, true, false},
	{"**/.env.*", "/a/.env.local", false, false, true, true},
	{"**/.env.*", "/a/.env", false, false, false, false},
	{"**/credentials.json", "/a/*.json", true, false, false, false},
	{"**/credentials.json", "/a/cred*", true, false, true, false},
	{"**/*.pem", "/a/key.pem", false, false, true, true},
	{"**/*.pem", "/a/*.pem", true, false, true, true},
	{"**/*.pem", "/a/*.go", true, false, false, false},
	{"**/*.pem", "**/key.pem", true, false, true, false},
	{"**/*.pem", "/a/x.pem/y", false, false, false, false},
	{"~/.config/gcloud/*.json", "**/package.json", true, false, false, false},
	{"**/.git/hooks/**", "/a/.git/hooks/pre-commit", false, false, true, true},
	{"**/.git/hooks/**", "/a/.git", false, true, true, false},
	{"**/.git/hooks/**", "/a", false, true, false, false},
	{"**/.git/hooks/**", "/a/.git/HEAD", false, false, false, false},
	{"**/a/a/b", "/a/a/a/b", false, false, true, true},
	{"**/a/**/b", "/x/a/y/z/b", false, false, true, true},
	{"**/*.d/**", "/etc/cron.d/x", false, false, true, true},

	{"$WORKSPACE/**", "/home/me/app/src/x", false, false, true, true},
	{"$WORKSPACE/**", "/home/me/app", false, true, true, true},
	{"$WORKSPACE/**", "/srv/[x]/y", false, false, true, true},
	{"$WORKSPACE/**", "/srv/x/y", false, false, false, false},
	{"$WORKSPACE/**", "/home/me/app2/x", false, false, false, false},
	{"$WORKSPACE/**", "/home/me/app/src/*.go", true, false, true, true},
	{"$WORKSPACE/**", "/home/me/app/**", true, false, true, false},
	{"$WORKSPACE/**", "/home/me/*/x", true, false, true, false},
	{"$WORKSPACE/**", "**/x", true, false, true, false},
	{"$WORKSPACE/**", "/home/me", false, true, true, false},
	{"$WORKSPACE", "/home/me/app", false, true, true, false},
	{"$WORKSPACE/*.md", "/home/me/app/R*.md", true, false, true, true},
	{"$WORKSPACE/R*.md", "/home/me/app/*.md", true, false, true, false},
	{"$WORKSPACE/{src,lib}/**", "/home/me/app/lib/x", false, false, true, true},
	{"$WORKSPACE/{src,lib}/**", "/home/me/app/bin/x", false, false, false, false},
	{"$NONE/**", "/home/me/app/lib/x", false, false, false, false},
	{"$NONE/**", "**", true, true, false, false},

	{"c:/Windows/**", "c:/windows/system32", false, false, true, true},
	{"C:/Windows/**", "c:/windows", false, true, true, true},
	{"?:/windows/**", "d:/windows/x", false, false, true, true},
	{"//Server/Share/**", "unc:/server/share/x", false, false, true, true},
	{`/a/\*`, "/a/*", false, false, true, true},
	{`/a/\*`, "/a/b", false, false, false, false},
	{"/a/[bc]", "/a/b", false, false, true, false},
}

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, tt := range globTests {
		t.Run(fmt.Sprintf("%s %s %t", tt.glob, tt.path, tt.recursive), func(t *testing.T) {
			g, err := NewGlobs([]string{tt.glob}, testVars)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := g.FirstPossibleMatch(tt.path, tt.pattern, tt.recursive); got != tt.touches {
				t.Errorf("Touches = %t, want %t", got, tt.touches)
			}
			if _, got := g.FirstCoveringGlob(tt.path, tt.pattern, false, tt.recursive); got != tt.covers {
				t.Errorf("Covers = %t, want %t", got, tt.covers)
			}
		})
	}
}

func TestGlobErrors(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{
		"", "x", "*.go", "./x", "../x", "/a/../b", "/a/./b", "/a//b", "/a/[b", "/a/{b,c", "$OTHER/x", "/a\x00b",
		"/" + strings.Repeat("a", 2000), strings.Repeat("/a", 100), "/" + strings.Repeat("{a,b}", 10),
	} {
		if _, err := NewGlobs([]string{"/ok", glob}, testVars); err == nil {
			t.Errorf("NewGlobs accepts %.40q", glob)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%.10q", glob)[:2]) {
			t.Errorf("error %q does not name %.40q", err, glob)
		}
	}
}

func TestGlobsIndices(t *testing.T) {
	t.Parallel()
	g, err := NewGlobs([]string{"/etc/**", "**/passwd", "/etc/{passwd,shadow}", "~/x", "/etc/passwd"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.AppendTouchedGlobIndices([]int{9}, "/etc/passwd", false, false), []int{9, 0, 1, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("AppendTouched = %v, want %v", got, want)
	}
	if got, want := g.AppendCoveringGlobs(nil, "/etc/passwd", false, false, false), []int{0, 1, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("AppendCovering = %v, want %v", got, want)
	}
	if i, ok := g.FirstPossibleMatch("/x/passwd", false, false); i != 1 || !ok {
		t.Errorf("Touches = %d, %t", i, ok)
	}
	if i, ok := g.FirstPossibleMatch("/x/y", false, false); ok {
		t.Errorf("Touches = %d, %t", i, ok)
	}
}

// bigSet is the size of a preset.
func bigSet() []string {
	var globs []string
	for i := range 100 {
		globs = append(globs, fmt.Sprintf("~/.config/tool%d/**", i), fmt.Sprintf("/etc/service%d/*.conf", i),
			fmt.Sprintf("**/.secret%d", i), fmt.Sprintf("c:/program files/tool%d/**", i))
	}
	return append(globs, "**/*.pem", "**/*.key", "**/id_*", "**/.env", "**/.env.*", "$WORKSPACE/**", "~/.ssh/**")
}

func BenchmarkNewGlobs(b *testing.B) {
	globs := bigSet()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewGlobs(globs, testVars); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTouches(b *testing.B) {
	g, err := NewGlobs(bigSet(), testVars)
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name, path         string
		pattern, recursive bool
	}{
		{"literal", "/home/me/app/src/main.go", false, false},
		{"protected", "/home/me/.ssh/id_rsa", false, false},
		{"recursive", "/home/me/app/src", false, true},
		{"pattern", "/home/me/app/src/*.go", true, false},
		{"unknown", "**/main.go", true, false},
		{"hostile", "/" + strings.Repeat("*a*b*c*d?e*f/", 100), true, true},
		{"deep", strings.Repeat("/a", 250), false, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.FirstPossibleMatch(bb.path, bb.pattern, bb.recursive)
			}
		})
	}
}

// TestCoversTree holds that folders which were searched stay below the folder
// where the search began, and unknown text does not.
func TestCoversTree(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob, path string
		recursive  bool
		want       bool
	}{
		{"$WORKSPACE/**", "/home/me/app/**", false, true},
		{"$WORKSPACE/**", "/home/me/**", false, false},
		{"$WORKSPACE/**/*.{o,pyc}", "/home/me/app/**/*.pyc", false, true},
		{"$WORKSPACE/**/*.pyc", "/home/me/app/**/*.py", false, false},
		{"$WORKSPACE/**/*.pyc", "/home/me/app/**/*.py*", false, false},
		{"$WORKSPACE/src/*.pyc", "/home/me/app/src/**/*.pyc", false, false},
		{"$WORKSPACE/**/node_modules/**", "/home/me/app/**/node_modules", true, true},
		{"$WORKSPACE/**/node_modules/**", "/home/me/app/**/*_modules", true, false},
		{"$WORKSPACE/**/dist/**", "/home/me/app/dist/**", false, true},
		{"$WORKSPACE/**", "**/x", false, false},
	} {
		g, err := NewGlobs([]string{tt.glob}, testVars)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := g.FirstCoveringGlob(tt.path, true, true, tt.recursive); got != tt.want {
			t.Errorf("%s covers %s: %t", tt.glob, tt.path, got)
		}
	}
}

func BenchmarkCovers(b *testing.B) {
	g, err := NewGlobs(bigSet(), testVars)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.FirstCoveringGlob("/home/me/app/src/main.go", false, false, false)
	}
}

func FuzzGlobs(f *testing.F) {
	for _, tt := range globTests {
		f.Add(tt.glob, tt.path, tt.pattern, tt.recursive)
	}
	f.Fuzz(func(t *testing.T, glob, word string, pattern, recursive bool) {
		g, err := NewGlobs([]string{glob}, testVars)
		if err != nil {
			return
		}
		path, isPattern := linux.CanonicalPath(word, pattern)
		_, touches := g.FirstPossibleMatch(path, isPattern, recursive)
		if _, covers := g.FirstCoveringGlob(path, isPattern, false, recursive); covers && !touches && path != "" {
			t.Errorf("%q covers %q (%t, %t), yet does not touch it", glob, path, isPattern, recursive)
		}
	})
}

func FuzzOverlap(f *testing.F) {
	for _, tt := range globTests {
		f.Add(tt.glob, tt.path, true)
	}
	f.Fuzz(func(t *testing.T, a, b string, fold bool) {
		if PatternsOverlap(a, b, fold) != PatternsOverlap(b, a, fold) {
			t.Errorf("Overlap of %q and %q is not symmetric", a, b)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, tt := range pathTests {
		for which := range uint8(4) {
			f.Add(tt.word, tt.pattern, which)
		}
	}
	f.Fuzz(func(t *testing.T, word string, pattern bool, which uint8) {
		place := []*PathContext{linux, mac, nowhere, windows}[int(which)%4]
		path, isPattern := place.CanonicalPath(word, pattern)
		if place == windows && strings.HasPrefix(path, "/") {
			return // a path of the Linux guest
		}
		again, againPattern := place.CanonicalPath(path, isPattern)
		if path != again || isPattern != againPattern {
			t.Errorf("Path(%q, %t) = %q, %t, and of that %q, %t", word, pattern, path, isPattern, again, againPattern)
		}
		if in := place.WithCWD(word); in.CWD != "" && in.CWD[0] != '/' && !isWindowsPath(in.CWD) {
			t.Errorf("In(%q) is at %q", word, in.CWD)
		}
		if place.IsInsideRoots(path, isPattern, false) && !isPattern && strings.Contains(path+"/", "/../") {
			t.Errorf("%q is inside as %q", word, path)
		}
	})
}

// Wildcards that are told apart by their ends alone match what they always do.
func TestEndsOfWildcards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob, path string
		recursive  bool
		want       bool
	}{
		{"**/*.pem", "/srv/a.pem", false, true},
		{"**/*.pem", "/srv/a.PEM", false, true},
		{"**/*.pem", "/srv/a.pen", false, false},
		{"**/*.pem", "/srv/pem", false, false},
		{"**/*.pem", "/srv", true, false},
		{"**/id_*", "/srv/ID_x", false, true},
		{"**/id_*", "/srv/i", false, false},
		{"**/id_*", "/srv/id_", false, true},
		{"**/ab*ba", "/srv/aba", false, false},
		{"**/ab*ba", "/srv/abba", false, true},
		{"**/É*", "/srv/éa", false, true},
		{"**/É*", "/srv/ea", false, false},
		{`**/\*a*`, "/srv/*ab", false, true},
		{`**/*\*`, "/srv/a*", false, true},
		{"**/[ab]c?", "/srv/bcd", false, true},
		{"**/*[ab]", "/srv/xb", false, true},
		{"**/*", "/srv", true, true},
		{"/s?v/x", "/srv/x", false, true},
		{"/s?v/x", "/srw/x", false, false},
		{"/s*", "/", true, true},
		{"/**", "/", false, true},
		{"?:/x*", "c:/xy", false, true},
	} {
		g, err := NewGlobs([]string{c.glob}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := g.FirstPossibleMatch(c.path, false, c.recursive); got != c.want {
			t.Errorf("%s touches %s (recursive: %t): %t, want %t", c.glob, c.path, c.recursive, got, c.want)
		}
	}
}

// TestEscapedStars holds that an escaped star is one character of a name, also
// beside stars that stand for any.
func TestEscapedStars(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{`**/\**`, "/srv/*a", true},
		{`**/\**`, "/srv/*", true},
		{`**/\**`, "/srv/a*", false},
		{`/srv/\***`, "/srv/*ab", true},
		{`/srv/a**\**b`, "/srv/axx*yyb", true},
		{`/srv/a**\**b`, "/srv/axxyyb", false},
		{`/srv/a***b`, "/srv/axb", true},
		{`/srv/[*]**`, "/srv/*a", true},
	} {
		g, err := NewGlobs([]string{tt.glob}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := g.FirstPossibleMatch(tt.path, false, false); got != tt.want {
			t.Errorf("%s touches %s: %t", tt.glob, tt.path, got)
		}
	}
}

// TestTouchesBelow holds that what is in folders that were searched is not taken
// for what lies elsewhere.
func TestTouchesBelow(t *testing.T) {
	t.Parallel()
	g, err := NewGlobs([]string{"/bin", "/etc/**", "**/keys/*", "/srv/app/**/bin"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/home/me/app/**/bin": false, "/home/me/**/etc/x": false, "/**/bin": true, "/etc/**/bin": true,
		"/home/me/**/keys/a": true, "/srv/app/**/bin": true, "/srv/**/bin": true, "**/bin": true,
	} {
		if _, got := g.FirstPossibleMatchExcludingDotDot(path, true); got != want {
			t.Errorf("%s: touched is %t, want %t", path, got, want)
		}
		if _, got := g.FirstPossibleMatch(path, true, true); !got {
			t.Errorf("%s: what may lead out of its folders touches nothing", path)
		}
	}
}

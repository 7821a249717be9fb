package gentest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A recorder keeps what a test says instead of failing.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) {
	r.said = append(r.said, fmt.Sprint(args...))
	runtime.Goexit()
}

// said runs f with a test that must not fail, and returns what it complained of.
func said(t *testing.T, f func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return strings.Join(r.said, "\n")
}

// TestFresh holds that an output which differs, or is not written, is noticed, and
// that the generator sees copies of its sources and nothing else.
func TestFresh(t *testing.T) {
	files := map[string]string{"gen/x": "", "a.yaml": "one", "more/b.yaml": "two", "out_gen.go": "one two", "secret.yaml": "three"}
	generator := func(sep string) func() {
		return func() {
			a, _ := os.ReadFile("a.yaml")
			b, _ := os.ReadFile(filepath.Join("more", "b.yaml"))
			_, err := os.Stat("secret.yaml")
			if err == nil {
				a = nil
			}
			os.WriteFile("out_gen.go", []byte(string(a)+sep+string(b)), 0o644)
		}
	}
	for _, c := range [...]struct {
		name     string
		generate func()
		sources  []string
		want     string
	}{
		{"the same", generator(" "), []string{"a.yaml", "more"}, ""},
		{"old", generator("  "), []string{"a.yaml", "more"}, "out_gen.go is not what its sources say"},
		{"nothing written", func() {}, []string{"a.yaml"}, "out_gen.go"},
		{"no such source", generator(" "), []string{"c.yaml"}, "c.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := WriteFolder(t, files)
			t.Chdir(filepath.Join(dir, "gen"))
			got := said(t, func(tb testing.TB) { CheckUpToDate(tb, c.generate, c.sources, []string{"out_gen.go"}) })
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
			if kept, err := os.ReadFile(filepath.Join(dir, "out_gen.go")); err != nil || string(kept) != "one two" {
				t.Errorf("the output of the package became %q (%v)", kept, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		err   error
		names []string
		want  string
	}{
		{nil, []string{""}, ""},
		{errors.New("no a in b"), []string{"a", "b"}, ""},
		{errors.New("no a in b"), []string{""}, "no a in b"},
		{errors.New("no a in b"), []string{"a", "c"}, `"c"`},
		{nil, []string{"a"}, `"a"`},
	} {
		got := said(t, func(tb testing.TB) { CheckErrorMentions(tb, "source", c.err, c.names...) })
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v with %q: said %q, want %q", c.err, c.names, got, c.want)
		}
	}
}

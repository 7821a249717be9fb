package approve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func placesFile(t *testing.T, mode os.FileMode, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notify")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestNotices: a question on the page is told to each place, without its secrets and
// without markup, and one that cannot be reached changes nothing.
func TestNotices(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- string(body)
	}))
	defer srv.Close()
	file := placesFile(t, 0o600, "# the team", "generic://127.0.0.1:1/gone?disabletls=yes", "generic://"+strings.TrimPrefix(srv.URL, "http://")+"/hook?disabletls=yes")
	var n chatNotifier
	o := &Options{}
	o.NotificationURLsFile = file
	n.sendWaitingQuestionNotice(o, "shield asks whether to run “<b>rm</b> `x`”")
	got := <-told
	if !strings.Contains(got, "shield is waiting for your answer: shield asks whether to run ·b·rm·/b· ·x·") || !strings.Contains(got, "shield approvals") {
		t.Errorf("told %q", got)
	}
}

func TestPlacesRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode  os.FileMode
		lines []string
		want  string
	}{
		"others can read it": {0o644, []string{"generic://example.com"}, "others"},
		"no place":           {0o600, []string{"", "# none"}, "contains no URL"},
		"no URL":             {0o600, []string{"generic://example.com", "hunter2hunter2"}, ":2: not the URL of a chat service"},
		"unknown service":    {0o600, []string{"pigeon://hunter2hunter2@loft"}, ":1: not the URL of a chat service"},
		"too many":           {0o600, strings.Split(strings.Repeat("generic://example.com ", maxNotificationURLs+1), " ")[:maxNotificationURLs+1], "more than 16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := QuestionNoticeTargets(placesFile(t, tt.mode, tt.lines...))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestNoticeErrors: the library puts the URL into its errors.
func TestNoticeErrors(t *testing.T) {
	t.Parallel()
	places, err := QuestionNoticeTargets(placesFile(t, 0o600, "generic://anna:hunter2hunter2@127.0.0.1:1/tokentoken?disabletls=yes&@authorization=tokentoken2"))
	if err != nil {
		t.Fatal(err)
	}
	err = places[0].Send(t.Context(), "x")
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tokentoken") {
		t.Errorf("got %v", err)
	}
}

//go:build linux

package e2e

import (
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/ttytest"
)

var updatePicture = flag.Bool("picture", false, "draw docs/question.svg from the session of TestPicture")

// pictureColumns is the width of the terminal that the README shows.
const pictureColumns = 88

// TestPicture runs the session that the README shows: a force push is stopped, the question,
// the answer, and the push. The text of docs/question.svg must be what the terminal shows.
func TestPicture(t *testing.T) {
	t.Parallel()
	needs(t, "tmux", "git", "bash")
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	home := filepath.Join(dir, "home", "ann")
	app := filepath.Join(home, "app")
	term := &terminal{t: t, sock: filepath.Join(dir, "tmux"), work: app, bin: filepath.Join(home, "bin")}
	for _, d := range []string{app, term.bin, filepath.Join(home, ".config", "shield")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	term.write(filepath.Join(home, ".config", "shield", "shield.yaml"), askingConfig)
	term.write(filepath.Join(home, "rc"), "PS1='$ '\n")
	if err := os.Symlink(builtShield, filepath.Join(term.bin, "shield")); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=" + term.bin + ":" + os.Getenv("PATH"), "TERM=screen", "LANG=C.UTF-8"}
	setup := exec.Command("bash", "-ec", `git init -q --bare ../origin.git; git init -q -b main; git config user.email ann@example.com; git config user.name Ann
echo one > a; git add a; git commit -qm one; git remote add origin ../origin.git; git push -q origin main; git commit -q --amend -m two`)
	setup.Dir, setup.Env = app, env
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := append([]string{"env", "-i"}, env...)
	term.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(pictureColumns), "-y", "24", "-c", app}, append(command, "bash", "--rcfile", filepath.Join(home, "rc"), "-i")...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.sock, "kill-server").Run() })
	ttytest.AttachTmuxClient(t, term.sock, 24)
	term.tmux("set-option", "-g", "window-size", "manual")
	term.tmux("resize-window", "-x", fmt.Sprint(pictureColumns), "-y", "24")
	term.waitFor("$")
	term.keys("shield exec -- git push -q --force origin main")
	if !term.until(func(screen string) bool { return codeShown.MatchString(screen) && strings.Contains(screen, gateOpens) }) {
		t.Fatalf("no question:\n%s", term.visible())
	}
	question := term.tmux("capture-pane", "-p", "-e")
	term.press(strings.Split(codeShown.FindStringSubmatch(term.visible())[1], "")...)
	if !term.until(func(screen string) bool { return strings.Contains(screen, "press Enter") }) {
		t.Fatalf("the code is not taken:\n%s", term.visible())
	}
	term.press("Enter")
	term.waitFor("approved once")
	command0, answer, _ := strings.Cut(strings.TrimSpace(term.visible()), "\n")
	answer, _, _ = strings.Cut(answer, "\n")
	screen := command0 + "\n\n" + strings.TrimSpace(question) + "\n\n" + answer

	// What differs from session to session.
	code := codeShown.FindStringSubmatch(question)[1]
	for _, r := range [][2]string{
		{regexp.QuoteMeta(dir), ""}, {`\b` + code + `\b`, "rpv"}, {`[0-9]:[0-9]{2} left`, "4:52 left"},
		{`shield exec \(process \d+\)`, "shield exec (process 2852)"}, {`by bash \(process \d+\)`, "by bash (process 2848)"},
	} {
		screen = regexp.MustCompile(r[0]).ReplaceAllString(screen, r[1])
	}
	const file = "../docs/question.svg"
	got := drawScreen(screen)
	if *updatePicture {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/question.svg (-want +got); go test -run TestPicture ./e2e -picture draws it again\n%s", d)
	}
}

var (
	sgr    = regexp.MustCompile("\x1b\\[[0-9;]*m")
	prompt = regexp.MustCompile(`^(\$|shield:|>) `)
)

// drawScreen returns the lines of a terminal as a picture in SVG.
func drawScreen(screen string) string {
	lines := strings.Split(screen, "\n")
	width, height := 36+(843*pictureColumns+99)/100, 36+19*len(lines)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]v" height="%[2]d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">`+"\n", width, height)
	b.WriteString("<style>rect{fill:#16181d}text{fill:#d7dae0;white-space:pre}.p{fill:#8fb573}.b{fill:#fff;font-weight:bold}.k{fill:#e5c07b}</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8"/>`+"\n", width, height)
	bold := false
	for i, line := range lines {
		for _, code := range sgr.FindAllString(line, -1) {
			bold = code == "\x1b[1m"
		}
		// A line is bold as its last code before text says; codes at its start are those.
		class := ""
		text := sgr.ReplaceAllString(line, "")
		switch m := prompt.FindString(text); {
		case m == "$ " || m == "shield: ":
			class = ` class="p"`
		case m == "> ":
			class = ` class="k"`
		case bold:
			class = ` class="b"`
		}
		if text = strings.TrimRight(text, " "); text == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="18" y="%d"%s xml:space="preserve">`, 32+19*i, class)
		_ = xml.EscapeText(&b, []byte(text))
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

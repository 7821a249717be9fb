package ttytest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// AttachTmuxClient attaches a client to the tmux server at the socket sock until the test ends, as if a person
// looked at its windows. The client's terminal has 150 columns, and terminalRows lines for the windows.
func AttachTmuxClient(t *testing.T, sock string, terminalRows int) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(terminalRows) + 1, Col: 150}) // another row, for the status line of tmux
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command("tmux", "-S", sock, "attach")
	client.Env = []string{"TERM=xterm", "LANG=C.UTF-8"}
	client.Stdin, client.Stdout, client.Stderr = tty, tty, tty
	client.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	go func() { _, _ = io.Copy(io.Discard, person) }() // ends with the client
	t.Cleanup(func() {
		_ = client.Process.Kill()
		_ = client.Wait()
		person.Close()
	})
}

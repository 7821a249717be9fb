package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal returns a device, and the side from which a person types at it.
func terminal(t *testing.T) (d *Device, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	f, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	d = &Device{In: f, Out: f}
	t.Cleanup(func() { d.Close() })
	if err := d.SaveSettings(); err != nil {
		t.Fatal(err)
	}
	return d, person
}

// TestKeys holds that keys are forwarded one by one, and that what was saved
// comes back.
func TestKeys(t *testing.T) {
	t.Parallel()
	d, person := terminal(t)
	if d.IsRaw() {
		t.Fatal("a new terminal hands on keys one by one")
	}
	if err := d.EnableCbreakMode(); err != nil {
		t.Fatal(err)
	}
	if !d.IsRaw() {
		t.Error("keys wait for the end of a line")
	}
	if _, err := person.WriteString("y"); err != nil {
		t.Fatal(err)
	}
	var key [8]byte
	if n, err := d.In.Read(key[:]); err != nil || string(key[:n]) != "y" {
		t.Errorf("read %q, %v", key[:n], err)
	}
	if err := d.Restore(); err != nil || d.IsRaw() {
		t.Errorf("after Restore keys are handed on one by one: %t, %v", d.IsRaw(), err)
	}
}

// TestMend holds that a terminal which a process left behind takes lines again,
// and that this is what counts as its state from then on.
func TestMend(t *testing.T) {
	t.Parallel()
	d, _ := terminal(t)
	if err := d.EnableCbreakMode(); err != nil {
		t.Fatal(err)
	}
	if err := d.SaveSettings(); err != nil {
		t.Fatal(err)
	}
	if err := d.ResetToLineMode(); err != nil || d.IsRaw() {
		t.Fatalf("keys one by one: %t, %v", d.IsRaw(), err)
	}
	if err := d.Restore(); err != nil || d.IsRaw() {
		t.Errorf("Restore brings back what Mend ended: %v", err)
	}
}

// TestFlush holds that what was typed before a question does not answer it.
func TestFlush(t *testing.T) {
	t.Parallel()
	d, person := terminal(t)
	if err := d.EnableCbreakMode(); err != nil {
		t.Fatal(err)
	}
	read := func(typed string) string {
		t.Helper()
		if _, err := person.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		var keys [8]byte
		n, err := d.In.Read(keys[:])
		if err != nil {
			t.Fatal(err)
		}
		return string(keys[:n])
	}
	if _, err := person.WriteString("early"); err != nil {
		t.Fatal(err)
	}
	for { // until the kernel has handed it on
		n, err := unix.IoctlGetInt(int(d.In.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Skip(err)
		}
		if n == len("early") {
			break
		}
	}
	if err := d.DiscardInput(); err != nil {
		t.Fatal(err)
	}
	if got := read("n"); got != "n" {
		t.Errorf("read %q, want what was typed after Flush", got)
	}
}

func TestSizeAndName(t *testing.T) {
	t.Parallel()
	d, person := terminal(t)
	if columns, lines := d.Size(); columns != 80 || lines != 24 {
		t.Errorf("a terminal that does not say has %d columns and %d lines", columns, lines)
	}
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 132, Row: 50}); err != nil {
		t.Fatal(err)
	}
	if columns, lines := d.Size(); columns != 132 || lines != 50 {
		t.Errorf("%d columns, %d lines", columns, lines)
	}
	other, _ := terminal(t)
	if d.Name() == other.Name() || d.Name() == "unknown" {
		t.Errorf("two terminals are %q and %q", d.Name(), other.Name())
	}
}

// TestNoTerminal holds that what is no terminal is an error everywhere, and
// counts as one that a person cannot type lines at.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	d := &Device{In: f, Out: f}
	for name, err := range map[string]error{"keys": d.EnableCbreakMode(), "mend": d.ResetToLineMode(), "save": d.SaveSettings(), "flush": d.DiscardInput()} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if !d.IsRaw() || d.Name() != "unknown" || isForeground(f) {
		t.Errorf("raw %t, name %q, foreground %t", d.IsRaw(), d.Name(), isForeground(f))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestPassword holds that a password is not shown, and that the question ends with its
// context and leaves the terminal as it was.
func TestPassword(t *testing.T) {
	t.Parallel()
	d, person := terminal(t)
	if _, err := person.WriteString("hush\n"); err != nil {
		t.Fatal(err)
	}
	got, err := d.ReadPassword(t.Context(), "Password: ")
	if err != nil || got != "hush" {
		t.Errorf("%q, error %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := d.ReadPassword(ctx, "Password: "); !errors.Is(err, context.Canceled) || got != "" {
		t.Errorf("%q, error %v", got, err)
	}
}

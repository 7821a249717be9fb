package term

import (
	"os"

	"golang.org/x/sys/windows"
)

func openTerminal() (in, out *os.File, err error) {
	if in, err = os.OpenFile("CONIN$", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0); err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// deviceName returns the same name for all consoles, so that processes on different consoles wait
// for each other. That is harmless, while two processes that read from the same console would share
// its input.
func deviceName(*os.File) string { return "console" }

func isForeground(*os.File) bool { return true }

func isRaw(f *os.File) bool {
	var mode uint32
	err := windows.GetConsoleMode(windows.Handle(f.Fd()), &mode)
	return err != nil || mode&windows.ENABLE_LINE_INPUT == 0
}

func discardInput(f *os.File) error { return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }

func setLineMode(f *os.File) error {
	return windows.SetConsoleMode(windows.Handle(f.Fd()), windows.ENABLE_PROCESSED_INPUT|windows.ENABLE_LINE_INPUT|windows.ENABLE_ECHO_INPUT)
}

func setCbreakMode(f *os.File) error {
	return windows.SetConsoleMode(windows.Handle(f.Fd()), windows.ENABLE_PROCESSED_INPUT)
}

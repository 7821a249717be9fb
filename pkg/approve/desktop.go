package approve

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/gen2brain/beeep"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/redact"
)

// A desktopNotifier shows notifications. If that fails, only the notification is missing.
type desktopNotifier struct{ runningNotifications atomic.Int32 }

// Limits of notifications.
const (
	maxConcurrentNotices = 4   // notifications at a time: one that hangs cannot be stopped
	maxNotificationBytes = 240 // bytes
)

// setAppName sets the sender's name of notifications.
var setAppName = sync.OnceFunc(func() { beeep.AppName = "shield" })

// showWaitingQuestionNotice shows that a question waits, and how to open the page.
func (d *desktopNotifier) showWaitingQuestionNotice(getenv func(string) string, questionSummary, pageAddressAndCode string) {
	if !hasDesktop(runtime.GOOS, getenv) || !canOnlyRootReplaceNotifierPrograms(runtime.GOOS) {
		return
	}
	if d.runningNotifications.Add(1) > maxConcurrentNotices {
		d.runningNotifications.Add(-1)
		return
	}
	go func() {
		defer d.runningNotifications.Add(-1)
		defer func() { _ = recover() }()
		setAppName()
		_ = beeep.Notify("shield is waiting for your answer", notificationText(questionSummary)+". Answer at "+pageAddressAndCode, "")
	}()
}

// CanShowDesktopNotification reports whether a notification that this process sends is shown on a desktop.
func CanShowDesktopNotification(getenv func(string) string) bool {
	return hasDesktop(runtime.GOOS, getenv)
}

// canOnlyRootReplaceNotifierPrograms reports whether only root can replace notify-send and kdialog, the
// programs that send a notification if D-Bus does not accept it. PATH can name a folder that an
// untrusted project controls, and a notification contains the code of the approval page.
func canOnlyRootReplaceNotifierPrograms(goos string) bool {
	if goos == "windows" || goos == "darwin" {
		return true
	}
	for _, name := range []string{"notify-send", "kdialog"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		for _, path := range []string{path, filepath.Dir(path)} {
			if info, err := os.Stat(path); err != nil || !owner.OnlyRootCanWrite(info) {
				return false
			}
		}
	}
	return true
}

// hasDesktop reports whether this process belongs to a session with a desktop.
func hasDesktop(system string, getenv func(string) string) bool {
	switch system {
	case "windows", "darwin":
		return getenv("SSH_CONNECTION") == ""
	case "linux", "freebsd", "netbsd", "openbsd":
		bus := getenv("DBUS_SESSION_BUS_ADDRESS")
		return bus != "" && !strings.HasPrefix(bus, "autolaunch:") && (getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "")
	default:
		return false
	}
}

// notificationText returns the text for a question. Desktops read it as markup,
// XML, a script or an option, so only characters without a meaning in any of
// them are kept.
func notificationText(summary string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" .,:/_-=+()[]", r):
			return r
		case r == '“', r == '”':
			return -1
		default:
			return '·'
		}
	}, summary)
	return redact.TruncateBytes(text, maxNotificationBytes)
}

package service

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A Unit is the configuration that makes the system start the service.
type Unit struct {
	Files []UnitFile
	// Commands of the system's service manager, executed in order after the files are written, or
	// before they are removed.
	StartCommands, StopCommands [][]string
}

// A UnitFile is a file of a [Unit], with its path and text.
type UnitFile struct{ Path, Text string }

// UnitSettings contains the absolute paths, the user ID and the variables with which the service runs.
type UnitSettings struct {
	Program   string // executable of shield
	Home      string
	ConfigDir string // the user's configuration folder, for systemd
	Socket    string // the path of the socket
	UID       int
	Environ   []string // NAME=VALUE variables that name the service's folders
}

// NewUnit returns the unit for an operating system, as in GOOS. systemd opens the socket and starts
// the service for the first connection; launchd starts it at login.
func NewUnit(goos string, p UnitSettings) (*Unit, error) {
	for _, text := range append([]string{p.Program, p.Home, p.ConfigDir, p.Socket}, p.Environ...) {
		if strings.ContainsAny(text, "\n\r\x00") {
			return nil, fmt.Errorf("the path %q has characters that a systemd unit cannot contain; move shield to another folder", text)
		}
	}
	switch goos {
	case "linux":
		return systemdUnit(p), nil
	case "darwin":
		return launchdUnit(p), nil
	}
	return nil, fmt.Errorf("install a service of %s: %w", goos, errors.ErrUnsupported)
}

func systemdUnit(p UnitSettings) *Unit {
	dir := filepath.Join(p.ConfigDir, "systemd", "user")
	var env strings.Builder
	for _, pair := range p.Environ {
		fmt.Fprintf(&env, "Environment=%s\n", quoteUnitWord(pair))
	}
	return &Unit{
		Files: []UnitFile{
			{filepath.Join(dir, "shield.socket"), "[Unit]\nDescription=Requests to shield\n\n" +
				"[Socket]\nListenStream=" + escapeSpecifiers(p.Socket) + "\nSocketMode=0600\nDirectoryMode=0700\n\n" +
				"[Install]\nWantedBy=sockets.target\n"},
			{filepath.Join(dir, "shield.service"), "[Unit]\nDescription=shield judges the actions of AI agents\nRequires=shield.socket\n\n" +
				// The colon disables variable substitution ($) in the command line.
				"[Service]\nExecStart=:" + quoteUnitWord(p.Program) + " serve\nExecReload=/bin/kill -HUP $MAINPID\n" + env.String() + "Restart=on-failure\n"},
		},
		StartCommands: [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", "shield.socket"}},
		StopCommands:  [][]string{{"systemctl", "--user", "disable", "--now", "shield.socket"}, {"systemctl", "--user", "stop", "shield.service"}},
	}
}

// escapeSpecifiers escapes systemd's % specifiers.
func escapeSpecifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quoteUnitWord returns a quoted word for a systemd unit file.
func quoteUnitWord(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}

func launchdUnit(p UnitSettings) *Unit {
	var env strings.Builder
	for _, pair := range p.Environ {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&env, "\t\t<key>%s</key><string>%s</string>\n", escapeXML(name), escapeXML(value))
	}
	file := filepath.Join(p.Home, "Library", "LaunchAgents", "dev.shieldcli.shield.plist")
	domain := fmt.Sprintf("gui/%d", p.UID)
	return &Unit{
		Files: []UnitFile{{file, `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>dev.shieldcli.shield</string>
	<key>ProgramArguments</key><array><string>` + escapeXML(p.Program) + `</string><string>serve</string></array>
	<key>EnvironmentVariables</key>
	<dict>
` + env.String() + `	</dict>
	<key>RunAtLoad</key><true/>
	<key>KeepAlive</key><true/>
</dict>
</plist>
`}},
		StartCommands: [][]string{{"launchctl", "bootstrap", domain, file}},
		StopCommands:  [][]string{{"launchctl", "bootout", domain + "/dev.shieldcli.shield"}},
	}
}

func escapeXML(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // writing to a buffer never fails
	return b.String()
}

package service

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A Unit is what has a system start the service by itself.
type Unit struct {
	Files []File
	// Command lines of the system's own program, run in their order once the files
	// are there, or before they are removed.
	Start, Stop [][]string
}

// A File is a file of a unit.
type File struct{ Path, Text string }

// Place says where things are for the user whose service it is. All paths are absolute.
type Place struct {
	Program string // shield itself
	Home    string
	Config  string // the folder of the user's settings of all programs, for systemd
	Socket  string // the path of the socket
	UID     int
	Environ []string // NAME=VALUE by which the service finds its folders
}

// NewUnit returns the unit for an operating system, as in GOOS. systemd listens itself
// and starts the service at the first question; launchd starts it at login.
func NewUnit(system string, p Place) (*Unit, error) {
	for _, text := range append([]string{p.Program, p.Home, p.Config, p.Socket}, p.Environ...) {
		if strings.ContainsAny(text, "\n\r\x00") {
			return nil, fmt.Errorf("the path %q has characters that a systemd unit cannot contain; move shield to another folder", text)
		}
	}
	switch system {
	case "linux":
		return systemd(p), nil
	case "darwin":
		return launchd(p), nil
	}
	return nil, fmt.Errorf("install a service of %s: %w", system, errors.ErrUnsupported)
}

func systemd(p Place) *Unit {
	dir := filepath.Join(p.Config, "systemd", "user")
	var env strings.Builder
	for _, pair := range p.Environ {
		fmt.Fprintf(&env, "Environment=%s\n", quoted(pair))
	}
	return &Unit{
		Files: []File{
			{filepath.Join(dir, "shield.socket"), "[Unit]\nDescription=Requests to shield\n\n" +
				"[Socket]\nListenStream=" + specifiers(p.Socket) + "\nSocketMode=0600\nDirectoryMode=0700\n\n" +
				"[Install]\nWantedBy=sockets.target\n"},
			{filepath.Join(dir, "shield.service"), "[Unit]\nDescription=shield judges the actions of AI agents\nRequires=shield.socket\n\n" +
				// In a command line a $ begins a variable, too.
				"[Service]\nExecStart=:" + quoted(p.Program) + " serve\nExecReload=/bin/kill -HUP $MAINPID\n" + env.String() + "Restart=on-failure\n"},
		},
		Start: [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", "shield.socket"}},
		Stop:  [][]string{{"systemctl", "--user", "disable", "--now", "shield.socket"}, {"systemctl", "--user", "stop", "shield.service"}},
	}
}

// specifiers protects a text from systemd's own names.
func specifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quoted returns one word of a line of systemd.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}

func launchd(p Place) *Unit {
	var env strings.Builder
	for _, pair := range p.Environ {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&env, "\t\t<key>%s</key><string>%s</string>\n", escaped(name), escaped(value))
	}
	file := filepath.Join(p.Home, "Library", "LaunchAgents", "dev.shieldcli.shield.plist")
	domain := fmt.Sprintf("gui/%d", p.UID)
	return &Unit{
		Files: []File{{file, `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>dev.shieldcli.shield</string>
	<key>ProgramArguments</key><array><string>` + escaped(p.Program) + `</string><string>serve</string></array>
	<key>EnvironmentVariables</key>
	<dict>
` + env.String() + `	</dict>
	<key>RunAtLoad</key><true/>
	<key>KeepAlive</key><true/>
</dict>
</plist>
`}},
		Start: [][]string{{"launchctl", "bootstrap", domain, file}},
		Stop:  [][]string{{"launchctl", "bootout", domain + "/dev.shieldcli.shield"}},
	}
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes all
	return b.String()
}

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/launch"
	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/internal/subprocess"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/service"
)

func serviceCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:        "service",
		Usage:       "run shield serve as a system service, and check it",
		Description: "install writes units of systemd for the user, with a socket that starts the service at the first question, or an agent of launchd, and starts it. Each calling process uses its own settings and policies.",
		Subcommands: []*cli.Command{
			{
				Name: "install", Usage: "write the units, and start listening",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "dry-run", Usage: "print what would be written and run"}},
				Action: func(c *cli.Context) error { return installService(c, w) },
			},
			{
				Name: "uninstall", Usage: "stop the service and remove the units",
				Action: func(c *cli.Context) error { return uninstallService(c, w) },
			},
			{
				Name: "status", Usage: "show whether the service runs and how much it has judged; exits with 1 if it does not run",
				Action: func(c *cli.Context) error { return serviceStatus(c, w) },
			},
		},
	}
}

// serviceUnit returns the unit for the user's system.
func serviceUnit(c *cli.Context, w *Environment) (*service.Unit, error) {
	if _, err := operands(c); err != nil {
		return nil, err
	}
	state := serviceStateFolder(w)
	if state == "" || w.ShieldExecutablePath == "" {
		return nil, errors.New("service: the state folder or the path of shield is unknown; set HOME")
	}
	p := service.UnitSettings{
		Program: w.ShieldExecutablePath, Home: w.Home, ConfigDir: filepath.Dir(filepath.Dir(config.UserConfigPath(w.Home, w.Getenv))),
		Socket: filepath.Join(peer.ServiceFolder(state), peer.SocketFileName), UID: os.Getuid(),
	}
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "SHIELD_CONFIG"} {
		if value := w.Getenv(name); value != "" {
			p.Environ = append(p.Environ, name+"="+value)
		}
	}
	return service.NewUnit(w.OS, p)
}

func installService(c *cli.Context, w *Environment) error {
	u, err := serviceUnit(c, w)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		for _, f := range u.Files {
			fmt.Fprintf(w.Out, "%s\n%s\n", term.EscapeControlAndInvisible(f.Path), f.Text)
		}
		for _, argv := range u.StartCommands {
			fmt.Fprintf(w.Out, "%s\n", term.EscapeControlAndInvisible(strings.Join(argv, " ")))
		}
		return nil
	}
	for _, f := range u.Files {
		file, err := newSettingsFile(f.Path)
		if err == nil {
			err = file.replaceContent([]byte(f.Text), false)
		}
		if err != nil {
			return fmt.Errorf("service install: %w", err)
		}
		fmt.Fprintf(w.Out, "wrote %s\n", term.EscapeControlAndInvisible(f.Path))
	}
	for _, argv := range u.StartCommands {
		if err := runServiceManagerCommand(c.Context, w, argv); err != nil {
			return fmt.Errorf("service install: the files were written, but '%s' failed: %w; run that command yourself, or start 'shield serve' by hand", strings.Join(argv, " "), err)
		}
	}
	fmt.Fprintln(w.Out, "installed; check it with 'shield service status'")
	return nil
}

func uninstallService(c *cli.Context, w *Environment) error {
	u, err := serviceUnit(c, w)
	if err != nil {
		return err
	}
	var failed []error
	for _, argv := range u.StopCommands {
		if err := runServiceManagerCommand(c.Context, w, argv); err != nil {
			failed = append(failed, fmt.Errorf("'%s' failed: %w", strings.Join(argv, " "), err))
		}
	}
	for _, f := range u.Files {
		err := os.Remove(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(w.Out, "%s does not exist, so there is nothing to remove\n", term.EscapeControlAndInvisible(f.Path))
		case err != nil:
			failed = append(failed, err)
		default:
			fmt.Fprintf(w.Out, "removed %s\n", term.EscapeControlAndInvisible(f.Path))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("service uninstall: %w", err)
	}
	return nil
}

// serviceManagerTimeout is how long the system's service manager may take.
const serviceManagerTimeout = 30 * time.Second

// runServiceManagerCommand runs the system's service manager.
func runServiceManagerCommand(ctx context.Context, w *Environment, argv []string) error {
	path, err := launch.LookPath(argv[0], w.Environ())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serviceManagerTimeout)
	defer cancel()
	said := subprocess.LimitedOutput{MaxBytes: 4 << 10}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.Environ(), w.Home, &said, &said
	if err := cmd.Run(); err != nil {
		return errors.Join(err, errors.New(term.EscapeControlAndInvisible(string(bytes.TrimSpace(said.Bytes())))))
	}
	return nil
}

// A serviceReport is the status of a service.
type serviceReport struct {
	PID                        int       `json:"pid"`
	StartedAt                  time.Time `json:"since"`
	ReceivedClientRequestCount int64     `json:"asked"`
	ServiceDecidedRequestCount int64     `json:"decided"`
}

// serviceStatusTimeout is how long a service may take to report its status.
const serviceStatusTimeout = 2 * time.Second

func serviceStatus(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	socket := filepath.Join(peer.ServiceFolder(serviceStateFolder(w)), peer.SocketFileName)
	line, err := peer.Dial(peer.ServiceFolder(serviceStateFolder(w)))
	if err != nil {
		return fmt.Errorf("the service at %s is not running: %w; hooks judge without it; to start it: shield service install", socket, err)
	}
	q := w.newServiceQuestion([]string{"service", "status"}, nil)
	answer, err := line.Ask(&q, serviceStatusTimeout)
	if err != nil {
		return fmt.Errorf("the service at %s does not answer: %w; hooks judge without it; restart the service", socket, err)
	}
	var r serviceReport
	if err := json.Unmarshal(answer.CommandStdout, &r); err != nil || !answer.ServiceDecided {
		return fmt.Errorf("the service at %s is of another build; restart it", socket)
	}
	_, err = fmt.Fprintf(w.Out, "the service (process %d) has answered at %s since %s; it decided %d of %d requests of hooks and commands, which decide the rest themselves\n",
		r.PID, term.EscapeControlAndInvisible(socket), r.StartedAt.Format(time.RFC3339), r.ServiceDecidedRequestCount, r.ReceivedClientRequestCount)
	return err
}

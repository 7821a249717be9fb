// Command shield judges every action that an AI agent proposes, before it
// runs. See the README, or run shield help.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/shieldcli/shield/cmd"
	"github.com/shieldcli/shield/internal/noquery"
	"github.com/shieldcli/shield/internal/watch"
)

func main() {
	noquery.RestoreCIEnvironmentVariable()
	// The memory that shield needs depends on the size of one record, not of the whole input, so
	// garbage may grow to four times the memory in use. With large records, the memory limit that
	// is set next starts the garbage collector earlier.
	debug.SetGCPercent(400)
	limit := int64(56 << 20)
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		limit = 64 << 20 // a server has many clients at a time; a lower limit would make the garbage collector run all the time
	}
	debug.SetMemoryLimit(limit)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	reload := make(chan os.Signal, 1)
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		signal.Notify(reload, syscall.SIGHUP)
	case !signal.Ignored(syscall.SIGHUP): // under nohup, SIGHUP stays ignored
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a closed stdout is an error to handle, not a sudden death
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	exe, _ := os.Executable()
	status := cmd.Run(ctx, os.Args[1:], cmd.Environment{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv, Environ: os.Environ, Now: time.Now,
		Home: home, WorkingDir: dir, ShieldExecutablePath: exe, User: os.Getenv("USER"), OS: runtime.GOOS, RootFS: os.DirFS("/"),
		Reload: reload, HookEventWatchFromInit: watch.HookEventWatchFromPackageInit(),
	})
	stop()
	os.Exit(status)
}

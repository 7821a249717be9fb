package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/container"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

// newCommandPipeline returns the pipeline for a command line, and its settings. single means that the process
// judges one action.
func newCommandPipeline(c *cli.Context, w *Environment, single bool) (*config.Loaded, *shield.Pipeline, error) {
	return newChangedPipeline(c, w, func(cfg *shield.Config) { cfg.Single = single })
}

// newChangedPipeline returns the pipeline for a command line, and its settings. change modifies the
// configuration of the pipeline before the pipeline is created.
func newChangedPipeline(c *cli.Context, w *Environment, change func(*shield.Config)) (*config.Loaded, *shield.Pipeline, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, err
	}
	cfg := shieldConfig(set, w, strings.TrimPrefix(c.Command.HelpName, "shield "))
	cfg.Trace, cfg.NoAction = c.Bool("trace"), c.Bool("no-action")
	cfg.Approve.NoBoldText = !wantsColour(c, w, true)
	cfg.IfKept = c.String("conditions") == verdict.ConditionBackedUp
	change(&cfg)
	p, err := w.newPipeline(cfg)
	return set, p, err
}

// newPipeline returns a pipeline (in a service, one of the pool), and prints what a person should know
// about it.
func (w *Environment) newPipeline(cfg shield.Config) (*shield.Pipeline, error) {
	if w.servedQuestion != nil {
		return w.servedQuestion.lendPipeline(cfg)
	}
	p, err := shield.NewPipeline(cfg)
	if err == nil && p.MissingPartNote() != "" {
		fmt.Fprintln(w.Err, "shield:", p.MissingPartNote())
	}
	return p, err
}

// shieldConfig converts settings to the library's configuration; command is the name of the calling
// command.
func shieldConfig(set *config.Loaded, w *Environment, command string) shield.Config {
	s := set.Settings
	s.Approval.Command = approvalCommand(set, w)
	if _, given := set.Origin["classifier.threshold"]; !given {
		s.Classifier.Threshold = 0 // so that the model's own threshold applies
	}
	in, _ := detectContainer(set, w)
	return shield.Config{
		Settings: &s, Container: in,
		Home:     w.Home,
		Dir:      w.Dir,
		FoldCase: w.OS == "windows" || w.OS == "darwin",
		Own:      shieldFiles(set, w),
		Program:  w.Executable,
		CacheDir: config.CacheDir(w.Home, w.Getenv),
		Models:   modelsDir(w),
		Bundles:  bundlesDir(set, w),
		StateDir: stateDir(&set.Settings, w),
		Answers:  advanceApprovalsFile(set, w),
		Caller:   audit.Caller{Command: command, User: w.User, PID: w.judgePID, Parent: w.askingPID},
		Approve:  approvalOptions(set, w, command),
		Lookup:   func(name string) (string, bool) { v := w.Getenv(name); return v, v != "" },
		Notify:   func(text string) { fmt.Fprintln(w.Err, "shield:", text) },
		Clock:    w.Now,
	}
}

// detectContainer returns the container in which this process runs, or an error that says why none is
// assumed.
func detectContainer(set *config.Loaded, w *Environment) (*container.Container, error) {
	switch {
	case set.Container != "auto":
		return nil, errors.New("the setting is container: no; set container: auto to detect a container")
	case w.RootFS == nil || w.OS != "linux":
		return nil, errors.New("shield can detect containers on Linux only")
	}
	roots := set.Roots
	if len(roots) == 0 {
		roots = []string{w.Dir}
	}
	return container.Find(w.RootFS, w.Home, roots)
}

// advanceApprovalsFile returns the user's file of answers in advance; "" if a signed bundle or a locked setting
// determines the policy, or the user's folder is unknown.
func advanceApprovalsFile(set *config.Loaded, w *Environment) string {
	name := config.UserFile(w.Home, w.Getenv)
	if name == "" || set.Bundle.Source != "" || strings.HasPrefix(set.Origin["policy"], "locked by ") {
		return ""
	}
	return filepath.Join(filepath.Dir(name), "answers.yaml")
}

// auditFile returns the path of the audit log, or "" if it is off.
func auditFile(set *config.Loaded, w *Environment) string {
	return set.AuditFile(stateDir(&set.Settings, w))
}

// shieldFiles lists the settings and folders of shield itself, even if they do not exist yet: an agent
// must not create them.
func shieldFiles(set *config.Loaded, w *Environment) []string {
	own := append([]string{filepath.Dir(config.SystemFile())}, set.Files...)
	if name := config.UserFile(w.Home, w.Getenv); name != "" {
		own = append(own, filepath.Dir(name))
	}
	for _, name := range []string{config.StateDir(w.Home, w.Getenv), config.DataDir(w.Home, w.Getenv)} {
		if name != "" {
			own = append(own, name)
		}
	}
	if set.Audit.File != "" {
		logs, _ := audit.Files(auditFile(set, w)) // if this fails, at least the current file
		own = append(own, logs...)
	}
	return absolutePaths(own, w.Dir)
}

// absolutePaths returns paths as absolute paths, relative ones below a folder.
func absolutePaths(paths []string, dir string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		if !filepath.IsAbs(p) && dir != "" {
			p = filepath.Join(dir, p)
		}
		out[i] = p
	}
	return out
}

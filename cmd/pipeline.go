package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/evaluate"
	"github.com/shieldcli/shield/pkg/shield"
)

// pipeline returns the pipeline that a command line asks for, and its settings.
func pipeline(c *cli.Context, w *World) (*config.Loaded, *shield.Pipeline, error) {
	set, err := settings(c, w)
	if err != nil {
		return nil, nil, err
	}
	cfg := shieldConfig(set, w, strings.TrimPrefix(c.Command.HelpName, "shield "))
	cfg.Trace, cfg.NoAction = c.Bool("trace"), c.Bool("no-action")
	cfg.Approve.Plain = !colour(c, w, true)
	p, err := shield.NewPipeline(cfg)
	if err == nil && p.Note() != "" {
		fmt.Fprintln(w.Err, "shield:", p.Note())
	}
	return set, p, err
}

// shieldConfig returns what the library needs of the settings; command is the
// name of the one that asks.
func shieldConfig(set *config.Loaded, w *World, command string) shield.Config {
	e := &set.Evaluator
	return shield.Config{
		Policy:        set.Policy,
		Roots:         set.Roots,
		Home:          w.Home,
		Dir:           w.Dir,
		FoldCase:      w.OS == "windows" || w.OS == "darwin",
		Own:           ownFiles(set, w),
		Program:       w.Executable,
		CacheDir:      config.CacheDir(w.Home, w.Getenv),
		StateDir:      stateDir(&set.Settings, w),
		NoHeuristic:   !set.Heuristic.Enabled,
		Classifier:    classifier(set, w),
		OnnxThreshold: threshold(set),
		AuditFile:     auditFile(set, w),
		AuditMax:      int64(set.Audit.MaxBytes),
		Caller:        audit.Caller{Command: command, User: w.User, PID: os.Getpid(), Parent: w.parent},
		UTC:           set.BudgetReset == "utc",
		MaxPerHour:    set.Approval.MaxPerHour,
		Approve:       approval(set, w, command),
		Evaluator: shield.Evaluator{
			Endpoint: evaluate.Endpoint{
				Provider: e.Provider, Model: e.Model, APIKeyEnv: e.APIKeyEnv, APIKeyFile: e.APIKeyFile,
				BaseURL: e.BaseURL, Proxy: e.Proxy, CAFile: e.CAFile,
				LookupEnv: func(name string) (string, bool) { v := w.Getenv(name); return v, v != "" },
			},
			Timeout: e.Timeout.Std(),
		},
		CanaryToken: set.Evaluator.CanaryToken,
		RateLimit:   set.RateLimit,
		DailyBudget: set.DailyBudget,
		FailOpen:    !set.FailClosed,
		VerdictTTL:  set.VerdictTTL.Std(),
		Notify:      func(text string) { fmt.Fprintln(w.Err, "shield:", text) },
		Clock:       w.Now,
	}
}

// classifier returns which model Tier 1 asks.
func classifier(set *config.Loaded, w *World) shield.Classifier {
	c := &set.Classifier
	if !c.Enabled {
		return shield.Classifier{}
	}
	if c.Model == "none" {
		return shield.Classifier{}
	}
	out := shield.Classifier{Model: c.Model, Addr: c.Addr, Models: modelsDir(w), ONNXRuntime: c.ONNXRuntime}
	if !c.SkipTypes.Auto {
		out.SkipTypes = append([]string{}, c.SkipTypes.List...)
	}
	return out
}

// threshold returns from which confidence on the model blocks, or 0 where
// nobody has set one: then the model's own holds.
func threshold(set *config.Loaded) float64 {
	if _, given := set.Origin["classifier.threshold"]; given {
		return set.Classifier.Threshold
	}
	return 0
}

// auditFile returns the path of the audit log, or "" if there is to be none.
func auditFile(set *config.Loaded, w *World) string {
	switch {
	case !set.Audit.Enabled:
		return ""
	case set.Audit.File != "":
		return set.Audit.File
	default:
		return filepath.Join(stateDir(&set.Settings, w), "audit.jsonl")
	}
}

// ownFiles lists the settings and folders that belong to shield itself, also
// where they do not exist yet: an agent must not be the one who creates them.
func ownFiles(set *config.Loaded, w *World) []string {
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
		logs, _ := audit.Files(auditFile(set, w)) // at least the current one
		own = append(own, logs...)
	}
	return absolute(own, w.Dir)
}

// absolute returns paths made absolute from a folder.
func absolute(paths []string, dir string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		if !filepath.IsAbs(p) && dir != "" {
			p = filepath.Join(dir, p)
		}
		out[i] = p
	}
	return out
}

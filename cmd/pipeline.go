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

// newCommandLinePipeline returns the pipeline for a command line, and its settings. judgesSingleAction
// means that the process judges one action.
func newCommandLinePipeline(c *cli.Context, w *Environment, judgesSingleAction bool) (*config.LoadedSettings, *shield.Pipeline, error) {
	return newPipelineWithConfigChange(c, w, func(cfg *shield.Config) { cfg.JudgesSingleAction = judgesSingleAction })
}

// newPipelineWithConfigChange returns the pipeline for a command line, and its settings.
// changeConfig modifies the configuration of the pipeline before the pipeline is created.
func newPipelineWithConfigChange(c *cli.Context, w *Environment, changeConfig func(*shield.Config)) (*config.LoadedSettings, *shield.Pipeline, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, err
	}
	cfg := pipelineConfigFromSettings(set, w, strings.TrimPrefix(c.Command.HelpName, "shield "))
	cfg.VerdictsIncludeTrail, cfg.OmitsActionFromVerdicts = c.Bool("trace"), c.Bool("no-action")
	cfg.ApprovalOptions.NoBoldText = !isColourEnabled(c, w, true)
	cfg.AllowsIfFilesBackedUp = c.String("conditions") == verdict.AllowConditionFilesBackedUp
	changeConfig(&cfg)
	p, err := w.newPipeline(cfg)
	return set, p, err
}

// newPipeline returns a pipeline (in a service, one of the pool), and prints what a person should know
// about it.
func (w *Environment) newPipeline(cfg shield.Config) (*shield.Pipeline, error) {
	if w.requestFromServiceClient != nil {
		return w.requestFromServiceClient.borrowPooledPipeline(cfg)
	}
	p, err := shield.NewPipeline(cfg)
	if err == nil && p.UnusableModelOrPolicyNote() != "" {
		fmt.Fprintln(w.Err, "shield:", p.UnusableModelOrPolicyNote())
	}
	return p, err
}

// pipelineConfigFromSettings converts settings to the library's configuration. callingCommandName is
// the name of the shield command that calls it.
func pipelineConfigFromSettings(set *config.LoadedSettings, w *Environment, callingCommandName string) shield.Config {
	s := set.Settings
	s.Approval.CommandChannelArgv = approvalProgramArgv(set, w)
	if _, given := set.OriginBySetting["classifier.threshold"]; !given {
		s.Classifier.BlockThreshold = 0 // so that the model's own threshold applies
	}
	in, _ := detectContainer(set, w)
	return shield.Config{
		Settings: &s, ExecutionContainer: in,
		Home:                      w.Home,
		WorkingDir:                w.WorkingDir,
		IgnoresPathCase:           w.OS == "windows" || w.OS == "darwin",
		ExtraProtectedShieldPaths: shieldOwnPaths(set, w),
		ShieldProgramPath:         w.ShieldExecutablePath,
		CacheDir:                  config.CacheDir(w.Home, w.Getenv),
		ModelDir:                  modelsDir(w),
		BundleDir:                 fetchedPolicyBundlesDir(set, w),
		StateDir:                  stateDir(&set.Settings, w),
		AdvanceApprovalsPath:      advanceApprovalsFile(set, w),
		Caller:                    audit.Caller{ShieldSubcommand: callingCommandName, User: w.User, PID: w.judgePID, ParentPID: w.verdictRequesterPID},
		ApprovalOptions:           approvalOptions(set, w, callingCommandName),
		LookupEnvironmentVariable: func(name string) (string, bool) { v := w.Getenv(name); return v, v != "" },
		NotifyUser:                func(text string) { fmt.Fprintln(w.Err, "shield:", text) },
		Clock:                     w.Now,
	}
}

// detectContainer returns the container in which this process runs, or an error that says why none is
// assumed.
func detectContainer(set *config.LoadedSettings, w *Environment) (*container.Container, error) {
	switch {
	case set.ContainerEffectsTrustMode != "auto":
		return nil, errors.New("the setting is container: no, which disables the detection")
	case w.RootFS == nil || w.OS != "linux":
		return nil, errors.New("shield can detect containers on Linux only")
	}
	roots := set.WorkspaceRoots
	if len(roots) == 0 {
		roots = []string{w.WorkingDir}
	}
	return container.DetectContainer(w.RootFS, w.Home, roots)
}

// advanceApprovalsFile returns the path of the user's file of advance approvals. It returns "" if a
// signed bundle or a locked setting determines the policy, or the user's folder is unknown.
func advanceApprovalsFile(set *config.LoadedSettings, w *Environment) string {
	name := config.UserConfigPath(w.Home, w.Getenv)
	if name == "" || set.PolicyBundle.URLOrPath != "" || strings.HasPrefix(set.OriginBySetting["policy"], "locked by ") {
		return ""
	}
	return filepath.Join(filepath.Dir(name), "answers.yaml")
}

// auditFile returns the path of the audit log, or "" if it is off.
func auditFile(set *config.LoadedSettings, w *Environment) string {
	return set.AuditFile(stateDir(&set.Settings, w))
}

// shieldOwnPaths lists the settings and folders of shield itself, even if they do not exist yet: an agent
// must not create them.
func shieldOwnPaths(set *config.LoadedSettings, w *Environment) []string {
	own := append([]string{filepath.Dir(config.SystemConfigPath())}, set.Files...)
	if name := config.UserConfigPath(w.Home, w.Getenv); name != "" {
		own = append(own, filepath.Dir(name))
	}
	for _, name := range []string{config.StateDir(w.Home, w.Getenv), config.DataDir(w.Home, w.Getenv)} {
		if name != "" {
			own = append(own, name)
		}
	}
	if set.Audit.File != "" {
		logs, _ := audit.LogFilePaths(auditFile(set, w)) // on an error, logs still contains the path of the current file
		own = append(own, logs...)
	}
	return absolutePaths(own, w.WorkingDir)
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

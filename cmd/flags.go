package cmd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/verdict"
)

// configFlag is the flag for the configuration file; all commands that read settings have it.
//
//go:noinline
func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "read settings from `FILE` instead of the user's file"}
}

// stateFlag is the flag for the state folder.
//
//go:noinline
func stateFlag() cli.Flag {
	return &cli.StringFlag{Name: "state", Usage: "keep seal key, state and audit log in `DIR`"}
}

// commonJudgeFlags are the flags of all commands that judge.
func commonJudgeFlags() []cli.Flag {
	return []cli.Flag{
		configFlag(),
		&cli.StringFlag{Name: "policy", Usage: "use the policy `default|offline|assisted|strict|permissive|FILE`"},
		&cli.StringFlag{Name: "model", Usage: "use the classifier model `NAME|DIR|none`"},
		&cli.StringFlag{Name: "onnxruntime", Usage: "load the ONNX Runtime library from `FILE`"},
		stateFlag(),
		&cli.StringSliceFlag{Name: "root", Usage: "treat `DIR` as workspace; may be repeated"},
		colorFlag(),
	}
}

// unattendedFlag sets what happens to questions that reach no user.
func unattendedFlag() cli.Flag {
	return &cli.StringFlag{Name: "unattended", Usage: "`deny|\"wait TIME\"`: deny what needs approval where no user can be reached, or let the question wait on the approval page"}
}

// recordStreamJudgeFlags are the flags of all commands that judge a stream.
func recordStreamJudgeFlags(extraFlags ...cli.Flag) []cli.Flag {
	return append(append(commonJudgeFlags(),
		&cli.IntFlag{Name: "jobs", Value: 1, Usage: "judge `N` actions at a time, 1 to 256; verdicts keep the input's order"},
		&cli.StringFlag{Name: "format", Value: "json", Usage: "write verdicts as `json|text`: JSON Lines for the next tier, or one line an action for people", Action: func(c *cli.Context, which string) error {
			if which != "json" && which != "text" {
				return fmt.Errorf("%s: --format: %q is not one of json, text", c.Command.HelpName, shortenTo80Characters(which))
			}
			return nil
		}},
		&cli.BoolFlag{Name: "trace", Usage: "add every tier's answer, its latency, effects and views to each verdict"},
		&cli.BoolFlag{Name: "no-action", Usage: "leave the action out of the verdicts; for the end of a pipe"},
		&cli.StringFlag{Name: "conditions", Value: "none", Usage: "allow actions under a condition: `none|kept`; kept: the caller first keeps the files that the action deletes or overwrites", Action: func(c *cli.Context, which string) error {
			if which != "none" && which != verdict.AllowConditionFilesBackedUp {
				return fmt.Errorf("%s: --conditions: %q is not one of none, kept", c.Command.HelpName, shortenTo80Characters(which))
			}
			return nil
		}},
		&cli.IntFlag{Name: "max-bytes", DefaultText: "1048576, unless configured", Usage: "block records larger than `N` bytes"},
	), extraFlags...)
}

//go:noinline
func colorFlag() cli.Flag {
	return &cli.StringFlag{Name: "color", Value: "auto", Usage: "colour text for people: `auto|always|never`", Action: func(c *cli.Context, mode string) error {
		if !slices.Contains([]string{"auto", "always", "never"}, mode) {
			return fmt.Errorf("%s: --color: %q is not one of auto, always, never", c.Command.HelpName, shortenTo80Characters(mode))
		}
		return nil
	}}
}

// loadSettings reads the configuration according to the flags.
func loadSettings(c *cli.Context, w *Environment) (*config.LoadedSettings, error) {
	src, err := settingsSources(c, w)
	if err != nil {
		return nil, err
	}
	return config.Load(src)
}

// settingsSources returns the files and flags from which a command line gets its settings.
func settingsSources(c *cli.Context, w *Environment) (config.Sources, error) {
	file := w.Getenv("SHIELD_CONFIG")
	if c.IsSet("config") {
		file = absolutePaths([]string{c.String("config")}, w.WorkingDir)[0]
	}
	if file != "" && !filepath.IsAbs(file) {
		// A relative SHIELD_CONFIG would name another file after a change of the working folder,
		// perhaps one that an agent wrote.
		return config.Sources{}, fmt.Errorf("SHIELD_CONFIG is %q; set it to an absolute path", shortenTo80Characters(file))
	}
	return config.Sources{
		SystemSettingsPath:       config.SystemConfigPath(),
		UserSettingsPath:         config.UserConfigPath(w.Home, w.Getenv),
		UserSettingsPathOverride: file,
		Home:                     w.Home,
		CommandLinePathsBaseDir:  w.WorkingDir,
		PresetPolicyNames:        policy.PresetNames(),
		ApplyFlagsAndListChanged: func(s *config.Settings) []string {
			var set []string
			text := func(flag, name string, to *string) {
				if c.IsSet(flag) {
					*to = c.String(flag)
					set = append(set, name)
				}
			}
			text("policy", "policy", &s.PolicyNameOrPath)
			text("model", "classifier.model", &s.Classifier.ModelNameOrDir)
			text("onnxruntime", "classifier.onnxruntime", &s.Classifier.ONNXRuntimeLibraryPath)
			text("state", "state", &s.StateDir)
			text("unattended", "approval.unattended", &s.Approval.UnattendedDenyOrWait)
			if c.IsSet("root") {
				s.WorkspaceRoots = slices.Clone(c.StringSlice("root"))
				set = append(set, "roots")
			}
			if c.IsSet("max-bytes") {
				s.MaxActionRecordBytes = c.Int("max-bytes")
				set = append(set, "max_bytes")
			}
			return set
		},
	}, nil
}

// stateDir returns the folder with seal key, state and audit log.
func stateDir(s *config.Settings, w *Environment) string {
	if s.StateDir == "" {
		return config.StateDir(w.Home, w.Getenv)
	}
	return s.StateDir
}

// parallelJobs returns how many actions are judged in parallel.
func parallelJobs(c *cli.Context) (int, error) {
	n := c.Int("jobs")
	if n < 1 || n > 256 {
		return 0, fmt.Errorf("%s: --jobs %d is outside 1 to 256; choose a value in that range", c.Command.HelpName, n)
	}
	return n, nil
}

// moveFlagsFirst returns a command line with the command's flags before its operands, where the library
// expects them, and "--" between the two. Words after a "--" are operands. Unknown flags are left for
// the library to report. For exec, everything from the first operand on is the command.
func moveFlagsFirst(app *cli.App, args []string) []string {
	cmd, at := (*cli.Command)(nil), 0
	for list := app.Commands; at < len(args); at++ {
		i := slices.IndexFunc(list, func(c *cli.Command) bool { return c.HasName(args[at]) })
		if i < 0 {
			break
		}
		cmd, list = list[i], list[i].Subcommands
	}
	if cmd == nil || len(cmd.Subcommands) > 0 || cmd.Name == "exec" {
		return args
	}
	flags, operands := slices.Clone(args[:at]), []string{}
	for rest := args[at:]; len(rest) > 0; rest = rest[1:] {
		arg := rest[0]
		if arg == "--" {
			operands = append(operands, rest[1:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			operands = append(operands, arg)
			continue
		}
		flags = append(flags, arg)
		if flagTakesNextWord(cmd, arg) && len(rest) > 1 {
			rest = rest[1:]
			flags = append(flags, rest[0])
		}
	}
	if len(operands) == 0 {
		return flags
	}
	return append(append(flags, "--"), operands...)
}

// flagTakesNextWord reports whether the next word is the flag's value.
func flagTakesNextWord(cmd *cli.Command, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	return slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool {
		d, ok := f.(cli.DocGenerationFlag)
		return ok && d.TakesValue() && slices.Contains(f.Names(), name)
	})
}

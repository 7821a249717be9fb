package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	defaultmodel "github.com/shieldcli/shield/models"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/modelstore"
	"github.com/shieldcli/shield/pkg/shield"
)

func modelCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "model",
		Usage: "list, install and check classifier models",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the models",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "write JSON, one model a line"}},
				Action: func(c *cli.Context) error { return listModels(c, w) },
			},
			{
				Name: "pull", Usage: "install a model from a folder, a tar or zip archive, or the URL of one", ArgsUsage: "SOURCE",
				Description: "Takes model.onnx (or onnx/model.onnx, onnx/model_quantized.onnx), tokenizer.json, config.json, shield.json, further tokenizer files, README.md and licence; other files are left out. Links, unsafe names, archive bombs and duplicate files are refused.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "name", Usage: "install it as `NAME` instead of under the source's own name"},
					&cli.StringFlag{Name: "sha256", Usage: "require the archive to have the digest `HEX`; a URL needs it"},
					&cli.BoolFlag{Name: "force", Usage: "replace an installed model of that name"},
				},
				Action: func(c *cli.Context) error { return pullModel(c, w) },
			},
			{
				Name: "verify", Usage: "compare models with what was installed; exits with 1 if one was changed", ArgsUsage: "[NAME]",
				Action: func(c *cli.Context) error { return verifyModels(c, w) },
			},
			{
				Name: "remove", Usage: "delete an installed model", ArgsUsage: "NAME",
				Action: func(c *cli.Context) error {
					args, err := operands(c, "NAME")
					if err != nil {
						return err
					}
					return modelStore(w).Remove(args[0])
				},
			},
		},
	}
}

// modelStore returns the user's models.
func modelStore(w *Environment) *modelstore.Store {
	return modelstore.Open(modelsDir(w), &modelstore.EmbeddedModel{
		FS: defaultmodel.DefaultModelFolder(""), Digest: defaultmodel.Digest, Size: defaultmodel.TotalUnpackedModelBytes(), CheckIntact: defaultmodel.CheckEmbeddedModelIntact,
	}, w.Now)
}

// modelsDir returns the folder of the user's models, or "" if there is none.
func modelsDir(w *Environment) string {
	if dir := config.DataDir(w.Home, w.Getenv); dir != "" {
		return filepath.Join(dir, "models")
	}
	return ""
}

func listModels(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	list, err := modelStore(w).List(c.Context)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		enc := json.NewEncoder(w.Out)
		enc.SetEscapeHTML(false)
		for _, m := range list {
			if err := enc.Encode(m); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(w.Err, "shield: no model is installed; install one with 'shield model pull SOURCE'")
	}
	return printModelTable(w.Out, list)
}

func printModelTable(out io.Writer, list []modelstore.ModelInfo) error {
	t := newTableWriter(out, "NAME", "SOURCE", "SIZE", "LICENCE", "THRESHOLD", "DIGEST")
	for _, m := range list {
		if m.Error != "" {
			fmt.Fprintf(t, "%s\t%s\tunusable: %s\n", m.Name, m.EmbeddedOrInstalled, term.EscapeControlAndInvisible(shortenTo80Characters(m.Error)))
			continue
		}
		threshold, licence := "-", "-"
		if m.MinBlockConfidence != nil {
			threshold = strconv.FormatFloat(*m.MinBlockConfidence, 'g', -1, 64)
		}
		if m.Licence != "" {
			licence = term.EscapeControlAndInvisible(shortenTo80Characters(m.Licence))
		}
		fmt.Fprintf(t, "%s\t%s\t%.1f MB\t%s\t%s\t%.12s\n", m.Name, m.EmbeddedOrInstalled, float64(m.Size)/1e6, licence, threshold, strings.TrimPrefix(m.ModelFilesDigest, "sha256:"))
	}
	return t.Flush()
}

func pullModel(c *cli.Context, w *Environment) error {
	args, err := operands(c, "SOURCE")
	if err != nil {
		return err
	}
	m, err := modelStore(w).Install(c.Context, args[0], modelstore.InstallOptions{
		Name: c.String("name"), ArchiveSHA256Hex: c.String("sha256"), ReplacesInstalledModel: c.Bool("force"),
		CheckModelFolder: func(dir string) error { return testModel(c.Context, w, dir) },
	})
	if err != nil {
		return fmt.Errorf("model pull: %w", err)
	}
	_, err = fmt.Fprintf(w.Out, "%s\t%s\n", m.Name, m.Digest)
	return err
}

// testModel runs a model once, if this build can.
func testModel(ctx context.Context, w *Environment, dir string) error {
	s := shield.Defaults()
	s.Classifier.Enabled, s.Classifier.ModelNameOrDir = true, dir
	m, err := shield.OpenModel(shield.Config{CacheDir: config.CacheDir(w.Home, w.Getenv), Settings: &s})
	if errors.Is(err, classify.ErrNoRuntime) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = m.Score(ctx, "execute_command: {}")
	return err
}

// verifyModels checks one model, or all, against the installed hashes.
func verifyModels(c *cli.Context, w *Environment) error {
	store := modelStore(w)
	names := c.Args().Slice()
	if len(names) == 0 {
		list, err := store.List(c.Context)
		if err != nil {
			return err
		}
		for _, m := range list {
			names = append(names, m.Name)
		}
	} else if _, err := operands(c, "NAME"); err != nil {
		return err
	}
	changed := false
	for _, name := range names {
		ok, err := verifyModel(c.Context, w.Out, store, name)
		if err != nil {
			return err
		}
		changed = changed || !ok
	}
	if changed {
		return &statusError{statusFailure, nil}
	}
	return nil
}

func verifyModel(ctx context.Context, out io.Writer, store *modelstore.Store, name string) (bool, error) {
	digest, problems, err := store.DigestAndManifestDifferences(ctx, name)
	if err != nil {
		return false, err
	}
	for _, p := range problems {
		fmt.Fprintf(out, "%s\t%s\n", name, term.EscapeControlAndInvisible(shortenTo80Characters(p)))
	}
	if len(problems) > 0 {
		return false, nil
	}
	_, err = fmt.Fprintf(out, "%s\tok\t%s\n", name, digest)
	return true, err
}

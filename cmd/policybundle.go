package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/policy"
	"github.com/shieldcli/shield/pkg/shield"
)

func policyBundleCommand(w *Environment) *cli.Command {
	passwordFlag := &cli.StringFlag{Name: "password-file", Usage: "read the private key's password from the first line of `FILE`, instead of asking at the terminal"}
	return &cli.Command{
		Name:  "bundle",
		Usage: "make, sign, check and fetch signed policies",
		Description: "A bundle is a signed policy for many machines: policy.yaml and the files it uses, in a tar.gz whose manifest has a minisign signature. Each " +
			"bundle has a version, which must increase, and an expiry date. Machines name it under policy.bundle, with the public keys of its signers.",
		Subcommands: []*cli.Command{
			{
				Name: "keygen", Usage: "write a new pair of keys, NAME.key and NAME.pub, as 'minisign -G' does", ArgsUsage: "NAME",
				Flags:  []cli.Flag{passwordFlag, &cli.BoolFlag{Name: "no-password", Usage: "do not encrypt the private key"}},
				Action: func(c *cli.Context) error { return generatePolicyBundleKeys(c, w) },
			},
			{
				Name: "build", Usage: "write an unsigned bundle of the files in a folder, policy.yaml among them", ArgsUsage: "DIR",
				Flags: append(commonJudgeFlags(),
					&cli.StringFlag{Name: "name", Usage: "call the bundle `NAME`; a machine accepts only this name from one URL"},
					&cli.Int64Flag{Name: "number", Usage: "version `N` of the bundle, higher than all earlier ones"},
					&cli.StringFlag{Name: "expires", Usage: "the bundle expires at the end of `DATE` in UTC, such as 2027-01-31"},
					&cli.StringFlag{Name: "out", Usage: "write it to `FILE`"}),
				Action: func(c *cli.Context) error { return buildPolicyBundle(c, w) },
			},
			{
				Name: "sign", Usage: "sign a bundle, in place", ArgsUsage: "BUNDLE",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "key", Usage: "sign with the private key in `FILE`, as keygen or minisign has written it"}, passwordFlag},
				Action: func(c *cli.Context) error { return signPolicyBundle(c, w) },
			},
			{
				Name: "verify", Usage: "check signature, digests, expiry and policy of a bundle, and describe it; exits with 1 if it cannot be used", ArgsUsage: "BUNDLE",
				Flags:  append(commonJudgeFlags(), &cli.StringSliceFlag{Name: "key", Usage: "accept the public `KEY`, or the one in a file, instead of those in policy.keys; may be repeated"}),
				Action: func(c *cli.Context) error { return verifyPolicyBundle(c, w) },
			},
			{
				Name: "update", Usage: "fetch the bundle that policy.bundle names, and install it if it is valid and not older than the installed one",
				Description: "Judging never fetches a bundle: it uses the installed one until that expires. 'shield serve' updates by itself once an hour.",
				Flags:       commonJudgeFlags(),
				Action:      func(c *cli.Context) error { return fetchNewPolicyBundle(c, w) },
			},
		},
	}
}

// fetchedPolicyBundlesDir returns the folder of fetched bundles.
func fetchedPolicyBundlesDir(set *config.LoadedSettings, w *Environment) string {
	if dir := stateDir(&set.Settings, w); dir != "" {
		return filepath.Join(dir, "bundles")
	}
	return ""
}

func generatePolicyBundleKeys(c *cli.Context, w *Environment) error {
	args, err := operands(c, "NAME")
	if err != nil {
		return err
	}
	name := absolutePaths(args, w.WorkingDir)[0]
	if c.Bool("no-password") && c.IsSet("password-file") {
		return errors.New("policy bundle keygen: --no-password and --password-file exclude each other; use one")
	}
	password := ""
	if !c.Bool("no-password") {
		if password, err = readNewPrivateKeyPassword(c); err != nil {
			return fmt.Errorf("policy bundle keygen: %w", err)
		}
	}
	private, public, err := bundle.GenerateKey(password)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		text []byte
		mode fs.FileMode
	}{{name + ".key", private, 0o600}, {name + ".pub", public, 0o644}} {
		if err := createFile(f.path, f.text, f.mode); err != nil {
			return fmt.Errorf("policy bundle keygen: %w; choose another NAME, or move the file", err)
		}
	}
	_, err = fmt.Fprintf(w.Out, "wrote %s.key, which only you can read, and %[1]s.pub\n%s", term.EscapeControlAndInvisible(name), strings.SplitN(string(public), "\n", 2)[1])
	return err
}

// createFile writes a file that must not exist yet.
func createFile(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// readNewPrivateKeyPassword returns the password for a new key.
func readNewPrivateKeyPassword(c *cli.Context) (string, error) {
	password, err := readPrivateKeyPassword(c, "Password for the private key: ")
	if err == nil && password == "" {
		err = errors.New("the password is empty; type one, or use --no-password")
	}
	if err != nil || c.IsSet("password-file") {
		return password, err
	}
	again, err := askPasswordAtTerminal(c.Context, "Repeat the password: ")
	if err == nil && again != password {
		err = errors.New("the two passwords differ, so nothing was written; run the command again")
	}
	return password, err
}

// readPrivateKeyPassword reads a password from the file that the flags name, or from the terminal.
func readPrivateKeyPassword(c *cli.Context, prompt string) (string, error) {
	if !c.IsSet("password-file") {
		return askPasswordAtTerminal(c.Context, prompt)
	}
	data, info, err := owner.ReadRegularFile(c.String("password-file"), 4<<10)
	if err == nil {
		err = owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherAccessBits)
	}
	if err != nil {
		return "", fmt.Errorf("--password-file: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

func askPasswordAtTerminal(ctx context.Context, prompt string) (string, error) {
	d, err := term.Open()
	if err != nil {
		return "", fmt.Errorf("%w; name the password's file with --password-file", err)
	}
	password, err := d.ReadPassword(ctx, prompt)
	return password, errors.Join(err, d.Close())
}

func buildPolicyBundle(c *cli.Context, w *Environment) error {
	args, err := operands(c, "DIR")
	if err != nil {
		return err
	}
	for _, flag := range []string{"name", "number", "expires", "out"} {
		if !c.IsSet(flag) {
			return fmt.Errorf("policy bundle build: --%s is missing; see 'shield policy bundle build --help'", flag)
		}
	}
	day, err := time.Parse(time.DateOnly, c.String("expires"))
	if err != nil {
		return fmt.Errorf("policy bundle build: --expires %q is not a date such as 2027-01-31", shortenTo80Characters(c.String("expires")))
	}
	m := bundle.Manifest{Name: c.String("name"), Version: c.Int64("number"), Expires: day.AddDate(0, 0, 1)}
	if !w.Now().Before(m.Expires) {
		return fmt.Errorf("policy bundle build: --expires %s is in the past; use a later date", c.String("expires"))
	}
	files, err := readBundleFiles(args[0])
	if err != nil {
		return fmt.Errorf("policy bundle build: %w", err)
	}
	archive, err := bundle.Build(m, files)
	if err != nil {
		return fmt.Errorf("policy bundle build: %w", err)
	}
	cfg, err := loadPipelineConfig(c, w)
	if err != nil {
		return err
	}
	an, err := shield.NewAnalyzer(cfg)
	if err != nil {
		return err
	}
	name := filepath.Join(args[0], bundle.PolicyFile)
	usable := true
	for _, f := range policy.LintPolicyFile(c.Context, name, files[bundle.PolicyFile], an, shield.PolicyOptions(cfg, &an.DefaultExecutionContext)) {
		usable = usable && f.Severity < policy.Error
		if f.Severity > policy.Note {
			fmt.Fprintf(w.Err, "shield: %s: %v: %s\n", findingPosition(name, f), f.Severity, f.Msg)
		}
	}
	if !usable {
		return fmt.Errorf("policy bundle build: nothing was written; correct the policy %s first", name)
	}
	if err := replaceFile(absolutePaths([]string{c.String("out")}, w.WorkingDir)[0], archive, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.Out, "wrote the bundle %s version %d with the files %s; the bundle is not signed yet: run 'shield policy bundle sign'\n", m.Name, m.Version, term.EscapeControlAndInvisible(strings.Join(sorted.Keys(files), ", ")))
	return err
}

// readBundleFiles reads the files of a folder.
func readBundleFiles(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file; remove folders and links from the folder", path)
		}
		data, _, err := owner.ReadRegularFile(path, bundle.MaxArchiveBytes)
		if err != nil {
			return nil, err
		}
		files[e.Name()] = data
	}
	return files, nil
}

func signPolicyBundle(c *cli.Context, w *Environment) error {
	args, err := operands(c, "BUNDLE")
	if err != nil {
		return err
	}
	if !c.IsSet("key") {
		return errors.New("policy bundle sign: --key is missing; make one with 'shield policy bundle keygen'")
	}
	fail := func(err error) error { return fmt.Errorf("policy bundle sign: %w", err) }
	archive, info, err := owner.ReadRegularFile(args[0], bundle.MaxArchiveBytes)
	if err != nil {
		return fail(err)
	}
	text, err := owner.ReadSecret(c.String("key"), 4<<10)
	if err != nil {
		return fail(err)
	}
	secret := ""
	if bundle.IsPrivateKeyEncrypted([]byte(text)) {
		if secret, err = readPrivateKeyPassword(c, "Password of "+c.String("key")+": "); err != nil {
			return fail(err)
		}
	}
	key, err := bundle.ParsePrivateKey([]byte(text), secret)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", c.String("key"), err))
	}
	signed, b, err := bundle.Sign(archive, key)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", args[0], err))
	}
	if err := replaceFile(args[0], signed, info); err != nil {
		return fail(err)
	}
	_, err = fmt.Fprintf(w.Out, "signed %s with key %s\n", b, b.SigningKeyID)
	return err
}

func verifyPolicyBundle(c *cli.Context, w *Environment) error {
	args, err := operands(c, "BUNDLE")
	if err != nil {
		return err
	}
	cfg, err := loadPipelineConfig(c, w)
	if err != nil {
		return err
	}
	keys, err := bundleKeys(c, cfg)
	if err != nil {
		return fmt.Errorf("policy bundle verify: %w", err)
	}
	fail := func(err error) error { return fmt.Errorf("policy bundle verify: %s: %w", args[0], err) }
	archive, err := bundle.FetchArchive(c.Context, args[0], nil)
	if err != nil {
		return fail(err)
	}
	b, err := bundle.Open(archive, keys)
	if err != nil {
		return fail(err)
	}
	if err := printPolicyBundle(w, b); err != nil {
		return err
	}
	if _, err := b.CheckExpiry(w.Now(), 0); err != nil {
		return fail(err)
	}
	if err := shield.CheckBundlePolicyLoads(cfg, b); err != nil {
		return fail(err)
	}
	return nil
}

// bundleKeys returns the keys that a bundle is checked against.
func bundleKeys(c *cli.Context, cfg shield.Config) (bundle.TrustedPublicKeys, error) {
	texts := cfg.Settings.PolicyBundle.MinisignPublicKeys
	if c.IsSet("key") {
		texts = nil
		for _, key := range c.StringSlice("key") {
			if data, _, err := owner.ReadRegularFile(key, 4<<10); err == nil {
				key = string(data)
			}
			texts = append(texts, key)
		}
	}
	if len(texts) == 0 {
		return nil, errors.New("no public key is given; name one with --key, or set policy.keys")
	}
	return bundle.ParseKeys(texts)
}

// printPolicyBundle describes a bundle.
func printPolicyBundle(w *Environment, b *bundle.Bundle) error {
	t := tabwriter.NewWriter(w.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "bundle\t%s\nsigned by\t%s\nexpires\t%s\n", b, b.SigningKeyID, b.Expires.UTC().Format(time.RFC3339))
	for _, name := range sorted.Keys(b.DigestByFileName) {
		fmt.Fprintf(t, "%s\t%s\n", name, term.EscapeControlAndInvisible(shortenTo80Characters(b.DigestByFileName[name])))
	}
	return t.Flush()
}

func fetchNewPolicyBundle(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	cfg, err := loadPipelineConfig(c, w)
	if err != nil {
		return err
	}
	u, err := shield.UpdateBundle(c.Context, cfg, nil)
	if err != nil {
		return err
	}
	what := "is in use already,"
	if u.IsNewBundle {
		what = "is in use now,"
	}
	_, err = fmt.Fprintf(w.Out, "%s %s until %s\n", u.Bundle, what, u.Bundle.Expires.UTC().Format(time.RFC3339))
	return err
}

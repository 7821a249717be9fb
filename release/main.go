// Command release makes every file of a release of shield from the last commit:
//
//	go -C release run . -version v0.1.0 -to dist -zig zig -key release.key
//
// The same commit, version, Go, C compiler and key give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := release(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release creates a release from command-line arguments.
func release(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "vX.Y.Z")
	to := flags.String("to", "", "folder for the files, which must be missing or empty")
	repo := flags.String("repo", "..", "the repository")
	zig := flags.String("zig", "zig", "the program zig, which is the C compiler")
	only := flags.String("only", "", "targets, with commas between them; all by default")
	key := flags.String("key", "", "the secret key of minisign that signs")
	password := flags.String("password-file", "", "file whose first line opens the key")
	test := flags.Bool("test-key", false, "sign "+testVersion+" with a key that everybody has, to try the packages")
	image := flags.Bool("image", true, "make images, from packages that apt-get downloads")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case !versions.MatchString(*version):
		return fmt.Errorf("-version %q: expected vX.Y.Z", *version)
	case *to == "":
		return errors.New("-to: expected a folder")
	case *test && *version != testVersion:
		return fmt.Errorf("-test-key: only %s may have it", testVersion)
	}
	targets := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	facts, err := readFacts(targets)
	if err != nil {
		return err
	}
	var signer *Signer
	if *test {
		signer, err = testSigner()
	} else if err = facts.examples(); err == nil {
		signer, err = newSigner(*key, *password)
	}
	if err != nil {
		return err
	}
	if err := prepare(*to); err != nil {
		return err
	}
	for i := range facts.Targets {
		facts.Targets[i].Image = facts.Targets[i].Image && *image
	}
	work, err := os.MkdirTemp("", "shield-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source, err := checkOut(ctx, *repo, filepath.Join(work, "source"), *version)
	if err != nil {
		return err
	}
	if !*test {
		if err := signer.committed(source); err != nil {
			return err
		}
	}
	r := &Release{Facts: facts, Source: source, dir: *to, signer: signer}
	for _, t := range facts.Targets {
		b, err := source.build(ctx, t, *zig, work)
		if err == nil {
			err = r.pack(ctx, b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	if err := r.finish(); err != nil {
		return err
	}
	fmt.Println(r.table())
	return nil
}

// prepare creates a folder, or checks that it is empty, since files of another release would be
// published as part of this one.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	return err
}

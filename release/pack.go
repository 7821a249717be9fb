package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Release is the state of a release in progress.
type Release struct {
	Facts
	Source Source

	dir    string
	signer *Signer
	files  []Made
	built  []Packed
}

// A Packed is a target whose files were created.
type Packed struct {
	Target
	HasModel bool
	files    []string
	debian   []Debian
}

// A Made is a created file of the release.
type Made struct {
	Name string
	Size int
	Sum  string // SHA-256, in hex
}

// Number is the version without its v.
func (r *Release) Number() string { return strings.TrimPrefix(r.Source.Version, "v") }

// pack creates the files of one target.
func (r *Release) pack(ctx context.Context, b *Build) error {
	before := len(r.files)
	for _, make := range []func(context.Context, *Build) error{r.archive, r.linux, r.image, r.wheel, r.npm, r.sbom} {
		if err := make(ctx, b); err != nil {
			return err
		}
	}
	done := Packed{Target: b.Target, HasModel: b.HasModel, debian: b.debian}
	for _, f := range r.files[before:] {
		done.files = append(done.files, f.Name)
	}
	r.built = append(r.built, done)
	return nil
}

// finish creates the files that describe all others.
func (r *Release) finish() error {
	for _, make := range []func() error{r.npmClient, r.about, r.provenance} {
		if err := make(); err != nil {
			return err
		}
	}
	var sums strings.Builder
	for _, f := range r.files {
		fmt.Fprintf(&sums, "%s  %s\n", f.Sum, f.Name)
	}
	if err := r.write("SHA256SUMS", []byte(sums.String()), nil); err != nil {
		return err
	}
	for _, f := range r.files {
		switch {
		case f.Name == "SHA256SUMS", f.Name == "install.sh", strings.HasSuffix(f.Name, ".tar.gz"), strings.HasSuffix(f.Name, ".zip"):
			if err := r.sign(f.Name); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// write writes a file of the release, unless err reports that creating it failed.
func (r *Release) write(name string, data []byte, err error) error {
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(data)
	r.files = append(r.files, Made{name, len(data), hex.EncodeToString(sum[:])})
	return nil
}

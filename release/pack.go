package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Release is what was made so far.
type Release struct {
	Facts
	Source Source

	dir   string
	files []Made
}

// Made is a file of the release.
type Made struct {
	Name string
	Size int
	Sum  string // SHA-256, in hex
}

// number is the version without its v.
func (r *Release) number() string { return strings.TrimPrefix(r.Source.Version, "v") }

// pack makes the files of one target.
func (r *Release) pack(b *Build) error {
	for _, make := range []func(*Build) error{r.archive, r.linux, r.wheel, r.npm} {
		if err := make(b); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the files about all the others.
func (r *Release) finish() error {
	if err := r.npmClient(); err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range r.files {
		fmt.Fprintf(&sums, "%s  %s\n", f.Sum, f.Name)
	}
	return r.write("SHA256SUMS", []byte(sums.String()), nil)
}

// write writes a file of the release, unless making it has failed.
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

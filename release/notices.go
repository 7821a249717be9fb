package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// thirdParty is the name of the file with the licences of what a program contains.
const thirdParty = "THIRD-PARTY.txt"

// notices returns the licences of Go, of each module that is in a program and of
// ONNX Runtime if it is: all of them ask for it.
func (s Source) notices(ctx context.Context, b *Build) ([]byte, error) {
	out, err := run(ctx, s.Dir, []string{"GOFLAGS=", "GOWORK=off"}, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(out) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dirs[path] = dir
	}
	root, err := run(ctx, s.Dir, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	add := func(name, dir string) error {
		files, err := named(dir, "license", "licence", "copying", "notice", "patents", "unlicense")
		if err == nil && len(files) == 0 {
			files, err = named(dir, "readme") // where a few say it
		}
		for _, f := range files {
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n\n", name, f.Path, bytes.TrimSpace(f.Data))
		}
		if err == nil && len(files) == 0 {
			err = fmt.Errorf("%s has no licence in %q", name, dir)
		}
		return err
	}
	if err := add("Go "+b.Info.GoVersion, strings.TrimSpace(root)); err != nil {
		return nil, err
	}
	for _, m := range b.Info.Deps {
		if err := add(m.Path+" "+m.Version, dirs[m.Path]); err != nil {
			return nil, err
		}
	}
	if b.HasModel {
		err = add("ONNX Runtime", filepath.Join(s.Dir, "internal/ortlib"))
	}
	return text.Bytes(), err
}

// named returns the files of a folder whose names begin with one of words, in any case.
func named(dir string, words ...string) (Files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files Files
	for _, e := range entries {
		word := strings.ToLower(e.Name())
		if i := strings.IndexAny(word, ".-_"); i >= 0 {
			word = word[:i]
		}
		if !e.Type().IsRegular() || filepath.Ext(e.Name()) == ".go" || !slices.Contains(words, word) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, File{e.Name(), 0o644, data})
	}
	return files, nil
}

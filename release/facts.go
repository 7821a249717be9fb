package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml"
)

//go:embed release.yaml
var releaseYAML []byte

// Facts are what release.yaml says.
type Facts struct {
	Name, Summary, Homepage, License, Maintainer, Downloads string

	Security string // where vulnerabilities are reported

	Targets  []Target
	Packages map[string]Package // by format
	Image    []string           // the packages of Debian below shield

	complete bool // whether Targets are all
}

// A Package says how a format of Linux packages differs from others.
type Package struct {
	Depends []string
	Zsh     string // where its systems look for completions
}

// A Target is a system that shield is built for.
type Target struct {
	Name     string // in names of files
	OS, Arch string
	Zig      string // target of the C compiler; without one there is no cgo
	Packages []string
	Wheel    string // Python's name of the system
	NPM      *NPM
	Image    bool // whether an image is made
}

// NPM says for which systems npm installs a package.
type NPM struct {
	OS, CPU, Libc string
}

// Program is the name of the program's file.
func (t Target) Program(name string) string {
	if t.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// readFacts returns release.yaml, with the targets that are named in only, or all.
func readFacts(only []string) (Facts, error) {
	var f Facts
	if err := yaml.UnmarshalWithOptions(releaseYAML, &f, yaml.Strict()); err != nil {
		return f, fmt.Errorf("release.yaml: %w", err)
	}
	if f.complete = len(only) == 0; f.complete {
		return f, nil
	}
	all := f.Targets
	f.Targets = nil
	for _, name := range only {
		i := slices.IndexFunc(all, func(t Target) bool { return t.Name == name })
		if i < 0 {
			return f, fmt.Errorf("no target is named %q", name)
		}
		f.Targets = append(f.Targets, all[i])
	}
	return f, nil
}

// versions are those that every package manager orders alike and can write in the same form.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

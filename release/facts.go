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

// Facts are the content of release.yaml.
type Facts struct {
	Name, Summary, Homepage, License, Maintainer, Downloads string

	Security string // where vulnerabilities are reported

	Targets  []Target
	Packages map[string]Package // by format
	Image    []string           // Debian packages in the image, besides shield

	complete bool // Targets includes all targets
}

// A Package is the settings of a Linux package format.
type Package struct {
	Depends []string
	Zsh     string // folder of Zsh completions
}

// A Target is a system that shield is built for.
type Target struct {
	Name     string // used in file names
	OS, Arch string
	Zig      string // target of the C compiler; "" builds without cgo
	Packages []string
	Wheel    string // platform tag of the Python wheel
	NPM      *NPM
	Image    bool // whether to build a container image
}

// An NPM is the system for which npm installs a package.
type NPM struct {
	OS, CPU, Libc string
}

// Program returns the file name of the program.
func (t Target) Program(name string) string {
	if t.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// readFacts returns release.yaml, with only the named targets, or all.
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

// versions matches versions that all package managers sort and write alike.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

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

// Debian is a package of Debian.
type Debian struct {
	Name, Version, Arch string
	Sum                 string // SHA-256 of its file, in hex

	path, control string
}

// download fetches packages of Debian for an architecture to dir, from the
// sources that this machine trusts. The machine's own lists stay as they are.
func download(ctx context.Context, dir, arch string, names []string) ([]Debian, error) {
	for _, folder := range []string{"lists/partial", "cache/archives/partial", "packages"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), nil, 0o644); err != nil {
		return nil, err
	}
	options := []string{
		"--quiet=2", "--option=APT::Architecture=" + arch, "--option=APT::Architectures=" + arch, "--option=APT::Sandbox::User=",
		"--option=Dir::State=" + dir, "--option=Dir::State::status=" + dir + "/status", "--option=Dir::Cache=" + dir + "/cache",
	}
	// A list that cannot be fetched is a warning to apt-get, and stops a release.
	if _, err := run(ctx, dir, nil, "apt-get", append(options, "--option=APT::Update::Error-Mode=any", "update")...); err != nil {
		return nil, err
	}
	packages := filepath.Join(dir, "packages")
	if _, err := run(ctx, packages, nil, "apt-get", append(append(options, "download"), names...)...); err != nil {
		return nil, err
	}
	var found []Debian
	for _, name := range names {
		p, err := inspect(ctx, packages, name)
		if err != nil {
			return nil, err
		}
		if p.Arch != arch && p.Arch != "all" {
			return nil, fmt.Errorf("%s is for %s, not %s", name, p.Arch, arch)
		}
		found = append(found, p)
	}
	return found, nil
}

// inspect returns the package of a name in dir.
func inspect(ctx context.Context, dir, name string) (Debian, error) {
	p := Debian{Name: name}
	paths, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if err != nil || len(paths) != 1 {
		return p, fmt.Errorf("%s: %d packages were downloaded, %w", name, len(paths), err)
	}
	p.path = paths[0]
	data, err := os.ReadFile(p.path)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(data)
	p.Sum = hex.EncodeToString(sum[:])
	if p.control, err = run(ctx, dir, nil, "dpkg-deb", "--field", p.path); err != nil {
		return p, err
	}
	for line := range strings.Lines(p.control) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "Version":
			p.Version = value
		case "Architecture":
			p.Arch = value
		}
	}
	return p, nil
}

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A Source is a clean clone of a commit, tagged as the release: the Go command
// writes tag and commit into the programs.
type Source struct {
	Dir, Version, Commit string

	Time time.Time // of the commit
}

// checkOut clones the last commit of the repository at repo to dir. What is not
// committed is no part of a release.
func checkOut(ctx context.Context, repo, dir, version string) (Source, error) {
	s := Source{Dir: dir, Version: version}
	if _, err := run(ctx, repo, nil, "git", "clone", "--quiet", "--no-tags", ".", dir); err != nil {
		return s, err
	}
	if _, err := run(ctx, dir, nil, "git", "-c", "tag.gpgSign=false", "tag", version); err != nil {
		return s, err
	}
	out, err := run(ctx, dir, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, err
	}
	var seconds string
	s.Commit, seconds, _ = strings.Cut(strings.TrimSpace(out), " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	s.Time = time.Unix(n, 0).UTC()
	return s, err
}

// A Build is the program for one target.
type Build struct {
	Target

	Program  []byte
	Info     *debug.BuildInfo
	HasModel bool   // whether it carries what runs the model
	Notices  []byte // licences of what it contains

	debian []Debian // what its image is made of
}

// cflags leave out debugging data of C, which names the folder of zig: packages made
// with zig in one folder are taken from the Go command's cache for zig in another.
const cflags = "-O2 -g0"

// build builds the program for a target, and checks that it is what was asked for.
func (s Source) build(ctx context.Context, t Target, zig, dir string) (*Build, error) {
	env := []string{"GOFLAGS=", "GOWORK=off", "GOOS=" + t.OS, "GOARCH=" + t.Arch, "CGO_ENABLED=0", "CGO_CFLAGS=" + cflags, "CGO_LDFLAGS="}
	if t.Zig != "" {
		folder, err := s.zigFolder(ctx, zig)
		if err != nil {
			return nil, err
		}
		// The program's build ID is made from what CC says, so that names no folder.
		env = append(env, "CGO_ENABLED=1", "CC=zig cc -target "+t.Zig, "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	path := filepath.Join(dir, t.Name)
	if _, err := run(ctx, s.Dir, env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -extldflags=-s", "-tags=urfave_cli_no_docs", "-o", path, "."); err != nil {
		return nil, err
	}
	b := &Build{Target: t}
	var err error
	if b.Program, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	if b.Info, err = buildinfo.ReadFile(path); err != nil {
		return nil, err
	}
	if err := s.check(b.Info); err != nil {
		return nil, err
	}
	b.HasModel, err = s.hasModel(b)
	if err == nil && b.HasModel != (t.Zig != "") {
		err = fmt.Errorf("carries ONNX Runtime: %v; with cgo: %v", b.HasModel, t.Zig != "")
	}
	if err != nil {
		return nil, err
	}
	b.Notices, err = s.notices(ctx, b)
	return b, err
}

// A Pin is a package of which version and sum are given.
type Pin struct{ Name, Version, Sum string }

var pinned = regexp.MustCompile(`^(\w+)==(\S+) --hash=sha256:([0-9a-f]{64})\n$`)

// zig is the package with the C compiler.
func (s Source) zig() (Pin, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "release/zig.txt"))
	if err != nil {
		return Pin{}, err
	}
	m := pinned.FindStringSubmatch(string(text))
	if m == nil {
		return Pin{}, errors.New("release/zig.txt: expected NAME==VERSION --hash=sha256:SUM")
	}
	return Pin{m[1], m[2], m[3]}, nil
}

// zigFolder is the folder of the program zig, which must be of the version that is given.
func (s Source) zigFolder(ctx context.Context, zig string) (string, error) {
	pin, err := s.zig()
	if err != nil {
		return "", err
	}
	path, err := exec.LookPath(zig)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	got, err := run(ctx, s.Dir, nil, path, "version")
	if got = strings.TrimSpace(got); err == nil && got != pin.Version {
		err = fmt.Errorf("%s has version %s; release/zig.txt demands %s", path, got, pin.Version)
	}
	return filepath.Dir(path), err
}

// check holds that a program was built from the commit and nothing else.
func (s Source) check(info *debug.BuildInfo) error {
	got := map[string]string{"version": info.Main.Version}
	for _, setting := range info.Settings {
		got[setting.Key] = setting.Value
	}
	for key, want := range map[string]string{"version": s.Version, "vcs.revision": s.Commit, "vcs.modified": "false", "-trimpath": "true"} {
		if got[key] != want {
			return fmt.Errorf("the program says %s %q, and should say %q", key, got[key], want)
		}
	}
	return nil
}

// hasModel looks into the program for the packed library.
func (s Source) hasModel(b *Build) (bool, error) {
	f, err := os.Open(filepath.Join(s.Dir, "internal/ortlib/lib", b.OS+"_"+b.Arch+".zst"))
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, 4096)
	if _, err := io.ReadFull(f, start); err != nil {
		return false, err
	}
	return bytes.Contains(b.Program, start), nil
}

// run runs a program to its end and returns what it printed.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", cmd, err, stderr.String())
	}
	return string(out), err
}

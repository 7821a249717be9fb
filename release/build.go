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

// A Source is a clean clone of a commit, tagged as the release, so that the Go command writes tag and
// commit into the programs.
type Source struct {
	Dir, Version, Commit string

	Time time.Time // of the commit
}

// checkOut clones the last commit of the repository at repo to dir. Uncommitted changes are not part
// of a release.
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
	HasModel bool   // whether it includes the library that runs the model
	Notices  []byte // licences of its components

	debian []Debian // packages of its image
}

// cflags omit C debugging data, which contains zig's folder and would make cached builds depend on it.
const cflags = "-O2 -g0"

// build builds the program for a target, and checks the result.
func (s Source) build(ctx context.Context, t Target, zig, dir string) (*Build, error) {
	env := []string{"GOFLAGS=", "GOWORK=off", "GOOS=" + t.OS, "GOARCH=" + t.Arch, "CGO_ENABLED=0", "CGO_CFLAGS=" + cflags, "CGO_LDFLAGS="}
	if t.Zig != "" {
		folder, err := s.zigFolder(ctx, zig)
		if err != nil {
			return nil, err
		}
		// CC is part of the program's build ID, so it must not contain a folder.
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

// A Pin is a package with a fixed version and checksum.
type Pin struct{ Name, Version, Sum string }

var pinned = regexp.MustCompile(`^(\w+)==(\S+) --hash=sha256:([0-9a-f]{64})\n$`)

// zig returns the package of the C compiler.
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

// zigFolder returns the folder of the program zig, whose version must match.
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

// check returns an error unless a program was built from exactly the commit.
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

// hasModel reports whether the program contains the packed library.
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

// run runs a program and returns its output.
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

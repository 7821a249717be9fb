package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // the formats that release.yaml names
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// linux makes the packages of Linux distributions for a target.
func (r *Release) linux(_ context.Context, b *Build) error {
	for _, format := range b.Packages {
		contents, err := r.installed(b, r.Facts.Packages[format].Zsh)
		if err != nil {
			return err
		}
		name, data, err := r.linuxPackage(b, format, contents)
		if err := r.write(name, data, err); err != nil {
			return err
		}
	}
	return nil
}

// installed returns the files of shield as they lie on a Linux system.
func (r *Release) installed(b *Build, zsh string) (Files, error) {
	contents := Files{{"usr/bin/" + r.Name, 0o755, b.Program}, {"usr/share/doc/" + r.Name + "/" + thirdParty, 0o644, b.Notices}}
	var pages Files
	var err error
	for _, from := range [][2]string{
		{"man/*.1", "usr/share/man/man1"}, {"completions/_" + r.Name, zsh},
		{"completions/*.bash", "usr/share/bash-completion/completions"}, {"completions/*.fish", "usr/share/fish/vendor_completions.d"},
		{"README.md", "usr/share/doc/" + r.Name}, {"LICENSE", "usr/share/doc/" + r.Name}, {"CHANGELOG.md", "usr/share/doc/" + r.Name},
	} {
		if pages, err = r.Source.glob(pages, from[0], from[1]); err != nil {
			return nil, err
		}
	}
	for _, f := range pages {
		switch {
		case filepath.Ext(f.Path) == ".1":
			f.Path += ".gz"
			if f.Data, err = zipped(f.Data); err != nil {
				return nil, err
			}
		case filepath.Ext(f.Path) == ".bash": // bash looks for the name of the command alone
			f.Path = f.Path[:len(f.Path)-len(".bash")]
		case filepath.Base(f.Path) == "LICENSE": // as Debian calls it
			f.Path = filepath.Join(filepath.Dir(f.Path), "copyright")
		}
		contents = append(contents, f)
	}
	return contents, nil
}

// linuxPackage returns the package of a format and its name.
func (r *Release) linuxPackage(b *Build, format string, contents Files) (string, []byte, error) {
	dir, err := os.MkdirTemp("", "shield-package-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir)
	if err := contents.lay(dir); err != nil {
		return "", nil, err
	}
	info := &nfpm.Info{
		Name: r.Name, Version: r.Number(), Release: "1", Arch: b.Arch, Platform: b.OS, Section: "utils", Priority: "optional",
		Maintainer: r.Maintainer, Description: r.Summary, Homepage: r.Homepage, License: r.License, MTime: r.Source.Time,
	}
	info.Depends = r.Facts.Packages[format].Depends
	info.RPM.BuildHost = "localhost"
	for _, f := range contents {
		info.Contents = append(info.Contents, &files.Content{
			Source: filepath.Join(dir, f.Path), Destination: "/" + f.Path,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.Mode, MTime: r.Source.Time},
		})
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", nil, err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	err = packager.Package(info, &out)
	return packager.ConventionalFileName(info), out.Bytes(), err
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// A pyproject is what the client's pyproject.toml says about it.
type pyproject struct {
	Project struct {
		Name, Description, Readme, License string

		RequiresPython string `toml:"requires-python"`
	}
}

// wheel makes the Python package of a target: the client, with the program inside.
func (r *Release) wheel(_ context.Context, b *Build) error {
	if b.Wheel == "" {
		return nil
	}
	dir := filepath.Join(r.Source.Dir, "clients/python")
	var p pyproject
	if _, err := toml.DecodeFile(filepath.Join(dir, "pyproject.toml"), &p); err != nil {
		return err
	}
	files, err := walk(filepath.Join(dir, "src"))
	if err != nil {
		return err
	}
	if err := files.replace(p.Project.Name+"/_version.py", fmt.Sprintf("version = %q\n", r.Number())); err != nil {
		return err
	}
	about, err := r.wheelAbout(p, b, dir)
	if err != nil {
		return err
	}
	files = append(files, File{p.Project.Name + "/bin/" + b.Target.Program(r.Name), 0o755, b.Program})
	files = append(files, about...)
	files = append(files, record(files, p.Project.Name+"-"+r.Number()+".dist-info/RECORD"))
	data, err := files.zip(r.Source.Time)
	return r.write(fmt.Sprintf("%s-%s-py3-none-%s.whl", p.Project.Name, r.Number(), b.Wheel), data, err)
}

// wheelAbout returns what a wheel says about itself.
func (r *Release) wheelAbout(p pyproject, b *Build, dir string) (Files, error) {
	readme, err := os.ReadFile(filepath.Join(dir, p.Project.Readme))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.Source.Dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	meta := fmt.Sprintf(`Metadata-Version: 2.4
Name: %s
Version: %s
Summary: %s
Project-URL: Homepage, %s
License-Expression: %s
License-File: LICENSE
License-File: %s
Requires-Python: %s
Description-Content-Type: text/markdown

%s`, p.Project.Name, r.Number(), p.Project.Description, r.Homepage, p.Project.License, thirdParty, p.Project.RequiresPython, readme)
	top := p.Project.Name + "-" + r.Number() + ".dist-info/"
	return Files{
		{top + "METADATA", 0o644, []byte(meta)},
		{top + "WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: shield release\nRoot-Is-Purelib: false\nTag: py3-none-" + b.Wheel + "\n")},
		{top + "entry_points.txt", 0o644, []byte(fmt.Sprintf("[console_scripts]\n%s = %s._binary:main\n", r.Name, p.Project.Name))},
		{top + "licenses/LICENSE", 0o644, license},
		{top + "licenses/" + thirdParty, 0o644, b.Notices},
	}, nil
}

// record returns the file that lists the files of a wheel with their sums.
func record(files Files, path string) File {
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.Path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.Data))
	}
	fmt.Fprintf(&b, "%s,,\n", path)
	return File{path, 0o644, []byte(b.String())}
}

// walk returns the files below dir, which is a part of the source.
func walk(dir string) (Files, error) {
	var files Files
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, File{filepath.ToSlash(name), 0o644, data})
		return err
	})
	return files, err
}

// replace gives the file at path another text.
func (files Files) replace(path, text string) error {
	for i := range files {
		if files[i].Path == path {
			files[i].Data = []byte(text)
			return nil
		}
	}
	return fmt.Errorf("%s is not there", path)
}

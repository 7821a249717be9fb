package main

import (
	"context"
	"path"
)

// archive makes the archive of a target: the program, its pages and completions,
// in a folder of the archive's name.
func (r *Release) archive(_ context.Context, b *Build) error {
	top := r.top(b.Target.Name)
	files := Files{{path.Join(top, b.Target.Program(r.Name)), 0o755, b.Program}, {path.Join(top, thirdParty), 0o644, b.Notices}}
	var err error
	for _, from := range [][2]string{{"README.md", ""}, {"LICENSE", ""}, {"CHANGELOG.md", ""}, {"SECURITY.md", ""}, {"man/*", "man"}, {"completions/*", "completions"}} {
		if files, err = r.Source.glob(files, from[0], path.Join(top, from[1])); err != nil {
			return err
		}
	}
	if b.OS == "windows" {
		data, err := files.zip(r.Source.Time)
		return r.write(top+".zip", data, err)
	}
	data, err := files.tgz(r.Source.Time)
	return r.write(top+".tar.gz", data, err)
}

// top is the name of a target's archive, and of the folder in it.
func (r *Release) top(target string) string { return r.Name + "_" + r.Number() + "_" + target }

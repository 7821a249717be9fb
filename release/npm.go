package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A packageJSON is the part of a package.json that is used.
type packageJSON struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	License     string   `json:"license"`
	Repository  string   `json:"repository"`
	OS          []string `json:"os,omitempty"`
	CPU         []string `json:"cpu,omitempty"`
	Libc        []string `json:"libc,omitempty"`
}

// npm creates the package with the program for one system. The client lists all of these as optional
// dependencies, so that npm installs the matching one.
func (r *Release) npm(_ context.Context, b *Build) error {
	if b.NPM == nil {
		return nil
	}
	p, _, err := r.client()
	if err != nil {
		return err
	}
	p.Name, p.Version = b.NPM.of(p.Name), r.Number()
	p.Description = fmt.Sprintf("The program %s for %s on %s", r.Name, b.NPM.OS, b.NPM.CPU)
	p.OS, p.CPU = []string{b.NPM.OS}, []string{b.NPM.CPU}
	if b.NPM.Libc != "" {
		p.Libc = []string{b.NPM.Libc}
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return r.tarball(p.Name, Files{
		{"package/package.json", 0o644, append(text, '\n')},
		{"package/" + b.Target.Program(r.Name), 0o755, b.Program},
		{"package/" + thirdParty, 0o644, b.Notices},
	})
}

// npmClient makes the package with the client.
func (r *Release) npmClient() error {
	p, text, err := r.client()
	if err != nil {
		return err
	}
	programs := map[string]string{}
	for _, t := range r.Targets {
		if t.NPM != nil {
			programs[t.NPM.of(p.Name)] = r.Number()
		}
	}
	optional, err := json.MarshalIndent(programs, "  ", "  ")
	if err != nil {
		return err
	}
	// Keep the order of package.json, and replace only this line.
	line := []byte(fmt.Sprintf("  \"version\": %q,\n", p.Version))
	if bytes.Count(text, line) != 1 {
		return fmt.Errorf("package.json: expected one line %q", line)
	}
	text = bytes.Replace(text, line, []byte(fmt.Sprintf("  \"version\": %q,\n  \"optionalDependencies\": %s,\n", r.Number(), optional)), 1)
	dir := filepath.Join(r.Source.Dir, "clients/node")
	files, err := walk(filepath.Join(dir, "lib"))
	if err != nil {
		return err
	}
	for i := range files {
		files[i].Path = "package/lib/" + files[i].Path
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return err
	}
	return r.tarball(p.Name, append(Files{{"package/package.json", 0o644, text}, {"package/README.md", 0o644, readme}}, files...))
}

// client returns the client's package.json.
func (r *Release) client() (p packageJSON, text []byte, err error) {
	if text, err = os.ReadFile(filepath.Join(r.Source.Dir, "clients/node/package.json")); err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, text, err
}

// of returns the name of the package with the program for n; client is the name of the client's
// package.
func (n NPM) of(client string) string { return client + "-" + n.OS + "-" + n.CPU }

// tarball writes a package in npm's form.
func (r *Release) tarball(name string, files Files) error {
	license, err := os.ReadFile(filepath.Join(r.Source.Dir, "LICENSE"))
	if err != nil {
		return err
	}
	data, err := append(files, File{"package/LICENSE", 0o644, license}).tgz(r.Source.Time)
	return r.write(strings.NewReplacer("@", "", "/", "-").Replace(name)+"-"+r.Number()+".tgz", data, err)
}

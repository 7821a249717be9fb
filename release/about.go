package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// about creates the files that refer to the other files: the Homebrew formula, the Scoop manifest, the
// installer and the release notes.
func (r *Release) about() error {
	names := []string{"install.sh", "RELEASE.md"}
	if r.complete {
		names = append(names, "shield.rb", "shield.json")
	}
	for _, name := range names {
		data, err := r.fill(name)
		if err := r.write(name, data, err); err != nil {
			return err
		}
	}
	return nil
}

// An Archive is an archive for a template.
type Archive struct {
	Made
	URL string
}

// fill returns a template filled with the facts of this release.
func (r *Release) fill(name string) ([]byte, error) {
	functions := template.FuncMap{"archive": r.archiveOf, "archives": r.archives, "table": r.table, "changes": r.changes}
	t, err := template.New(name).Funcs(functions).ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, r)
	return out.Bytes(), err
}

// archives returns the archives that the installer can unpack.
func (r *Release) archives() []Archive {
	var found []Archive
	for _, f := range r.files {
		if strings.HasSuffix(f.Name, ".tar.gz") {
			found = append(found, Archive{f, r.Downloads + "/" + r.Source.Version + "/" + f.Name})
		}
	}
	return found
}

// archiveOf returns the archive of a target.
func (r *Release) archiveOf(target string) (Archive, error) {
	for _, f := range r.files {
		if base := r.top(target); f.Name == base+".tar.gz" || f.Name == base+".zip" {
			return Archive{f, r.Downloads + "/" + r.Source.Version + "/" + f.Name}, nil
		}
	}
	return Archive{}, fmt.Errorf("no archive for %s", target)
}

// table returns a table of the files for each target, and whether they include the model.
func (r *Release) table() string {
	var b strings.Builder
	b.WriteString("| system | model | files |\n|---|---|---|\n")
	for _, done := range r.built {
		model := "no"
		if done.HasModel {
			model = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", done.Name, model, strings.Join(done.files, ", "))
	}
	return strings.TrimSpace(b.String())
}

// changes returns the section of CHANGELOG.md for this version, or else for unreleased changes.
func (r *Release) changes() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.Source.Dir, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	for _, title := range []string{r.Number(), "Unreleased"} {
		if _, rest, ok := strings.Cut("\n"+string(text), "\n## "+title+"\n"); ok {
			section, _, _ := strings.Cut(rest, "\n## ")
			return strings.TrimSpace(section), nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %s", r.Number())
}

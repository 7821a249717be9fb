package hosts

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/shieldcli/shield/pkg/host"
)

//go:embed check.yaml
var checks []byte

// newest is the folder in which `make hostcheck` has the newest packages of the hosts, each
// in a folder of its host's name.
var newest = os.Getenv("SHIELD_HOSTCHECK")

// A source says where the package of a host names its tools, and the fields of what it gives
// hooks.
type source struct {
	Host    string
	Package string
	Prepare string   // the program that unpacks the package below $HOME
	Files   []string // patterns, below the package or $HOME
	Tools   []finding
	Fields  []finding
}

// A finding is how names are found in a text.
type finding struct {
	Find   string
	Each   string   // in the group "block" of Find
	Named  string   // what a variable of Find can stand for
	Ignore []string // what is found and is no name of a tool
}

// TestHostCheck lists the tools and fields in the newest packages that shield does not know.
// Shield asks about such a tool as about any that it does not know.
func TestHostCheck(t *testing.T) {
	if newest == "" {
		t.Skip("make hostcheck sets SHIELD_HOSTCHECK")
	}
	var all []source
	if err := yaml.UnmarshalWithOptions(checks, &all, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Host, func(t *testing.T) {
			dir := filepath.Join(newest, s.Host)
			version, err := s.version(dir)
			if errors.Is(err, os.ErrNotExist) {
				t.Skipf("%s is not installed", s.Package)
			}
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Named(s.Host)
			if err != nil {
				t.Fatal(err)
			}
			tools, fields, err := s.names(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %d tools, %d fields; verified with %s", s.Package, version, len(tools), len(fields), cmp.Or(h.VerifiedVersion(), "none"))
			if len(s.Tools) > 0 && len(tools) == 0 || len(s.Fields) > 0 && len(fields) == 0 {
				t.Error("nothing is found where names were: write check.yaml anew for this version")
			}
			known := slices.Concat(h.Tools(), h.InternalTools(), h.ToolsWithoutActionType())
			if missing := without(tools, known); len(missing) > 0 {
				t.Errorf("tools that pkg/host/hosts/%s.yaml lacks: %q", s.Host, missing)
			}
			recorded, err := recordedFields(s.Host)
			if err != nil {
				t.Fatal(err)
			}
			if missing := without(fields, recorded); len(missing) > 0 {
				t.Errorf("fields that no event in testdata/hosts/%s has: %q", s.Host, missing)
			}
		})
	}
}

// version is that of the package.
func (s source) version(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", filepath.FromSlash(s.Package), "package.json"))
	if err != nil {
		return "", err
	}
	var p struct{ Version string }
	err = json.Unmarshal(text, &p)
	return p.Version, err
}

// names returns the names of tools and of fields that the package has.
func (s source) names(dir string) (tools, fields []string, err error) {
	base := filepath.Join(dir, "node_modules", filepath.FromSlash(s.Package))
	if s.Prepare != "" {
		base = filepath.Join(dir, "home")
	}
	toolSet, fieldSet := map[string]bool{}, map[string]bool{}
	found := false
	for _, pattern := range s.Files {
		files, err := filepath.Glob(filepath.Join(base, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, nil, err
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, nil, err
			}
			found = true
			for _, f := range s.Tools {
				f.in(text, toolSet)
			}
			for _, f := range s.Fields {
				f.in(text, fieldSet)
			}
		}
	}
	if !found {
		err = errors.New("the package has none of the files: write check.yaml anew for this version")
	}
	return slices.Sorted(maps.Keys(toolSet)), slices.Sorted(maps.Keys(fieldSet)), err
}

// in adds the names in a text.
func (f finding) in(text []byte, names map[string]bool) {
	find := regexp.MustCompile(f.Find)
	for _, m := range find.FindAllSubmatchIndex(text, -1) {
		for i, group := range find.SubexpNames() {
			if group == "" || m[2*i] < 0 {
				continue
			}
			part := text[m[2*i]:m[2*i+1]]
			switch group {
			case "name":
				if slices.Contains(f.Ignore, string(part)) {
					continue
				}
				names[string(part)] = true
			case "variable":
				if name := nearest(text, part, m[0], regexp.MustCompile(f.Named)); name != "" && !slices.Contains(f.Ignore, name) {
					names[name] = true
				}
			case "block":
				finding{Find: f.Each, Ignore: f.Ignore}.in(part, names)
			}
		}
	}
}

var assigned = regexp.MustCompile(`^="(\w{2,40})"`)

// nearest returns the text of a form that is assigned to a variable nearest to a place; "" if
// none is.
func nearest(text, variable []byte, at int, form *regexp.Regexp) (name string) {
	best := len(text)
	for i := 0; ; {
		next := bytes.Index(text[i:], append(slices.Clone(variable), '=', '"'))
		if next < 0 {
			return name
		}
		start := i + next
		i = start + len(variable)
		distance := max(start-at, at-start)
		if m := assigned.FindSubmatch(text[i:min(i+64, len(text))]); m != nil && distance < best && start > 0 && bytes.IndexByte([]byte(" ,;{"), text[start-1]) >= 0 && form.Match(m[1]) {
			best, name = distance, string(m[1])
		}
	}
}

// recordedFields returns the fields at the top of the events in testdata/hosts.
func recordedFields(name string) ([]string, error) {
	files, err := filepath.Glob("../../testdata/hosts/" + name + "/*.json")
	if err != nil {
		return nil, err
	}
	fields := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var event map[string]any
		if json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &event) == nil {
			for field := range event {
				fields[field] = true
			}
		}
	}
	return slices.Collect(maps.Keys(fields)), nil
}

// without returns the names that are not known.
func without(names, known []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
}

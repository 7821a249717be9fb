package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/shieldcli/shield/internal/yamlfile"
)

// A SettingChange is a setting by its dotted name, of two parts at most, and its new value in
// YAML on one line.
type SettingChange struct{ Name, Value string }

// String returns the change as a line of a settings file.
func (c SettingChange) String() string {
	section, key, nested := strings.Cut(c.Name, ".")
	if !nested {
		return c.Name + ": " + c.Value
	}
	return fmt.Sprintf("%s: {%s: %s}", section, key, c.Value)
}

// ApplyChangesToSettingsText returns the text of a settings file with all changes applied and comments kept. It
// is an error if the new text would change a setting that is not in changes, or would not set a setting that is
// in changes.
func ApplyChangesToSettingsText(src Sources, file string, text []byte, changes ...SettingChange) ([]byte, error) {
	before, err := decodeOverDefaults(src, file, text)
	if err != nil {
		return nil, err
	}
	out := text
	for _, c := range changes {
		if out, err = applyChange(out, c); err != nil {
			return nil, fmt.Errorf("%s cannot be edited: %w; add the line %q to it by hand", file, err, c)
		}
	}
	after, err := decodeOverDefaults(src, file, out)
	if err != nil {
		return nil, err
	}
	for _, name := range SettingNames() {
		meant := slices.ContainsFunc(changes, func(c SettingChange) bool { return c.Name == name })
		if same := before.Value(name) == after.Value(name); !meant && !same || meant && after.OriginBySetting[name] == "" {
			return nil, fmt.Errorf("editing %s would also change %s; add the line %q to it by hand", file, name, changes)
		}
	}
	return out, nil
}

// decodeOverDefaults returns the settings of a text, applied to the defaults only.
func decodeOverDefaults(src Sources, file string, text []byte) (*LoadedSettings, error) {
	l := &LoadedSettings{Settings: Default(), OriginBySetting: map[string]string{}, errorPositionBySetting: map[string]yamlfile.Error{}}
	var errs yamlfile.Errors
	top, err := yamlfile.Parse(text, "a configuration")
	if err != nil {
		return nil, yamlfile.AnnotateErrorsWithFile("configuration", file, err)
	}
	d := decoder{loaded: l, sources: &src, file: file, settingOriginText: file, errs: &errs}
	d.applyTopNode(top)
	l.resetInvalid(l.findFaults(), &errs)
	return l, errs.Err()
}

// applyChange applies one change to a text.
func applyChange(text []byte, c SettingChange) ([]byte, error) {
	f, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	section, key, nested := strings.Cut(c.Name, ".")
	switch {
	case hasKey(f, c.Name):
		return editYAML(f, "$."+c.Name, (*yaml.Path).ReplaceWithReader, c.Value)
	case nested && hasKey(f, section):
		return editYAML(f, "$."+section, (*yaml.Path).MergeFromReader, key+": "+c.Value)
	case len(text) > 0 && text[len(text)-1] != '\n':
		text = append(slices.Clone(text), '\n')
	}
	return append(slices.Clone(text), c.String()+"\n"...), nil
}

// hasKey reports whether a file has a value at a path of keys.
func hasKey(f *ast.File, name string) bool {
	path, err := yaml.PathString("$." + name)
	if err != nil {
		return false
	}
	_, err = path.FilterFile(f)
	return err == nil
}

// editYAML applies an edit of the YAML library at a path. The library's printer may panic on text that
// was not parsed.
func editYAML(f *ast.File, yamlPath string, edit func(*yaml.Path, *ast.File, io.Reader) error, insertedYAML string) (out []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("shield cannot change YAML of this form")
		}
	}()
	path, err := yaml.PathString(yamlPath)
	if err != nil {
		return nil, err
	}
	before, err := path.FilterFile(f)
	if err != nil {
		return nil, err
	}
	if err := edit(path, f, strings.NewReader(insertedYAML)); err != nil {
		return nil, err
	}
	if after, err := path.FilterFile(f); err == nil && before.GetComment() != nil && after.GetComment() == nil {
		if err := after.SetComment(before.GetComment()); err != nil { // the comment behind the replaced value
			return nil, err
		}
	}
	return []byte(f.String()), nil
}

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the size in bytes from which on a configuration file is refused.
const maxFile = 1 << 20

// Sources say where settings come from.
type Sources struct {
	System string // the system's file; its absence is no error
	User   string // the user's file; its absence is no error
	File   string // read in place of User; must exist

	// Flags sets what the command line asks for and returns the names of the
	// settings that it set.
	Flags func(*Settings) []string
}

// Loaded are the settings in force, and where each came from.
type Loaded struct {
	Settings
	Origin map[string]string // by dotted name, such as "classifier.model": "default", a file's path, "command line" or "locked by" and a path
	Files  []string          // the files that were read
}

// SystemFile returns the path of the system's configuration file.
func SystemFile() string {
	switch runtime.GOOS {
	case "windows":
		return `C:\ProgramData\shield\shield.yaml`
	case "darwin":
		return "/Library/Application Support/shield/shield.yaml"
	default:
		return "/etc/shield/shield.yaml"
	}
}

// UserFile returns the path of a user's configuration file, or "" without a
// home folder.
func UserFile(home string, getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield", "shield.yaml")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config", "shield", "shield.yaml")
}

// StateDir returns the folder of a user's seal key, state and audit log, or ""
// without a home folder.
func StateDir(home string, getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".local", "state", "shield")
}

// DataDir returns the folder of what a user has installed, such as models, or
// "" without a home folder.
func DataDir(home string, getenv func(string) string) string {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".local", "share", "shield")
}

// CacheDir returns the folder of what shield unpacks and downloads for a user,
// or "" without a home folder.
func CacheDir(home string, getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".cache", "shield")
}

// Load reads the settings. A file that exists and cannot be used is an error
// with its name and, where there is one, line and column.
func Load(src Sources) (*Loaded, error) {
	l := &Loaded{Settings: Default(), Origin: map[string]string{}}
	locked, err := l.readSystem(src.System)
	if err != nil {
		return nil, err
	}
	user, optional := src.User, true
	if src.File != "" {
		user, optional = src.File, false
	}
	data, err := read(user, optional)
	if err != nil {
		return nil, err
	}
	if data != nil {
		if err := l.apply(user, data, user); err != nil {
			return nil, err
		}
		l.Files = append(l.Files, user)
	}
	if src.Flags != nil {
		for _, name := range src.Flags(&l.Settings) {
			l.Origin[name] = "command line"
		}
	}
	if locked != nil {
		if err := l.apply(src.System, locked, "locked by "+src.System); err != nil {
			return nil, err
		}
	}
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return l, nil
}

// readSystem applies the system's file and returns the text of its locked
// section, which is to be applied last.
func (l *Loaded) readSystem(name string) (locked []byte, err error) {
	data, err := read(name, true)
	if err != nil || data == nil {
		return nil, err
	}
	var file struct {
		Settings `yaml:",inline"`
		Locked   ast.Node `yaml:"locked"`
	}
	file.Settings = l.Settings
	if err := l.decode(name, data, name, &file); err != nil {
		return nil, err
	}
	l.Settings = file.Settings
	l.Files = append(l.Files, name)
	if file.Locked == nil {
		return nil, nil
	}
	if locked, err = file.Locked.MarshalYAML(); err != nil {
		return nil, fileError(name, err)
	}
	return locked, nil
}

// apply sets what a file's text says over the settings so far.
func (l *Loaded) apply(name string, data []byte, origin string) error {
	return l.decode(name, data, origin, &l.Settings)
}

// decode sets what a text says in into, and records the origin of each setting
// that it names. A key without a value is an error, since the library would
// set the zero value, which may be the looser one.
func (l *Loaded) decode(name string, data []byte, origin string, into any) error {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return fileError(name, err)
	}
	empty := true
	for _, doc := range f.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		empty = false
		if err := l.note("", doc.Body, origin); err != nil {
			return fmt.Errorf("configuration %s:%w", name, err)
		}
	}
	if empty {
		return nil
	}
	if err := yaml.UnmarshalWithOptions(data, into, yaml.Strict()); err != nil {
		return fileError(name, err)
	}
	return nil
}

// note records the origin of each setting that a node names.
func (l *Loaded) note(prefix string, n ast.Node, origin string) error {
	m, ok := n.(*ast.MappingNode)
	if !ok || prefix == "locked" {
		if prefix != "" && prefix != "locked" {
			l.Origin[prefix] = origin
		}
		return nil
	}
	for _, v := range m.Values {
		name := strings.Trim(v.Key.String(), `"'`)
		if prefix != "" {
			name = prefix + "." + name
		}
		if v.Value.Type() == ast.NullType {
			p := v.Key.GetToken().Position
			return fmt.Errorf("%d:%d: %s has no value", p.Line, p.Column, name)
		}
		if err := l.note(name, v.Value, origin); err != nil {
			return err
		}
	}
	return nil
}

// read returns a file's content, or nil if it is optional and absent.
func read(name string, optional bool) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read configuration %s: not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read configuration %s: larger than %d bytes", name, maxFile)
	}
	return data, nil
}

// fileError names the file, line and column of an error of the YAML library,
// and the key that was probably meant.
func fileError(name string, err error) error {
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		key := strings.TrimSuffix(strings.TrimPrefix(unknown.Message, `unknown field "`), `"`)
		text := fmt.Sprintf("unknown key %q", key)
		if near := nearest(key); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("configuration %s:%s: %s", name, position(err), text)
	}
	var y yaml.Error
	if errors.As(err, &y) {
		return fmt.Errorf("configuration %s:%s: %s", name, position(err), y.GetMessage())
	}
	return fmt.Errorf("configuration %s: %w", name, err)
}

// position returns "line:column" of an error of the YAML library.
func position(err error) string {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		p := y.GetToken().Position
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	}
	return "1:1"
}

// nearest returns the known key most like a mistyped one, or "".
func nearest(key string) string {
	best, dist := "", 3
	for _, k := range Names() {
		for _, part := range strings.Split(k, ".") {
			if d := levenshtein.ComputeDistance(key, part); d < dist {
				best, dist = part, d
			}
		}
	}
	return best
}

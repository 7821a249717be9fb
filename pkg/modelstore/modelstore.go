// Package modelstore stores the classifier models that a user has installed, each in a folder with
// a manifest of the installed files.
//
// A folder, an archive or a download is untrusted input until it is installed: only the files of a
// model are copied, within size limits. Installation is atomic: a model is under its name complete
// or not at all.
package modelstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/owner"
)

// EmbeddedModelName is the name of the model that is part of shield itself.
const EmbeddedModelName = "default"

// Errors for [errors.Is].
var (
	ErrExists   = errors.New("is already installed")
	ErrNotFound = errors.New("not found")
)

// A Store is a folder of models. Goroutines and processes may share it.
type Store struct {
	dir      string
	embedded *EmbeddedModel
	clock    func() time.Time
}

// An EmbeddedModel is a model that is part of shield's executable.
type EmbeddedModel struct {
	FS          fs.FS        // the unpacked files
	Digest      string       // digest of its source folder, as [Digest] returns it
	Size        int64        // size of the model in shield's executable, in bytes
	CheckIntact func() error // returns an error if the program was changed
}

// Open returns the store in the folder dir, which need not exist. embedded is
// the model called [EmbeddedModelName]; nil for none.
func Open(dir string, embedded *EmbeddedModel, clock func() time.Time) *Store {
	return &Store{dir, embedded, clock}
}

var modelNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })

// windowsDevicePattern matches the reserved names of Windows devices. They name a device also with
// an extension, as in con.txt.
var windowsDevicePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$`) })

// CheckName returns an error if a name cannot be that of an installed model. A valid name has at
// most 64 of a-z, 0-9, ".", "_" and "-", begins with a letter or digit, does not end with ".", and
// is neither a reserved word of shield nor a Windows device.
func CheckName(name string) error {
	if !modelNamePattern().MatchString(name) || strings.HasSuffix(name, ".") {
		return fmt.Errorf("model name %.80q: use at most 64 of a-z, 0-9, \".\", \"_\" and \"-\", a letter or digit first and no \".\" last", name)
	}
	stem, _, _ := strings.Cut(name, ".")
	if slices.Contains([]string{"none", "auto", EmbeddedModelName}, name) || windowsDevicePattern().MatchString(stem) {
		return fmt.Errorf("model name %q is reserved; choose another with --name", name)
	}
	return nil
}

// Find returns the folder of an installed model. Models in a folder where
// others may write are refused.
func (s *Store) Find(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, name)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("model %q %w; run 'shield model pull --name %s SOURCE', or set classifier.enabled: false", name, ErrNotFound, name)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder; remove it", dir)
	}
	if err := owner.CheckFolderOwnerAndMode(s.dir); err != nil {
		return "", err
	}
	return dir, owner.CheckFolderOwnerAndMode(dir)
}

// Names returns the names of the installed models, in order.
func (s *Store) Names() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

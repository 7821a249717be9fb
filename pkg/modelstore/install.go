package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
)

// Names in the store that no model can have.
const (
	lockFile                    = ".lock"
	unfinishedModelFolderPrefix = ".pull-" // a model that is being installed or removed
	replacedModelFolderPrefix   = ".old-"  // a model that is being replaced
)

// maxUnfinishedModelFolderAge is the age from which a temporary folder counts as left by a process that died,
// and is removed.
const maxUnfinishedModelFolderAge = 24 * time.Hour

// InstallOptions describe what to install.
type InstallOptions struct {
	Name                   string // name of the model; "" uses the source's name
	ArchiveSHA256Hex       string // SHA-256 of the archive, in hex; required for a URL
	ReplacesInstalledModel bool   // replace an installed model of that name

	// CheckModelFolder says whether the model in a folder can be used; nil checks no more
	// than that the files are there.
	CheckModelFolder func(dir string) error
}

// Install copies a model into the store from a folder, an archive or a URL of one, and returns its manifest. An
// error before the model is in its place leaves the installed models as they were.
func (s *Store) Install(ctx context.Context, source string, opts InstallOptions) (*Manifest, error) {
	if opts.Name == "" {
		opts.Name = nameFromSource(source)
	}
	if err := CheckName(opts.Name); err != nil {
		return nil, fmt.Errorf("%w; choose one with --name", err)
	}
	if b, err := hex.DecodeString(opts.ArchiveSHA256Hex); opts.ArchiveSHA256Hex != "" && (err != nil || len(b) != sha256.Size) {
		return nil, errors.New("--sha256 must have 64 hexadecimal digits; copy the whole digest")
	}
	if err := s.createPrivateStoreFolder(); err != nil {
		return nil, err
	}
	if err := s.checkNameFree(&opts); err != nil {
		return nil, err // fail before the download
	}
	work, err := os.MkdirTemp(s.dir, unfinishedModelFolderPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	model := filepath.Join(work, opts.Name)
	if err := os.Mkdir(model, 0o700); err != nil {
		return nil, err
	}
	origin, err := s.unpackSource(ctx, source, opts.ArchiveSHA256Hex, work, model)
	if err != nil {
		return nil, err
	}
	m, err := s.checkModelAndWriteManifest(ctx, model, origin, &opts)
	if err != nil {
		return nil, err
	}
	return m, s.commitModel(ctx, model, &opts)
}

// nameFromSource returns the last part of a source path or URL, without the extension of an
// archive.
func nameFromSource(source string) string {
	if u, err := url.Parse(source); isURL(source) && err == nil {
		source = u.Path
	} else if full, err := filepath.Abs(source); err == nil {
		source = full
	}
	name := filepath.Base(filepath.ToSlash(source))
	for _, end := range []string{".zip", ".tgz", ".tar", ".tar.gz", ".tar.zst"} {
		if stem, ok := strings.CutSuffix(name, end); ok {
			return stem
		}
	}
	return name
}

// createPrivateStoreFolder creates the store's folder, and refuses one that others can change.
func (s *Store) createPrivateStoreFolder() error {
	if s.dir == "" {
		return errors.New("the folder for models is unknown; set HOME or XDG_DATA_HOME")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return owner.CheckFolderOwnerAndMode(s.dir)
}

// checkNameFree refuses a name that is taken.
func (s *Store) checkNameFree(opts *InstallOptions) error {
	info, err := os.Lstat(filepath.Join(s.dir, opts.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s, the folder of the model, is a file; remove it", filepath.Join(s.dir, opts.Name))
	case !opts.ReplacesInstalledModel:
		return fmt.Errorf("model %q %w; replace it with --force, or choose another --name", opts.Name, ErrExists)
	}
	return nil
}

// unpackSource copies the files of a source into the folder model and returns where they came from.
// work is a folder for temporary files.
func (s *Store) unpackSource(ctx context.Context, source, sum, work, model string) (string, error) {
	if isURL(source) {
		u, err := checkURL(source)
		if err != nil {
			return "", err
		}
		if sum == "" {
			return "", errors.New("a URL needs --sha256; add the digest that the publisher states")
		}
		f, err := os.OpenFile(filepath.Join(work, "archive"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if err := downloadArchive(ctx, u, f); err != nil {
			return "", fmt.Errorf("download: %w", err)
		}
		u.RawQuery, u.Fragment = "", "" // query and fragment may contain a token
		return u.String(), s.unpackFile(ctx, f, u.String(), sum, model)
	}
	info, err := os.Stat(source)
	if err != nil {
		return "", err
	}
	origin, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		if sum != "" {
			return "", errors.New("--sha256 is the digest of an archive, and this is a folder; leave it out")
		}
		if err := unpackFolder(ctx, source, model); err != nil {
			return "", fmt.Errorf("%s: %w", source, err)
		}
		return origin, nil
	}
	f, err := os.OpenFile(source, os.O_RDONLY|openNonblocking, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return origin, s.unpackFile(ctx, f, source, sum, model)
}

// unpackFile unpacks an archive whose digest is sum, if that is not "".
func (s *Store) unpackFile(ctx context.Context, f *os.File, name, sum, model string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxModelBytes {
		return fmt.Errorf("%s is neither a folder nor a regular file of at most %d bytes; name a folder or an archive", name, maxModelBytes)
	}
	if sum != "" {
		if err := checkSum(ctx, f, sum); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := unpackArchive(ctx, f, model); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkModelAndWriteManifest checks an unpacked model and gives it its manifest.
func (s *Store) checkModelAndWriteManifest(ctx context.Context, model, origin string, opts *InstallOptions) (*Manifest, error) {
	if err := checkRequiredModelFiles(model); err != nil {
		return nil, fmt.Errorf("the source is not a model: %w", err)
	}
	if opts.CheckModelFolder != nil {
		if err := opts.CheckModelFolder(model); err != nil {
			return nil, fmt.Errorf("the source is not a model: %w", err)
		}
	}
	sum, files, err := Digest(ctx, owner.DirFSOfRegularFiles(model))
	if err != nil {
		return nil, err
	}
	m := &Manifest{opts.Name, origin, s.clock().UTC().Truncate(time.Second), sum, files}
	if err := writeManifest(model, m); err != nil {
		return nil, err
	}
	return m, syncFolder(model)
}

// commitModel moves a completely prepared model to its final folder in the store, atomically if the
// operating system supports that.
func (s *Store) commitModel(ctx context.Context, model string, opts *InstallOptions) error {
	unlock, err := s.lockStore()
	if err != nil {
		return err
	}
	defer unlock()
	s.cleanUpInterruptedInstalls()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.checkNameFree(opts); err != nil {
		return err // another process installed the model first
	}
	place := filepath.Join(s.dir, opts.Name)
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(model, place)
		if err != nil {
			return err
		}
		return syncFolder(s.dir)
	}
	if err := swapPaths(model, place); err != nil {
		if err := s.replaceModel(model, opts.Name); err != nil {
			return err
		}
	}
	return syncFolder(s.dir)
}

// replaceModel replaces an installed model in two steps, between which the name does not exist. If
// the process dies in between, cleanUpInterruptedInstalls completes or undoes the replacement.
func (s *Store) replaceModel(model, name string) error {
	place, old := filepath.Join(s.dir, name), filepath.Join(s.dir, replacedModelFolderPrefix+name)
	if err := os.Rename(place, old); err != nil {
		return err
	}
	if err := os.Rename(model, place); err != nil {
		return errors.Join(err, os.Rename(old, place))
	}
	return os.RemoveAll(old)
}

// cleanUpInterruptedInstalls removes what interrupted processes left, and puts a model back
// that was moved aside and not replaced. The store is locked.
func (s *Store) cleanUpInterruptedInstalls() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // an error here does not matter to the caller
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if name, ok := strings.CutPrefix(e.Name(), replacedModelFolderPrefix); ok {
			if os.Rename(path, filepath.Join(s.dir, name)) != nil {
				_ = os.RemoveAll(path) // the new model is in place
			}
		}
		if strings.HasPrefix(e.Name(), unfinishedModelFolderPrefix) {
			if info, err := e.Info(); err == nil && s.clock().Sub(info.ModTime()) > maxUnfinishedModelFolderAge {
				_ = os.RemoveAll(path)
			}
		}
	}
}

// Remove takes a model out of the store.
func (s *Store) Remove(name string) error {
	if name == EmbeddedModelName {
		return fmt.Errorf("model %q is part of shield and cannot be removed; to switch it off, set classifier.enabled: false", name)
	}
	dir, err := s.Find(name)
	if err != nil {
		return err
	}
	unlock, err := s.lockStore()
	if err != nil {
		return err
	}
	defer unlock()
	work, err := os.MkdirTemp(s.dir, unfinishedModelFolderPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Rename(dir, filepath.Join(work, name)); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

// maxWaitForOtherInstall is how long a change waits for another process to finish its own. A process that still
// fetches a model does not hold the lock.
const maxWaitForOtherInstall = 30 * time.Minute

// lockStore keeps other processes from changing what is installed.
func (s *Store) lockStore() (unlock func(), err error) {
	l, err := flock.New(filepath.Join(s.dir, lockFile))
	if err != nil {
		return nil, err
	}
	if err := l.Lock(context.Background(), maxWaitForOtherInstall); err != nil {
		l.Close()
		return nil, err
	}
	return func() { l.Close() }, nil
}

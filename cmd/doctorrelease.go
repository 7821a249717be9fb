package cmd

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/urfave/cli/v2"
	"golang.org/x/mod/semver"

	"github.com/shieldcli/shield/internal/genuine"
)

// verifyDownloadedRelease verifies a downloaded release, or one file of it, and reads no settings.
func verifyDownloadedRelease(c *cli.Context, w *Environment) error {
	keys, err := loadReleaseKeys(c.String("key"))
	if err != nil {
		return &statusError{statusFailure, err}
	}
	path, installed := c.String("release"), version()
	info, err := os.Stat(path)
	if err != nil {
		return &statusError{statusFailure, err}
	}
	if !info.IsDir() {
		version, key, err := genuine.VerifyFileSignature(path, keys)
		if err != nil {
			return &statusError{statusFailure, fmt.Errorf("%s: %w; do not install it", path, err)}
		}
		_, err = fmt.Fprintf(w.Out, "%-4s  %s: a file of shield %s, signed by key %s\n%s", severityOK, path, version, key, downgradeWarning(version, installed))
		return err
	}
	found, err := genuine.VerifyRelease(path, keys, w.ShieldExecutablePath, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return &statusError{statusFailure, fmt.Errorf("%s: %w; do not install from this folder", path, err)}
	}
	good, bad := 0, false
	for _, f := range found.Files {
		if f.Err == nil {
			good++
			continue
		}
		bad = true
		fmt.Fprintf(w.Out, "%-4s  %s: %v\n      do not install it; download the release again\n", severityBad, shortenTo80Characters(f.Name), f.Err)
	}
	absent := ""
	if found.MissingReleaseFileCount > 0 {
		absent = fmt.Sprintf("; %d others are not in this folder", found.MissingReleaseFileCount)
	}
	fmt.Fprintf(w.Out, "%-4s  %d files match the checksums of shield %s, which are signed by key %s%s\n", severityOK, good, found.Version, found.KeyID, absent)
	fmt.Fprint(w.Out, downgradeWarning(found.Version, installed))
	switch {
	case bad:
		return &statusError{statusFailure, nil}
	case found.ProgramArchiveName != "":
		fmt.Fprintf(w.Out, "%-4s  this program (%s) is the one in %s\n", severityOK, w.ShieldExecutablePath, found.ProgramArchiveName)
	default:
		fmt.Fprintf(w.Out, "%-4s  this program (%s) is not verified: none of the archives in this folder contains it\n      download the archive of its version and system into this folder; a program built from source cannot be verified\n", severityNote, w.ShieldExecutablePath)
	}
	return nil
}

// downgradeWarning returns a warning if a release is older than the installed program: its signature
// stays valid, even if it has vulnerabilities fixed since. "" if it is not older.
func downgradeWarning(release, installed string) string {
	if !isOlderVersion(release, installed) {
		return ""
	}
	return fmt.Sprintf("%-4s  shield %s is older than this program, %s\n      do not install it unless you want to go back: it lacks what was corrected since\n", severityWarning, release, installed)
}

// isOlderVersion reports whether checkedVersion is older than otherVersion. It returns false if one
// of them is not a version number, as in a development build.
func isOlderVersion(checkedVersion, otherVersion string) bool {
	return semver.IsValid(checkedVersion) && semver.IsValid(otherVersion) && semver.Compare(checkedVersion, otherVersion) < 0
}

// loadReleaseKeys returns the built-in keys, or the key in a file.
func loadReleaseKeys(file string) (genuine.Keys, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		keys, err := genuine.ParseKey(text)
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return keys, err
	}
	keys, err := genuine.OwnKeys()
	if err == nil && len(keys) == 0 {
		err = errors.New("doctor: this program was built without a release key, so it cannot check signatures; name the public key with --key FILE")
	}
	return keys, err
}

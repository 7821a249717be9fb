package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/pkg/config"
)

// A hookProgramRecord identifies the program that a hook runs: one line with its identity (owner,
// device, inode, size, change time) and its SHA-256. The hook's command line compares them before
// it runs the program, so that a program file that an installer replaced is not run. The record
// lies in the state folder, which is denied to agents.
//
// Reading the identity with the program stat takes a millisecond, and the digest 0.4 s. The command
// line therefore first uses tests that are built into the shell: whether a hard link to the program
// is still the same file, and whether the record file, which was given the modification time of the
// program, is neither older nor newer. The identity is compared only if these tests fail, as they
// always do if no hard link could be made, and the digest only if the identity differs.
type hookProgramRecord struct{ programPath, recordPath string }

// programHardLinkPath returns the path of the hard link to the program.
func (r hookProgramRecord) programHardLinkPath() string { return r.recordPath + ".program" }

// newHookProgramRecord returns the record of a program that a hook runs. The record is stored in
// shield's state folder.
func newHookProgramRecord(w *Environment, program string) (hookProgramRecord, error) {
	state := config.StateDir(w.Home, w.Getenv)
	if state == "" {
		return hookProgramRecord{}, errors.New("the state folder is unknown; set HOME")
	}
	return hookProgramRecordInStateDir(state, program), nil
}

// recordHookProgram records the current program file of shield as the one that installed hooks run.
func recordHookProgram(w *Environment) error {
	r, err := newHookProgramRecord(w, w.ShieldExecutablePath)
	if err == nil {
		err = r.recordCurrent()
	}
	if err != nil {
		return fmt.Errorf("record the program of the hook: %w", err)
	}
	return nil
}

func hookProgramRecordInStateDir(stateFolder, programPath string) hookProgramRecord {
	sum := sha256.Sum256([]byte(programPath))
	return hookProgramRecord{programPath, filepath.Join(stateFolder, "programs", hex.EncodeToString(sum[:8]))}
}

// canCurrentUserReplaceProgram reports whether this user can replace a program. It returns false if the user is
// not root, and only root can change the program and all folders above it.
func canCurrentUserReplaceProgram(program string) bool {
	real, err := filepath.EvalSymlinks(program)
	if err != nil || os.Geteuid() == 0 {
		return true
	}
	for _, path := range []string{program, real} {
		for ; ; path = filepath.Dir(path) {
			if info, err := os.Stat(path); err != nil || !owner.OnlyRootCanWrite(info) {
				return true
			}
			if path == filepath.Dir(path) {
				break
			}
		}
	}
	return false
}

// statArguments are the stat arguments that print an identity, for GNU and BusyBox, and for BSD.
var statArguments = []string{"-L -c %u:%d:%i:%s:%Z", "-L -f %u:%d:%i:%z:%c"}

// findFileIdentityCommand returns the shell words that print the identity of a file (owner, device, inode, size, change
// time). The caller appends the file's path.
var findFileIdentityCommand = sync.OnceValues(func() ([]string, error) {
	path, err := findSystemProgram("stat")
	if err != nil {
		return nil, err
	}
	for _, args := range statArguments {
		words := append([]string{path}, strings.Fields(args)...)
		if out, err := exec.Command(words[0], append(slices.Clone(words[1:]), "/")...).Output(); err == nil && strings.Count(string(out), ":") == 4 {
			return words, nil
		}
	}
	return nil, fmt.Errorf("%s cannot print the inode and times of a file; install the stat of GNU coreutils, BusyBox or BSD", path)
})

// sha256CommandShellWords returns the shell words that print the SHA-256 of standard input.
func sha256CommandShellWords() (string, error) {
	if path, err := findSystemProgram("sha256sum"); err == nil {
		return path, nil
	}
	path, err := findSystemProgram("shasum")
	if err != nil {
		return "", errors.New("the hook needs sha256sum or shasum; install one")
	}
	return path + " -a 256", nil
}

const (
	replacedProgramCheckPrefix = "c() { i= d=; read -r i d <"
	replacedProgramCheckSuffix = " || c; "
)

// programCheckShellCode returns the shell text that prints the line "changed" and ends if the program is not the
// recorded one. If only its identity differs, the record gets the new identity.
func (r hookProgramRecord) programCheckShellCode() (string, error) {
	stat, err := findFileIdentityCommand()
	if err != nil {
		return "", err
	}
	digest, err := sha256CommandShellWords()
	if err != nil {
		return "", err
	}
	mv, err := findSystemProgram("mv")
	if err != nil {
		return "", err
	}
	program, err := syntax.Quote(r.programPath, syntax.LangPOSIX)
	if err != nil {
		return "", fmt.Errorf("%q: %w", shortenTo80Characters(r.programPath), err)
	}
	file, err := syntax.Quote(r.recordPath, syntax.LangPOSIX)
	if err != nil {
		return "", fmt.Errorf("%q: %w", shortenTo80Characters(r.recordPath), err)
	}
	link, err := syntax.Quote(r.programHardLinkPath(), syntax.LangPOSIX)
	if err != nil {
		return "", fmt.Errorf("%q: %w", shortenTo80Characters(r.programHardLinkPath()), err)
	}
	same := fmt.Sprintf("[ %[1]s -ef %[3]s ] && [ ! %[1]s -nt %[2]s ] && [ ! %[1]s -ot %[2]s ]", program, file, link)
	renew := fmt.Sprintf(`echo "${v%%} ${d%%}" >%[1]s.$$ && %[2]s -f %[1]s.$$ %[1]s`, file, mv)
	return replacedProgramCheckPrefix + file + "; v=$(" + strings.Join(stat, " ") + " " + program + `); [ "${i%}" ] && [ "${v%}" = "${i%}" ] || case $(` + digest + " <" + program +
		`) in "${d%} "*) ` + renew + ";; *) echo changed; exit;; esac; }; " + same + replacedProgramCheckSuffix, nil
}

// splitProgramCheck splits a shell text into the check of a program and the rest.
func splitProgramCheck(text string) (check, command string) {
	if i := strings.Index(text, replacedProgramCheckSuffix); strings.HasPrefix(text, replacedProgramCheckPrefix) && i >= 0 {
		return text[:i+len(replacedProgramCheckSuffix)], text[i+len(replacedProgramCheckSuffix):]
	}
	return "", text
}

// readRecordFile returns the recorded identity and digest.
func (r hookProgramRecord) readRecordFile() (identity, digest string, err error) {
	text, err := os.ReadFile(r.recordPath)
	if err != nil {
		return "", "", err
	}
	if _, err := fmt.Sscanf(string(text), "%s %s\n", &identity, &digest); err != nil {
		return "", "", fmt.Errorf("the file %s is damaged", r.recordPath)
	}
	return identity, digest, nil
}

// hasRecordFile reports whether there is a record, even if it is unreadable.
func (r hookProgramRecord) hasRecordFile() bool {
	_, err := os.Lstat(r.recordPath)
	return !errors.Is(err, os.ErrNotExist)
}

// currentIdentity returns the owner, device, inode, size and change time of the program file, as the program
// stat prints them.
func (r hookProgramRecord) currentIdentity() (string, error) {
	words, err := findFileIdentityCommand()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(words[0], append(slices.Clone(words[1:]), r.programPath)...).Output()
	return strings.TrimSpace(string(out)), err
}

// currentDigest returns the current SHA-256 of the program.
func (r hookProgramRecord) currentDigest() (string, error) {
	f, err := os.Open(r.programPath)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// verifyUnchanged returns an error unless the program is the recorded one.
func (r hookProgramRecord) verifyUnchanged() error {
	identity, recorded, err := r.readRecordFile()
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the program %s is not recorded in %s, so the hook denies everything; run 'shield hook status --accept'", r.programPath, r.recordPath)
	}
	if err != nil {
		return fmt.Errorf("the record of the installed program %s cannot be read, so the hook denies everything: %w; run 'shield hook status --accept'", r.programPath, err)
	}
	if now, err := r.currentIdentity(); err == nil && now == identity {
		return nil
	}
	digest, err := r.currentDigest()
	if err != nil {
		return err
	}
	if digest != recorded {
		return fmt.Errorf("%s differs from the program that was installed as a hook, so the hook denies everything; if you updated it, run 'shield hook status --accept'", r.programPath)
	}
	return nil
}

// recordCurrent records the program in its current state.
func (r hookProgramRecord) recordCurrent() error {
	real, err := filepath.EvalSymlinks(r.programPath)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.recordPath), 0o700); err != nil {
		return err
	}
	linked, err := os.Stat(r.programHardLinkPath())
	same := err == nil && os.SameFile(linked, info)
	if known, _, err := r.readRecordFile(); err == nil && same {
		if now, err := r.currentIdentity(); err == nil && now == known {
			return nil
		}
	}
	if !same {
		fresh := r.programHardLinkPath() + ".new"
		_ = os.Remove(fresh)
		if os.Link(real, fresh) == nil { // fails on another file system, or for another user's file
			err = os.Rename(fresh, r.programHardLinkPath())
		} else if err = os.Remove(r.programHardLinkPath()); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	identity, err := r.currentIdentity() // after linking, which changes the change time
	if err != nil {
		return err
	}
	digest, err := r.currentDigest()
	if err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(r.recordPath), ".new-*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(fresh, "%s %s\n", identity, digest)
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Chtimes(fresh.Name(), info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(fresh.Name(), r.recordPath)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
	}
	return err
}

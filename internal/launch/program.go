package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A programFile is the file of a command, opened before the command is judged.
type programFile struct {
	file       *os.File
	openedInfo fs.FileInfo // metadata of the file at the time when it was opened
	isScript   bool        // an interpreter opens the file again by its path
}

// openProgram opens a regular executable file. It does not block on a FIFO.
func openProgram(path string) (*programFile, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	p := &programFile{file: f}
	if err := p.checkExecutableAndDetectScript(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%.80q: %w", path, err)
	}
	return p, nil
}

func (p *programFile) checkExecutableAndDetectScript() (err error) {
	if p.openedInfo, err = p.file.Stat(); err != nil {
		return err
	}
	switch mode := p.openedInfo.Mode(); {
	case mode.IsDir():
		return errors.New("is a folder; name a program")
	case !mode.IsRegular():
		return errors.New("is not a regular file; name a program")
	case !IsExecutable(mode):
		return errors.New("is not executable; run 'chmod +x' on it")
	}
	var start [2]byte
	if _, err := p.file.ReadAt(start[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	p.isScript = string(start[:]) == "#!"
	return nil
}

var errProgramFileChanged = errors.New("the program file changed while shield judged it; run the command again")

// checkUnchanged reports an error if the open file was modified since it was opened, which includes
// rewriting it in place.
func (p *programFile) checkUnchanged() error {
	now, err := p.file.Stat()
	if err != nil {
		return err
	}
	if !isSameUnmodifiedFile(p.openedInfo, now) {
		return errProgramFileChanged
	}
	return nil
}

// checkFileAtPathUnchanged reports an error if the path no longer leads to the unchanged file.
func (p *programFile) checkFileAtPathUnchanged() error {
	now, err := os.Stat(p.file.Name())
	if err != nil {
		return err
	}
	if !isSameUnmodifiedFile(p.openedInfo, now) {
		return errProgramFileChanged
	}
	return p.checkUnchanged()
}

// isSameUnmodifiedFile reports whether two results of Stat are of the same unmodified file.
func isSameUnmodifiedFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) && sameChangeTime(a, b)
}

// LookPath finds a program in the PATH of an environment, ignoring the current folder.
func LookPath(name string, env []string) (string, error) {
	if name == "" {
		return "", errors.New("the name of the program is empty; name a program")
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return filepath.Abs(name)
	}
	for _, dir := range filepath.SplitList(lookupVariable(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the program %.80q is in no folder of PATH; check its name, or write its path", name)
}

// IsSystemProgramFolder reports whether a folder has the name of a system folder for programs, which usually
// only administrators and package managers can change. It does not check the permissions.
func IsSystemProgramFolder(dir string) bool {
	return slices.Contains([]string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", `C:\Windows\System32`}, dir)
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/yamlfile"
)

// Sources are the files and flags that settings come from.
type Sources struct {
	SystemSettingsPath       string // the system's file; may be missing
	UserSettingsPath         string // the user's file; may be missing
	UserSettingsPathOverride string // replaces UserSettingsPath; an absolute path that must exist

	Home                    string   // the home folder for ~ in settings; "" if unknown
	CommandLinePathsBaseDir string   // the base folder for relative paths of the command line; "" if unknown
	PresetPolicyNames       []string // names of policies that are not files

	// ApplyFlagsAndListChanged applies the command line to the settings and returns the names of the settings that it
	// changed.
	ApplyFlagsAndListChanged func(*Settings) []string
}

// LoadedSettings are the settings in force, and where each was set. Paths in the settings are
// absolute.
type LoadedSettings struct {
	Settings
	OriginBySetting map[string]string // where each setting was set, by its dotted name: a file's path, "command line", or "locked by PATH"
	Files           []string          // the files read

	// ApprovalProgramWorkingDir is the folder of the file that names the approval program; the program runs there.
	ApprovalProgramWorkingDir string

	errorPositionBySetting map[string]yamlfile.Error // position of each setting in its file
}

// Load reads the settings. An error is of type [yamlfile.Errors]: all faults, each with its file and,
// if known, line and column.
func Load(src Sources) (*LoadedSettings, error) {
	l, err := LoadDespiteErrors(src)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// LoadDespiteErrors is [Load] for a report: beside the error it returns the settings with defaults for invalid
// ones. They must not be used for judging.
func LoadDespiteErrors(src Sources) (*LoadedSettings, error) {
	l := &LoadedSettings{Settings: Default(), OriginBySetting: map[string]string{}, errorPositionBySetting: map[string]yamlfile.Error{}}
	var errs yamlfile.Errors
	locked := l.applyFileReturningLockedSection(&src, src.SystemSettingsPath, true, &errs)
	if src.UserSettingsPathOverride != "" {
		l.applyFileReturningLockedSection(&src, src.UserSettingsPathOverride, false, &errs)
	} else {
		l.applyFileReturningLockedSection(&src, src.UserSettingsPath, true, &errs)
	}
	if src.ApplyFlagsAndListChanged != nil {
		for _, name := range src.ApplyFlagsAndListChanged(&l.Settings) {
			if name == "policy" {
				l.resetPolicyBundleSettings()
			}
			l.OriginBySetting[name] = "command line"
			l.errorPositionBySetting[name] = yamlfile.Error{FileName: "command line"}
			l.resolvePaths(&src, name, src.CommandLinePathsBaseDir, &errs)
		}
	}
	if locked != nil {
		d := decoder{loaded: l, sources: &src, file: src.SystemSettingsPath, settingOriginText: "locked by " + src.SystemSettingsPath, errs: &errs}
		d.applyTopNode(locked)
	}
	l.resetInvalid(l.findFaults(), &errs)
	return l, errs.Err()
}

// resetPolicyBundleSettings removes the settings of a signed policy.
func (l *LoadedSettings) resetPolicyBundleSettings() {
	for _, name := range []string{"policy.bundle", "policy.keys", "policy.grace"} {
		restoreDefault(&l.Settings, name)
		delete(l.OriginBySetting, name)
		delete(l.errorPositionBySetting, name)
	}
}

// SettingSourceFileAndLine returns where a setting was set, as "FILE:LINE" or "command line"; "" for a default.
func (l *LoadedSettings) SettingSourceFileAndLine(setting string) string {
	at := l.errorPositionBySetting[setting]
	if at.Line == 0 {
		return at.FileName
	}
	return fmt.Sprintf("%s:%d", at.FileName, at.Line)
}

// resetInvalid records the invalid settings as errors, and resets them to their defaults.
func (l *LoadedSettings) resetInvalid(faults []settingFault, errs *yamlfile.Errors) {
	for _, f := range faults {
		e := l.errorPositionBySetting[f.setting]
		e.Msg = f.setting + ": " + f.msg
		errs.Add(&e)
	}
	for _, f := range faults {
		restoreDefault(&l.Settings, f.setting)
		delete(l.OriginBySetting, f.setting)
		delete(l.errorPositionBySetting, f.setting)
	}
}

// applyFileReturningLockedSection applies the settings file name to l, and adds its faults to errs. If optional
// is true, the file may be missing. For the system's settings file, it returns the node of the section "locked";
// nil if there is none, or for other files.
func (l *LoadedSettings) applyFileReturningLockedSection(src *Sources, name string, optional bool, errs *yamlfile.Errors) ast.Node {
	if name == "" {
		return nil
	}
	data, err := readOwnerOnlyWritableFile(name)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist) && !pathExists(name):
		return nil
	case err != nil:
		errs.Add(&yamlfile.Error{FileKind: "configuration", FileName: name, Msg: err.Error()})
		return nil
	}
	l.Files = append(l.Files, name)
	top, err := yamlfile.Parse(data, "a configuration")
	if err != nil {
		errs.Add(yamlfile.AnnotateErrorsWithFile("configuration", name, err))
		return nil
	}
	d := decoder{loaded: l, sources: src, file: name, settingOriginText: name, isSystemFile: name == src.SystemSettingsPath, errs: errs}
	d.applyTopNode(top)
	return d.systemFileLockedSection
}

// pathExists reports whether a path exists, even as a symbolic link without a target.
func pathExists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// readOwnerOnlyWritableFile returns a file's content. Only its owner and root may be able to write the file, because it decides
// what is allowed.
func readOwnerOnlyWritableFile(name string) ([]byte, error) {
	data, info, err := owner.ReadRegularFile(name, yamlfile.MaxFileBytes)
	if err != nil {
		return nil, withoutPath(err)
	}
	if err := owner.CheckOwnerAndDeniedModeBits(info, 0); err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); owner.SupportsFileOwners && mode&owner.GroupOrOtherWriteBits != 0 {
		return nil, fmt.Errorf("other users can change this file, since its mode is %04o; run 'chmod go-w %s'", mode, name)
	}
	folders := []string{filepath.Dir(name)}
	if real, err := filepath.EvalSymlinks(name); err == nil && filepath.Dir(real) != folders[0] {
		folders = append(folders, filepath.Dir(real))
	}
	for _, dir := range folders {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, withoutPath(err)
		}
		if owner.SupportsFileOwners && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return nil, fmt.Errorf("any user can replace this file, since the mode of its folder %s is %04o; run 'chmod o-w %s'", dir, info.Mode().Perm(), dir)
		}
	}
	return data, nil
}

// withoutPath removes operation and path from an error, because the message contains the path already.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("the file cannot be read: %w; check its path and mode", path.Err)
	}
	return err
}

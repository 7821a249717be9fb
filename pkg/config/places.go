package config

import (
	"path/filepath"
	"runtime"
)

// SystemConfigPath returns the path of the system's configuration file.
func SystemConfigPath() string {
	switch runtime.GOOS {
	case "windows":
		return `C:\ProgramData\shield\shield.yaml`
	case "darwin":
		return "/Library/Application Support/shield/shield.yaml"
	default:
		return "/etc/shield/shield.yaml"
	}
}

// UserConfigPath returns the path of a user's configuration file, or "" without a
// home folder.
func UserConfigPath(home string, getenv func(string) string) string {
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

// DataDir returns the folder of a user's installed data, such as models, or "" without a home folder.
func DataDir(home string, getenv func(string) string) string {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".local", "share", "shield")
}

// CacheDir returns the folder for files that shield unpacks and downloads for a user, or "" without a
// home folder.
func CacheDir(home string, getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "shield")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".cache", "shield")
}

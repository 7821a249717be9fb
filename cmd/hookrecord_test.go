package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookAccept checks that a program which was replaced is accepted by a person alone,
// and that the hook is whole again then.
func TestHookAccept(t *testing.T) {
	w := newWorld(t)
	getenv := w.Getenv
	w.Getenv = func(name string) string {
		if name == "XDG_STATE_HOME" {
			return ""
		}
		return getenv(name)
	}
	w.ShieldExecutablePath = filepath.Join(w.Home, "bin", "shield")
	replace := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(w.ShieldExecutablePath), 0o700), os.RemoveAll(w.ShieldExecutablePath), os.WriteFile(w.ShieldExecutablePath, []byte("#!/bin/sh\n"+text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	replace("# one")
	if status, _, errs := run(t, w, "", "hook", "install", "claude-code"); !strings.Contains(errs, "installed") {
		t.Fatalf("install: %d, %s", status, errs)
	}
	r, err := newHookProgramRecord(&w, w.ShieldExecutablePath)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.verifyUnchanged(); err != nil {
		t.Errorf("as installed: %v", err)
	}
	replace("# two")
	if err := r.verifyUnchanged(); err == nil || !strings.Contains(err.Error(), "hook status --accept") {
		t.Errorf("replaced: %v", err)
	}
	agent := w
	agent.checkPersonStartedThisProcess = func(int) error { return errNoTerminal }
	if status, _, errs := run(t, agent, "", "hook", "status", "claude-code", "--accept"); status != 1 || !strings.Contains(errs, errNoTerminal.Error()) || r.verifyUnchanged() == nil {
		t.Errorf("by an agent: %d, %s", status, errs)
	}
	if status, _, errs := run(t, agent, "", "hook", "install", "claude-code"); status != 1 || !strings.Contains(errs, "only the user can do this") || r.verifyUnchanged() == nil {
		t.Errorf("installed again by an agent: %d, %s", status, errs)
	}
	if _, _, errs := run(t, w, "", "hook", "status", "claude-code", "--accept"); r.verifyUnchanged() != nil || strings.Contains(errs, "differs from the program that was installed as a hook, so") {
		t.Errorf("by a person: %v, %s", r.verifyUnchanged(), errs)
	}
	if linked, err := os.Stat(r.programHardLinkPath()); err != nil {
		t.Error(err)
	} else if own, err := os.Stat(w.ShieldExecutablePath); err != nil || !os.SameFile(own, linked) {
		t.Errorf("the link is not to the program: %v", err)
	}
}

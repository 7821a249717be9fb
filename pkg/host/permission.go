package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/host/internal/form"
)

// ErrNoPermission is the error for a host that has no hook event before its permission prompt.
var ErrNoPermission = errors.New("this host has no hook before its permission prompt")

// Permission returns the host with only its event before the permission prompt: events, denials and
// answers are those of that event.
func (h *Host) Permission() (*Host, error) {
	p := h.form.Permission
	if p.Event == "" {
		return nil, fmt.Errorf("%s: %w", h.Name, ErrNoPermission)
	}
	f := *h.form
	f.Before, f.After, f.Deny, f.Allow = []string{p.Event}, nil, p.Deny, p.Allow
	return &Host{Name: h.Name, form: &f, forPermission: true}, nil
}

// PermissionRules returns where the user's permission rules of a host are: command-line options that
// add rules, the environment variable with the project folder, and the settings files.
func (h *Host) PermissionRules() (options []string, project string, files []Place) {
	for _, f := range h.form.Permission.Rules {
		files = append(files, Place{Place: f, host: h})
	}
	return h.form.Permission.Options, h.form.Permission.Project, files
}

// HasPermissionHook reports whether the hook for [Host.Permission] is installed in a file.
func (p *Place) HasPermissionHook() bool {
	return slices.ContainsFunc(p.Entries, func(e form.Entry) bool { return e.Permission })
}

// HasAskRule reports whether a settings file has a rule by which the host must ask the user about a call,
// or deny it. in is the hook's input. An error means that this is unknown.
func (p *Place) HasAskRule(ctx context.Context, in, doc []byte) (bool, error) {
	v, err := decodeEvent(in)
	if err != nil {
		return false, err
	}
	read, err := p.host.runForOne(ctx, p.host.form.Read, v)
	if err != nil {
		return false, err
	}
	call, ok := read.(map[string]any)
	if !ok {
		return false, errors.New("the input is not an event of this host; check the HOST in the hook's command")
	}
	var rules any = string(doc)
	if strings.HasSuffix(p.File, ".json") || strings.HasSuffix(p.File, ".toml") {
		if rules, err = p.parseStructured(doc); err != nil {
			return false, err
		}
	}
	out, err := p.host.runForOne(ctx, p.host.form.Permission.Asked, map[string]any{"tool": call["tool"], "input": call["input"], "doc": rules})
	if err != nil {
		return false, err
	}
	asked, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("the permission rules in the settings of %s cannot be read; correct the settings file", p.host.Title())
	}
	return asked, nil
}

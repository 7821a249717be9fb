package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNextStep(t *testing.T) {
	t.Parallel()
	_, missing := os.Open(filepath.Join(t.TempDir(), "none"))
	for want, err := range map[string]error{
		"; check the path":                    missing,
		"; check owner and mode with 'ls -l'": fmt.Errorf("read: %w", os.ErrPermission),
		"; try again":                         fmt.Errorf("wait: %w", context.DeadlineExceeded),
		"; check the address and the network": &net.DNSError{Err: "no such host", Name: "a.test"},
	} {
		if got := systemErrorAdvice(err, err.Error()); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	for _, err := range []error{fmt.Errorf("%w; name another", missing), errors.New("--days is less than 0")} {
		if got := systemErrorAdvice(err, err.Error()); got != "" {
			t.Errorf("%v: %q", err, got)
		}
	}
}

func TestErrorsOfTheSystemNameAnAction(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	Run(t.Context(), []string{"policy", "check", filepath.Join(t.TempDir(), "none.yaml")}, Environment{Out: &out, Err: &errs})
	if !strings.HasSuffix(errs.String(), "; check the path\n") {
		t.Errorf("%q", errs.String())
	}
}

//go:build !linux || (!amd64 && !arm64)

package contain

import (
	"os/exec"
	"runtime"
)

// ProbeKernelFeatures reports which features work: none on this system.
func ProbeKernelFeatures() []KernelFeature {
	return []KernelFeature{{Name: "Landlock", ProbeDetail: containmentUnavailableText}}
}

const containmentUnavailableText = "shield can contain programs on Linux (amd64, arm64) only; this system is " + runtime.GOOS + "/" + runtime.GOARCH

// A Process is a contained program.
type Process struct {
	*exec.Cmd
	UsedMechanisms                  Mechanism
	HardLinkSearchIncompleteFolders []string
}

// Start always fails with a [*ContainmentUnavailableError], since shield cannot contain programs on this system.
func Start(func() *exec.Cmd, *Profile, Mechanism, func(Refusal)) (*Process, error) {
	return nil, &ContainmentUnavailableError{containmentUnavailableText}
}

// Terminate does nothing, since [Start] never starts a process on this system.
func (*Process) Terminate() error { return nil }

// WaitForReportsAndCleanUp does nothing.
func (*Process) WaitForReportsAndCleanUp() {}

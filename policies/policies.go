// Package policies contains the source of the policies that shield ships. go
// generate in pkg/policy compiles it into the Go literals that shield uses; the
// YAML is for people who read it or write their own policy.
package policies

import "embed"

// FS holds the policies: a file NAME.yaml for each preset, base.yaml, which all
// presets extend, and core.yaml, which is part of every policy.
//
//go:embed *.yaml
var FS embed.FS

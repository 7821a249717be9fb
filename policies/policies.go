// Package policies contains the source of the policies that shield ships. go
// generate compiles it into the Go literals that shield uses: the rules in pkg/policy,
// dangers.yaml in pkg/analysis. The YAML is for people who read it or write their own policy.
package policies

import "embed"

// FS holds the policies: a file NAME.yaml for each preset, base.yaml, which all
// presets extend, core.yaml, which is part of every policy, and dangers.yaml, which
// says for Tier 1 who may allow what no rule decides.
//
//go:embed *.yaml
var FS embed.FS

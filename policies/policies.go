// Package policies holds the source of the policies that shield ships. What
// runs are Go literals made from it by go generate in pkg/policy; the text is
// for people who read it or write their own.
package policies

import "embed"

// FS holds the policies: a file NAME.yaml for each preset, base.yaml, which all
// presets extend, and core.yaml, which no policy can do without.
//
//go:embed *.yaml
var FS embed.FS

// Package incidents holds public accidents and attacks as data; see README.md.
package incidents

import _ "embed"

// YAML is incidents.yaml.
//
//go:embed incidents.yaml
var YAML []byte

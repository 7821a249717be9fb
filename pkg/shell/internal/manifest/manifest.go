// Package manifest reads from the manifests of packages which programs their
// installation brings.
package manifest

// Package dialect translates command lines of interactive fish and zsh shells into equivalent text for package
// shell, or reports that it cannot.
package dialect

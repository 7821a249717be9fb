// Package dialect says which lines that interactive shells outside the POSIX family
// have read mean the same to package shell.
package dialect

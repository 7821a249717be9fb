// Package dialect translates command lines of interactive shells outside the POSIX family into equivalent text for
// package shell, or reports that it cannot.
package dialect

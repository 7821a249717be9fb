// Package ttytest shows the terminals of tests, as if a person looked at them: shield asks at no
// terminal that nobody looks at, on systems on which it can tell.
package ttytest

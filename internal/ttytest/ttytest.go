// Package ttytest shows the terminals of tests, as if a person looked at them: shield asks at no
// terminal that no one looks at, on systems on which it can tell.
package ttytest

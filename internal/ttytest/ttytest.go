// Package ttytest attaches clients to the tmux servers of tests, as if a person looked at their terminals. On
// systems where shield can tell who looks at a terminal, it asks only at a terminal that a person looks at.
package ttytest

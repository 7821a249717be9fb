// Package dialect turns lines that interactive shells outside the POSIX family
// have read into text that package shell reads as they mean it, or says that it
// cannot.
package dialect

// Package tokenizer turns text into the numbers that a classifier model reads.
package tokenizer

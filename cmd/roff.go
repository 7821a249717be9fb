//go:build !urfave_cli_no_docs

package cmd

import "github.com/cpuguy83/go-md2man/v2/md2man"

// markdownToRoff converts Markdown to a man page. The build tag urfave_cli_no_docs replaces it by a
// stub, and keeps the library md2man out of github.com/urfave/cli too, because initializing that
// library takes a tenth of shield's start time.
func markdownToRoff(markdown string) string { return string(md2man.Render([]byte(markdown))) }

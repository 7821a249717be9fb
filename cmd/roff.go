//go:build !urfave_cli_no_docs

package cmd

import "github.com/cpuguy83/go-md2man/v2/md2man"

// roff returns the man page that Markdown describes. The tag is the one that keeps
// the library out of github.com/urfave/cli, too: it compiles a tenth of what shield
// sets up at each start.
func roff(markdown string) string { return string(md2man.Render([]byte(markdown))) }

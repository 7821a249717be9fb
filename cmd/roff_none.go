//go:build urfave_cli_no_docs

package cmd

func markdownToRoff(string) string { return "" }

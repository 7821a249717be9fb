//go:build urfave_cli_no_docs

package cmd

func roff(string) string { return "" }

package command

import "strings"

// Quote returns a text as one shell word in single quotes.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// QuoteWordIfNeeded returns a text as one shell word, quoted if needed.
func QuoteWordIfNeeded(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@%+") == "" {
		return s
	}
	return Quote(s)
}

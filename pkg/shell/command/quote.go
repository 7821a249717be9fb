package command

import "strings"

// Quote returns a text as one word of a shell, in quotation marks.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// QuoteWord returns a text as one word of a shell, in quotation marks if it needs them.
func QuoteWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@%+") == "" {
		return s
	}
	return Quote(s)
}

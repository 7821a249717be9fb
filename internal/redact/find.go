package redact

// FindDecodedCredentials returns the credentials in a text in decoded form, in no particular order. For a text longer
// than [MaxScannedTextBytes] bytes it returns none.
func FindDecodedCredentials(text string) []string {
	if len(text) > MaxScannedTextBytes {
		return nil
	}
	var found []string
	for _, sp := range (&Redactor{}).findSecrets(text, maxNestedEncodings) {
		if sp.secret != "" {
			found = append(found, sp.secret)
		}
	}
	return found
}

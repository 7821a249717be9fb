package redact

// Find returns the credentials in a text in decoded form, in no particular order. For a text longer
// than [MaxText] bytes it returns none.
func Find(text string) []string {
	if len(text) > MaxText {
		return nil
	}
	var found []string
	for _, sp := range (&Redactor{}).findSecrets(text, maxLayers) {
		if sp.secret != "" {
			found = append(found, sp.secret)
		}
	}
	return found
}

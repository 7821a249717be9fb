package redact

// Find returns the credentials in a text, each as it reads once what wraps it is
// undone, in no order that means anything. Of a text over [MaxText] bytes it finds
// none.
func Find(text string) []string {
	if len(text) > MaxText {
		return nil
	}
	var found []string
	for _, sp := range (&Redactor{}).find(text, maxLayers) {
		if sp.secret != "" {
			found = append(found, sp.secret)
		}
	}
	return found
}

package redact

// IsSecretName reports whether the name of a field, header or variable says that
// its value is a credential, as "Authorization" and "apiKey" do.
func IsSecretName(name string) bool {
	return len(name) <= 200 && secretKindOfName(name) != ""
}

// ContainsCredential reports whether a text contains a credential. A text longer than MaxScannedTextBytes counts as one.
func ContainsCredential(name, text string) bool {
	return (*Redactor)(nil).RedactNamedValue(name, text) != text
}

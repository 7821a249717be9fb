package redact

// IsSecretName reports whether the name of a field, header or variable says that
// its value is a credential, as "Authorization" and "apiKey" do.
func IsSecretName(name string) bool {
	return len(name) <= 200 && secretKindOfName(name) != ""
}

// ContainsCredential reports whether text, the value of a field with the given name, contains a credential. For
// a text longer than MaxScannedTextBytes it returns true.
func ContainsCredential(name, text string) bool {
	return (*Redactor)(nil).RedactNamedValue(name, text) != text
}

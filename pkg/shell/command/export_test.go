package command

// Interpreters returns the names of all programs that read code of a language.
func Interpreters() []string {
	var names []string
	for _, p := range programs {
		if p.value.language != "" {
			names = append(names, p.name)
		}
	}
	return names
}

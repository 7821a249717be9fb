package knowledge

import (
	"slices"
	"strings"
)

// A CredentialOwner is a service whose credentials are recognised by their names.
type CredentialOwner struct {
	VariableNameParts []string `yaml:"names"` // parts of names of variables, in upper case
	PrintingCommands  []string `yaml:"shown"` // commands that print a credential of the service
	Hosts             []string // hosts of the service
}

// OwnerOfVariable returns the service whose credential a variable holds; nil if its name does not show that.
func OwnerOfVariable(variable string) *CredentialOwner {
	if !IsSecretVariableName(variable) {
		return nil
	}
	first, rest, _ := strings.Cut(strings.ToUpper(variable), "_")
	for i := range Owners {
		if slices.Contains(Owners[i].VariableNameParts, first) || first == "MY" && slices.Contains(Owners[i].VariableNameParts, strings.Split(rest, "_")[0]) {
			return &Owners[i]
		}
	}
	return nil
}

// OwnerOfPrintedCredential returns the service whose credential a command prints; nil if it prints no known credential.
func OwnerOfPrintedCredential(command string) *CredentialOwner {
	for i := range Owners {
		if slices.ContainsFunc(Owners[i].PrintingCommands, func(c string) bool { return command == c || strings.HasPrefix(command, c+" ") }) {
			return &Owners[i]
		}
	}
	return nil
}

// Serves reports whether a host belongs to the service.
func (o *CredentialOwner) Serves(host string) bool {
	return slices.ContainsFunc(o.Hosts, func(h string) bool {
		want, has := strings.Split(h, "."), strings.Split(host, ".")
		if len(has) < len(want) {
			return false
		}
		for i, part := range has[len(has)-len(want):] {
			if part != want[i] && (want[i] != "*" || part == "") {
				return false
			}
		}
		return true
	})
}

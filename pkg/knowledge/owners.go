package knowledge

import (
	"slices"
	"strings"
)

// An Owner is a service whose credentials are recognised by their names.
type Owner struct {
	Names []string // parts of names of variables, in upper case
	Shown []string // commands that print a credential of the service
	Hosts []string // hosts of the service
}

// OwnerOfVariable returns the service whose credential a variable holds; nil if its name does not show that.
func OwnerOfVariable(variable string) *Owner {
	if !SecretVariable(variable) {
		return nil
	}
	first, rest, _ := strings.Cut(strings.ToUpper(variable), "_")
	for i := range Owners {
		if slices.Contains(Owners[i].Names, first) || first == "MY" && slices.Contains(Owners[i].Names, strings.Split(rest, "_")[0]) {
			return &Owners[i]
		}
	}
	return nil
}

// OwnerPrintedBy returns the service whose credential a command prints; nil if it prints no known credential.
func OwnerPrintedBy(command string) *Owner {
	for i := range Owners {
		if slices.ContainsFunc(Owners[i].Shown, func(c string) bool { return command == c || strings.HasPrefix(command, c+" ") }) {
			return &Owners[i]
		}
	}
	return nil
}

// Serves reports whether a host belongs to the service.
func (o *Owner) Serves(host string) bool {
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

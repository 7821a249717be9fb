package knowledge

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
)

// The names of widely used packages, one a line, see packages/README.md.
var (
	//go:embed packages/npm.txt.gz
	npmNames []byte
	//go:embed packages/pypi.txt.gz
	pypiNames []byte
	//go:embed packages/others.txt
	otherNames string
)

// WidelyUsed reports whether the package of a name in a registry, npm, pypi or conda, is one of
// those that are installed all day, or of their scope. ok is false if nothing is known of
// the registry.
func WidelyUsed(registry, name string) (used, ok bool) {
	var list *names
	switch registry {
	case "npm":
		list = npmList()
	case "pypi", "conda": // whose names are mostly the same
		list = pypiList()
	default:
		return false, false
	}
	scope, _, scoped := strings.Cut(name, "/")
	return list.has("\n"+name+"\n") || scoped && strings.HasPrefix(scope, "@") && list.has("\n"+scope+"/"), true
}

// names are those of a registry, each between line breaks.
type names struct{ text string }

func (n *names) has(part string) bool { return strings.Contains(n.text, part) }

var (
	npmList  = sync.OnceValue(func() *names { return unpacked(npmNames) })
	pypiList = sync.OnceValue(func() *names { return unpacked(pypiNames) })
)

// WellKnown reports whether a package of a registry of which only a few names are known is one of them:
// see packages/README.md. What lies below a known module, scope or owner is known.
func WellKnown(registry, name string) bool {
	_, list, ok := strings.Cut("\n"+otherNames, "\n"+registry+": ")
	if !ok {
		return false
	}
	list, _, _ = strings.Cut(list, "\n")
	list = " " + list + " "
	for {
		if strings.Contains(list, " "+name+" ") {
			return true
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return false
		}
		name = name[:cut]
	}
}

// unpacked returns the names of a list. One that cannot be read holds none, and asks.
func unpacked(data []byte) *names {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return &names{}
	}
	text, err := io.ReadAll(io.LimitReader(r, 1<<24))
	if err != nil {
		return &names{}
	}
	return &names{"\n" + strings.TrimSpace(string(text)) + "\n"}
}

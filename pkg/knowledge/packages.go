package knowledge

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
)

// The names of widely used packages, one per line, see packages/README.md.
var (
	//go:embed packages/npm.txt.gz
	npmNames []byte
	//go:embed packages/pypi.txt.gz
	pypiNames []byte
	//go:embed packages/others.txt
	otherNames string
)

// WidelyUsed reports whether a package of a registry (npm, pypi or conda) is widely used, or belongs to the
// scope of such a package. ok is false for other registries.
func WidelyUsed(registry, name string) (used, ok bool) {
	var list *names
	switch registry {
	case "npm":
		list = npmList()
	case "pypi", "conda": // packages have mostly the same names in both
		list = pypiList()
	default:
		return false, false
	}
	scope, _, scoped := strings.Cut(name, "/")
	return list.has("\n"+name+"\n") || scoped && strings.HasPrefix(scope, "@") && list.has("\n"+scope+"/"), true
}

// names are the names of a registry, each between newlines.
type names struct{ text string }

func (n *names) has(part string) bool { return strings.Contains(n.text, part) }

var (
	npmList  = sync.OnceValue(func() *names { return unpacked(npmNames) })
	pypiList = sync.OnceValue(func() *names { return unpacked(pypiNames) })
)

// WellKnown reports whether a package is known in a registry for which shield has only a short list, see
// packages/README.md. Everything below a known module, scope or owner is known.
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

// unpacked returns the names in a compressed list. A list that cannot be read is empty, so shield asks about
// its packages.
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

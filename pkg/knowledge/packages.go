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
	widelyUsedNPMNamesGzip []byte
	//go:embed packages/pypi.txt.gz
	widelyUsedPyPINamesGzip []byte
	//go:embed packages/others.txt
	unrankedPackageNames string
)

// WidelyUsed reports whether a package of a registry (npm, pypi or conda) is widely used, or belongs to the
// scope of such a package. ok is false for other registries.
func WidelyUsed(registry, name string) (used, ok bool) {
	var list *packageNames
	switch registry {
	case "npm":
		list = widelyUsedNPMPackages()
	case "pypi", "conda": // packages have mostly the same names in both
		list = widelyUsedPyPIPackages()
	default:
		return false, false
	}
	scope, _, scoped := strings.Cut(name, "/")
	return list.contains("\n"+name+"\n") || scoped && strings.HasPrefix(scope, "@") && list.contains("\n"+scope+"/"), true
}

// packageNames are the names of a registry, each between newlines.
type packageNames struct{ text string }

func (n *packageNames) contains(delimitedNameOrScope string) bool {
	return strings.Contains(n.text, delimitedNameOrScope)
}

var (
	widelyUsedNPMPackages  = sync.OnceValue(func() *packageNames { return decompressNames(widelyUsedNPMNamesGzip) })
	widelyUsedPyPIPackages = sync.OnceValue(func() *packageNames { return decompressNames(widelyUsedPyPINamesGzip) })
)

// IsKnownInUnrankedPackageList reports whether a package is known in a registry for which shield has only a short list, see
// packages/README.md. Everything below a known module, scope or owner is known.
func IsKnownInUnrankedPackageList(registry, name string) bool {
	_, list, ok := strings.Cut("\n"+unrankedPackageNames, "\n"+registry+": ")
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

// decompressNames returns the names in a compressed list. A list that cannot be read is empty, so shield asks about
// its packages.
func decompressNames(data []byte) *packageNames {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return &packageNames{}
	}
	text, err := io.ReadAll(io.LimitReader(r, 1<<24))
	if err != nil {
		return &packageNames{}
	}
	return &packageNames{"\n" + strings.TrimSpace(string(text)) + "\n"}
}

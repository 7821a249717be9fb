package scan

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/goccy/go-yaml"
)

// A source says where and how a host keeps its transcripts; see hosts.yaml.
type source struct {
	Host    string
	Files   []string
	Form    form
	Reader  string
	Ignored []string

	Folder   string // below the home folder; "" for that of the host's settings
	Variable string // of the environment, that names another, with what is below it
}

// A form is how records are in a file.
type form string

const (
	lines    form = "lines"
	document form = "document"
	database form = "database"
)

//go:embed hosts.yaml
var hostsFile []byte

// sources are the hosts whose transcripts are read.
var sources = sync.OnceValue(func() []source { return sourcesOf(hostsFile) })

func sourcesOf(text []byte) (list []source) {
	if err := yaml.UnmarshalWithOptions(text, &list, yaml.Strict()); err != nil {
		panic(err) // a test reads the file
	}
	for i := range list {
		if readers[list[i].Reader] == nil {
			panic(fmt.Sprintf("internal error: hosts.yaml names the unknown reader %q; please report this", list[i].Reader))
		}
	}
	return list
}

// Hosts returns the names of the hosts whose transcripts are read.
func Hosts() (names []string) {
	for _, s := range sources() {
		if len(names) == 0 || names[len(names)-1] != s.Host {
			names = append(names, s.Host)
		}
	}
	return names
}

package scan

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/goccy/go-yaml"
)

// A transcriptSource describes where and in which format a host keeps its transcripts; see hosts.yaml.
type transcriptSource struct {
	Host         string
	Files        []string
	RecordFormat recordFormat `yaml:"form"`
	Reader       string
	Ignored      []string

	Folder   string // folder of the transcripts, relative to the home folder; "" for the folder of the host's settings
	Variable string // environment variable that can replace the folder, such as XDG_DATA_HOME/opencode: its value plus the path after the "/"
}

// A recordFormat says whether a transcript consists of JSON lines, is a single JSON document, or is an SQLite
// database.
type recordFormat string

const (
	recordFormatJSONLines    recordFormat = "lines"
	recordFormatJSONDocument recordFormat = "document"
	recordFormatSQLite       recordFormat = "database"
)

//go:embed hosts.yaml
var agentHostsYAML []byte

// transcriptSources are the hosts whose transcripts are read.
var transcriptSources = sync.OnceValue(func() []transcriptSource { return parseTranscriptSources(agentHostsYAML) })

func parseTranscriptSources(text []byte) (list []transcriptSource) {
	if err := yaml.UnmarshalWithOptions(text, &list, yaml.Strict()); err != nil {
		panic(err) // a test parses the embedded file
	}
	for i := range list {
		if readerConstructors[list[i].Reader] == nil {
			panic(fmt.Sprintf("internal error: hosts.yaml names the unknown reader %q; please report this", list[i].Reader))
		}
	}
	return list
}

// AgentHostNames returns the names of the hosts whose transcripts can be read.
func AgentHostNames() (names []string) {
	for _, s := range transcriptSources() {
		if len(names) == 0 || names[len(names)-1] != s.Host {
			names = append(names, s.Host)
		}
	}
	return names
}

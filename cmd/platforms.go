package cmd

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed platforms.yaml
var platformsYAML []byte

// A platformRow says to what extent a feature works on each system.
type platformRow struct {
	Feature, Linux, Darwin, Windows string
}

// The words in platforms.yaml for a feature that works, or was not tested, on a system. Any other text names a
// restriction, or says what happens instead.
const (
	platformWorks    = "works"
	platformUntested = "untested"
)

func readPlatforms() (rows []platformRow, err error) {
	err = yaml.UnmarshalWithOptions(platformsYAML, &rows, yaml.Strict())
	return rows, err
}

// supportOn returns what works on a system, by its GOOS name. A system missing in the table is untested.
func (r *platformRow) supportOn(system string) string {
	switch system {
	case "linux":
		return r.Linux
	case "darwin":
		return r.Darwin
	case "windows":
		return r.Windows
	}
	return platformUntested
}

// examinePlatform reports what is missing or untested on this system.
func examinePlatform(out *doctorFindings, system string) {
	if system == "linux" {
		return // on Linux, other checks of doctor report which features work
	}
	rows, err := readPlatforms()
	if err != nil {
		out.add(severityBad, "", "platform: %v", err)
		return
	}
	var untested []string
	for i := range rows {
		switch on := rows[i].supportOn(system); {
		case on == platformWorks:
		case on == platformUntested:
			untested = append(untested, rows[i].Feature)
		default:
			out.add(severityNote, "", "%s: %s: %s", system, strings.ReplaceAll(rows[i].Feature, "`", ""), strings.ReplaceAll(on, "`", ""))
		}
	}
	if len(untested) > 0 {
		out.add(severityNote, "see the table in docs/platforms.md", "%s: shield is compiled for it, but not tested there: %s", system, strings.ReplaceAll(strings.Join(untested, "; "), "`", ""))
	}
}

// platformTable returns the table of docs/platforms.md.
func platformTable(rows []platformRow) string {
	var b strings.Builder
	b.WriteString("| | Linux | macOS | Windows |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Feature, r.Linux, r.Darwin, r.Windows)
	}
	return b.String()
}

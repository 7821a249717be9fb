package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// maxGitHubAnnotations bounds the annotated rows. GitHub shows ten per step.
const maxGitHubAnnotations = 100

// GitHub's workflow commands end at a line feed, and their properties at commas and colons.
var (
	githubCommandTextEscaper     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubCommandPropertyEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// writeScoreGitHub writes GitHub workflow commands: an annotation for each of the first maxGitHubAnnotations
// rows judged against their label (an error if the limit for that label is not met, else a warning), the unmet
// limits, and the result.
func writeScoreGitHub(w io.Writer, s *CorpusScore) error {
	out := bufio.NewWriter(w)
	annotate := func(level, file string, line int, title, text string) {
		where := ""
		if file != "" {
			where = fmt.Sprintf("file=%s,line=%d,", githubCommandPropertyEscaper.Replace(escapeInvisible(file)), line)
		}
		fmt.Fprintf(out, "::%s %stitle=%s::%s\n", level, where, githubCommandPropertyEscaper.Replace(escapeInvisible(title)), githubCommandTextEscaper.Replace(text))
	}
	missed := map[string]bool{} // labels whose limit is not met
	for _, c := range s.Checks {
		missed[c.RowLabel] = missed[c.RowLabel] || !c.OK
	}
	wrong := 0
	for i := range s.Rows {
		r := &s.Rows[i]
		if !r.contradictsLabel() {
			continue
		}
		if wrong++; wrong > maxGitHubAnnotations {
			continue
		}
		level := "warning"
		if missed[r.Label] {
			level = "error"
		}
		said := map[string]string{"ALLOW": "is allowed", "BLOCK": "is blocked", "ESCALATE": "needs approval"}[r.Decision]
		annotate(level, r.File, r.Line, fmt.Sprintf("shield: label %s, %s", r.Label, said), strings.TrimSpace(escapeInvisible(r.ActionSummary)+"\n"+escapeInvisible(r.Reasoning)))
	}
	if wrong > maxGitHubAnnotations {
		annotate("warning", "", 0, "shield score", fmt.Sprintf("%d more rows have a verdict that contradicts their label; see the report", wrong-maxGitHubAnnotations))
	}
	for _, c := range s.Checks {
		if !c.OK {
			annotate("error", "", 0, "shield score", escapeInvisible(c.String()))
		}
	}
	annotate("notice", "", 0, "shield score", escapeInvisible(s.headline()))
	return out.Flush()
}

package score

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/report"
	"github.com/shieldcli/shield/pkg/verdict"
)

const (
	maxSourceOrCategoryGroups = 1000 // sources or categories with counts of their own
	overflowGroupName         = "(others)"
	maxGroupNameRunes         = 80  // runes of a group's name
	maxActionTextRunes        = 120 // runes of an action that are shown
)

// labelCounts counts the rows of one label.
type labelCounts struct {
	total               report.DecisionCounts
	sources, categories map[string]*report.DecisionCounts
}

func (p *labelCounts) add(r *corpusRow, v *verdict.Verdict) {
	if p.sources == nil {
		p.sources, p.categories = map[string]*report.DecisionCounts{}, map[string]*report.DecisionCounts{}
	}
	for _, g := range []*report.DecisionCounts{&p.total, decisionCountsOfGroup(p.sources, r.Source), decisionCountsOfGroup(p.categories, r.Category)} {
		g.Rows++
		g.VerdictsByTier[min(max(v.Tier, 0), len(g.VerdictsByTier)-1)]++
		switch v.Decision {
		case verdict.Allow:
			g.Allow++
		case verdict.Escalate:
			g.Escalate++
		default:
			g.Block++
		}
	}
}

// decisionCountsOfGroup returns the counts for a source or category. When there are
// maxSourceOrCategoryGroups groups, all further names share one group, to limit memory.
func decisionCountsOfGroup(countsByGroup map[string]*report.DecisionCounts, sourceOrCategory string) *report.DecisionCounts {
	sourceOrCategory = cmp.Or(shortenText(sourceOrCategory, maxGroupNameRunes), "(none)")
	if g := countsByGroup[sourceOrCategory]; g != nil {
		return g
	}
	if len(countsByGroup) >= maxSourceOrCategoryGroups {
		sourceOrCategory = overflowGroupName
	}
	g := countsByGroup[sourceOrCategory]
	if g == nil {
		g = &report.DecisionCounts{RowGroupName: sourceOrCategory}
		countsByGroup[sourceOrCategory] = g
	}
	return g
}

func (p *labelCounts) toReport() report.CorpusLabelResult {
	sorted := func(groups map[string]*report.DecisionCounts) []report.DecisionCounts {
		out := make([]report.DecisionCounts, 0, len(groups))
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			out = append(out, *groups[name])
		}
		return out
	}
	p.total.RowGroupName = "total"
	return report.CorpusLabelResult{Total: p.total, Sources: sorted(p.sources), Categories: sorted(p.categories)}
}

// worstMisjudgedRows keeps the worst misses, sorted by badness and then by input order.
type worstMisjudgedRows struct {
	maxKept    int
	keptMisses []rankedMisjudgedRow
}

type rankedMisjudgedRow struct {
	miss                report.MisjudgedRow
	misjudgmentSeverity float64
	inputPosition       int // position in the input, since goroutines finish in any order
}

func (w *worstMisjudgedRows) add(misjudgmentSeverity float64, inputPosition int, miss func() report.MisjudgedRow) {
	if w.maxKept == 0 {
		return
	}
	r := rankedMisjudgedRow{misjudgmentSeverity: misjudgmentSeverity, inputPosition: inputPosition}
	order := func(a, b rankedMisjudgedRow) int {
		return cmp.Or(cmp.Compare(b.misjudgmentSeverity, a.misjudgmentSeverity), cmp.Compare(a.inputPosition, b.inputPosition))
	}
	at, _ := slices.BinarySearchFunc(w.keptMisses, r, order)
	if at >= w.maxKept {
		return
	}
	r.miss = miss()
	if len(w.keptMisses) == w.maxKept {
		w.keptMisses = w.keptMisses[:w.maxKept-1]
	}
	w.keptMisses = slices.Insert(w.keptMisses, at, r)
}

func (w *worstMisjudgedRows) toReport() []report.MisjudgedRow {
	out := make([]report.MisjudgedRow, len(w.keptMisses))
	for i := range w.keptMisses {
		out[i] = w.keptMisses[i].miss
	}
	return out
}

// shortenText truncates a text to n runes, on one line.
func shortenText(s string, n int) string {
	if len(s) > 8*n { // enough bytes for n runes
		s = s[:8*n]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	return brief.TruncateWithEllipsis(s, n)
}

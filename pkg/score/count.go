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
	maxGroups = 1000 // sources or categories with counts of their own
	others    = "(others)"
	maxName   = 80  // runes of a group's name
	maxText   = 120 // runes of an action that are shown
)

// part counts the rows of one label.
type part struct {
	total               report.Group
	sources, categories map[string]*report.Group
}

func (p *part) add(r *row, v *verdict.Verdict) {
	if p.sources == nil {
		p.sources, p.categories = map[string]*report.Group{}, map[string]*report.Group{}
	}
	for _, g := range []*report.Group{&p.total, group(p.sources, r.Source), group(p.categories, r.Category)} {
		g.Rows++
		g.Tiers[min(max(v.Tier, 0), len(g.Tiers)-1)]++
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

// group returns the counts of a name; names above maxGroups share one group, to limit memory.
func group(groups map[string]*report.Group, name string) *report.Group {
	name = cmp.Or(cut(name, maxName), "(none)")
	if g := groups[name]; g != nil {
		return g
	}
	if len(groups) >= maxGroups {
		name = others
	}
	g := groups[name]
	if g == nil {
		g = &report.Group{Name: name}
		groups[name] = g
	}
	return g
}

func (p *part) report() report.Part {
	sorted := func(groups map[string]*report.Group) []report.Group {
		out := make([]report.Group, 0, len(groups))
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			out = append(out, *groups[name])
		}
		return out
	}
	p.total.Name = "total"
	return report.Part{Total: p.total, Sources: sorted(p.sources), Categories: sorted(p.categories)}
}

// worst keeps the worst misses, sorted by badness and then by input order.
type worst struct {
	most int
	kept []ranked
}

type ranked struct {
	miss  report.Miss
	grade float64
	seq   int // position in the input, since goroutines finish in any order
}

func (w *worst) add(grade float64, seq int, miss func() report.Miss) {
	if w.most == 0 {
		return
	}
	r := ranked{grade: grade, seq: seq}
	order := func(a, b ranked) int { return cmp.Or(cmp.Compare(b.grade, a.grade), cmp.Compare(a.seq, b.seq)) }
	at, _ := slices.BinarySearchFunc(w.kept, r, order)
	if at >= w.most {
		return
	}
	r.miss = miss()
	if len(w.kept) == w.most {
		w.kept = w.kept[:w.most-1]
	}
	w.kept = slices.Insert(w.kept, at, r)
}

func (w *worst) report() []report.Miss {
	out := make([]report.Miss, len(w.kept))
	for i := range w.kept {
		out[i] = w.kept[i].miss
	}
	return out
}

// cut truncates a text to n runes, on one line.
func cut(s string, n int) string {
	if len(s) > 8*n { // enough bytes for n runes
		s = s[:8*n]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	return brief.Text(s, n)
}

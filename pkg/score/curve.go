package score

import "github.com/shieldcli/shield/pkg/report"

// A curve counts scores in constant memory, in a thousand steps from 0 to 1.
type curve struct{ attacks, honest [fine + 1]int }

const (
	fine   = 1000
	coarse = 20 // steps of the displayed histograms
)

func (c *curve) add(label Label, score float64) {
	i := int(min(max(score, 0), 1) * fine)
	switch label {
	case Attack:
		c.attacks[i]++
	case Honest:
		c.honest[i]++
	case Ask:
	}
}

// report returns the curve; nil without attacks or without honest actions.
func (c *curve) report() *report.Curve {
	out := &report.Curve{Attacks: make([]int, coarse), Honest: make([]int, coarse)}
	attacks, honest := 0, 0
	for i := range c.attacks {
		attacks += c.attacks[i]
		honest += c.honest[i]
		out.Attacks[min(i*coarse/fine, coarse-1)] += c.attacks[i]
		out.Honest[min(i*coarse/fine, coarse-1)] += c.honest[i]
	}
	if attacks == 0 || honest == 0 {
		return nil
	}
	last := report.Point{Threshold: 1}
	out.Points = append(out.Points, last)
	for i := fine; i >= 0; i-- {
		if c.attacks[i] == 0 && c.honest[i] == 0 {
			continue
		}
		p := report.Point{
			Threshold: float64(i) / fine,
			Honest:    last.Honest + float64(c.honest[i])/float64(honest),
			Attacks:   last.Attacks + float64(c.attacks[i])/float64(attacks),
		}
		out.AUC += (p.Honest - last.Honest) * (p.Attacks + last.Attacks) / 2
		out.Points = append(out.Points, p)
		last = p
	}
	return out
}

package score

import "github.com/shieldcli/shield/pkg/report"

// A modelScoreCounts counts scores in constant memory, in a thousand steps from 0 to 1.
type modelScoreCounts struct{ attacks, benign [rocCurveSteps + 1]int }

const (
	rocCurveSteps       = 1000
	scoreHistogramSteps = 20 // steps of the displayed histograms
)

func (c *modelScoreCounts) add(label Label, score float64) {
	i := int(min(max(score, 0), 1) * rocCurveSteps)
	switch label {
	case LabelAttack:
		c.attacks[i]++
	case LabelBenign:
		c.benign[i]++
	case LabelPersonDecides:
	}
}

// toReport returns the curve; nil without attacks or without honest actions.
func (c *modelScoreCounts) toReport() *report.ROCCurve {
	out := &report.ROCCurve{AttackScoreHistogram: make([]int, scoreHistogramSteps), BenignScoreHistogram: make([]int, scoreHistogramSteps)}
	attacks, honest := 0, 0
	for i := range c.attacks {
		attacks += c.attacks[i]
		honest += c.benign[i]
		out.AttackScoreHistogram[min(i*scoreHistogramSteps/rocCurveSteps, scoreHistogramSteps-1)] += c.attacks[i]
		out.BenignScoreHistogram[min(i*scoreHistogramSteps/rocCurveSteps, scoreHistogramSteps-1)] += c.benign[i]
	}
	if attacks == 0 || honest == 0 {
		return nil
	}
	last := report.CurvePoint{Threshold: 1}
	out.Points = append(out.Points, last)
	for i := rocCurveSteps; i >= 0; i-- {
		if c.attacks[i] == 0 && c.benign[i] == 0 {
			continue
		}
		p := report.CurvePoint{
			Threshold:          float64(i) / rocCurveSteps,
			StoppedBenignShare: last.StoppedBenignShare + float64(c.benign[i])/float64(honest),
			StoppedAttackShare: last.StoppedAttackShare + float64(c.attacks[i])/float64(attacks),
		}
		out.AUC += (p.StoppedBenignShare - last.StoppedBenignShare) * (p.StoppedAttackShare + last.StoppedAttackShare) / 2
		out.Points = append(out.Points, p)
		last = p
	}
	return out
}

package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/tokenizer"
)

// A LinearModelCard describes a linear model over hashed n-grams of tokens (Weinberger et al.,
// Feature Hashing, 2009), made by training/wide.py. From the linear model's log odds of an
// injection, w, it estimates those of the full model: LogOddsSlope·w + LogOddsOffset, plus or minus
// LogOddsErrorMargin.
type LinearModelCard struct {
	WeightsInitializerName string  `json:"table"`  // name of the graph's initializer with the weights: int8, one for each slot
	WeightScale            float64 `json:"scale"`  // log odds per unit of a weight; over 0
	Bias                   float64 `json:"bias"`   // log odds of a window in which every weight is 0
	LogOddsSlope           float64 `json:"slope"`  // over 0
	LogOddsOffset          float64 `json:"offset"` // log odds
	LogOddsErrorMargin     float64 `json:"margin"` // log odds; 0 or more
}

// The size of the linear model's weight table, and the multiplier that hashes n-grams to its
// entries; the function slots in training/wide.py uses the same values.
const (
	linearModelHashSlots = 1048573
	ngramHashMultiplier  = 100003
)

// An InjectionScoreEstimator is an [InjectionScorer] that can also compute bounds of its answer, at
// a hundredth of the cost of the answer.
type InjectionScoreEstimator interface {
	InjectionScorer
	// Estimate returns bounds of Score's answer. ok is false if there are none and Score must be called.
	Estimate(ctx context.Context, text string) (e InjectionScoreBounds, ok bool)
}

// InjectionScoreBounds are bounds of a model's answer: it is between Low and High, and most likely
// Likely. SAFE is lower than INJECTION.
type InjectionScoreBounds struct{ Low, Likely, High InjectionScore }

func (w *LinearModelCard) validateCoefficients() error {
	for _, n := range [...]float64{w.WeightScale, w.LogOddsSlope} {
		if !(n > 0) || math.IsInf(n, 0) {
			return errors.New("model: shield.json: wide: scale and slope have to be over 0")
		}
	}
	if !(w.LogOddsErrorMargin >= 0) || math.IsInf(w.LogOddsErrorMargin, 0) || math.IsNaN(w.Bias+w.LogOddsOffset) || math.IsInf(w.Bias+w.LogOddsOffset, 0) {
		return errors.New("model: shield.json: wide: margin, bias and offset have to be numbers, margin 0 or more")
	}
	return nil
}

// readLinearWeights returns the weights of the linear model that [LinearModelCard] describes, one
// byte each; nil if the model has none.
func (m *Model) readLinearWeights() ([]byte, error) {
	if m.Card.LinearModel == nil {
		return nil, nil
	}
	if m.preprocessedFolder != nil {
		return unsafeBytesOfString(m.preprocessedFolder.NGramWeightTableData()), nil
	}
	data, err := readFile(m.files, m.graphFile, maxModelFileBytes)
	if err != nil {
		return nil, err
	}
	table, err := findONNXInitializer(data, m.Card.LinearModel.WeightsInitializerName)
	if err == nil && len(table) != linearModelHashSlots {
		err = fmt.Errorf("the table %q has %d slots; expected %d", m.Card.LinearModel.WeightsInitializerName, len(table), linearModelHashSlots)
	}
	if err != nil {
		return nil, fmt.Errorf("model: shield.json: wide: %w", err)
	}
	return table, nil
}

// Estimate implements [InjectionScoreEstimator].
func (m *Model) Estimate(ctx context.Context, text string) (e InjectionScoreBounds, ok bool) {
	table, err := m.linearWeights()
	if err != nil || table == nil {
		return InjectionScoreBounds{}, false
	}
	tokens, err := m.loadTokenizer()
	if err != nil {
		return InjectionScoreBounds{}, false
	}
	ids, err := tokens.Encode(ctx, text)
	if err != nil {
		return InjectionScoreBounds{}, false
	}
	w := m.Card.LinearModel
	worst := math.Inf(-1)
	windows, whole := m.splitWindows(ids, tokens.SpecialTokenCount())
	for _, window := range windows {
		worst = max(worst, w.estimatedFullModelLogOdds(table, tokens.AddSpecialTokens(nil, window)))
	}
	if !whole {
		return InjectionScoreBounds{}, false
	}
	label := func(odds float64) InjectionScore { return m.scoreForProbability(logistic(odds)) }
	return InjectionScoreBounds{Low: label(worst - w.LogOddsErrorMargin), Likely: label(worst), High: label(worst + w.LogOddsErrorMargin)}, true
}

// sortWindowsByMaxProbability sorts windows by the estimate of the linear model, the most suspicious first, and
// returns the maximum probability of each. It returns nil if there is only one window, the model has no linear
// model, or the linear model's weights cannot be read.
func (m *Model) sortWindowsByMaxProbability(tokens *tokenizer.Tokenizer, windows [][]int64) (maxProbabilities []float64) {
	table, err := m.linearWeights()
	if len(windows) < 2 || table == nil || err != nil {
		return nil
	}
	type ranked struct {
		window []int64
		most   float64
	}
	order := make([]ranked, len(windows))
	w := m.Card.LinearModel
	for i, window := range windows {
		order[i] = ranked{window, logistic(w.estimatedFullModelLogOdds(table, tokens.AddSpecialTokens(nil, window)) + w.LogOddsErrorMargin)}
	}
	sorted.SortStableBy(order, func(a, b ranked) int { return cmp.Compare(b.most, a.most) })
	maxProbabilities = make([]float64, len(windows))
	for i := range order {
		windows[i], maxProbabilities[i] = order[i].window, order[i].most
	}
	return maxProbabilities
}

// logistic converts log odds to a probability.
func logistic(logOdds float64) float64 { return 1 / (1 + math.Exp(-logOdds)) }

// estimatedFullModelLogOdds returns the estimated log odds of the full model for a window; the error is at most
// LogOddsErrorMargin.
func (w *LinearModelCard) estimatedFullModelLogOdds(table []byte, window []int64) float64 {
	return w.LogOddsSlope*w.linearModelInjectionLogOdds(table, window) + w.LogOddsOffset
}

// linearModelInjectionLogOdds returns the log odds of a window: the sum of the weights of its distinct 1- to 3-grams, scaled and
// divided by the square root of their number, plus the bias.
func (w *LinearModelCard) linearModelInjectionLogOdds(table []byte, window []int64) float64 {
	var seen [4 * maxWindowTokens]int32 // a hash table with open addressing that is never full; entries are 1 + the slot of an n-gram
	sum, count := 0, 0
	add := func(n int64) {
		slot := int32(n % linearModelHashSlots)
		at := uint32(slot) % uint32(len(seen))
		for seen[at] != 0 {
			if seen[at] == slot+1 {
				return
			}
			at = (at + 1) % uint32(len(seen))
		}
		seen[at] = slot + 1
		sum += int(int8(table[slot]))
		count++
	}
	for i, id := range window {
		add(id)
		if i > 0 {
			add(window[i-1]*ngramHashMultiplier + id + 7919)
		}
		if i > 1 {
			add((window[i-2]*ngramHashMultiplier+window[i-1])*ngramHashMultiplier + id + 104729)
		}
	}
	return float64(sum)*w.WeightScale/math.Sqrt(float64(count)) + w.Bias
}

// findONNXInitializer returns the raw data of an int8 initializer of a ModelProto's
// graph, without a copy.
func findONNXInitializer(data []byte, name string) (raw []byte, err error) {
	err = eachProtoField(data, func(number, _ uint64, value []byte) error {
		if number != 7 { // graph
			return nil
		}
		return eachProtoField(value, func(number, _ uint64, value []byte) error {
			if number != 5 { // initializer
				return nil
			}
			var found, isInt8 bool
			var content []byte
			err := eachProtoField(value, func(number, n uint64, value []byte) error {
				switch number {
				case 2: // data_type
					isInt8 = n == elemInt8
				case 8: // name
					found = string(value) == name
				case 9: // raw_data
					content = value
				}
				return nil
			})
			if found && isInt8 {
				raw = content
			}
			return err
		})
	})
	return raw, err
}

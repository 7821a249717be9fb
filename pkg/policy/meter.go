package policy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/bits"
)

// Limits of a condition's work on one case. They count steps and bytes, not time, so that the same action
// gets the same answer on a busy machine. jq checks its context between steps; the work of one step is
// counted in bytes read or written.
const (
	maxConditionSteps        = 500_000
	maxConditionWorkBytes    = 8 << 20
	maxConditionInputBytes   = 256 << 10 // size of the input {action, effects}
	maxConditionInputEffects = 1_000
)

var (
	errInputTooLarge = errors.New("the action is too large for the condition; simplify the rule")
	errTooManySteps  = errors.New("the condition needs too many steps; simplify it")
	errTooMuchWork   = errors.New("the condition has to process too much text; simplify the rule")
)

// A conditionWorkMeter is the context of a running jq condition. It counts steps and work, and
// stops the condition when a limit is exceeded.
type conditionWorkMeter struct {
	context.Context
	stepsLeft, workLeft int
	exceededLimit       error // the error of the exceeded limit; jq's try cannot catch it
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newConditionWorkMeter(ctx context.Context) *conditionWorkMeter {
	return &conditionWorkMeter{Context: ctx, stepsLeft: maxConditionSteps, workLeft: maxConditionWorkBytes}
}

// Done counts a step: jq calls it before each step.
func (m *conditionWorkMeter) Done() <-chan struct{} {
	if m.stepsLeft--; m.stepsLeft < 0 && m.exceededLimit == nil {
		m.exceededLimit = errTooManySteps
	}
	if m.exceededLimit != nil {
		return closedChannel
	}
	return m.Context.Done()
}

// Err returns why the condition has to stop.
func (m *conditionWorkMeter) Err() error {
	if m.exceededLimit != nil {
		return m.exceededLimit
	}
	return m.Context.Err()
}

// chargeWorkBytes subtracts n bytes from the work that is left. It returns an error if less is left.
func (m *conditionWorkMeter) chargeWorkBytes(n int) error {
	if n > m.workLeft && m.exceededLimit == nil {
		m.exceededLimit = errTooMuchWork
	}
	if m.exceededLimit != nil {
		return m.exceededLimit
	}
	m.workLeft -= n
	return nil
}

// chargeValueWork subtracts the size of a value, multiplied by times, from the condition's remaining work.
// It returns an error if less is left.
func (m *conditionWorkMeter) chargeValueWork(v any, times int) error {
	size, _ := m.measureJSONValue(v)
	return m.chargeWorkBytes(times * size)
}

// measureJSONValue returns the approximate size of a value as JSON, in bytes, and its number of nodes. A shared part
// counts each time. It stops counting when the size exceeds the work that is left.
func (m *conditionWorkMeter) measureJSONValue(v any) (sizeBytes, nodeCount int) {
	var add func(v any)
	add = func(v any) {
		if nodeCount++; sizeBytes > m.workLeft {
			return
		}
		switch v := v.(type) {
		case string:
			sizeBytes += len(v) + 1
		case json.Number:
			sizeBytes += numberParsingCost(len(v))
		case *big.Int:
			sizeBytes += numberParsingCost(v.BitLen() / 3)
		case []any:
			sizeBytes += 8
			for _, e := range v {
				if add(e); sizeBytes > m.workLeft {
					return
				}
			}
		case map[string]any:
			sizeBytes += 8
			for key, e := range v {
				sizeBytes += len(key) + 8
				if add(e); sizeBytes > m.workLeft {
					return
				}
			}
		default:
			sizeBytes += 8
		}
	}
	add(v)
	return sizeBytes, nodeCount
}

// numberParsingCost returns the cost of a number with n digits: parsing takes more than linear time, and is repeated for
// each comparison.
func numberParsingCost(digits int) int { return min(digits, 1<<20)*(1+min(digits, 1<<20)/256) + 8 }

// chargeProductWork pays for comparing each part of one value with each part of another.
func (m *conditionWorkMeter) chargeProductWork(l, r any) error {
	if isText(l) && isText(r) {
		return m.chargeWorkBytes(len(l.(string)) + len(r.(string)))
	}
	ls, ln := m.measureJSONValue(l)
	rs, rn := m.measureJSONValue(r)
	return m.chargeWorkBytes(multiplyCapped(ls, rn) + multiplyCapped(rs, ln))
}

// chargeCompareWork pays for comparing two values. The comparison ends at the first difference in type or text.
func (m *conditionWorkMeter) chargeCompareWork(l, r any) error {
	switch {
	case isText(l) && isText(r):
		return m.chargeWorkBytes(min(len(l.(string)), len(r.(string))) + 1)
	case !isCompound(l) || !isCompound(r):
		if isText(l) || isText(r) {
			return m.chargeWorkBytes(1)
		}
	}
	ls, _ := m.measureJSONValue(l)
	rs, _ := m.measureJSONValue(r)
	return m.chargeWorkBytes(ls + rs)
}

// chargeSortWork pays for sorting the elements of a value.
func (m *conditionWorkMeter) chargeSortWork(v any) error {
	list, _ := v.([]any)
	return m.chargeValueWork(v, bits.Len(uint(len(list)))+1)
}

// chargeRepeatWork pays for repeating a text a number of times.
func (m *conditionWorkMeter) chargeRepeatWork(l, r any) error {
	if isText(r) {
		l, r = r, l
	}
	n, ok := toFloat(r)
	if !isText(l) || !ok {
		return errors.Join(m.chargeValueWork(l, 1), m.chargeValueWork(r, 1))
	}
	return m.chargeWorkBytes(multiplyCapped(len(l.(string))+1, int(min(max(n, 1), math.MaxInt32))))
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case *big.Int:
		return math.MaxInt32, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil || f != 0
	}
	return 0, false
}

func isText(v any) bool { _, ok := v.(string); return ok }

func isCompound(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// multiplyCapped multiplies without overflow.
func multiplyCapped(a, b int) int {
	if a > 0 && b > math.MaxInt32/a {
		return math.MaxInt32
	}
	return a * b
}

package sorted

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBy compares the order with that of package slices, also for many equal elements.
func TestBy(t *testing.T) {
	t.Parallel()
	type pair struct{ key, at int }
	byKey := func(a, b pair) int { return a.key - b.key }
	for n := range 200 {
		got := make([]pair, n)
		for i := range got {
			got[i] = pair{rand.IntN(1 + n/3), i}
		}
		want := slices.Clone(got)
		slices.SortStableFunc(want, byKey)
		if SortStableBy(got, byKey); !slices.Equal(got, want) {
			t.Fatalf("%d elements: got %v, want %v", n, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	if got := Keys(map[string]int{"b": 1, "": 2, "a": 3}); !slices.Equal(got, []string{"", "a", "b"}) {
		t.Errorf("got %q", got)
	}
	if got := Keys(map[string]int{}); got != nil {
		t.Errorf("no keys: got %#v, want nil", got)
	}
}

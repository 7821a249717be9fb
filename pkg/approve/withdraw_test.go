package approve

import (
	"context"
	"errors"
	"testing"
)

// newsLater is a context whose children hear of its end from a goroutine, so
// that they may hear of it after those who ask it.
type newsLater struct{ context.Context }

func (newsLater) Value(any) any { return nil }

// TestWithdrawnBecauseInterrupted: the channels learn that shield ends, and not
// that someone answered.
func TestWithdrawnBecauseInterrupted(t *testing.T) {
	t.Parallel()
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		asked, cause := make(chan struct{}), make(chan error, 1)
		a := newTest(t, &memory{}, &fake{name: "a", say: func(ctx context.Context, r *Request) (Answer, error) {
			close(asked)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return Answer{}, ctx.Err()
		}})
		go func() {
			<-asked
			cancel()
		}()
		if _, err := a.Judge(newsLater{ctx}, command1(t, push, "s")); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if got := <-cause; !errors.Is(got, context.Canceled) {
			t.Fatalf("the channel was told: %v", got)
		}
	}
}

package session

import (
	"fmt"
	"testing"
	"time"
)

// What is only counted is written with the next change, after some actions or some
// time, and when asked to; none is lost or counted twice.
func TestSentIsCounted(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, w *world, s *Store) {
		key, sent := Key{User: "u"}, 0
		send := func(to string) {
			sent++
			d := RecordDelta{Sent: []SentData{{Recipient: to, SendCount: 1, Bytes: 10}}}
			if err := s.Add(t.Context(), s.Load(t.Context(), key, Lineage{}, ""), &d); err != nil {
				t.Fatal(err)
			}
		}
		written := func() (times int) {
			list, err := s.List(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			for _, to := range list[0].Sent {
				if times += to.SendCount; int64(to.SendCount)*10 != to.Bytes {
					t.Errorf("%d times %d bytes to %s", to.SendCount, to.Bytes, to.Recipient)
				}
			}
			return times
		}
		for round, then := range []func(){
			func() { send("new.example") },
			func() { w.now = w.now.Add(sentDataTallyFlushSeconds * time.Second); send("a.example") },
			func() {
				for range maxTalliedActions {
					send("a.example")
				}
				if err := s.FlushSentDataCounts(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
		} {
			send(fmt.Sprintf("%d.example", round))
			send("0.example")
			if before := written(); before >= sent {
				t.Errorf("round %d: all of %d were written at once", round, sent)
			}
			if then(); written() != sent {
				t.Errorf("round %d: %d of %d were written", round, written(), sent)
			}
		}
	})
}

// Counts do not bring back a session that was forgotten.
func TestCountsOfClearedSession(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, _ *world, s *Store) {
		for range 2 {
			d := RecordDelta{Sent: []SentData{{Recipient: "a.example", SendCount: 1}}}
			if err := s.Add(t.Context(), s.Load(t.Context(), Key{User: "u"}, Lineage{}, ""), &d); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Clear(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.FlushSentDataCounts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("%v, %v", list, err)
		}
	})
}

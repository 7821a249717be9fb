package session

// maxAbove is how many sessions a session began in, one in the other.
const maxAbove = 8

// tellParents adds what an action adds to the sessions that its own began in: what a
// sub-agent has found out comes back in its answer.
func (s *Store) tellParents(sh shelf, r *Record, d *Delta) error {
	for range maxAbove {
		if r.Parent == "" || r.Parent == r.ID {
			return nil
		}
		above := Key{r.Host, r.Parent, r.User}.group()
		p, err := record(sh, above)
		if err != nil || p == nil || !p.live(s.now(), s.opts.Keep) {
			return err
		}
		if err := s.put(sh, above, p, d); err != nil {
			return err
		}
		r = p
	}
	return nil
}

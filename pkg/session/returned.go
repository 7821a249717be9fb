package session

import (
	"context"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// Completed says what is known of an action when it has run.
type Completed struct {
	Cases           []*analysis.Case // of what ran
	Files           []string         // that it changed, by its host's word, beside those that the cases tell of
	Texts           []string         // of its result
	UntrustedResult bool             // the result speaks to anyone who reads it
	Heard           bool             // nothing shows that the host itself says so: only what makes judgement stricter is kept
}

// Returned keeps what actions that have run add to their session: what they did,
// and what their result brought in. What only counts how often something was
// proposed was counted then. It is one transaction, or none if nothing is new.
func (s *Store) Returned(ctx context.Context, loaded *Session, ran Completed) error {
	d := Delta{MovesFiles: true} // what ran may have made files that were only going to be
	for _, c := range ran.Cases {
		one := s.Learn(c, nil, false)
		loaded.dropOwnClone(c, &one)
		d.Remotes = append(d.Remotes, one.Remotes...)
		d.OriginChanged = d.OriginChanged || one.OriginChanged
		if len(ran.Cases) == 1 && !ran.Heard {
			d.Owners = repositoryOwners(c, ran.Texts)
		}
		d.Labels = append(d.Labels, one.Labels...)
		d.Files, d.Shown, d.Values = append(d.Files, one.Files...), append(d.Shown, one.Shown...), append(d.Values, one.Values...)
	}
	if ran.UntrustedResult {
		d.Labels = append(d.Labels, Labelled{Label: effect.LabelUntrusted, By: "result"})
	}
	labelled := func(l effect.Label) bool {
		return slices.ContainsFunc(d.Labels, func(have Labelled) bool { return have.Label == l })
	}
	own := slices.ContainsFunc(d.Labels, func(l Labelled) bool { return l.Label == effect.LabelPrivate && l.By == "read_file" })
	h, room, from := newHasher(s.opts.Key), maxFound, onlyHost(ran.Cases)
	for _, text := range ran.Texts {
		found := h.values(text, labelled(effect.LabelSecret), from)
		if own {
			found = append(found, h.private(text)...)
		}
		found = found[:min(len(found), room)]
		room -= len(found)
		if d.Values = append(d.Values, found...); room == 0 {
			break
		}
	}
	d.Files = append(d.Files, changedWithLabels(ran.Files, labelled)...)
	if slices.ContainsFunc(d.Values, func(v Value) bool { return !v.Private }) {
		d.Labels = append(d.Labels, Labelled{Label: effect.LabelSecret, By: "result"})
	}
	if d.Empty() && len(d.Shown) == 0 {
		return nil
	}
	if loaded.err != nil {
		return loaded.err
	}
	if err := s.dropKnownValues(ctx, loaded, &d); err != nil {
		return err
	}
	return s.Add(ctx, loaded, &d)
}

// changedWithLabels returns the files that an action changed, with the labels of what it
// handled: which of it went where is not known.
func changedWithLabels(files []string, labelled func(effect.Label) bool) (out []effect.File) {
	var labels []effect.Label
	for of, label := range map[effect.Label]effect.Label{effect.LabelSecret: effect.LabelSecret, effect.LabelUntrusted: effect.LabelNetwork} {
		if labelled(of) {
			labels = append(labels, label)
		}
	}
	for _, path := range files[:min(len(files), maxFound)] {
		if len(labels) > 0 {
			out = append(out, effect.File{Path: path, Labels: labels})
		}
	}
	return out
}

// dropKnownValues takes the values out of a delta that the session knows already.
func (s *Store) dropKnownValues(ctx context.Context, loaded *Session, d *Delta) error {
	if len(d.Values) == 0 {
		return nil
	}
	return s.shelf.look(ctx, func(sh shelf) error {
		own, all := loaded.key.group(), s.shared(loaded.key).group()
		d.Values = slices.DeleteFunc(d.Values, func(v Value) bool {
			if v.Private {
				return sh.Get(own, v.key()) != nil
			}
			return sh.Get(all, v.key()) != nil
		})
		return nil
	})
}

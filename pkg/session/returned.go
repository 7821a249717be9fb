package session

import (
	"context"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A CompletedCall is what is known of a call that has run.
type CompletedCall struct {
	Cases            []*analysis.ActionCase // the actions that ran
	ChangedFiles     []string               // further files that the call changed, according to the host
	ResultTexts      []string               // texts of its result
	UntrustedResult  bool                   // the result may contain prompt injection
	IsHostUnverified bool                   // not verified to come from the host: only what makes judgement stricter is stored
}

// AddCompleted stores what executed actions add to their session: their effects, and the values and
// labels of their result. Sent data and other counts were already stored when the actions were
// judged. It takes one transaction, or none if nothing is new.
func (s *Store) AddCompleted(ctx context.Context, loaded *Session, ran CompletedCall) error {
	d := Delta{MayMoveFiles: true} // files that were only predicted may exist now and can be identified
	for _, c := range ran.Cases {
		one := s.DeltaOfAction(c, nil, false)
		loaded.unlabelCloneFromWorkspaceOwner(c, &one)
		d.Remotes = append(d.Remotes, one.Remotes...)
		d.GitOriginMayHaveChanged = d.GitOriginMayHaveChanged || one.GitOriginMayHaveChanged
		if len(ran.Cases) == 1 && !ran.IsHostUnverified {
			d.RepositoryOwners = repositoryOwners(c, ran.ResultTexts)
		}
		d.Labels = append(d.Labels, one.Labels...)
		d.Files, d.PrintedFiles, d.Values = append(d.Files, one.Files...), append(d.PrintedFiles, one.PrintedFiles...), append(d.Values, one.Values...)
	}
	if ran.UntrustedResult {
		d.Labels = append(d.Labels, SessionLabel{Label: effect.LabelUntrusted, EffectOrActionType: "result"})
	}
	labelled := func(l effect.Label) bool {
		return slices.ContainsFunc(d.Labels, func(have SessionLabel) bool { return have.Label == l })
	}
	own := slices.ContainsFunc(d.Labels, func(l SessionLabel) bool {
		return l.Label == effect.LabelPrivate && l.EffectOrActionType == "read_file"
	})
	h, room, from := newHasher(s.opts.CredentialHashKey), maxFoundValues, sourceHostOfAllOutput(ran.Cases)
	for _, text := range ran.ResultTexts {
		found := h.credentialValues(text, labelled(effect.LabelSecret), from)
		if own {
			found = append(found, h.privateValues(text)...)
		}
		found = found[:min(len(found), room)]
		room -= len(found)
		if d.Values = append(d.Values, found...); room == 0 {
			break
		}
	}
	d.Files = append(d.Files, changedWithLabels(ran.ChangedFiles, labelled)...)
	if slices.ContainsFunc(d.Values, func(v HashedSensitiveValue) bool { return !v.IsPrivateWord }) {
		d.Labels = append(d.Labels, SessionLabel{Label: effect.LabelSecret, EffectOrActionType: "result"})
	}
	if d.Empty() && len(d.PrintedFiles) == 0 {
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

// changedWithLabels returns the files that an action changed, all labelled secret if it handled secret
// data, and network if it handled untrusted data: which file got which data is unknown.
func changedWithLabels(files []string, labelled func(effect.Label) bool) (out []effect.File) {
	var labels []effect.Label
	for of, label := range map[effect.Label]effect.Label{effect.LabelSecret: effect.LabelSecret, effect.LabelUntrusted: effect.LabelNetwork} {
		if labelled(of) {
			labels = append(labels, label)
		}
	}
	for _, path := range files[:min(len(files), maxFoundValues)] {
		if len(labels) > 0 {
			out = append(out, effect.File{Path: path, Labels: labels})
		}
	}
	return out
}

// dropKnownValues removes the values from a delta that the session already has.
func (s *Store) dropKnownValues(ctx context.Context, loaded *Session, d *Delta) error {
	if len(d.Values) == 0 {
		return nil
	}
	return s.storage.runReadOnly(ctx, func(sh storageTx) error {
		own, all := loaded.key.groupName(), s.sharedRecordKey(loaded.key).groupName()
		d.Values = slices.DeleteFunc(d.Values, func(v HashedSensitiveValue) bool {
			if v.IsPrivateWord {
				return sh.Get(own, v.key()) != nil
			}
			return sh.Get(all, v.key()) != nil
		})
		return nil
	})
}

package session

import (
	"context"
	"slices"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// A CompletedCall is what is known of a call that has run.
type CompletedCall struct {
	Cases                 []*analysis.ActionCase // the actions that ran
	ChangedFiles          []string               // further files that the call changed, according to the host
	ResultTexts           []string               // texts of the call's result
	UntrustedResult       bool                   // the result may contain prompt injection
	IsAgentHostUnverified bool                   // not verified to come from the host: only what makes judgement stricter is stored
}

// AddCompleted stores what executed actions add to their session: their effects, and the values and labels of
// their result. Sent data and other counts were already stored when the actions were judged. It takes one
// writing transaction, or none if nothing is new.
func (s *Store) AddCompleted(ctx context.Context, loaded *Session, ran CompletedCall) error {
	d := RecordDelta{MayMoveFiles: true} // makes Add look up the identity of files that exist only since the actions ran
	for _, c := range ran.Cases {
		one := s.DeltaOfAction(c, nil, false)
		loaded.unlabelCloneFromWorkspaceOwner(c, &one)
		d.Remotes = append(d.Remotes, one.Remotes...)
		d.GitOriginMayHaveChanged = d.GitOriginMayHaveChanged || one.GitOriginMayHaveChanged
		if len(ran.Cases) == 1 && !ran.IsAgentHostUnverified {
			d.RepositoryOwners = repositoryOwners(c, ran.ResultTexts)
		}
		d.Labels = append(d.Labels, one.Labels...)
		d.LabelledFiles, d.PrintedFiles, d.SensitiveValues = append(d.LabelledFiles, one.LabelledFiles...), append(d.PrintedFiles, one.PrintedFiles...), append(d.SensitiveValues, one.SensitiveValues...)
	}
	if ran.UntrustedResult {
		d.Labels = append(d.Labels, SessionTaintLabel{Label: effect.LabelUntrusted, EffectOrActionType: "result"})
	}
	labelled := func(l effect.TaintLabel) bool {
		return slices.ContainsFunc(d.Labels, func(have SessionTaintLabel) bool { return have.Label == l })
	}
	own := slices.ContainsFunc(d.Labels, func(l SessionTaintLabel) bool {
		return l.Label == effect.LabelPersonalData && l.EffectOrActionType == "read_file"
	})
	h, room, from := newHasher(s.opts.CredentialHashKey), maxSensitiveValuesPerSource, soleOutputSourceHost(ran.Cases)
	for _, text := range ran.ResultTexts {
		found := h.credentialValues(text, labelled(effect.LabelFromCredentialLocation), from)
		if own {
			found = append(found, h.privateValues(text)...)
		}
		found = found[:min(len(found), room)]
		room -= len(found)
		if d.SensitiveValues = append(d.SensitiveValues, found...); room == 0 {
			break
		}
	}
	d.LabelledFiles = append(d.LabelledFiles, labelChangedFiles(ran.ChangedFiles, labelled)...)
	if slices.ContainsFunc(d.SensitiveValues, func(v HashedSensitiveValue) bool { return !v.IsPrivateFileWord }) {
		d.Labels = append(d.Labels, SessionTaintLabel{Label: effect.LabelFromCredentialLocation, EffectOrActionType: "result"})
	}
	if d.Empty() && len(d.PrintedFiles) == 0 {
		return nil
	}
	if loaded.err != nil {
		return loaded.err
	}
	if err := s.dropStoredValuesFromDelta(ctx, loaded, &d); err != nil {
		return err
	}
	return s.Add(ctx, loaded, &d)
}

// labelChangedFiles returns the files that an action changed, all labelled secret if it handled secret
// data, and network if it handled untrusted data: which file got which data is unknown.
func labelChangedFiles(changedPaths []string, actionHasLabel func(effect.TaintLabel) bool) (out []effect.LabelledFile) {
	var labels []effect.TaintLabel
	for of, label := range map[effect.TaintLabel]effect.TaintLabel{effect.LabelFromCredentialLocation: effect.LabelFromCredentialLocation, effect.LabelUntrusted: effect.LabelFromNetwork} {
		if actionHasLabel(of) {
			labels = append(labels, label)
		}
	}
	if len(labels) == 0 {
		return nil
	}
	for _, path := range changedPaths { // addFiles limits how many are stored, and notes that it left some out
		out = append(out, effect.LabelledFile{Path: path, Labels: labels})
	}
	return out
}

// dropStoredValuesFromDelta removes from a delta the values that are already stored for the session or its
// user.
func (s *Store) dropStoredValuesFromDelta(ctx context.Context, loaded *Session, d *RecordDelta) error {
	if len(d.SensitiveValues) == 0 {
		return nil
	}
	return s.storage.runReadOnly(ctx, func(sh storageTx) error {
		own, all := loaded.key.groupName(), s.sharedRecordKey(loaded.key).groupName()
		d.SensitiveValues = slices.DeleteFunc(d.SensitiveValues, func(v HashedSensitiveValue) bool {
			if v.IsPrivateFileWord {
				return sh.Get(own, v.key()) != nil
			}
			return sh.Get(all, v.key()) != nil
		})
		return nil
	})
}

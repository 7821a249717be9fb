package approve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/yamlfile"
	"github.com/shieldcli/shield/pkg/kind/facts"
	"github.com/shieldcli/shield/pkg/state"
)

// An AdvanceApproval is a person's answer for all actions of a kind, in one session, in one project or
// everywhere.
type AdvanceApproval struct {
	Name                             string           `json:"name"`
	Kind                             facts.ActionKind `json:"kind"`
	By                               string           `json:"by"`
	ApprovedActionText               string           `json:"what"`              // the approved action, redacted
	Until                            time.Time        `json:"until,omitzero"`    // time at which an approval for one session expires
	SpaceSeparatedSessionTaintLabels string           `json:"labels,omitempty"`  // labels of the session when the person answered
	Session                          string           `json:"session,omitempty"` // ID of the session; "" for an approval in the approvals file
	Project                          string           `json:"project,omitempty"` // folder of the project; "": everywhere
}

// Limits of advance approvals.
const (
	advanceApprovalLifetime       = 12 * time.Hour
	maxSessionAdvanceApprovals    = 256 // advance approvals in one session
	advanceApprovalStoreNamespace = "kinds"
	maxApprovalsFileBytes         = 1 << 20 // bytes of the file
)

// sha256HexBytes returns the SHA-256 of a key that identifies a session or a tool, in hexadecimal. Under this
// hash, the store keeps the session's advance approvals or the tool's class.
func sha256HexBytes(sessionOrToolKey string) []byte {
	sum := sha256.Sum256([]byte(sessionOrToolKey))
	return []byte(hex.EncodeToString(sum[:]))
}

// AddAdvanceApproval stores a person's approval of all actions of one kind in a session. Several
// processes can call it at the same time.
func (s *DecisionStore) AddAdvanceApproval(ctx context.Context, sessionKey string, a AdvanceApproval) error {
	a.Until = s.Clock().Add(advanceApprovalLifetime)
	a.Name = a.Kind.Key()[:approvalIDLength]
	value, err := s.sealRecord(a)
	if err != nil {
		return err
	}
	if len(value) > maxRefusalBytes {
		return ErrActionTooLarge
	}
	return s.Store.UpdateNamespace(ctx, advanceApprovalStoreNamespace, func(sh *state.NamespaceTx) error {
		count, group := 0, sha256HexBytes(sessionKey)
		var old [][2][]byte
		err := sh.EachGroupWithValueOfKey(nil, func(name, _ []byte) error {
			return sh.Each(name, func(key, value []byte) error {
				var o AdvanceApproval
				if s.unsealRecord(value, &o) != nil || !s.Clock().Before(o.Until) {
					old = append(old, [2][]byte{bytes.Clone(name), bytes.Clone(key)})
				} else if bytes.Equal(name, group) {
					count++
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if count >= maxSessionAdvanceApprovals {
			return fmt.Errorf("this session already has %d approved kinds; revoke one with 'shield approvals revoke'", count)
		}
		for _, o := range old {
			if err := sh.Put(o[0], o[1], nil); err != nil {
				return err
			}
		}
		return sh.Put(group, []byte(a.Name), value)
	})
}

// AdvanceApprovals returns the unexpired advance approvals of the session that sessionKey identifies; if
// sessionKey is "", those of all sessions.
func (s *DecisionStore) AdvanceApprovals(ctx context.Context, sessionKey string) ([]AdvanceApproval, error) {
	var list []AdvanceApproval
	err := s.Store.ViewNamespace(ctx, advanceApprovalStoreNamespace, func(sh *state.NamespaceTx) error {
		list = nil
		each := func(key, value []byte) error {
			var a AdvanceApproval
			if s.unsealRecord(value, &a) == nil && a.Name == string(key) && s.Clock().Before(a.Until) && a.Until.Before(s.Clock().Add(advanceApprovalLifetime+time.Minute)) {
				list = append(list, a)
			}
			return nil
		}
		if sessionKey != "" {
			return sh.Each(sha256HexBytes(sessionKey), each)
		}
		return sh.EachGroupWithValueOfKey(nil, func(name, _ []byte) error { return sh.Each(name, each) })
	})
	sorted.SortStableBy(list, func(a, b AdvanceApproval) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.Name, b.Name))
	})
	return list, err
}

// RemoveAdvanceApprovals removes the advance approvals named approvalName of all sessions, or all of them if
// approvalName is "", and returns how many it removed.
func (s *DecisionStore) RemoveAdvanceApprovals(ctx context.Context, approvalName string) (removedCount int, err error) {
	err = s.Store.UpdateNamespace(ctx, advanceApprovalStoreNamespace, func(sh *state.NamespaceTx) error {
		removedCount = 0
		var drop [][2][]byte
		err := sh.EachGroupWithValueOfKey(nil, func(group, _ []byte) error {
			return sh.Each(group, func(key, _ []byte) error {
				if approvalName == "" || string(key) == approvalName {
					drop = append(drop, [2][]byte{bytes.Clone(group), bytes.Clone(key)})
				}
				return nil
			})
		})
		for _, d := range drop {
			if err == nil {
				err = sh.Put(d[0], d[1], nil)
				removedCount++
			}
		}
		return err
	})
	return removedCount, err
}

// advanceApprovalYAMLKeys are the keys of one advance approval in the user's approvals file.
var advanceApprovalYAMLKeys = []string{"name", "by", "what", "project", "facts", "findings"}

// ReadAdvanceApprovals returns the advance approvals in the user's approvals file; none if there is
// no such file. If it returns an error, it returns no approvals.
func ReadAdvanceApprovals(file string) ([]AdvanceApproval, error) {
	data, info, err := owner.ReadRegularFile(file, maxApprovalsFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits)
	}
	if err != nil {
		return nil, err
	}
	top, err := yamlfile.Parse(data, "a file of answers")
	if err != nil || top == nil {
		return nil, err
	}
	fields, err := yamlfile.Fields(top, []string{"answers"})
	if err != nil || len(fields) == 0 {
		return nil, yamlfile.AnnotateErrorsWithFile("answers", file, err)
	}
	nodes, err := yamlfile.Elements(fields[0].Value)
	if err != nil {
		return nil, yamlfile.AnnotateErrorsWithFile("answers", file, err)
	}
	var list []AdvanceApproval
	for _, n := range nodes {
		var a AdvanceApproval
		err := yamlfile.VisitMappingFields(n, advanceApprovalYAMLKeys, func(f yamlfile.Field) (err error) {
			switch f.Key {
			case "name":
				a.Name, err = yamlfile.Text(f.Value)
			case "by":
				a.By, err = yamlfile.Text(f.Value)
			case "what":
				a.ApprovedActionText, err = yamlfile.Text(f.Value)
			case "project":
				if a.Project, err = yamlfile.Text(f.Value); err == nil && !filepath.IsAbs(a.Project) {
					err = yamlfile.PositionOf(f.Value).Errorf("project must be an absolute path; write it in full")
				}
			case "facts":
				a.Kind.ActionFactTexts, err = yamlfile.ConvertElements(f.Value, yamlfile.Text)
			case "findings":
				a.Kind.MatchedRuleAndClassifierIDs, err = yamlfile.ConvertElements(f.Value, yamlfile.Text)
			}
			return err
		})
		if err == nil && (a.Name == "" || len(a.Kind.ActionFactTexts) == 0) {
			err = yamlfile.PositionOf(n).Errorf("a remembered answer needs the keys \"name\" and \"facts\"; add the missing key, or remove the answer")
		}
		if err != nil {
			return nil, yamlfile.AnnotateErrorsWithFile("answers", file, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// AdvanceApprovalYAMLText returns an advance approval as an entry of the file answers.yaml, below a YAML comment
// with the text comment.
func AdvanceApprovalYAMLText(a *AdvanceApproval, comment string) string {
	var b strings.Builder
	quote := func(s string) string {
		text, _ := json.Marshal(s) //nolint:errchkjson // a string has a form
		return string(text)
	}
	fmt.Fprintf(&b, "  # %s\n  - name: %s\n    by: %s\n    what: %s\n", escapedSingleLineText(comment, maxShownApprovalTextBytes), quote(a.Name), quote(a.By), quote(a.ApprovedActionText))
	if a.Project != "" {
		fmt.Fprintf(&b, "    project: %s\n", quote(a.Project))
	}
	for _, l := range [...]struct {
		key  string
		list []string
	}{{"facts", a.Kind.ActionFactTexts}, {"findings", a.Kind.MatchedRuleAndClassifierIDs}} {
		if len(l.list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "    %s:\n", l.key)
		for _, s := range l.list {
			fmt.Fprintf(&b, "      - %s\n", quote(s))
		}
	}
	return b.String()
}

const approvalsFileHeader = "# What you have allowed with shield allow: each entry is your answer in advance for exactly what it covers.\n# shield approvals lists them; shield approvals revoke NAME, or removing an entry here, takes one back.\nanswers:\n"

// AddAdvanceApprovalToFile adds an answer to a person's file. If the new file cannot be read back, the old one stays.
func AddAdvanceApprovalToFile(ctx context.Context, file string, a *AdvanceApproval, comment string) error {
	return rewriteApprovalsFile(ctx, file, func(text string) (string, error) {
		list, err := ReadAdvanceApprovals(file)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(list, func(o AdvanceApproval) bool { return o.Name == a.Name }) {
			return "", fmt.Errorf("an answer named %s already exists; remove it with 'shield approvals revoke'", a.Name)
		}
		if text == "" {
			text = approvalsFileHeader
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + AdvanceApprovalYAMLText(a, comment), nil
	})
}

// RemoveAdvanceApprovalsFromFile removes the advance approvals named name from a file, or all of them if name is
// "", and returns how many it removed.
func RemoveAdvanceApprovalsFromFile(ctx context.Context, file, name string) (removedCount int, err error) {
	list, err := ReadAdvanceApprovals(file)
	if err != nil || !slices.ContainsFunc(list, func(a AdvanceApproval) bool { return name == "" || a.Name == name }) {
		return 0, err
	}
	return removedCount, rewriteApprovalsFile(ctx, file, func(string) (string, error) {
		list, err := ReadAdvanceApprovals(file)
		if err != nil {
			return "", err
		}
		text := approvalsFileHeader
		removedCount = 0
		for i := range list {
			if a := &list[i]; name == "" || a.Name == name {
				removedCount++
			} else {
				text += AdvanceApprovalYAMLText(a, a.By+": "+a.ApprovedActionText)
			}
		}
		if removedCount == len(list) {
			text = approvalsFileHeader + "  []\n"
		}
		return text, nil
	})
}

// rewriteApprovalsFile replaces the text of the file by the result of change, under a lock.
func rewriteApprovalsFile(ctx context.Context, file string, change func(text string) (string, error)) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	lock, err := flock.New(file + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, 5*time.Second); err != nil {
		return err
	}
	data, _, err := owner.ReadRegularFile(file, maxApprovalsFileBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := change(strings.TrimSuffix(string(data), "  []\n"))
	if err != nil {
		return err
	}
	return replaceFile(file, text, func(path string) error {
		_, err := ReadAdvanceApprovals(path)
		return err
	})
}

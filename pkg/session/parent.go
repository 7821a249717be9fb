package session

import "slices"

// maxParentSessions is the greatest depth of nested sessions.
const maxParentSessions = 8

// A Lineage identifies where a session of a host was started: its parent session, and the host's
// process with its ancestors.
type Lineage struct {
	ParentSessionID string // the ID of the parent session of the same host, as the host reports it; "" if none

	// HostAndAncestorProcessNames returns unique names of the host's process and its ancestors, nearest first. It is
	// called when a session begins; nil means that the processes are unknown.
	HostAndAncestorProcessNames func() []string
}

// maxAncestorProcesses is how many ancestors of a host's process are checked.
const maxAncestorProcesses = 64

// newRecord returns the record of a session that begins now, and that of its parent, nil if no parent is
// active.
func (s *Store) newRecord(sh storageTx, k Key, from Lineage) (r, parent *Record, err error) {
	r = &Record{Key: k, ParentSessionID: from.ParentSessionID, BeganAt: s.now()}
	if k.IsDefault() || k.IsSharedByUserSessions() || s.opts.IsolateSessionsFromEachOther {
		return r, nil, nil
	}
	var above []string
	if from.HostAndAncestorProcessNames != nil {
		if all := from.HostAndAncestorProcessNames(); len(all) > 0 {
			r.HostProcessName, above = shortenText(all[0]), all[1:min(len(all), maxAncestorProcesses)]
		}
	}
	if from.ParentSessionID != "" && from.ParentSessionID != k.ID {
		parent, err = loadRecord(sh, Key{k.AgentHostName, from.ParentSessionID, k.User}.groupName())
	} else if from.ParentSessionID == "" && len(above) > 0 {
		parent, err = s.parentByProcess(sh, k, above)
	}
	if err != nil || parent == nil || !parent.isActive(s.now(), s.opts.SessionRetention) {
		return r, nil, err
	}
	r.ParentSessionID = parent.ID
	if parent.AgentHostName != k.AgentHostName {
		r.ParentAgentHostName = parent.AgentHostName
	}
	return r, parent, nil
}

// parentByProcess returns the active session whose host process comes first in a list of ancestor
// processes, nearest first. If several sessions have that process, it returns the one that began
// last.
func (s *Store) parentByProcess(sh storageTx, k Key, above []string) (parent *Record, err error) {
	nearest := len(above)
	err = eachRecord(sh, func(_ []byte, o *Record) error {
		i := slices.Index(above, o.HostProcessName)
		if i < 0 || o.User != k.User || o.Key == k || !o.isActive(s.now(), s.opts.SessionRetention) {
			return nil
		}
		if i < nearest || i == nearest && o.BeganAt > parent.BeganAt {
			nearest, parent = i, o
		}
		return nil
	})
	return parent, err
}

// parentKey returns the key of the parent session.
func (r *Record) parentKey() Key {
	if r.ParentAgentHostName != "" {
		return Key{r.ParentAgentHostName, r.ParentSessionID, r.User}
	}
	return Key{r.AgentHostName, r.ParentSessionID, r.User}
}

// addToParents adds the delta also to the sessions that started this one, since a sub-agent returns
// what it reads to its parent.
func (s *Store) addToParents(sh storageTx, r *Record, d *RecordDelta) error {
	for range maxParentSessions {
		if r.ParentSessionID == "" || r.parentKey() == r.Key {
			return nil
		}
		above := r.parentKey().groupName()
		p, err := loadRecord(sh, above)
		if err != nil || p == nil || !p.isActive(s.now(), s.opts.SessionRetention) {
			return err
		}
		if err := s.writeRecord(sh, above, p, d); err != nil {
			return err
		}
		r = p
	}
	return nil
}

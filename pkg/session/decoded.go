package session

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// maxCachedSessionRecords is how many decoded records are cached.
const maxCachedSessionRecords = 8

// A sessionRecordCache holds decoded records by group, with the bytes that they were decoded from: most are
// unchanged when they are read again. Goroutines share it.
type sessionRecordCache struct {
	mu                   sync.Mutex
	recordByStorageGroup map[string]decodedRecord
}

type decodedRecord struct {
	encodedRecord []byte
	record        Record
}

// load returns a copy of the record of a group, nil if there is none.
func (d *sessionRecordCache) load(sh storageTx, group []byte) (*Record, error) {
	data := sh.Get(group, recordKey)
	if data == nil {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if has, ok := d.recordByStorageGroup[string(group)]; ok && bytes.Equal(has.encodedRecord, data) {
		return has.record.clone(), nil
	}
	r, err := decodeRecord(data)
	if err != nil {
		return nil, err
	}
	d.cacheDecodedRecord(group, slices.Clone(data), r)
	return r.clone(), nil
}

// put writes a record, which must not change afterwards.
func (d *sessionRecordCache) put(sh storageTx, group []byte, r *Record) error {
	data := r.encode()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cacheDecodedRecord(group, data, r)
	return sh.Put(group, recordKey, data)
}

func (d *sessionRecordCache) cacheDecodedRecord(group, data []byte, r *Record) {
	if d.recordByStorageGroup == nil || len(d.recordByStorageGroup) >= maxCachedSessionRecords {
		d.recordByStorageGroup = map[string]decodedRecord{}
	}
	d.recordByStorageGroup[string(group)] = decodedRecord{data, *r}
}

// clone returns a copy of r that can be changed. Elements are shared, since nothing changes their
// content.
func (r *Record) clone() *Record {
	c := *r
	c.Labels, c.Sent, c.Denials, c.LastOccurrenceByEffectOrActionType = slices.Clone(r.Labels), slices.Clone(r.Sent), slices.Clone(r.Denials), maps.Clone(r.LastOccurrenceByEffectOrActionType)
	c.RepositoryOwners, c.CreatedPaths, c.Prompts, c.NamedObjects = slices.Clone(r.RepositoryOwners), slices.Clone(r.CreatedPaths), slices.Clone(r.Prompts), slices.Clone(r.NamedObjects)
	c.UserMentionedNameHashes, c.UserPromptDeduplicationKeys, c.ChangedInstructionFiles, c.Remotes = slices.Clone(r.UserMentionedNameHashes), slices.Clone(r.UserPromptDeduplicationKeys), slices.Clone(r.ChangedInstructionFiles), slices.Clone(r.Remotes)
	return &c
}

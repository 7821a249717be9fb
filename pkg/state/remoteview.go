package state

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shieldcli/shield/internal/resp"
	"github.com/shieldcli/shield/internal/sorted"
)

// A remoteView is one transaction on a [remote]. It caches what it reads and writes everything at the
// end.
type remoteView struct {
	of    *remote
	ctx   context.Context
	at    instant
	raw   string // the record as read; "" if there is none yet
	epoch epoch
	seen  map[place]*remoteHash

	fetched bool  // more values were read after it began
	err     error // of a failed read
}

// A remoteHash is the cached part of a place.
type remoteHash struct {
	values  map[string][]byte // by key; nil for missing values
	whole   bool              // values is complete
	changed map[string]bool   // keys to write
	dropped bool
}

var stampsPlace = place{shelf: "stamps"}

// index returns the place that lists the groups of a shelf.
func index(shelf string) place { return place{shelf: shelf} }

// begin reads the record, the wanted values and then the clock, which is therefore never behind
// another process's write. whole is false if another process wrote meanwhile.
func (v *remoteView) begin(old epoch, known bool, wants []want) (whole bool, err error) {
	r := v.of
	hash, field := r.seals.hash(limitsPlace), r.seals.field(limitsPlace, recordKey)
	record := []string{"HGET", hash, field}
	commands, at := [][]string{record}, map[want]int{}
	for _, w := range wants {
		if _, asked := at[w]; !asked {
			at[w] = len(commands)
			commands = append(commands, []string{"HGET", r.seals.hash(w.at), r.seals.field(w.at, []byte(w.key))})
		}
	}
	commands = append(commands, record, []string{"TIME"})
	got, err := r.client.Do(v.ctx, commands...)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		got, err = r.client.Do(v.ctx, commands...) // a restarted server has closed old connections; repeating a read is safe
	}
	if err != nil {
		return false, r.fault(err)
	}
	after, clock := got[len(got)-2], got[len(got)-1]
	if v.raw, err = textOf(got[0]); err != nil {
		return false, r.fault(err)
	}
	if v.at.wall, err = timeOf(clock); err != nil {
		return false, r.fault(err)
	}
	last, err := textOf(after)
	if err != nil {
		return false, r.fault(err)
	}
	if err := v.open(old, known); err != nil || last != v.raw {
		return false, err
	}
	for w, i := range at {
		v.take(w.at, []byte(w.key), got[i])
	}
	return v.err == nil, v.err
}

// open decrypts and checks the record that was read.
func (v *remoteView) open(old epoch, known bool) error {
	record := (&record{}).encode()
	switch {
	case v.raw == "" && known:
		return v.reset(errors.New("the store is empty, but held data before"))
	case v.raw == "":
		v.epoch = newEpoch()
	default:
		_, value, err := v.of.seals.open(limitsPlace, v.of.seals.field(limitsPlace, recordKey), v.raw)
		if err != nil {
			return v.damaged(limitsPlace, err)
		}
		if v.epoch, err = decodeEpoch(value); err != nil {
			return v.damaged(limitsPlace, err)
		}
		record = value[epochSize:]
	}
	if known {
		if err := v.epoch.follows(old); err != nil {
			return v.reset(err)
		}
	}
	v.seen[limitsPlace] = &remoteHash{values: map[string][]byte{string(recordKey): record}, changed: map[string]bool{}}
	return nil
}

func (v *remoteView) reset(err error) error {
	return &Error{Kind: ErrReset, Path: v.of.address, Err: err}
}

func (v *remoteView) damaged(at place, err error) error {
	return &Error{Kind: ErrForeign, Path: v.of.address, Err: fmt.Errorf("%s: %w", v.of.seals.hash(at), err)}
}

// unmoved reports whether no process changed anything since the view began.
func (v *remoteView) unmoved() (bool, error) {
	r := v.of
	got, err := r.client.Do(v.ctx, []string{"HGET", r.seals.hash(limitsPlace), r.seals.field(limitsPlace, recordKey)})
	if err != nil {
		return false, r.fault(err)
	}
	now, err := textOf(got[0])
	if err != nil {
		return false, r.fault(err)
	}
	return now == v.raw, nil
}

// commit writes the changes, and reports whether it did: false after a conflict. After an error it is
// unknown whether the changes were written.
func (v *remoteView) commit() (bool, error) {
	r := v.of
	keys := []string{r.seals.hash(limitsPlace)}
	args := []string{r.seals.field(limitsPlace, recordKey), v.raw}
	add := func(at place, what, field, value string) {
		keys, args = append(keys, r.seals.hash(at)), append(args, what, field, value)
	}
	for at, h := range v.seen {
		if h.dropped {
			add(at, "drop", "", "")
		}
		for key := range h.changed {
			value := h.values[key]
			if value == nil {
				add(at, "remove", r.seals.field(at, []byte(key)), "")
				continue
			}
			if at == limitsPlace && key == string(recordKey) {
				value = append(v.epoch.encode(), value...)
			}
			field, sealed := r.seals.seal(at, []byte(key), value)
			add(at, "set", field, sealed)
		}
	}
	words := slices.Concat([]string{"EVALSHA", commitName(), strconv.Itoa(len(keys))}, keys, args)
	got, err := r.client.Do(v.ctx, words)
	if err == nil {
		if unknown, ok := got[0].(resp.Error); ok && strings.HasPrefix(string(unknown), "NOSCRIPT") {
			words[0], words[1] = "EVAL", commitSource
			got, err = r.client.Do(v.ctx, words)
		}
	}
	if err != nil {
		return false, r.fault(err)
	}
	n, ok := got[0].(int64)
	if !ok {
		return false, r.fault(unexpected(got[0]))
	}
	return n == 1, nil
}

func (v *remoteView) now() instant { return v.at }

// hash returns the cached part of a place.
func (v *remoteView) hash(at place) *remoteHash {
	h := v.seen[at]
	if h == nil {
		h = &remoteHash{values: map[string][]byte{}, changed: map[string]bool{}}
		v.seen[at] = h
	}
	return h
}

func (v *remoteView) get(at place, key []byte) []byte {
	v.fetch([]place{at}, key)
	return v.hash(at).values[string(key)]
}

// fetch reads the value of a key in the places where it is not cached yet.
func (v *remoteView) fetch(places []place, key []byte) {
	if v.err != nil {
		return
	}
	r := v.of
	var asked []place
	var commands [][]string
	for _, at := range places {
		h := v.hash(at)
		if _, known := h.values[string(key)]; !known && !h.whole {
			asked = append(asked, at)
			commands = append(commands, []string{"HGET", r.seals.hash(at), r.seals.field(at, key)})
		}
	}
	if len(asked) == 0 {
		return
	}
	v.fetched = true
	got, err := r.client.Do(v.ctx, commands...)
	if err != nil {
		v.err = r.fault(err)
		return
	}
	for i, at := range asked {
		if v.take(at, key, got[i]); v.err != nil {
			return
		}
	}
}

// take caches the store's answer for a value.
func (v *remoteView) take(at place, key []byte, got any) {
	v.hash(at).values[string(key)] = nil
	switch sealed, err := textOf(got); {
	case err != nil:
		v.err = v.of.fault(err)
	case got != nil:
		v.keep(at, v.of.seals.field(at, key), sealed)
	}
}

// textOf returns a text answer, or "" for none.
func textOf(answer any) (string, error) {
	text, ok := answer.(string)
	if !ok && answer != nil {
		return "", unexpected(answer)
	}
	return text, nil
}

// timeOf converts the answer of TIME: seconds and microseconds.
func timeOf(answer any) (time.Time, error) {
	if parts, ok := answer.([]any); ok && len(parts) == 2 {
		seconds, _ := parts[0].(string)
		micros, _ := parts[1].(string)
		s, serr := strconv.ParseInt(seconds, 10, 64)
		us, uerr := strconv.ParseInt(micros, 10, 64)
		if serr == nil && uerr == nil {
			return time.Unix(s, us*1000), nil
		}
	}
	return time.Time{}, unexpected(answer)
}

// unexpected returns the error for an answer of the wrong form: the server's own error, if it is one.
func unexpected(answer any) error {
	if refused, ok := answer.(resp.Error); ok {
		return refused
	}
	return fmt.Errorf("the store sent a reply of the wrong type (%T)", answer)
}

// keep decrypts and caches a value.
func (v *remoteView) keep(at place, field, sealed string) {
	key, value, err := v.of.seals.open(at, field, sealed)
	if err != nil {
		v.err = v.damaged(at, err)
		return
	}
	h := v.hash(at)
	if !h.changed[string(key)] {
		h.values[string(key)] = value
	}
}

// all reads all values of a place.
func (v *remoteView) all(at place) *remoteHash {
	h := v.hash(at)
	if h.whole || v.err != nil {
		return h
	}
	v.fetched = true
	got, err := v.of.client.Do(v.ctx, []string{"HGETALL", v.of.seals.hash(at)})
	if err != nil {
		v.err = v.of.fault(err)
		return h
	}
	all, ok := got[0].([]any)
	if !ok && got[0] != nil || len(all)%2 != 0 {
		v.err = v.of.fault(unexpected(got[0]))
		return h
	}
	for i := 0; i < len(all); i += 2 {
		field, ferr := textOf(all[i])
		sealed, serr := textOf(all[i+1])
		if err := cmp.Or(ferr, serr); err != nil {
			v.err = v.of.fault(err)
			return h
		}
		v.keep(at, field, sealed)
	}
	h.whole = true
	return h
}

func (v *remoteView) each(at place, fn func(key, value []byte) error) error {
	h := v.all(at)
	for _, key := range sorted.Keys(h.values) {
		if value := h.values[key]; value != nil && v.err == nil {
			if err := fn([]byte(key), value); err != nil {
				return err
			}
		}
	}
	return v.err
}

func (v *remoteView) groups(shelf string, key []byte, fn func(name, value []byte) error) error {
	var names [][]byte
	var places []place
	err := v.each(index(shelf), func(name, _ []byte) error {
		names, places = append(names, bytes.Clone(name)), append(places, place{shelf, string(name)})
		return nil
	})
	if v.fetch(places, key); v.err != nil {
		return v.err
	}
	for i, at := range places {
		if err == nil {
			err = fn(names[i], v.hash(at).values[string(key)])
		}
	}
	return err
}

func (v *remoteView) put(at place, key, value []byte) error {
	h := v.hash(at)
	if at.group != "" && len(h.changed) == 0 {
		if err := v.put(index(at.shelf), []byte(at.group), []byte{}); err != nil {
			return err
		}
	}
	h.values[string(key)], h.changed[string(key)] = bytes.Clone(value), true
	return nil
}

func (v *remoteView) drop(at place) error {
	if at == limitsPlace {
		return errors.New("the record of rate limit and budget cannot be deleted")
	}
	v.seen[at] = &remoteHash{values: map[string][]byte{}, whole: true, changed: map[string]bool{}, dropped: true}
	if at.group == "" {
		return nil
	}
	return v.put(index(at.shelf), []byte(at.group), nil)
}

func (v *remoteView) restamp(shelf string) error {
	var stamp Stamp
	_, _ = rand.Read(stamp[:]) // never fails
	return v.put(stampsPlace, []byte(shelf), stamp[:])
}

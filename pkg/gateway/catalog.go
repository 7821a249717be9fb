package gateway

import (
	"context"
	"slices"
	"sync"
)

// Limits of a catalog.
const (
	maxPages  = 64   // tool lists whose next page was not requested yet
	maxStates = 4096 // server questions that were not answered yet
)

// A catalog is the state that all connections to one server share: its tools, and the questions in its
// results, which the client can answer on another connection.
type catalog struct {
	slots chan struct{} // limits concurrent judgements

	mu      sync.Mutex
	changed *sync.Cond          // signals that lists changed
	listed  map[string]*tool    // by name
	pages   map[string]*listing // by the cursor of their next page
	begun   bool                // a list of tools was received
	lists   int                 // number of list requests in progress
	states  map[string][]string // names of the server's unanswered questions, by the key of [call.state]
	given   []string            // the keys of states, oldest first
}

// A listing is a list of tools of which pages are still being received.
type listing struct {
	tools map[string]*tool // tools of the pages so far, by name; nil before the first page
	whole bool             // contains every page from the first on
	trust bool             // it is the first list of this server
}

func newCatalog() *catalog {
	k := &catalog{slots: make(chan struct{}, maxJudging), listed: map[string]*tool{}, pages: map[string]*listing{}, states: map[string][]string{}}
	k.changed = sync.NewCond(&k.mu)
	return k
}

// begin records a request for a page of the tool list, and returns the list that the page belongs to.
func (k *catalog) begin(params object) *listing {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lists++
	at, goesOn := params["cursor"]
	if !goesOn {
		return &listing{whole: true}
	}
	cursor, _ := at.(string)
	if l := k.pages[cursor]; l != nil {
		delete(k.pages, cursor)
		return l
	}
	return &listing{}
}

// end records that a page request is over.
func (k *catalog) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lists--
	k.changed.Broadcast()
}

// continues stores a list under the cursor of its next page.
func (k *catalog) continues(l *listing, cursor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pages) >= maxPages {
		clear(k.pages) // tools on later pages of the dropped lists count as new
	}
	k.pages[cursor] = l
}

// wait waits for list requests in progress, and reports whether the caller has to request the first
// list.
func (k *catalog) wait(ctx context.Context) bool {
	defer context.AfterFunc(ctx, k.changed.Broadcast)()
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.lists > 0 && ctx.Err() == nil {
		k.changed.Wait()
	}
	mine := !k.begun && ctx.Err() == nil
	if mine {
		k.begun = true
		k.lists++
	}
	return mine
}

// failed records that the list that wait told the caller to request was not received.
func (k *catalog) failed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = false
}

// keep stores a state with the names of its questions, and drops the oldest states above maxStates.
func (k *catalog) keep(state string, names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, again := k.states[state]; !again {
		if len(k.given) >= maxStates {
			delete(k.states, k.given[0])
			k.given = k.given[1:]
		}
		k.given = append(k.given, state)
	}
	k.states[state] = names
}

// answers reports whether a state is kept. With use, it is forgotten; with part, what
// is answered of it. Names that were not asked for are the server's to ignore, as the
// protocol says.
func (k *catalog) answers(state string, names []string, use, part bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked, kept := k.states[state]
	if !kept || !use {
		return kept
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(name string) bool { return slices.Contains(names, name) })
	if part && len(left) > 0 {
		k.states[state] = left
		return true
	}
	delete(k.states, state)
	k.given = slices.DeleteFunc(k.given, func(other string) bool { return other == state })
	return true
}

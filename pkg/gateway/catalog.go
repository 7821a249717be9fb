package gateway

import (
	"context"
	"slices"
	"sync"
)

// Limits of what the connections to one server share.
const (
	maxPages  = 64   // lists of tools with further pages
	maxStates = 4096 // requests of a server that were not answered yet
)

// A catalog is what the connections to one server share: the tools that it lists,
// and what it has asked for in answers, which may be answered on another
// connection.
type catalog struct {
	slots chan struct{} // of judgements

	mu      sync.Mutex
	changed *sync.Cond          // of lists
	listed  map[string]*tool    // by name
	pages   map[string]*listing // by the cursor that asks for more of them
	begun   bool                // a list of tools has come in
	lists   int                 // of tools that are under way
	states  map[string][]string // what the server has asked for and was not told, by the request and the state that it gave for it
	given   []string            // the states in order
}

// A listing is a list of tools while its pages come in.
type listing struct {
	tools map[string]*tool // on its pages so far, by name; nil before the first
	whole bool             // it has all pages from the first on
	trust bool             // it is the first list of this server
}

func newCatalog() *catalog {
	k := &catalog{slots: make(chan struct{}, maxJudging), listed: map[string]*tool{}, pages: map[string]*listing{}, states: map[string][]string{}}
	k.changed = sync.NewCond(&k.mu)
	return k
}

// begin notes that a page of the list of tools is asked for, and returns the list
// that it belongs to.
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

// end notes that nothing more becomes of a page that was asked for.
func (k *catalog) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lists--
	k.changed.Broadcast()
}

// continues keeps a list whose next page a cursor asks for.
func (k *catalog) continues(l *listing, cursor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pages) >= maxPages {
		clear(k.pages) // what is left of those lists is treated as new tools
	}
	k.pages[cursor] = l
}

// wait waits for the lists that are under way, and reports whether the caller has
// to ask for the first one.
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

// failed notes that the list that wait has left to the caller did not come.
func (k *catalog) failed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = false
}

// keep keeps a state with the names of what is asked for, and forgets the oldest of
// too many.
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

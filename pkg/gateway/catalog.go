package gateway

import (
	"context"
	"slices"
	"sync"
)

// Limits of a catalog.
const (
	maxOpenListings              = 64   // tool lists whose next page was not requested yet
	maxUnansweredServerQuestions = 4096 // server questions that were not answered yet
)

// A catalog is the state that all connections to one server share: its tools, and the questions in its
// results, which the client can answer on another connection.
type catalog struct {
	judgeSlots chan struct{} // limits concurrent judgements

	mu                      sync.Mutex
	listsChanged            *sync.Cond              // signals that lists changed
	tools                   map[string]*tool        // by name
	openListings            map[string]*toolListing // incomplete lists of tools, by the cursor of their next page
	listRequested           bool                    // a list of tools was received
	openListRequests        int                     // number of list requests in progress
	questionNamesByStateKey map[string][]string     // names of the server's unanswered questions, by [pendingCall.requestStateKey]
	stateKeysByAge          []string                // the keys of questionNamesByStateKey, oldest first
}

// A toolListing is a list of tools of which pages are still being received.
type toolListing struct {
	tools       map[string]*tool // tools of the pages so far, by name; nil before the first page
	complete    bool             // contains every page from the first on
	isFirstList bool             // it is the first list of this server
}

func newCatalog() *catalog {
	k := &catalog{judgeSlots: make(chan struct{}, maxConcurrentJudgements), tools: map[string]*tool{}, openListings: map[string]*toolListing{}, questionNamesByStateKey: map[string][]string{}}
	k.listsChanged = sync.NewCond(&k.mu)
	return k
}

// beginList records a request for a page of the tool list, and returns the list that the page belongs to.
func (k *catalog) beginList(params object) *toolListing {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.openListRequests++
	at, goesOn := params["cursor"]
	if !goesOn {
		return &toolListing{complete: true}
	}
	cursor, _ := at.(string)
	if l := k.openListings[cursor]; l != nil {
		delete(k.openListings, cursor)
		return l
	}
	return &toolListing{}
}

// endList records that a page request is over.
func (k *catalog) endList() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.openListRequests--
	k.listsChanged.Broadcast()
}

// storeNextPage stores a list under the cursor of its next page.
func (k *catalog) storeNextPage(l *toolListing, cursor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.openListings) >= maxOpenListings {
		clear(k.openListings) // tools on later pages of the dropped lists count as new
	}
	k.openListings[cursor] = l
}

// waitForLists waits for list requests in progress, and reports whether the caller has to request the first
// list.
func (k *catalog) waitForLists(ctx context.Context) bool {
	defer context.AfterFunc(ctx, k.listsChanged.Broadcast)()
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.openListRequests > 0 && ctx.Err() == nil {
		k.listsChanged.Wait()
	}
	mine := !k.listRequested && ctx.Err() == nil
	if mine {
		k.listRequested = true
		k.openListRequests++
	}
	return mine
}

// listFailed records that the caller of waitForLists, which had to request the first list, did not
// receive it.
func (k *catalog) listFailed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listRequested = false
}

// storeOpenQuestions stores the names of the server's open questions under a state key, see
// [pendingCall.requestStateKey], and drops the oldest keys above maxUnansweredServerQuestions.
func (k *catalog) storeOpenQuestions(stateKey string, questionNames []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, again := k.questionNamesByStateKey[stateKey]; !again {
		if len(k.stateKeysByAge) >= maxUnansweredServerQuestions {
			delete(k.questionNamesByStateKey, k.stateKeysByAge[0])
			k.stateKeysByAge = k.stateKeysByAge[1:]
		}
		k.stateKeysByAge = append(k.stateKeysByAge, stateKey)
	}
	k.questionNamesByStateKey[stateKey] = questionNames
}

// hasUnansweredQuestionsRemovingAnswered reports whether questions are stored for a state. use deletes the state; use and
// part together delete only the named questions, and the state if no other questions are left.
// Names that were not asked for are ignored: by the protocol, the server ignores them.
func (k *catalog) hasUnansweredQuestionsRemovingAnswered(stateKey string, answeredNames []string, removeAnswered, keepUnanswered bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked, kept := k.questionNamesByStateKey[stateKey]
	if !kept || !removeAnswered {
		return kept
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(name string) bool { return slices.Contains(answeredNames, name) })
	if keepUnanswered && len(left) > 0 {
		k.questionNamesByStateKey[stateKey] = left
		return true
	}
	delete(k.questionNamesByStateKey, stateKey)
	k.stateKeysByAge = slices.DeleteFunc(k.stateKeysByAge, func(other string) bool { return other == stateKey })
	return true
}

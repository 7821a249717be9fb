package gateway

import (
	"context"
	"slices"
	"sync"
)

// Limits of a [serverStateAcrossConnections], the state that all connections to one server share.
const (
	maxIncompleteToolListings    = 64   // tool lists whose next page was not requested yet
	maxUnansweredServerQuestions = 4096 // server questions that were not answered yet
)

// A serverStateAcrossConnections is the state that all connections to one server share: the server's tools, and
// its unanswered questions. A server asks the client, its model or its user a question in the result of a
// request, and the client can answer on another connection.
type serverStateAcrossConnections struct {
	judgeSlots chan struct{} // limits concurrent judgements

	mu                             sync.Mutex
	toolListRequestEnded           *sync.Cond              // signals that a request for a page of the tool list has ended
	tools                          map[string]*tool        // by name
	incompleteToolListings         map[string]*toolListing // incomplete lists of tools, by the cursor of their next page
	isToolListReceivedOrRequested  bool                    // a list of tools was received, or the gateway has requested it
	openToolListRequestCount       int                     // number of list requests in progress
	questionNamesByRequestStateKey map[string][]string     // names of the server's unanswered questions, by [pendingCall.requestStateKey]
	requestStateKeysByAge          []string                // the keys of questionNamesByRequestStateKey, oldest first
}

// A toolListing is a list of tools of which pages are still being received.
type toolListing struct {
	tools       map[string]*tool // tools on the pages received so far, by name; nil before the first page
	complete    bool             // contains every page from the first on
	isFirstList bool             // no complete list of this server was received before, and no tool accepted; new tools are accepted if they are not suspicious
}

func newSharedServerState() *serverStateAcrossConnections {
	k := &serverStateAcrossConnections{judgeSlots: make(chan struct{}, maxConcurrentJudgements), tools: map[string]*tool{}, incompleteToolListings: map[string]*toolListing{}, questionNamesByRequestStateKey: map[string][]string{}}
	k.toolListRequestEnded = sync.NewCond(&k.mu)
	return k
}

// beginToolListRequest records a request for a page of the tool list, and returns the list that the page belongs to.
func (k *serverStateAcrossConnections) beginToolListRequest(params object) *toolListing {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.openToolListRequestCount++
	at, goesOn := params["cursor"]
	if !goesOn {
		return &toolListing{complete: true}
	}
	cursor, _ := at.(string)
	if l := k.incompleteToolListings[cursor]; l != nil {
		delete(k.incompleteToolListings, cursor)
		return l
	}
	return &toolListing{}
}

// endToolListRequest records that a request for a page of the tool list has ended, and wakes the goroutines that
// wait for this.
func (k *serverStateAcrossConnections) endToolListRequest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.openToolListRequestCount--
	k.toolListRequestEnded.Broadcast()
}

// storeNextPage stores a list under the cursor of its next page.
func (k *serverStateAcrossConnections) storeNextPage(l *toolListing, cursor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.incompleteToolListings) >= maxIncompleteToolListings {
		clear(k.incompleteToolListings) // drop all incomplete tool lists; tools on their later pages then count as new
	}
	k.incompleteToolListings[cursor] = l
}

// waitForToolListOrClaimRequest waits for list requests in progress, and reports whether the caller has to request the first
// list.
func (k *serverStateAcrossConnections) waitForToolListOrClaimRequest(ctx context.Context) bool {
	defer context.AfterFunc(ctx, k.toolListRequestEnded.Broadcast)()
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.openToolListRequestCount > 0 && ctx.Err() == nil {
		k.toolListRequestEnded.Wait()
	}
	mine := !k.isToolListReceivedOrRequested && ctx.Err() == nil
	if mine {
		k.isToolListReceivedOrRequested = true
		k.openToolListRequestCount++
	}
	return mine
}

// recordToolListFailure records that the caller of waitForToolListOrClaimRequest, which had to request the first list, did not
// receive it.
func (k *serverStateAcrossConnections) recordToolListFailure() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isToolListReceivedOrRequested = false
}

// storeUnansweredServerQuestions stores the names of the server's open questions under a state key, see
// [pendingCall.requestStateKey], and drops the oldest keys above maxUnansweredServerQuestions.
func (k *serverStateAcrossConnections) storeUnansweredServerQuestions(stateKey string, questionNames []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, again := k.questionNamesByRequestStateKey[stateKey]; !again {
		if len(k.requestStateKeysByAge) >= maxUnansweredServerQuestions {
			delete(k.questionNamesByRequestStateKey, k.requestStateKeysByAge[0])
			k.requestStateKeysByAge = k.requestStateKeysByAge[1:]
		}
		k.requestStateKeysByAge = append(k.requestStateKeysByAge, stateKey)
	}
	k.questionNamesByRequestStateKey[stateKey] = questionNames
}

// matchUnansweredQuestions reports whether unanswered questions of the server are stored under the
// key stateKey. If removeAnswered is true, it also deletes these questions; if keepUnanswered is true as well,
// it deletes only those whose names are in answeredNames. Names in answeredNames without a stored question are
// ignored, because by the protocol the server ignores answers to them.
func (k *serverStateAcrossConnections) matchUnansweredQuestions(stateKey string, answeredNames []string, removeAnswered, keepUnanswered bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	asked, kept := k.questionNamesByRequestStateKey[stateKey]
	if !kept || !removeAnswered {
		return kept
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(name string) bool { return slices.Contains(answeredNames, name) })
	if keepUnanswered && len(left) > 0 {
		k.questionNamesByRequestStateKey[stateKey] = left
		return true
	}
	delete(k.questionNamesByRequestStateKey, stateKey)
	k.requestStateKeysByAge = slices.DeleteFunc(k.requestStateKeysByAge, func(other string) bool { return other == stateKey })
	return true
}

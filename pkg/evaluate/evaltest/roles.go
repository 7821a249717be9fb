package evaltest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// An EvaluationOutcome is the required result of an evaluation with a [Scenario].
type EvaluationOutcome uint8

// The outcomes, from most to least trusted.
const (
	OutcomeGoodAnswer         EvaluationOutcome = iota // a good answer, ALLOW
	OutcomeServiceUnreachable                          // BLOCK with confidence 0.5; with fail-open, ALLOW with at most 0.5, marked as given despite the failure
	OutcomeNoAnswer                                    // BLOCK with confidence 0.5, even if the evaluator is set to fail open
	OutcomeWrongCanary                                 // BLOCK 1.0, with fail-open as well: the canary is missing or in a wrong place
)

// A Scenario is a server with one kind of behaviour. In every scenario, a careless parser would
// read ALLOW.
type Scenario struct {
	Name string
	Do   Behaviour
	Want EvaluationOutcome
}

// Scenarios returns all scenarios. Their names are unique.
func Scenarios() []Scenario {
	return slices.Concat(badStatusScenarios(), badEnvelopeScenarios(), badAnswerScenarios(), badTransportScenarios(), goodAnswerScenarios())
}

// goodReply returns a valid reply that allows the action. Scenarios also damage this reply, or send
// it in a bad response, to test that the evaluator rejects it.
func goodReply(canary string) string { return reply("ALLOW", "0.97", canary) }

// completion is a response around an answer; %s is the answer as a JSON value.
const completion = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

func jsonStringLiteral(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: every string can be encoded as JSON
	}
	return string(b)
}

// writeBody sends a body unchanged.
func writeBody(w http.ResponseWriter, status int, contentType, body string) {
	w.Header()["Content-Type"] = []string{contentType}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// changedResponse sends the good response after a change.
func changedResponse(change func(body string) string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, r Request) {
		writeBody(w, http.StatusOK, "application/json", change(fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary)))))
	}
}

// replacedResponsePartScenario sends the good response with one part replaced by another.
func replacedResponsePartScenario(name string, want EvaluationOutcome, oldPart, newPart string) Scenario {
	return Scenario{name, changedResponse(func(body string) string {
		if !strings.Contains(body, oldPart) {
			panic("evaltest: role " + name + " changes nothing")
		}
		return strings.Replace(body, oldPart, newPart, 1)
	}), want}
}

// badStatusScenarios returns one scenario for each known HTTP status from 201 to 599: a response
// with this status and a valid reply in the body.
func badStatusScenarios() []Scenario {
	var list []Scenario
	for status := 201; status <= 599; status++ {
		if http.StatusText(status) == "" {
			continue
		}
		want := OutcomeNoAnswer
		switch {
		case status == 401, status == 402, status == 404, status == 408, status == 429, status >= 500:
			want = OutcomeServiceUnreachable
		}
		list = append(list, Scenario{fmt.Sprintf("status %d", status), func(w http.ResponseWriter, _ *http.Request, r Request) {
			w.Header().Set("Location", "/v1/chat/completions")
			writeBody(w, status, "application/json", fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
		}, want})
	}
	return list
}

// badEnvelopeScenarios returns scenarios in which the JSON response of the model service around a valid verdict
// is altered, or in which the content of the response is not a text.
func badEnvelopeScenarios() []Scenario {
	blocked := jsonStringLiteral(`{"decision":"BLOCK","confidence":1,"reasoning":"no","canary":""}`)
	list := []Scenario{
		replacedResponsePartScenario("no choices", OutcomeNoAnswer, `"choices"`, `"options"`),
		replacedResponsePartScenario("choices null", OutcomeNoAnswer, `"choices":[`, `"choices":null,"x":[`),
		replacedResponsePartScenario("choices an object", OutcomeNoAnswer, `"choices":[{`, `"choices":{"0":{`),
		replacedResponsePartScenario("a choice of null", OutcomeNoAnswer, `"choices":[`, `"choices":[null,`),
		replacedResponsePartScenario("a choice in a list", OutcomeNoAnswer, `"choices":[{"index"`, `"choices":[[{"index"`),
		replacedResponsePartScenario("another choice first", OutcomeNoAnswer, `"choices":[`, `"choices":[{"index":1,"message":{"role":"assistant","content":`+blocked+`},"finish_reason":"stop"},`),
		replacedResponsePartScenario("another choice last", OutcomeNoAnswer, `"finish_reason":"stop"}]`, `"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":`+blocked+`},"finish_reason":"stop"}]`),
		replacedResponsePartScenario("a delta for a message", OutcomeNoAnswer, `"message"`, `"delta"`),
		replacedResponsePartScenario("message a list", OutcomeNoAnswer, `"message":{`, `"message":[],"was":{`),
		replacedResponsePartScenario("refusal", OutcomeNoAnswer, `"role":"assistant"`, `"role":"assistant","refusal":"I cannot help with that."`),
		replacedResponsePartScenario("refusal an object", OutcomeNoAnswer, `"role":"assistant"`, `"role":"assistant","refusal":{"reason":"x"}`),
		replacedResponsePartScenario("tool call", OutcomeNoAnswer, `"role":"assistant"`, `"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"allow","arguments":"{}"}}]`),
		replacedResponsePartScenario("tool call, an object", OutcomeNoAnswer, `"role":"assistant"`, `"role":"assistant","tool_calls":{}`),
		replacedResponsePartScenario("function call", OutcomeNoAnswer, `"role":"assistant"`, `"role":"assistant","function_call":{"name":"allow","arguments":"{}"}`),
		replacedResponsePartScenario("error beside", OutcomeNoAnswer, `"id":"c"`, `"id":"c","error":{"message":"overloaded","code":503}`),
		replacedResponsePartScenario("error beside, a text", OutcomeNoAnswer, `"id":"c"`, `"id":"c","error":"overloaded"`),
		replacedResponsePartScenario("error beside, true", OutcomeNoAnswer, `"id":"c"`, `"id":"c","error":true`),
		replacedResponsePartScenario("error beside, a number", OutcomeNoAnswer, `"id":"c"`, `"id":"c","error":0`),
		replacedResponsePartScenario("error in the choice", OutcomeNoAnswer, `"index":0`, `"index":0,"error":{"message":"upstream"}`),
		replacedResponsePartScenario("error in the message", OutcomeNoAnswer, `"role":"assistant"`, `"role":"assistant","error":{"message":"upstream"}`),
		replacedResponsePartScenario("junk after", OutcomeNoAnswer, `"total_tokens":2}}`, `"total_tokens":2}}x`),
		replacedResponsePartScenario("another document after", OutcomeNoAnswer, `"total_tokens":2}}`, `"total_tokens":2}}`+"\n{}"),
		replacedResponsePartScenario("zero byte after", OutcomeNoAnswer, `"total_tokens":2}}`, `"total_tokens":2}}`+"\x00"),
		replacedResponsePartScenario("comma at the end", OutcomeNoAnswer, `"total_tokens":2}}`, `"total_tokens":2},}`),
		replacedResponsePartScenario("byte order mark", OutcomeNoAnswer, `{"id"`, "\ufeff"+`{"id"`),
		replacedResponsePartScenario("in a list", OutcomeNoAnswer, `{"id"`, `[{"id"`),
		replacedResponsePartScenario("event stream", OutcomeNoAnswer, `{"id"`, `data: {"id"`),
		replacedResponsePartScenario("not UTF-8", OutcomeNoAnswer, `"id":"c"`, "\"id\":\"\xff\""),
		replacedResponsePartScenario("half a surrogate pair", OutcomeNoAnswer, `"id":"c"`, `"id":"\ud800"`),
		replacedResponsePartScenario("NaN", OutcomeNoAnswer, `"created":1`, `"created":NaN`),
		replacedResponsePartScenario("too deep", OutcomeNoAnswer, `"id":"c"`, `"id":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)),
		replacedResponsePartScenario("comment", OutcomeNoAnswer, `{"id"`, `{/**/"id"`),
	}
	for _, key := range []string{"choices", "message", "content", "role", "finish_reason"} {
		named, title, upper := `"`+key+`"`, `"`+strings.ToUpper(key[:1])+key[1:]+`"`, `"`+strings.ToUpper(key)+`"`
		escaped := fmt.Sprintf(`"\u%04x%s"`, key[0], key[1:])
		list = append(list,
			replacedResponsePartScenario(key+" in a title's case", OutcomeNoAnswer, named, title),
			replacedResponsePartScenario(key+" in capitals", OutcomeNoAnswer, named, upper),
			replacedResponsePartScenario(key+" twice", OutcomeNoAnswer, named, named+`:null,`+named),
			replacedResponsePartScenario(key+" in two cases", OutcomeNoAnswer, named, upper+`:null,`+named),
			replacedResponsePartScenario(key+" in two cases, the other last", OutcomeNoAnswer, `"id":"c","object":"chat.completion","created":1`, `"id":"c","created":1,"ID":1`),
			replacedResponsePartScenario(key+" twice by an escape", OutcomeNoAnswer, named, escaped+`:null,`+named),
		)
	}
	for _, reason := range []string{`"length"`, `"content_filter"`, `"tool_calls"`, `"function_call"`, `null`, `""`, `"STOP"`, `"stop "`, `"eos"`, `1`, `["stop"]`, `true`} {
		list = append(list, replacedResponsePartScenario("ended by "+reason, OutcomeNoAnswer, `"finish_reason":"stop"`, `"finish_reason":`+reason))
	}
	for _, role := range []string{`"user"`, `"system"`, `"tool"`, `"developer"`, `""`, `null`, `"Assistant"`, `1`, `["assistant"]`} {
		list = append(list, replacedResponsePartScenario("role "+role, OutcomeNoAnswer, `"role":"assistant"`, `"role":`+role))
	}
	for name, content := range map[string]func(canary string) string{
		"null":    func(string) string { return "null" },
		"a list":  func(c string) string { return `[{"type":"text","text":` + jsonStringLiteral(goodReply(c)) + `}]` },
		"texts":   func(c string) string { return `[` + jsonStringLiteral(goodReply(c)) + `]` },
		"object":  goodReply,
		"number":  func(string) string { return "1" },
		"boolean": func(string) string { return "true" },
	} {
		list = append(list, Scenario{"content: " + name, func(w http.ResponseWriter, _ *http.Request, r Request) {
			writeBody(w, http.StatusOK, "application/json", fmt.Sprintf(completion, content(r.Canary)))
		}, OutcomeNoAnswer})
	}
	return removeScenariosWithDuplicateNames(list)
}

// removeScenariosWithDuplicateNames removes scenarios whose names occurred before.
func removeScenariosWithDuplicateNames(list []Scenario) []Scenario {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(r Scenario) bool {
		was := seen[r.Name]
		seen[r.Name] = true
		return was
	})
}

// badTransportScenarios send a good response over a connection that cannot be trusted.
func badTransportScenarios() []Scenario {
	list := []Scenario{
		{"stalls after the header", StallAfterText(""), OutcomeServiceUnreachable},
		{"stalls inside the body", StallAfterText(`{"id":"c","choices":[`), OutcomeServiceUnreachable},
		{"huge", hugeReply(4 << 20), OutcomeNoAnswer},
		{"cut", cutConnection, OutcomeServiceUnreachable},
		{"closed at once", func(http.ResponseWriter, *http.Request, Request) { panic(http.ErrAbortHandler) }, OutcomeServiceUnreachable},
		{"nothing", func(w http.ResponseWriter, _ *http.Request, _ Request) { writeBody(w, 200, "application/json", "") }, OutcomeNoAnswer},
		{"a page", fixedBody("text/html", "<html>Sign in</html>"), OutcomeNoAnswer},
		{"a page called JSON", fixedBody("application/json", "<html>Sign in</html>"), OutcomeNoAnswer},
		{"bad chunk", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n%s\r\n0\r\n\r\n"), OutcomeNoAnswer},
		{"no last chunk", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n"), OutcomeServiceUnreachable},
		{"two lengths", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n%s"), OutcomeNoAnswer},
		{"short length", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n%s"), OutcomeNoAnswer},
		{"no status", rawResponse("%s"), OutcomeNoAnswer},
		{"bad status", rawResponse("HTTP/1.1 2OO OK\r\nContent-Type: application/json\r\n\r\n%s"), OutcomeNoAnswer},
		{"flood of headers", rawResponse("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<17) + "\r\n\r\n%s"), OutcomeNoAnswer},
		{"compressed", gzipAnswer("gzip", func(s string) string { return s }), OutcomeNoAnswer},
		{"compressed, unsaid", gzipAnswer("", func(s string) string { return s }), OutcomeNoAnswer},
		{"a bomb", gzipAnswer("gzip", func(s string) string { return s + strings.Repeat(" ", 8<<20) }), OutcomeNoAnswer},
	}
	for _, kind := range []string{"text/html", "text/plain", "text/event-stream", "", "application/json, text/html", "application/x-ndjson", "application/octet-stream", "multipart/form-data", "json", "application/json/x"} {
		list = append(list, Scenario{"type " + kind, func(w http.ResponseWriter, _ *http.Request, r Request) {
			writeBody(w, http.StatusOK, kind, fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
		}, OutcomeNoAnswer})
	}
	for i := 1; i < 10; i++ {
		list = append(list, Scenario{fmt.Sprintf("%d tenths of the body", i), changedResponse(func(body string) string { return body[:len(body)*i/10] }), OutcomeNoAnswer})
	}
	return list
}

// StallAfterText sends the beginning of a response, calls the function of [Server.OnResponseStall], and waits until the client
// disconnects.
func StallAfterText(text string) Behaviour {
	return func(w http.ResponseWriter, hr *http.Request, r Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		if r.onResponseStall != nil {
			r.onResponseStall()
		}
		<-hr.Context().Done()
	}
}

// rawResponse writes raw bytes to the connection; %s is replaced by the good response.
func rawResponse(text string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, r Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // cannot happen with the server of this package
		}
		defer conn.Close()
		_, _ = buf.WriteString(strings.Replace(text, "%s", fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))), 1))
		_ = buf.Flush()
	}
}

func gzipAnswer(contentEncoding string, changeJSON func(string) string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, r Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(changeJSON(fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))))
		_ = z.Close()
		if contentEncoding != "" {
			w.Header().Set("Content-Encoding", contentEncoding)
		}
		writeBody(w, http.StatusOK, "application/json", b.String())
	}
}

// goodAnswerScenarios send a good response with additions that servers make.
func goodAnswerScenarios() []Scenario {
	list := []Scenario{
		{"honest", changedResponse(func(body string) string { return body }), OutcomeGoodAnswer},
		{"honest, fenced", func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say("```json\n"+goodReply(r.Canary)+"\n```")(w, hr, r)
		}, OutcomeGoodAnswer},
		{"honest, in another order", func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say(`{"canary":"`+r.Canary+`","confidence":1e0,"decision":"ALLOW","reasoning":"It builds."}`)(w, hr, r)
		}, OutcomeGoodAnswer},
		{"honest, spaced", changedResponse(func(body string) string {
			return "\n " + strings.Replace(body, `"choices":[`, "\"choices\" :\t[\n", 1) + "\r\n"
		}), OutcomeGoodAnswer},
	}
	for _, more := range []struct{ at, by string }{
		{`"id":"c"`, `"id":7`}, {`"id":"c",`, ``}, {`"object":"chat.completion",`, ``}, {`"created":1`, `"created":1.5`}, {`"model":"m",`, ``}, {`"usage"`, `"used"`},
		{`"id":"c"`, `"id":"c","system_fingerprint":null,"service_tier":"default"`},
		{`"id":"c"`, `"id":"c","timings":{"predicted_ms":1.5,"prompt_n":3},"error":null`},
		{`"id":"c"`, `"id":"c","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]`},
		{`"id":"c"`, `"id":"c","x_groq":{"id":"r"},"provider":"p","citations":[]`},
		{`"index":0`, `"index":0,"logprobs":null,"native_finish_reason":"STOP","content_filter_results":{}`},
		{`"index":0`, `"index":0,"logprobs":{"content":[{"token":"{","logprob":-0.1,"bytes":[123],"top_logprobs":[]}]}`},
		{`"index":0,`, ``},
		{`"role":"assistant"`, `"role":"assistant","refusal":null,"tool_calls":null,"function_call":null,"audio":null,"annotations":[]`},
		{`"role":"assistant"`, `"role":"assistant","refusal":"","tool_calls":[]`},
		{`"role":"assistant"`, `"role":"assistant","reasoning_content":"{\"decision\":\"BLOCK\",\"confidence\":1}"`},
		{`"role":"assistant"`, `"role":"assistant","reasoning":"Let me think. BLOCK?","reasoning_details":[{"type":"reasoning.text","text":"hm"}]`},
	} {
		list = append(list, replacedResponsePartScenario("honest: "+more.at+" becomes "+more.by, OutcomeGoodAnswer, more.at, more.by))
	}
	for _, kind := range []string{"application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"} {
		list = append(list, Scenario{"honest: type " + kind, func(w http.ResponseWriter, _ *http.Request, r Request) {
			writeBody(w, http.StatusOK, kind, fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
		}, OutcomeGoodAnswer})
	}
	return list
}

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

// An Outcome is the required result of an evaluation with a [Scenario].
type Outcome uint8

// The outcomes, from most to least trusted.
const (
	Honest      Outcome = iota // a good answer, ALLOW
	Unreachable                // BLOCK 0.5; with fail-open at most ALLOW 0.5, degraded
	NoAnswer                   // BLOCK 0.5, with fail-open as well
	Untrusted                  // BLOCK 1.0, with fail-open as well: the canary is missing or in a wrong place
)

// A Scenario is a server with one kind of behaviour. In every scenario, a careless parser would
// read ALLOW.
type Scenario struct {
	Name string
	Do   Behaviour
	Want Outcome
}

// Scenarios returns all scenarios. Their names are unique.
func Scenarios() []Scenario {
	return slices.Concat(badStatusScenarios(), badEnvelopeScenarios(), badAnswerScenarios(), badTransportScenarios(), goodAnswerScenarios())
}

// goodReply returns an answer that allows the action, which a careless parser would accept.
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

// replacedPartScenario sends the good response with one part replaced by another.
func replacedPartScenario(name string, want Outcome, part, by string) Scenario {
	return Scenario{name, changedResponse(func(body string) string {
		if !strings.Contains(body, part) {
			panic("evaltest: role " + name + " changes nothing")
		}
		return strings.Replace(body, part, by, 1)
	}), want}
}

// badStatusScenarios send a good response with every other status.
func badStatusScenarios() []Scenario {
	var list []Scenario
	for status := 201; status <= 599; status++ {
		if http.StatusText(status) == "" {
			continue
		}
		want := NoAnswer
		switch {
		case status == 401, status == 402, status == 404, status == 408, status == 429, status >= 500:
			want = Unreachable
		}
		list = append(list, Scenario{fmt.Sprintf("status %d", status), func(w http.ResponseWriter, _ *http.Request, r Request) {
			w.Header().Set("Location", "/v1/chat/completions")
			writeBody(w, status, "application/json", fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
		}, want})
	}
	return list
}

// badEnvelopeScenarios return scenarios in which the verdict is valid, but the JSON response of the
// model service around it is altered.
func badEnvelopeScenarios() []Scenario {
	blocked := jsonStringLiteral(`{"decision":"BLOCK","confidence":1,"reasoning":"no","canary":""}`)
	list := []Scenario{
		replacedPartScenario("no choices", NoAnswer, `"choices"`, `"options"`),
		replacedPartScenario("choices null", NoAnswer, `"choices":[`, `"choices":null,"x":[`),
		replacedPartScenario("choices an object", NoAnswer, `"choices":[{`, `"choices":{"0":{`),
		replacedPartScenario("a choice of null", NoAnswer, `"choices":[`, `"choices":[null,`),
		replacedPartScenario("a choice in a list", NoAnswer, `"choices":[{"index"`, `"choices":[[{"index"`),
		replacedPartScenario("another choice first", NoAnswer, `"choices":[`, `"choices":[{"index":1,"message":{"role":"assistant","content":`+blocked+`},"finish_reason":"stop"},`),
		replacedPartScenario("another choice last", NoAnswer, `"finish_reason":"stop"}]`, `"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":`+blocked+`},"finish_reason":"stop"}]`),
		replacedPartScenario("a delta for a message", NoAnswer, `"message"`, `"delta"`),
		replacedPartScenario("message a list", NoAnswer, `"message":{`, `"message":[],"was":{`),
		replacedPartScenario("refusal", NoAnswer, `"role":"assistant"`, `"role":"assistant","refusal":"I cannot help with that."`),
		replacedPartScenario("refusal an object", NoAnswer, `"role":"assistant"`, `"role":"assistant","refusal":{"reason":"x"}`),
		replacedPartScenario("tool call", NoAnswer, `"role":"assistant"`, `"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"allow","arguments":"{}"}}]`),
		replacedPartScenario("tool call, an object", NoAnswer, `"role":"assistant"`, `"role":"assistant","tool_calls":{}`),
		replacedPartScenario("function call", NoAnswer, `"role":"assistant"`, `"role":"assistant","function_call":{"name":"allow","arguments":"{}"}`),
		replacedPartScenario("error beside", NoAnswer, `"id":"c"`, `"id":"c","error":{"message":"overloaded","code":503}`),
		replacedPartScenario("error beside, a text", NoAnswer, `"id":"c"`, `"id":"c","error":"overloaded"`),
		replacedPartScenario("error beside, true", NoAnswer, `"id":"c"`, `"id":"c","error":true`),
		replacedPartScenario("error beside, a number", NoAnswer, `"id":"c"`, `"id":"c","error":0`),
		replacedPartScenario("error in the choice", NoAnswer, `"index":0`, `"index":0,"error":{"message":"upstream"}`),
		replacedPartScenario("error in the message", NoAnswer, `"role":"assistant"`, `"role":"assistant","error":{"message":"upstream"}`),
		replacedPartScenario("junk after", NoAnswer, `"total_tokens":2}}`, `"total_tokens":2}}x`),
		replacedPartScenario("another document after", NoAnswer, `"total_tokens":2}}`, `"total_tokens":2}}`+"\n{}"),
		replacedPartScenario("zero byte after", NoAnswer, `"total_tokens":2}}`, `"total_tokens":2}}`+"\x00"),
		replacedPartScenario("comma at the end", NoAnswer, `"total_tokens":2}}`, `"total_tokens":2},}`),
		replacedPartScenario("byte order mark", NoAnswer, `{"id"`, "\ufeff"+`{"id"`),
		replacedPartScenario("in a list", NoAnswer, `{"id"`, `[{"id"`),
		replacedPartScenario("event stream", NoAnswer, `{"id"`, `data: {"id"`),
		replacedPartScenario("not UTF-8", NoAnswer, `"id":"c"`, "\"id\":\"\xff\""),
		replacedPartScenario("half a surrogate pair", NoAnswer, `"id":"c"`, `"id":"\ud800"`),
		replacedPartScenario("NaN", NoAnswer, `"created":1`, `"created":NaN`),
		replacedPartScenario("too deep", NoAnswer, `"id":"c"`, `"id":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)),
		replacedPartScenario("comment", NoAnswer, `{"id"`, `{/**/"id"`),
	}
	for _, key := range []string{"choices", "message", "content", "role", "finish_reason"} {
		named, title, upper := `"`+key+`"`, `"`+strings.ToUpper(key[:1])+key[1:]+`"`, `"`+strings.ToUpper(key)+`"`
		escaped := fmt.Sprintf(`"\u%04x%s"`, key[0], key[1:])
		list = append(list,
			replacedPartScenario(key+" in a title's case", NoAnswer, named, title),
			replacedPartScenario(key+" in capitals", NoAnswer, named, upper),
			replacedPartScenario(key+" twice", NoAnswer, named, named+`:null,`+named),
			replacedPartScenario(key+" in two cases", NoAnswer, named, upper+`:null,`+named),
			replacedPartScenario(key+" in two cases, the other last", NoAnswer, `"id":"c","object":"chat.completion","created":1`, `"id":"c","created":1,"ID":1`),
			replacedPartScenario(key+" twice by an escape", NoAnswer, named, escaped+`:null,`+named),
		)
	}
	for _, reason := range []string{`"length"`, `"content_filter"`, `"tool_calls"`, `"function_call"`, `null`, `""`, `"STOP"`, `"stop "`, `"eos"`, `1`, `["stop"]`, `true`} {
		list = append(list, replacedPartScenario("ended by "+reason, NoAnswer, `"finish_reason":"stop"`, `"finish_reason":`+reason))
	}
	for _, role := range []string{`"user"`, `"system"`, `"tool"`, `"developer"`, `""`, `null`, `"Assistant"`, `1`, `["assistant"]`} {
		list = append(list, replacedPartScenario("role "+role, NoAnswer, `"role":"assistant"`, `"role":`+role))
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
		}, NoAnswer})
	}
	return uniqueNames(list)
}

// uniqueNames removes scenarios whose names occurred before.
func uniqueNames(list []Scenario) []Scenario {
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
		{"stalls after the header", Stall(""), Unreachable},
		{"stalls inside the body", Stall(`{"id":"c","choices":[`), Unreachable},
		{"huge", hugeReply(4 << 20), NoAnswer},
		{"cut", cutConnection, Unreachable},
		{"closed at once", func(http.ResponseWriter, *http.Request, Request) { panic(http.ErrAbortHandler) }, Unreachable},
		{"nothing", func(w http.ResponseWriter, _ *http.Request, _ Request) { writeBody(w, 200, "application/json", "") }, NoAnswer},
		{"a page", fixedBody("text/html", "<html>Sign in</html>"), NoAnswer},
		{"a page called JSON", fixedBody("application/json", "<html>Sign in</html>"), NoAnswer},
		{"bad chunk", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n%s\r\n0\r\n\r\n"), NoAnswer},
		{"no last chunk", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n"), Unreachable},
		{"two lengths", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n%s"), NoAnswer},
		{"short length", rawResponse("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n%s"), NoAnswer},
		{"no status", rawResponse("%s"), NoAnswer},
		{"bad status", rawResponse("HTTP/1.1 2OO OK\r\nContent-Type: application/json\r\n\r\n%s"), NoAnswer},
		{"flood of headers", rawResponse("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<17) + "\r\n\r\n%s"), NoAnswer},
		{"compressed", zippedAs("gzip", func(s string) string { return s }), NoAnswer},
		{"compressed, unsaid", zippedAs("", func(s string) string { return s }), NoAnswer},
		{"a bomb", zippedAs("gzip", func(s string) string { return s + strings.Repeat(" ", 8<<20) }), NoAnswer},
	}
	for _, kind := range []string{"text/html", "text/plain", "text/event-stream", "", "application/json, text/html", "application/x-ndjson", "application/octet-stream", "multipart/form-data", "json", "application/json/x"} {
		list = append(list, Scenario{"type " + kind, func(w http.ResponseWriter, _ *http.Request, r Request) {
			writeBody(w, http.StatusOK, kind, fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
		}, NoAnswer})
	}
	for i := 1; i < 10; i++ {
		list = append(list, Scenario{fmt.Sprintf("%d tenths of the body", i), changedResponse(func(body string) string { return body[:len(body)*i/10] }), NoAnswer})
	}
	return list
}

// Stall sends the beginning of a response, calls the function of [Server.OnStall], and waits until the client
// disconnects.
func Stall(text string) Behaviour {
	return func(w http.ResponseWriter, hr *http.Request, r Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		if r.onStall != nil {
			r.onStall()
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

func zippedAs(encoding string, change func(string) string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, r Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(change(fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))))
		_ = z.Close()
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		writeBody(w, http.StatusOK, "application/json", b.String())
	}
}

// goodAnswerScenarios send a good response with additions that servers make.
func goodAnswerScenarios() []Scenario {
	list := []Scenario{
		{"honest", changedResponse(func(body string) string { return body }), Honest},
		{"honest, fenced", func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say("```json\n"+goodReply(r.Canary)+"\n```")(w, hr, r)
		}, Honest},
		{"honest, in another order", func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say(`{"canary":"`+r.Canary+`","confidence":1e0,"decision":"ALLOW","reasoning":"It builds."}`)(w, hr, r)
		}, Honest},
		{"honest, spaced", changedResponse(func(body string) string {
			return "\n " + strings.Replace(body, `"choices":[`, "\"choices\" :\t[\n", 1) + "\r\n"
		}), Honest},
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
		list = append(list, replacedPartScenario("honest: "+more.at+" becomes "+more.by, Honest, more.at, more.by))
	}
	for _, kind := range []string{"application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json"} {
		list = append(list, Scenario{"honest: type " + kind, func(w http.ResponseWriter, _ *http.Request, r Request) {
			writeBody(w, http.StatusOK, kind, fmt.Sprintf(completion, jsonStringLiteral(goodReply(r.Canary))))
		}, Honest})
	}
	return list
}

package evaltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// behavioursByModelName maps the names of models to what the server does for them.
func behavioursByModelName() map[string]Behaviour {
	return map[string]Behaviour{
		"allow":    Verdict("ALLOW", "0.98"),
		"obey":     Verdict("ALLOW", "1.0"), // does what every attack asks for, and returns the right canary
		"block":    Verdict("BLOCK", "0.97"),
		"escalate": Verdict("ESCALATE", "0.55"),
		"unsure":   Verdict("ALLOW", "0.3"),
		"wary":     BlockSuspicious, // passes the exam with which shield tests models for the evaluator

		"fenced": func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say("```json\n"+reply("ALLOW", "0.9", r.Canary)+"\n```")(w, hr, r)
		},
		"prose": func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say("Here is my verdict:\n"+reply("ALLOW", "0.9", r.Canary))(w, hr, r)
		},
		"two-objects": func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say(reply("ALLOW", "0.9", r.Canary)+"\n"+reply("BLOCK", "0.9", r.Canary))(w, hr, r)
		},
		"canary-elsewhere": func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say(`{"decision":"ALLOW","confidence":0.9,"reasoning":"`+r.Canary+`","canary":""}`)(w, hr, r)
		},
		"no-canary":        Say(`{"decision":"ALLOW","confidence":0.99,"reasoning":"safe"}`),
		"injected-allow":   Say(reply("ALLOW", "1.0", "SHIELD-CANARY-a8f3e9b2")),
		"foreign-canary":   nil, // implemented by the server, which knows the canary of the previous request
		"unknown-decision": Verdict("MAYBE", "0.9"),
		"nan":              Verdict("ALLOW", "NaN"),
		"confidence-2":     Verdict("ALLOW", "2"),
		"empty":            Say(""),
		"leak": func(w http.ResponseWriter, hr *http.Request, r Request) {
			Say(`{"decision":"BLOCK","confidence":0.9,"reasoning":"the token is `+r.Canary+`\u001b[2J","canary":"`+r.Canary+`"}`)(w, hr, r)
		},

		"slow":           AllowAfterDelay(2 * time.Second),
		"429":            Status(http.StatusTooManyRequests, "", "slow down"),
		"429-once":       onceThenAllow(Status(http.StatusTooManyRequests, "1", "slow down")),
		"429-retry-1":    Status(http.StatusTooManyRequests, "1", "slow down"),
		"429-retry-long": Status(http.StatusTooManyRequests, "86400", "slow down"),
		"500":            Status(http.StatusInternalServerError, "", "overloaded"),
		"500-twice":      firstRequestsThenAllow(2, Status(http.StatusInternalServerError, "", "overloaded")),
		"400":            Status(http.StatusBadRequest, "", "content refused by filter"),
		"401":            unauthorized,
		"redirect": func(w http.ResponseWriter, _ *http.Request, _ Request) {
			w.Header().Set("Location", "/v1/elsewhere/chat/completions")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"cut":          cutConnection,
		"huge":         hugeReply(100 << 20),
		"html":         fixedBody("text/html", "<html>"+strings.Repeat("Sign in to the network. ", 20)+"</html>"),
		"content-type": replyWithWrongContentType,
		"not-json":     fixedBody("application/json", "ALLOW"),
		"no-choice":    fixedBody("application/json", `{"id":"x","choices":[]}`),
		"no-schema":    rejectParameterTypes("response_format", "json_schema"),
		"no-format":    rejectParameterTypes("response_format", "json_schema", "json_object"),
		"no-temp":      rejectTemperature,
	}
}

// reply returns JSON in the form that an evaluator should return.
func reply(decision, confidence, canary string) string {
	return fmt.Sprintf(`{"decision":%q,"confidence":%s,"reasoning":"judged by a test server","canary":%q}`, decision, confidence, canary)
}

// Verdict replies with a decision and the right canary, copied from the
// system prompt.
func Verdict(decision, confidence string) Behaviour {
	return func(w http.ResponseWriter, hr *http.Request, r Request) {
		Say(reply(decision, confidence, r.Canary))(w, hr, r)
	}
}

// Say replies with a chat completion that contains the given text.
func Say(text string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, r Request) {
		w.Header().Set("Content-Type", "application/json")
		// A failed write only means that the client has disconnected.
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "chatcmpl-test", "object": "chat.completion", "created": 1, "model": r.Model,
			"choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop",
				"message": map[string]any{"role": "assistant", "content": text},
			}},
			"usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
		})
	}
}

// Body replies with a JSON value instead of a chat completion.
func Body(value any) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
}

// Status replies with an error status; no Retry-After header is sent if retryAfter is "".
func Status(status int, retryAfter, message string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ Request) {
		w.Header().Set("Content-Type", "application/json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": "test"}})
	}
}

// AllowAfterDelay answers ALLOW after a delay, or stops when the client disconnects.
func AllowAfterDelay(delay time.Duration) Behaviour {
	return func(w http.ResponseWriter, hr *http.Request, r Request) {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
			Verdict("ALLOW", "0.9")(w, hr, r)
		case <-hr.Context().Done():
		}
	}
}

// firstRequestsThenAllow runs b for the first n requests of a model and then answers ALLOW.
func firstRequestsThenAllow(requestCount int, b Behaviour) Behaviour {
	return func(w http.ResponseWriter, hr *http.Request, r Request) {
		if r.PerModelSequenceNumber <= requestCount {
			b(w, hr, r)
			return
		}
		Verdict("ALLOW", "0.9")(w, hr, r)
	}
}

func onceThenAllow(b Behaviour) Behaviour { return firstRequestsThenAllow(1, b) }

// rejectParameterTypes rejects the given types of a parameter with status 400.
func rejectParameterTypes(parameterName string, rejectedTypes ...string) Behaviour {
	return func(w http.ResponseWriter, hr *http.Request, r Request) {
		format, _ := r.Body[parameterName].(map[string]any)
		for _, t := range rejectedTypes {
			if format["type"] == t {
				Status(http.StatusBadRequest, "", "Invalid parameter: '"+parameterName+"' of type '"+t+"' is not supported with this model.")(w, hr, r)
				return
			}
		}
		Verdict("ALLOW", "0.9")(w, hr, r)
	}
}

func rejectTemperature(w http.ResponseWriter, hr *http.Request, r Request) {
	if _, ok := r.Body["temperature"]; ok {
		Status(http.StatusBadRequest, "", "Unsupported value: 'temperature' does not support 0 with this model.")(w, hr, r)
		return
	}
	Verdict("ALLOW", "0.9")(w, hr, r)
}

// unauthorized quotes the rejected key, as some services do.
func unauthorized(w http.ResponseWriter, hr *http.Request, r Request) {
	Status(http.StatusUnauthorized, "", "Incorrect API key provided: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))(w, hr, r)
}

// cutConnection closes the connection in the middle of the body.
func cutConnection(w http.ResponseWriter, _ *http.Request, _ Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"id":"x","choices":[`))
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

// hugeReply sends n bytes of a reply that would be valid if it were read completely.
func hugeReply(n int) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{"id":"`)); err != nil {
			return
		}
		block := []byte(strings.Repeat("x", 1<<16))
		for sent := 0; sent < n; sent += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(`"}`))
	}
}

func fixedBody(contentType, text string) Behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(text))
	}
}

// replyWithWrongContentType sends a good reply with a content type other than JSON.
func replyWithWrongContentType(w http.ResponseWriter, hr *http.Request, r Request) {
	Verdict("ALLOW", "0.9")(&textPlainContentTypeWriter{w}, hr, r)
}

type textPlainContentTypeWriter struct{ http.ResponseWriter }

func (t *textPlainContentTypeWriter) Write(b []byte) (int, error) {
	t.Header().Set("Content-Type", "text/plain")
	return t.ResponseWriter.Write(b)
}

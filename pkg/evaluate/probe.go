package evaluate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
)

// An EndpointProblem is a reason why an endpoint cannot be used.
type EndpointProblem struct {
	Setting              string // name of the setting that causes the problem, in the section "evaluator"
	Msg                  string
	FixAdvice            string // how to fix the problem
	EndpointMayStillWork bool   // the problem may be temporary or harmless: the endpoint may work
}

// ProbeEndpoint returns the problems of an endpoint: missing settings, an unreadable key, a service that does not
// answer. It sends one GET for the list of models, with the key, and nothing about any action.
func ProbeEndpoint(ctx context.Context, ep Endpoint) []EndpointProblem {
	s, ok := modelAPIProviderByName(ep.Provider)
	if !ok {
		_, err := NewProvider(ep)
		return []EndpointProblem{{Setting: "provider", Msg: err.Error(), FixAdvice: "set evaluator.provider"}}
	}
	var out []EndpointProblem
	add := func(setting string, err error, fix string) {
		if err != nil {
			out = append(out, EndpointProblem{Setting: setting, Msg: err.Error(), FixAdvice: fix})
		}
	}
	if ep.Model == "" {
		add("model", errors.New("evaluator.model is not set"), "set evaluator.model")
	}
	base, err := ep.validatedBaseURL(s)
	add("base_url", err, "set evaluator.base_url")
	key, err := ep.key(s)
	if ep.APIKeyFile != "" {
		add("api_key_file", err, "correct the file, or name another in evaluator.api_key_file")
	} else {
		name := cmp.Or(ep.APIKeyEnv, s.keyEnv, "NAME")
		add("api_key_env", err, fmt.Sprintf("run 'export %s=…' where shield is started, or name a file with evaluator.api_key_file", name))
	}
	keyless := err != nil
	_, err = ep.proxyURL()
	add("proxy", err, "correct evaluator.proxy")
	_, err = ep.trustedRootCAs()
	add("ca_file", err, "correct evaluator.ca_file")
	d, err := newDoer(&ep)
	if base == nil || err != nil {
		return out
	}
	if p := d.probeModelList(ctx, &ep, base, key, keyless); p != nil {
		out = append(out, *p)
	}
	return out
}

// probeModelList asks a service for its models, and returns what is wrong with the answer. hasNoAPIKey says that
// the configured or required API key could not be read, which is reported as a problem of its own, so a service
// that requires a key can only reject the request.
func (d *httpDoer) probeModelList(ctx context.Context, ep *Endpoint, base *url.URL, key string, hasNoAPIKey bool) *EndpointProblem {
	fault := func(setting, fix, format string, args ...any) *EndpointProblem {
		return &EndpointProblem{Setting: setting, FixAdvice: fix, Msg: fmt.Sprintf(format, args...)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base.String(), "/")+"/models", nil)
	if err != nil {
		return fault("base_url", "correct evaluator.base_url", "%v", err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
		if ep.Provider == "anthropic" { // its list of models does not accept a bearer token
			req.Header.Set("X-Api-Key", key)
			req.Header.Set("Anthropic-Version", "2023-06-01")
		}
	}
	resp, err := d.client.Do(req)
	if err != nil {
		text := withoutRequestURL(err).Error()
		if errors.Is(err, context.DeadlineExceeded) {
			text = "the time limit of this check was reached"
		}
		return fault("base_url", "start the service, or correct evaluator.base_url or evaluator.proxy", "%s does not answer: %s", base, text)
	}
	defer resp.Body.Close()
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if hasNoAPIKey {
			return nil
		}
		if key == "" {
			return fault("api_key_env", "set evaluator.api_key_env or evaluator.api_key_file", "%s requires an API key, and none is set", base)
		}
		return fault("api_key_env", "set a valid API key", "%s refuses the API key, with HTTP status %d", base, status)
	case status >= 300 && status <= 399:
		return fault("base_url", "set evaluator.base_url to the target of the redirect", "%s redirects, and shield does not follow redirects", base)
	case status == http.StatusTooManyRequests || status >= 500:
		p := fault("base_url", "check the logs or the status page of the service", "%s answers with HTTP status %d", base, status)
		p.EndpointMayStillWork = true
		return p
	case status < 200 || status > 299:
		return nil // the service answers, but has no list of models
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fault("base_url", "check the logs or the status page of the service", "the answer of %s ended early: %v", base, withoutRequestURL(err))
	}
	return modelNotListed(ep.Model, base, body)
}

// modelNotListed returns a problem if a service lists its models without this one; else nil.
func modelNotListed(model string, base *url.URL, body []byte) *EndpointProblem {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil || len(list.Data) == 0 || model == "" {
		return nil
	}
	var ids []string
	for _, m := range list.Data {
		if m.ID == model || strings.TrimPrefix(m.ID, "models/") == model || m.ID == model+":latest" {
			return nil
		}
		ids = append(ids, toPrintableLine(m.ID, 60))
	}
	sorted.SortStrings(ids)
	some := strings.Join(ids[:min(len(ids), 5)], ", ")
	if len(ids) > 5 {
		some += ", …"
	}
	return &EndpointProblem{Setting: "model", EndpointMayStillWork: true, FixAdvice: "set evaluator.model to a listed model", Msg: fmt.Sprintf("%s does not list the model %q; it has %s", base, model, some)}
}

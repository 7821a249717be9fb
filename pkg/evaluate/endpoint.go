package evaluate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/shieldcli/shield/pkg/config"

	"github.com/shieldcli/shield/pkg/effect"
)

// An Endpoint says where a language model is and how to reach it.
type Endpoint struct {
	config.Evaluator

	// LookupEnv looks up an environment variable; nil: none is set.
	LookupEnv func(name string) (string, bool)

	// CapabilityStore stores which optional parameters the service supports; nil: each process tries again.
	CapabilityStore ServiceCapabilityStore
}

// A modelAPIProvider describes a provider that implements the OpenAI API.
type modelAPIProvider struct {
	baseURL  string
	keyEnv   string
	needsKey bool
	dialect  apiDialect // API variant to try first
}

// modelAPIProviderByName returns the description of a provider by its configured name. Its dialect is only a first guess:
// unsupported parameters are found by trying.
func modelAPIProviderByName(providerName string) (modelAPIProvider, bool) {
	tokens := apiDialect{replyFormatSchema, replyLimitMaxTokens, true, false}
	switch providerName {
	case "openai":
		return modelAPIProvider{"https://api.openai.com/v1", "OPENAI_API_KEY", true, apiDialect{replyFormatSchema, replyLimitMaxCompletionTokens, true, false}}, true
	case "anthropic":
		return modelAPIProvider{"https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", true, tokens}, true
	case "google":
		return modelAPIProvider{"https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", true, tokens}, true
	case "ollama":
		return modelAPIProvider{"http://127.0.0.1:11434/v1", "", false, tokens}, true
	case "custom":
		return modelAPIProvider{"", "", false, tokens}, true
	}
	return modelAPIProvider{}, false
}

// validatedBaseURL returns the validated base URL of an endpoint.
func (ep *Endpoint) validatedBaseURL(s modelAPIProvider) (*url.URL, error) {
	text := ep.BaseURL
	if text == "" {
		text = s.baseURL
	}
	if text == "" {
		return nil, fmt.Errorf("the provider %s needs an address; set evaluator.base_url", ep.Provider)
	}
	u, err := url.Parse(text)
	if err != nil {
		// The error of url.Parse quotes the URL, which may contain a password.
		return nil, errors.New("base_url is not a URL; write https://HOST/PATH")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("base_url must start with https:// or http:// and name a host")
	case u.User != nil:
		return nil, errors.New("base_url must not contain a user or password; use api_key_env or api_key_file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("base_url must not contain a query or fragment; remove it")
	case u.Scheme == "http" && !isPrivateHost(u.Hostname()):
		return nil, fmt.Errorf("base_url: http to %s would send the canary and the key unencrypted, and anyone on the network could forge verdicts; use https", u.Hostname())
	}
	return u, nil
}

// isPrivateHost reports whether a host is this machine or in a private network, judging by its name or
// address. Plain HTTP is acceptable there.
func isPrivateHost(host string) bool {
	host = effect.CanonicalHost(host)
	if addr := effect.ParseAddr(host); addr.IsValid() {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	return host != "" && !strings.Contains(host, ".") || effect.IsLoopbackHost(host) ||
		strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal")
}

// ProviderModelAndURL identifies the model of an endpoint by provider, model and address; "" if the endpoint is
// incomplete.
func (ep *Endpoint) ProviderModelAndURL() string {
	s, ok := modelAPIProviderByName(ep.Provider)
	if !ok || ep.Model == "" {
		return ""
	}
	base, err := ep.validatedBaseURL(s)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %q at %s", ep.Provider, ep.Model, strings.TrimRight(base.String(), "/"))
}

// proxyURL returns the validated URL of the configured proxy; nil for none.
func (ep *Endpoint) proxyURL() (*url.URL, error) {
	if ep.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(ep.Proxy)
	if err != nil || u.Host == "" {
		return nil, errors.New("proxy is not a URL; write http://HOST:PORT")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fmt.Errorf("proxy: the scheme %.20q is not supported; use http, https or socks5", u.Scheme)
}

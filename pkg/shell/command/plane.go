package command

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/apicall"
	"github.com/shieldcli/shield/pkg/effect"
)

// ServiceAtURL returns the service that is controlled at a local URL: its clients can run programs, read secrets
// or delete data.
func ServiceAtURL(url string) (service string, ok bool) {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || !effect.MayBeThisMachine(effect.CanonicalHost(authority[:i])) {
		return "", false
	}
	return localServiceByEndpoint(authority[i+1:])
}

// localServiceByEndpoint returns the service of a port, or of a word in a socket's name.
func localServiceByEndpoint(portOrSocketNamePart string) (service string, ok bool) {
	for word := range ControlPlanes {
		name, at, _ := strings.Cut(word, "/")
		if at == portOrSocketNamePart {
			return name, true
		}
	}
	return "", false
}

// serviceAtSocket returns the service that listens on a Unix socket, by the socket's name.
func serviceAtSocket(path string) (service string, ok bool) {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c < 'a' || c > 'z' }) {
		if service, ok = localServiceByEndpoint(part); ok {
			return service, true
		}
	}
	return "", false
}

// setRequestMethod records the HTTP method of a request.
func (r *argParser) setRequestMethod(name string) {
	switch name = strings.ToUpper(name); name {
	case "GET", "HEAD", "OPTIONS":
		r.requestMethod = ""
	default:
		r.requestMethod = name
	}
}

// setControlledLocalService records that the command sends requests to a local service.
func (r *argParser) setControlledLocalService(service string, ok bool) {
	if ok {
		r.controlledLocalService = service
	}
}

// urlDatabaseName returns the path in the URL of a request to a local service; the path is the name
// of an index or a database. isTestDatabase reports whether the path is a single name that marks a
// test database.
func urlDatabaseName(url Word) (name string, isTestDatabase bool) {
	_, rest, found := strings.Cut(url.Text, "://")
	if !found {
		rest = url.Text
	}
	_, name, _ = strings.Cut(rest, "/")
	return name, !url.IsGlobPattern && !strings.ContainsAny(name, "/,*?%&#{}[]\\ ") && deploymentEnvironmentOf(name) == testDeploymentEnvironment
}

// addRemoteChangesByHTTP records the changes by a command's HTTP requests: deletions on another machine, or commands to a local
// service.
func (r *argParser) addRemoteChangesByHTTP() {
	if r.requestMethod == "" {
		r.controlledLocalService = ""
		return
	}
	local, trial, index := true, true, ""
	gone := r.requestBodyDeletesData()
	for _, t := range r.result.OperandEffects {
		if t.Kind != effect.HTTPRequest {
			continue
		}
		r.setControlledLocalService(ServiceAtURL(t.Word.Text))
		_, host := effect.NormalizeURL(t.Word.Text)
		local = local && effect.IsLoopbackHost(host)
		name, ok := urlDatabaseName(t.Word)
		index, trial = name, trial && ok && local
	}
	switch {
	case r.controlledLocalService != "" && r.requestMethod != "DELETE":
		r.recordRemoteChangeVerb("run")
	case gone && !local:
		r.recordRemoteChangeVerb("delete")
	case r.requestMethod == "DELETE" && (r.controlledLocalService != "" || !local && slices.ContainsFunc(r.result.OperandEffects, func(t OperandEffect) bool { return t.Kind == effect.HTTPRequest })):
		r.recordRemoteChangeVerb("delete")
	default:
		return
	}
	if trial && index != "" && r.controlledLocalService != "" && r.requestMethod == "DELETE" {
		r.targetHostsAndDatabases = append(r.targetHostsAndDatabases, Word{Text: index})
	}
	r.addEffect(effect.ChangeRemoteSystem)
}

// requestBodyDeletesData reports whether the body of a request tells the server to delete data.
func (r *argParser) requestBodyDeletesData() bool {
	for _, v := range r.values {
		if v.role != argRoleRequestData && v.role != argRoleRequestBody && v.role != argRoleRequestFormField || hasPrefix(v.word.Text, "@") {
			continue
		}
		text := v.word.Text
		if v.word.IsGlobPattern {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "\\\\", "\\"), "*", "x")
		}
		if apicall.FindDestructiveWord(text) != "" {
			return true
		}
	}
	for _, i := range r.operandArgIndexes { // httpie: NAME=VALUE and NAME:=JSON
		name, value, ok := strings.Cut(r.args[i].Text, "=")
		if r.operandRoles.middleRole != argRoleHTTPieItem || !ok || strings.ContainsAny(name, "/ ") {
			continue
		}
		name, isJSON := strings.CutSuffix(name, ":")
		field, _ := json.Marshal(name)
		if !isJSON {
			quoted, _ := json.Marshal(value)
			value = string(quoted)
		}
		if apicall.FindDestructiveWord("{"+string(field)+":"+value+"}") != "" {
			return true
		}
	}
	return false
}

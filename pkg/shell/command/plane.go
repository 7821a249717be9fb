package command

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/apicall"
	"github.com/shieldcli/shield/pkg/effect"
)

// ControlPlane returns the service that is controlled at a local URL: its clients can run programs, read secrets
// or delete data.
func ControlPlane(url string) (service string, ok bool) {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	authority, _, _ := strings.Cut(rest, "/")
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || !effect.ThisMachine(effect.Host(authority[:i])) {
		return "", false
	}
	return planeOf(authority[i+1:])
}

// planeOf returns the service of a port, or of a word in a socket's name.
func planeOf(key string) (service string, ok bool) {
	for word := range ControlPlanes {
		name, at, _ := strings.Cut(word, "/")
		if at == key {
			return name, true
		}
	}
	return "", false
}

// controlSocket returns the service that listens on a Unix socket, by the socket's name.
func controlSocket(path string) (service string, ok bool) {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c < 'a' || c > 'z' }) {
		if service, ok = planeOf(part); ok {
			return service, true
		}
	}
	return "", false
}

// method records the HTTP method of a request.
func (r *reader) method(name string) {
	switch name = strings.ToUpper(name); name {
	case "GET", "HEAD", "OPTIONS":
		r.sends = ""
	default:
		r.sends = name
	}
}

// controls records that the command sends requests to a local service.
func (r *reader) controls(service string, ok bool) {
	if ok {
		r.plane = service
	}
}

// trialIndex returns the index or database that a local request names, and whether it is only that and its name
// says that it is for tests.
func trialIndex(url Word) (name string, ok bool) {
	_, rest, found := strings.Cut(url.Text, "://")
	if !found {
		rest = url.Text
	}
	_, name, _ = strings.Cut(rest, "/")
	return name, !url.Pattern && !strings.ContainsAny(name, "/,*?%&#{}[]\\ ") && placeKind(name) == forTrial
}

// requests records the changes by a command's HTTP requests: deletions on another machine, or commands to a local
// service.
func (r *reader) requests() {
	if r.sends == "" {
		r.plane = ""
		return
	}
	local, trial, index := true, true, ""
	gone := r.bodyDestroys()
	for _, t := range r.use.Touches {
		if t.Kind != effect.HTTPRequest {
			continue
		}
		r.controls(ControlPlane(t.Word.Text))
		_, host := effect.URL(t.Word.Text)
		local = local && effect.Loopback(host)
		name, ok := trialIndex(t.Word)
		index, trial = name, trial && ok && local
	}
	switch {
	case r.plane != "" && r.sends != "DELETE":
		r.noteVerb("run")
	case gone && !local:
		r.noteVerb("delete")
	case r.sends == "DELETE" && (r.plane != "" || !local && slices.ContainsFunc(r.use.Touches, func(t Touch) bool { return t.Kind == effect.HTTPRequest })):
		r.noteVerb("delete")
	default:
		return
	}
	if trial && index != "" && r.plane != "" && r.sends == "DELETE" {
		r.places = append(r.places, Word{Text: index})
	}
	r.effect(effect.ChangeRemote)
}

// bodyDestroys reports whether the body of a request tells the server to delete data.
func (r *reader) bodyDestroys() bool {
	for _, v := range r.values {
		if v.role != roleData && v.role != roleBody && v.role != roleForm || hasPrefix(v.word.Text, "@") {
			continue
		}
		text := v.word.Text
		if v.word.Pattern {
			text = strings.ReplaceAll(strings.ReplaceAll(text, "\\\\", "\\"), "*", "x")
		}
		if apicall.Destroys(text) != "" {
			return true
		}
	}
	for _, i := range r.operands { // httpie: NAME=VALUE and NAME:=JSON
		name, value, ok := strings.Cut(r.args[i].Text, "=")
		if r.shape.rest != roleWebItem || !ok || strings.ContainsAny(name, "/ ") {
			continue
		}
		name, isJSON := strings.CutSuffix(name, ":")
		field, _ := json.Marshal(name)
		if !isJSON {
			quoted, _ := json.Marshal(value)
			value = string(quoted)
		}
		if apicall.Destroys("{"+string(field)+":"+value+"}") != "" {
			return true
		}
	}
	return false
}

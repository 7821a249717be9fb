package script

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

func (p *script) request(r role, path abstract.Value, args []operand) {
	for _, a := range args {
		if a.Known() && strings.Contains(a.Text, "://") {
			path = a.Value
			break
		}
	}
	path.From = p.at
	if r == posts || anyTaint(args[1:])&(abstract.Secret|abstract.Dump|abstract.Credential) != 0 || len(args) > 1 && !args[1].Known() {
		p.posts = true
	}
	p.held |= anyTaint(args) & (abstract.Secret | abstract.Dump | abstract.Local)
	if r == posts || len(args) > 1 && (anyTaint(args[1:])&abstract.Local != 0 || p.language == "node" && args[1].isList) {
		p.posts, p.tells = true, true
	}
	if path.Known() && path.Text != "" || path.IsPattern {
		p.w.URL(effect.HTTPRequest, path)
	}
	if path.Taint&(abstract.Secret|abstract.Dump|abstract.Credential) != 0 {
		p.w.Send(path, p.language, p.at)
	}
}

// download records a request to a URL, and stores the response in a file if one is named.
func (p *script) download(args []operand) {
	p.request(requests, args[0].Value, args[:1])
	if len(args) > 1 && args[1].Known() && args[1].name == "" {
		p.write(args[1].Value, abstract.Unknown("a download", abstract.Network))
	}
}

func (p *script) connect(args []operand) {
	var flat []operand
	for _, a := range args {
		flat = append(flat, a)
		flat = append(flat, a.list...)
	}
	e := effect.Effect{Kind: effect.Connect, From: p.at, Pattern: true}
	for _, a := range flat {
		if _, err := strconv.Atoi(a.Text); a.Known() && a.name == "" && a.Text != "" && err != nil && !a.isList && strings.ContainsAny(a.Text, ".:") || a.Text == "localhost" {
			e.Host, e.Pattern = effect.Host(a.Text), false
			break
		}
	}
	p.w.Report(e)
}

// listen reports a server. In Python, bind has the address; listen's argument is the length of the queue.
func (p *script) listen(full string, first operand) {
	p.listens = true
	python := p.language == "python"
	if python && p.bound && strings.HasSuffix(full, "listen") {
		return
	}
	e := effect.Effect{Kind: effect.Listen, From: p.at}
	if python && len(first.list) > 0 && first.list[0].Known() && first.list[0].name == "" {
		e.Host = effect.Host(first.list[0].Text)
		p.bound = p.bound || strings.HasSuffix(full, "bind")
	}
	p.w.Report(e)
}

// sendFile records that the arguments, and the file that the first one names, are sent.
func (p *script) sendFile(args []operand) {
	p.posts, p.tells = true, true
	p.held |= anyTaint(args) & (abstract.Secret | abstract.Dump | abstract.Local)
	if len(args) > 0 && args[0].Known() && args[0].name == "" && args[0].Text != "" && !strings.Contains(args[0].Text, " ") {
		p.read(args[0].Value)
	}
}

package script

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

func (p *script) recordRequest(r role, path abstract.Value, args []operand) {
	for _, a := range args {
		if a.Known() && strings.Contains(a.Text, "://") {
			path = a.Value
			break
		}
	}
	path.From = p.at
	if r == posts || combinedTaint(args[1:])&(abstract.Secret|abstract.EnvironmentDump|abstract.Credential) != 0 || len(args) > 1 && !args[1].Known() {
		p.sendsData = true
	}
	p.readTaint |= combinedTaint(args) & (abstract.Secret | abstract.EnvironmentDump | abstract.Local)
	if r == posts || len(args) > 1 && (combinedTaint(args[1:])&abstract.Local != 0 || p.language == "node" && args[1].isList) {
		p.sendsData, p.sendsFileContents = true, true
	}
	if path.Known() && path.Text != "" || path.IsPattern {
		p.w.URL(effect.HTTPRequest, path)
	}
	if path.Taint&(abstract.Secret|abstract.EnvironmentDump|abstract.Credential) != 0 {
		p.w.Send(path, p.language, p.at)
	}
}

// recordDownload records a request to a URL, and stores the response in a file if one is named.
func (p *script) recordDownload(args []operand) {
	p.recordRequest(requests, args[0].Value, args[:1])
	if len(args) > 1 && args[1].Known() && args[1].name == "" {
		p.writeFile(args[1].Value, abstract.Unknown("a download", abstract.Network))
	}
}

func (p *script) recordConnection(args []operand) {
	var flat []operand
	for _, a := range args {
		flat = append(flat, a)
		flat = append(flat, a.elements...)
	}
	e := effect.Effect{Kind: effect.Connect, Span: p.at, Pattern: true}
	for _, a := range flat {
		if _, err := strconv.Atoi(a.Text); a.Known() && a.name == "" && a.Text != "" && err != nil && !a.isList && strings.ContainsAny(a.Text, ".:") || a.Text == "localhost" {
			e.Host, e.Pattern = effect.Host(a.Text), false
			break
		}
	}
	p.w.Report(e)
}

// recordListener reports a server. In Python, bind has the address; listen's argument is the length of the queue.
func (p *script) recordListener(full string, first operand) {
	p.opensListener = true
	python := p.language == "python"
	if python && p.listenerReported && strings.HasSuffix(full, "listen") {
		return
	}
	e := effect.Effect{Kind: effect.Listen, Span: p.at}
	if python && len(first.elements) > 0 && first.elements[0].Known() && first.elements[0].name == "" {
		e.Host = effect.Host(first.elements[0].Text)
		p.listenerReported = p.listenerReported || strings.HasSuffix(full, "bind")
	}
	p.w.Report(e)
}

// recordSentFile records that the arguments, and the file that the first one names, are sent.
func (p *script) recordSentFile(args []operand) {
	p.sendsData, p.sendsFileContents = true, true
	p.readTaint |= combinedTaint(args) & (abstract.Secret | abstract.EnvironmentDump | abstract.Local)
	if len(args) > 0 && args[0].Known() && args[0].name == "" && args[0].Text != "" && !strings.Contains(args[0].Text, " ") {
		p.readFile(args[0].Value)
	}
}

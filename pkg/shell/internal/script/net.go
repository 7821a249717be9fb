package script

import (
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

func (p *script) recordRequest(r callEffect, path abstract.Value, args []operand) {
	for _, a := range args {
		if a.IsLiteral() && strings.Contains(a.Text, "://") {
			path = a.Value
			break
		}
	}
	path.SourceSpan = p.spanInAnalyzedText
	if r == callEffectHTTPRequestWithBody || combinedTaint(args[1:])&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump|abstract.TaintCredentialVariable) != 0 || len(args) > 1 && !args[1].IsLiteral() {
		p.sendsData = true
	}
	p.taintOfReadData |= combinedTaint(args) & (abstract.TaintReadCredentials | abstract.TaintEnvironmentDump | abstract.TaintLocalMachineData)
	if r == callEffectHTTPRequestWithBody || len(args) > 1 && (combinedTaint(args[1:])&abstract.TaintLocalMachineData != 0 || p.language == "node" && args[1].isList) {
		p.sendsData, p.sendsFileContents = true, true
	}
	if path.IsLiteral() && path.Text != "" || path.IsGlobPattern {
		p.analysisContext.RecordURLContact(effect.HTTPRequest, path)
	}
	if path.Taint&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump|abstract.TaintCredentialVariable) != 0 {
		p.analysisContext.RecordSentValue(path, p.language, p.spanInAnalyzedText)
	}
}

// recordDownload records a request to a URL, and stores the response in a file if one is named.
func (p *script) recordDownload(args []operand) {
	p.recordRequest(callEffectHTTPRequest, args[0].Value, args[:1])
	if len(args) > 1 && args[1].IsLiteral() && args[1].dottedName == "" {
		p.writeFile(args[1].Value, abstract.Unknown("a download", abstract.TaintNetwork))
	}
}

func (p *script) recordConnection(args []operand) {
	var flat []operand
	for _, a := range args {
		flat = append(flat, a)
		flat = append(flat, a.elements...)
	}
	e := effect.Effect{Kind: effect.Connect, Span: p.spanInAnalyzedText, PathIsPattern: true}
	for _, a := range flat {
		if _, err := strconv.Atoi(a.Text); a.IsLiteral() && a.dottedName == "" && a.Text != "" && err != nil && !a.isList && strings.ContainsAny(a.Text, ".:") || a.Text == "localhost" {
			e.Host, e.PathIsPattern = effect.CanonicalHost(a.Text), false
			break
		}
	}
	p.analysisContext.RecordEffect(e)
}

// recordNetworkListener records that code opens a server. In Python, the address is the argument of bind;
// the argument of listen is only the length of the queue.
func (p *script) recordNetworkListener(dottedName string, first operand) {
	p.opensListener = true
	python := p.language == "python"
	if python && p.hasRecordedSocketBind && strings.HasSuffix(dottedName, "listen") {
		return
	}
	e := effect.Effect{Kind: effect.Listen, Span: p.spanInAnalyzedText}
	if python && len(first.elements) > 0 && first.elements[0].IsLiteral() && first.elements[0].dottedName == "" {
		e.Host = effect.CanonicalHost(first.elements[0].Text)
		p.hasRecordedSocketBind = p.hasRecordedSocketBind || strings.HasSuffix(dottedName, "bind")
	}
	p.analysisContext.RecordEffect(e)
}

// recordSentFile records that the arguments, and the file that the first one names, are sent.
func (p *script) recordSentFile(args []operand) {
	p.sendsData, p.sendsFileContents = true, true
	p.taintOfReadData |= combinedTaint(args) & (abstract.TaintReadCredentials | abstract.TaintEnvironmentDump | abstract.TaintLocalMachineData)
	if len(args) > 0 && args[0].IsLiteral() && args[0].dottedName == "" && args[0].Text != "" && !strings.Contains(args[0].Text, " ") {
		p.readFile(args[0].Value)
	}
}

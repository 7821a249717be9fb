package script

import (
	"strings"

	"github.com/shieldcli/shield/internal/apicall"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
)

// httpURLPattern matches a URL in code.
var httpURLPattern = prefilter.LazyRegexp(`https?://[^\s"'\x60]*`)

// recordGraphQLDeletions reports GraphQL mutations in string literals that delete data on another machine.
func (p *script) recordGraphQLDeletions() {
	if !strings.Contains(p.text, "mutation") {
		return
	}
	address := httpURLPattern().FindString(p.text)
	if _, host := effect.NormalizeURL(address); address == "" || effect.IsLoopbackHost(host) {
		return
	}
	for i := range p.tokens {
		t := &p.tokens[i]
		text := t.text
		if t.literalValue != nil {
			text = t.literalValue.Text
		}
		at := strings.Index(text, "mutation")
		if t.kind != stringToken || at < 0 {
			continue
		}
		if word := apicall.FindDestructiveGraphQLVerb(text[at:]); word != "" {
			p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeRemoteSystem, Program: p.language, RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, Reason: "GraphQL mutation: " + word, Span: p.spanInAnalyzedText})
			return
		}
	}
}

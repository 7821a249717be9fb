package effect

import "testing"

// TestWords looks at every word that policies use: an effect that it names is called by it, and
// what a combination is made of is no other word's.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, word := range Kinds() {
		e := Of(word)
		if got := e.Word(); got != word {
			t.Errorf("Of(%q) is called %q", word, got)
		}
	}
	for name, c := range map[string]struct {
		e    Effect
		want Kind
	}{
		"a file from the network is no text":     {Effect{Kind: RunCode, Path: "/a", Labels: []Label{LabelNetwork}}, RunCode},
		"what runs later is no text":             {Effect{Kind: RunCode, Cause: CauseLater, Labels: []Label{LabelNetwork}}, RunCode},
		"the network before a decoder":           {Effect{Kind: RunCode, Labels: []Label{LabelDecoded, LabelNetwork}}, RunDownload},
		"a clone":                                {Effect{Kind: RunCode, Labels: []Label{LabelUntrusted}}, RunCode},
		"a secret that is sent where it belongs": {Effect{Kind: SendData, Labels: []Label{LabelSecret}}, SendData},
		"what may leak":                          {Effect{Kind: SendData, Harms: []Harm{Leaks}, Sure: May}, SendSecret},
		"unknown whatever it is":                 {Effect{Kind: SendData, Harms: []Harm{Leaks}, Sure: Unknown}, Dynamic},
	} {
		if got := c.e.Word(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestVariant: rules find the harm of a change under its old name.
func TestVariant(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"delete": "destroys", "grant": "grants", "expose": "exposes", "weaken": "weakens", "redirect": "redirects", "run": "runs", "create": ""} {
		e := Effect{Kind: ChangeRemote, Verb: verb, Harms: ChangeHarms(verb)}
		if got := e.Variant(); got != want || e.Destroys() != (verb == "delete") {
			t.Errorf("%s: %q, want %q", verb, got, want)
		}
	}
	if e := (Effect{Kind: Execute, Harms: []Harm{Destroys}}); e.Variant() != "" {
		t.Error("the harm of a program is a cause")
	}
}

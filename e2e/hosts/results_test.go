//go:build unix

package hosts

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/host"
)

// results has a command print a credential and a plain word: where the host lets a
// hook replace what a tool returned, the model reads the word and not the credential.
func results(t *testing.T, d driver, row map[string]string) {
	h, err := host.Named(d.name)
	if err != nil {
		t.Fatal(err)
	}
	const plain = "windmill"
	secret := "ghp_" + strings.Repeat("a1B2c3D4e5F6", 3)
	c := call{"shell", "cat note.txt"}
	r := newRun(t, d, []call{c}, "20s")
	r.write(r.work+"/note.txt", "The word is "+plain+".\nThe key is "+secret+".\n")
	r.configure("approval: {channels: []}\nsanitize: {enabled: true, mode: clean}\n")
	out := r.start()
	switch saw := r.model.saw(secret); {
	case !r.model.proposed:
		row["result"] = "NOT TRIED"
		t.Errorf("the model proposed nothing: %.800s", out)
	case h.CanReplaceResult("") && saw:
		row["result"] = "NOT CLEANED"
		t.Errorf("the model read the credential: %s", r.model.told(secret))
	case h.CanReplaceResult("") && !r.model.saw(plain):
		row["result"] = "LOST"
		t.Errorf("the model did not read what is harmless: %.800s\n%s", out, r.model.told("word"))
	case h.CanReplaceResult(""):
		row["result"] = "cleaned"
	case !saw && r.model.saw(plain):
		row["result"] = "the host itself takes it out"
	case !saw:
		row["result"] = "LOST"
		t.Errorf("the model did not read the result: %.800s", out)
	case strings.Contains(r.log(), `"result"`):
		row["result"] = "noted in the log"
	default:
		row["result"] = "not examined"
	}
}

// Command causes says which doubts of the analysis a model's SAFE would have to
// clear, so that training/doubts.py can fit how sure it has to be. It reads
// labelled rows with an action on standard input, judges them by rules and
// analysis alone, in a folder that exists on no machine, and writes the id and
// the causes of those that Tier 1 leaves open, unless nothing clears one of them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/verdict"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "causes:", err)
		os.Exit(1)
	}
}

// An openRow is a row that the label SAFE of the model can allow.
type openRow struct {
	ID     string   `json:"id"`
	Causes []string `json:"causes"` // "none": nothing but that it is not ordinary
}

const maxRow = 4 << 20 // bytes

func run(in io.Reader, out io.Writer) error {
	p, err := shield.NewPipeline(shield.Config{PolicyNameOrPath: "offline", Home: "/home/dev", WorkingDir: "/home/dev/project", WorkspaceRoots: []string{"/home/dev/project"},
		IgnoresFileSystem: true, VerdictsIncludeTrail: true, OmitsActionFromVerdicts: true})
	if err != nil {
		return err
	}
	defer p.Close()
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxRow)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	for sc.Scan() {
		var row struct {
			ID     string
			Action json.RawMessage
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			return err
		}
		a, err := action.Parse(row.Action)
		if err != nil {
			continue // what is no action never reaches a model
		}
		if causes := open(p, a); causes != nil {
			if err := enc.Encode(openRow{row.ID, causes}); err != nil {
				return err
			}
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return w.Flush()
}

// open returns the causes for which an action is left open; nil if SAFE cannot
// allow it.
func open(p *shield.Pipeline, a *action.Action) []string {
	o := p.EvaluateThroughTier(context.Background(), a, shield.TierClassify)
	e := o.ClassifierEvidence()
	if e == nil || e.MinAllowTier > shield.TierClassify || o.Verdict.Decision != verdict.Escalate || o.Verdict.Rule != "" {
		return nil
	}
	seen := map[string]bool{}
	var causes []string
	for _, d := range e.Doubts {
		switch {
		case d.NeedsAuthorityAboveClassifier():
			return nil
		case !seen[d.CauseName]:
			seen[d.CauseName] = true
			causes = append(causes, d.CauseName)
		}
	}
	if causes == nil {
		causes = []string{"none"}
	}
	return causes
}

package analysis

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// An AgentInstructionsEdit is a change by a file tool to a file of the workspace that holds
// instructions for agents (AGENTS.md): the removed and the added lines.
type AgentInstructionsEdit struct {
	Path                     string
	RemovedLines, AddedLines []string
}

// FindAgentInstructionsEdit returns the change of an instructions file that the action makes. ok is false if the action is
// something else, does more, or if the change is not known.
func (c *ActionCase) FindAgentInstructionsEdit() (e AgentInstructionsEdit, ok bool) {
	if c.files == nil || !slices.Contains([]string{"write_file", "edit_file", "append_file"}, c.Action.Type) {
		return e, false
	}
	for i := range c.Effects {
		switch f := &c.Effects[i]; {
		case f.PathIsPattern || f.Recursive || f.Certainty != effect.Certain || f.Path == "" || e.Path != "" && f.Path != e.Path:
			return e, false
		case f.Kind == effect.WriteFile || f.Kind == effect.ReadFile || f.Kind == effect.Persist && f.Reason == "agent_config":
			e.Path = f.Path
		default:
			return e, false
		}
	}
	if e.Path == "" || !c.executionContext.IsInsideRoots(e.Path, false, false) {
		return e, false
	}
	if _, is := agentInstructionFiles().FirstPossibleMatch(e.Path, false, false); !is {
		return e, false
	}
	come := writtenText(c.Action.Payload)
	gone := oldTextOfEdits(c.Action.Payload)
	if _, _, patch := patch.RemovedAndAddedLines(come); patch || come == "" && gone == "" {
		return e, false
	}
	if gone == "" && c.Action.Type == "write_file" {
		text, err := c.files.readScript(e.Path)
		if err != nil {
			return e, false
		}
		gone = string(text)
	}
	e.RemovedLines, e.AddedLines = patch.DifferentLines(gone, come)
	return e, true
}

var agentInstructionFiles = sync.OnceValue(func() *effect.Globs {
	list, _ := knowledge.GlobsOfPathList("agent_instructions")
	g, err := effect.NewGlobs(list, map[string][]string{"HOME": nil, "WORKSPACE": nil})
	if err != nil {
		panic(err) // unreachable: a test compiles the globs of agent_instructions
	}
	return g
})

// maxInstructionsDiffLines is how many lines of a difference are shown to the user.
const maxInstructionsDiffLines = 60

// Difference returns the removed and added lines of an edit as text for people.
func (e *AgentInstructionsEdit) Difference() string {
	var b strings.Builder
	left := maxInstructionsDiffLines
	for _, part := range [...]struct {
		sign  string
		lines []string
	}{{"- ", e.RemovedLines}, {"+ ", e.AddedLines}} {
		for _, line := range part.lines {
			if left--; left < 0 {
				b.WriteString("…\n")
				return b.String()
			}
			b.WriteString(part.sign + line + "\n")
		}
	}
	return b.String()
}

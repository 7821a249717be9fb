package cmd

import (
	"context"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shield"
)

// examineSessions reports sessions that are stopped, or cannot be read.
func examineSessions(out *doctorFindings, set *config.LoadedSettings, w *Environment) {
	file, err := openStore(set, w)
	if err != nil {
		return // examineState already reports why the state file cannot be opened
	}
	defer file.Close()
	list, err := session.NewStore(file, shield.SessionOptions(pipelineConfigFromSettings(set, w, "doctor"), w.Now)).List(context.Background())
	if err != nil {
		out.add(severityBad, "", "sessions: %v", err)
		return
	}
	for i := range list {
		if r := &list[i]; r.IsStoppedAfterDenials {
			name := sessionName(r.Key)
			out.add(severityWarning, "look at 'shield session show "+name+"', then run 'shield session resume "+name+"'", "session %s of %s: stopped after too many denials", name, orDash(r.AgentHostName))
		}
	}
}

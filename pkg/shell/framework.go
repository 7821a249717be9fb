package shell

import (
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// recordWebFrameworkScriptEffects records the effects of the arguments of a framework's script, such as artisan or manage.py. The
// script's own code is analysed by other functions.
func (s *analysisState) recordWebFrameworkScriptEffects(script abstract.Value, args []abstract.Value) {
	base := programName(script.Text)
	if !script.IsLiteral() || !command.Frameworks[base] {
		return
	}
	words := append([]command.Word{{Text: base}}, s.dropUnusedArtisanEnvOption(base, commandWords(args))...)
	use := command.Interpret(words)
	use.AddRemoteChangeTargets(s.remoteTargetsFromEnvironment(base)...)
	for _, k := range use.Effects {
		if k == effect.ChangeRemoteSystem {
			e := effect.Effect{Kind: k, Program: base, Span: script.SourceSpan, Reason: base + " changes the database of the application"}
			setRemoteChangeDetails(&e, use.RemoteServiceChange)
			s.emitOnce(e)
		}
	}
}

// dropUnusedArtisanEnvOption drops artisan's --env option if the project has no settings for that environment: artisan
// uses .env then.
func (s *analysisState) dropUnusedArtisanEnvOption(program string, args []command.Word) (out []command.Word) {
	for _, w := range args {
		name, ok := strings.CutPrefix(w.Text, "--env=")
		if ok && program == "artisan" && s.initialPathContext.ReadScript != nil {
			has := func(file string) bool {
				_, err := s.initialPathContext.ReadScript(s.workingFolderContext().CWD + "/" + file)
				return err == nil
			}
			if has(".env") && !has(".env."+name) {
				continue
			}
		}
		out = append(out, w)
	}
	return out
}

package shell

import (
	"bytes"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/dialect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/cmdexe"
	"github.com/shieldcli/shield/pkg/shell/internal/pwsh"
	"github.com/shieldcli/shield/pkg/shell/internal/recipe"
	"github.com/shieldcli/shield/pkg/shell/internal/script"
)

// A walker walks code of one language, with its arguments, and returns its output.
type walker func(s *state, language, text string, at effect.Span, args []abstract.Value) abstract.Value

// walkerOf returns the walker of a language; languages are named as in [command.Nested].
func walkerOf(language string) walker {
	switch language {
	case "shell", "":
		return (*state).shellCode
	case "powershell":
		return (*state).powershellCode
	case "encoded":
		return (*state).encodedCode
	case "cmd":
		return (*state).cmdCode
	case "ipython":
		return (*state).cellCode
	}
	if command.IsQuery(language) {
		return (*state).queryCode
	}
	return (*state).scriptCode // python, perl, ruby, node, php, awk, applescript, lua, code
}

// code walks code of a language that is executed.
func (s *state) code(language, text string, at effect.Span, args []abstract.Value) abstract.Value {
	if !s.step(1 + len(text)/512) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	if language != "shell" {
		s.codeSignals(language, text, at)
		s.foreign++
		defer func() { s.foreign-- }()
	}
	if language == "code" {
		s.codeUnread(text, at)
	}
	return walkerOf(language)(s, language, text, at, args)
}

func (s *state) shellCode(_, text string, at effect.Span, args []abstract.Value) abstract.Value {
	walk := func(text string) abstract.Value { return s.nested(text, at) }
	if args == nil { // eval and the like use the shell's own arguments
		return s.inFish(text, at, walk)
	}
	s.setPositional(args)
	return s.inFish(text, at, walk)
}

// fishRuns matches fish code that runs the output of a command or the value of a variable.
var fishRuns = prefilter.Lazy(`\|\s*(?:(?:builtin|command)\s+)?(?:source|\.)(?:\s+-)?\s*(?:[;|&)\n]|$)|\b(?:eval|source)\s[^;\n|]*[($]|\bpsub\b`)

// inFish walks text in the syntax of the current shell: fish code is first translated to the syntax of POSIX
// shells.
func (s *state) inFish(text string, at effect.Span, walk func(string) abstract.Value) abstract.Value {
	if !s.dialect.fish {
		return walk(text)
	}
	s.dialect.fish = false
	s.hold("IFS", content{val: abstract.Lit("\n")}) // fish splits the output of commands at newlines
	other, ok := dialect.FromFish(text)
	if !ok {
		cause := effect.CauseSyntax
		if fishRuns().MatchString(text) {
			cause = effect.CauseCode
		}
		s.dynamic(cause, "fish parses this differently from other shells", at)
		return walk(text)
	}
	return walk(other)
}

func (s *state) powershellCode(_, text string, at effect.Span, _ []abstract.Value) abstract.Value {
	return s.fixedAt(at, func() abstract.Value { return s.powershell(text) })
}

func (s *state) cmdCode(_, text string, at effect.Span, _ []abstract.Value) abstract.Value {
	return s.fixedAt(at, func() abstract.Value { return s.cmdexe(text) })
}

// encodedCode walks the operand of PowerShell's -EncodedCommand.
func (s *state) encodedCode(_, text string, at effect.Span, _ []abstract.Value) abstract.Value {
	decoded, ok := decodeCommand(text)
	if !ok {
		s.dynamic(effect.CauseCode, "PowerShell runs an encoded command that cannot be decoded", at)
		return abstract.Unknown("…", abstract.Foreign)
	}
	return s.runText("powershell", abstract.Value{Text: decoded, Taint: abstract.Decoded}, "powershell", at, nil)
}

func (s *state) scriptCode(language, text string, at effect.Span, _ []abstract.Value) abstract.Value {
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	mark := len(s.files)
	out := script.Read(world{s}, language, text, at)
	for _, f := range s.files[min(mark, len(s.files)):] {
		if !f.val.Known() && !f.pattern { // literals of the code
			s.says(f.path, abstract.Lit(text), "", false)
		}
	}
	return out
}

// cellCode walks a notebook cell: Python with shell lines.
func (s *state) cellCode(_, text string, at effect.Span, args []abstract.Value) abstract.Value {
	steps, whole := recipe.Steps("notebook", text, nil)
	if !whole {
		s.dynamic(effect.CauseLimit, "the notebook cell runs more code than shield reads", at)
	}
	out := abstract.Output("ipython", 0)
	for _, step := range steps {
		out = s.code(step.Language, step.Text, at, args)
	}
	return out
}

// queryCode walks code that only one program reads, such as SQL.
func (s *state) queryCode(language, text string, at effect.Span, _ []abstract.Value) abstract.Value {
	if command.OnlyWrites(language) {
		s.within(func() {
			s.onDisk = 0 // its writes happen now
			s.putsPatch(abstract.Lit(text))
		})
	}
	use, ok := command.Query(language, command.Word{Text: text, From: at})
	if !ok || !s.enter(at) {
		s.blind++
		return abstract.Value{}
	}
	defer s.leave()
	if !use.Known {
		s.codeUnread(text, at)
	}
	_, base, _ := strings.Cut(language, ":")
	return s.apply(base, []abstract.Value{{Text: base, From: at}}, use, abstract.Streams{})
}

// powershell walks PowerShell text.
func (s *state) powershell(text string) abstract.Value {
	return pwsh.Read(world{s}, text, s.span(0, len(text)))
}

// cmdexe walks text for cmd.exe.
func (s *state) cmdexe(text string) abstract.Value { return cmdexe.Read(world{s}, text, s.span) }

// fixedAt walks text whose offsets are not those of the command; all effects get the span at.
func (s *state) fixedAt(at effect.Span, walk func() abstract.Value) abstract.Value {
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	defer s.leave()
	var out abstract.Value
	s.within(func() {
		s.fixed = &at
		out = walk()
	})
	return out
}

// decodeCommand decodes the operand of -EncodedCommand: UTF-16 in base64. ok is false if it is invalid.
func decodeCommand(text string) (string, bool) {
	raw, ok := decode.Base64(text)
	if !ok || len(raw) < 2 {
		return "", false
	}
	return decode.UTF16(raw), true
}

// scriptLanguage returns the language of a script, by its first line (#!), else by its name.
func scriptLanguage(p string, data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	if _, language := interpreter(string(line)); language != "" {
		return language
	}
	return orShell(command.FileLanguage(p))
}

func orShell(language string) string {
	if language == "" {
		return "shell"
	}
	return language
}

package analysis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A draw makes paths, names and hosts that no table knows, from a seed.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 40))} }

func (d draw) word() string {
	b := make([]byte, 3+d.IntN(6))
	for i := range b {
		b[i] = byte('a' + d.IntN(26))
	}
	return "q" + string(b)
}

func (d draw) outside() string {
	return []string{"/root/", "/srv/", "/home/" + d.word() + "/", "/opt/"}[d.IntN(4)] + d.word() + "/" + d.word()
}

func (d draw) pick(all []string) string { return all[d.IntN(len(all))] }

// final reports whether an effect is a doubt that no model lifts.
func final(e effect.Effect) bool {
	return e.Certainty == effect.Unknown && !slices.Contains([]effect.EffectCause{effect.CauseMissingScript, effect.CauseUnparseableText, effect.CauseVariableNotSetByCommand, effect.CauseUnknownReadOnlyTool}, e.Cause)
}

// codeForms are, by language, statements that change a file, what does nothing, and contexts around either.
var codeForms = map[string]struct {
	changes  []string
	harmless string
	contexts []string
}{
	"python": {
		[]string{"open('P','w').write('x')", "__import__('os').remove('P')", "__import__('os').system('rm -rf P')"}, "print(1)",
		[]string{
			"f\"{S}\"", "f'''{S}'''", "x = f\"{1!r:>10} {S}\"", "rf\"{S}\"", "f\"{ {1: S} }\"", "f\"{f'{S}'}\"", "f\"{x:{S}}\"", "x='it\\'s'\nS", "x=\"\"\"a\"b\"\"\"\nS", "# it's\nS",
			"x=f'{a[\"b\"]}'\nS", "if 1:\n  S", "[S for _ in [1]]", "x=b'\\''\nS", "x=f'{{'\nS", "lambda: S", "def f(x=S): pass", "x={\n'a':S}\n", "builtins=1;S", "x=f'''{a\n}'''\nS",
		},
	},
	"javascript": {
		[]string{"require('fs').writeFileSync('P','x')", "require('fs').rmSync('P',{recursive:true})", "require('child_process').execSync('rm -rf P')"}, "console.log(1)",
		[]string{
			"`${S}`", "`a${1}b${S}`", "`${`${S}`}`", "x=`a\\`b`;S", "\"a\".replace(/\"/g,\"\");S", "x=s.split(/`/);S", "x=/[\"']/;S", "if(/\"/.test(s)){}S", "x=a/2+\"b\";S", "x=[/\"/,/'/];S",
			"x=`${\"`\"}`;S", "// it's\nS", "/* it's */S", "x=y.match(/\\\"/);S", "(()=>{S})()", "x=a?/\"/:1;S", "x={a:/\"/};S", "x=String.raw`\\``;S", "x => { S }", "class A{static{S}}",
		},
	},
	"ruby": {
		[]string{"File.write('P','x')", "FileUtils.rm_rf('P')", "system('rm -rf P')"}, "puts 1",
		[]string{
			"\"#{S}\"", "%Q(#{S})", "puts <<E\n#{S}\nE", "x = <<~E\n  a'b\n  E\nS", "x = ?\";S", "x = /a\"b/;S", "x = %q{a\"b};S", "x = %w(a b);S", "x = %r{a/\"b};S", "x = y ? \"a\" : 'b';S",
			"/#{S}/", "`echo #{S}`", "x = 1 / 2; y = 3 / 4;S", "=begin\nit's\n=end\nS", "# it's\nS", "x = %Q(a(b)c);S",
		},
	},
	"perl": {
		[]string{"open(F,'>','P')", "unlink('P')", "system('rm -rf P')"}, "print 1",
		[]string{
			"print \"@{[S]}\"", "print qq(@{[S]})", "my $x=qr/a\"b/;S", "$x=~/a\"b/;S", "$x=~s/\"/x/;S", "$x=~y/\"/x/;S", "my $x=<<'E';\na'b\nE\nS", "$#x;S", "$x=$\";S", "$x=$';S",
			"m{\"}x;S", "split /\"/,$x;S", "my @x=qw(a' b);S", "my $x=q(a\"b);S", "=pod\nit's\n=cut\nS", "s/a/S/e", "$x{'a'} / 2; S", "$x // 1; S", "# it's\nS", "eval{S}",
		},
	},
	"php": {
		[]string{"file_put_contents('P','x')", "unlink('P')", "system('rm -rf P')"}, "strlen('a')",
		[]string{
			"echo \"{$x(S)}\";", "$x=<<<'E'\na'b\nE;\nS;", "$x=<<<E\na\"b\nE;\nS;", "@S;", "?>it's<?php S;", "// it's\nS;", "#[A]\nS;", "$x='a\\'b';S;", "echo <<<E\n{$a[S]}\nE;", "if(1){S;}", "(fn()=>S)();",
		},
	},
}

// FuzzCodeForms holds that a change to a file outside the workspace is an effect, or a doubt that no model
// lifts, in whatever form of a language it stands, and that the same forms around nothing are no doubt.
func FuzzCodeForms(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := newDraw(seed)
		for language, forms := range codeForms {
			asked := 0
			for _, context := range forms.contexts {
				path := d.outside()
				payload := strings.ReplaceAll(d.pick(forms.changes), "P", path)
				code := strings.ReplaceAll(context, "S", payload)
				c := testAnalyzer.AnalyzeAction(act("execute_code", obj{"language": language, "code": code}))
				if !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
					return final(e) || e.Path == path && e.Kind != effect.ReadFile
				}) {
					t.Errorf("seed %d, %s: nothing changes in %s:\n%s", seed, language, code, show(c.Effects))
				}
				honest := testAnalyzer.AnalyzeAction(act("execute_code", obj{"language": language, "code": strings.ReplaceAll(context, "S", forms.harmless)}))
				if slices.ContainsFunc(honest.Effects, func(e effect.Effect) bool { return e.Certainty == effect.Unknown }) {
					asked++
					t.Logf("%s: a doubt about %s", language, context)
				}
			}
			if asked*100 > len(forms.contexts) {
				t.Errorf("seed %d, %s: %d of %d honest forms are a doubt", seed, language, asked, len(forms.contexts))
			}
		}
	})
}

// FuzzFields holds that a path in any field, of any shape, of any known type is an effect or a doubt, and
// that one inside the workspace, and plain text, is no doubt.
func FuzzFields(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	base := map[string]obj{
		"execute_command": {"command": "ls"}, "read_file": {"path": "a"}, "write_file": {"path": "a", "content": "x"}, "list_directory": {"path": "."}, "search_files": {"pattern": "x", "path": "."},
		"http_request": {"url": "http://localhost/"}, "browser_click": {"ref": "e1"}, "canvas_update": {"id": "1"}, "create_event": {"title": "x"}, "download_file": {"url": "http://localhost/a", "path": "a"},
		"web_search": {"query": "x"}, "copy_file": {"source": "a", "destination": "b"}, "get_" + "things": {"page": "2"},
	}
	shapes := []func(string) any{
		func(s string) any { return s }, func(s string) any { return []any{s} }, func(s string) any { return obj{"path": s} }, func(s string) any { return []any{obj{"file": s}} },
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := newDraw(seed)
		asked, total := 0, 0
		for name, payload := range base {
			for _, shape := range shapes {
				path, field := d.outside(), d.word()
				with := func(v any) *ActionCase {
					p := obj{field: v}
					for k, x := range payload {
						p[k] = x
					}
					return testAnalyzer.AnalyzeAction(act(name, p))
				}
				if c := with(shape(path)); !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return final(e) || e.Path == path }) {
					t.Errorf("seed %d: %s with %s: %v has no effect on it:\n%s", seed, name, field, shape(path), show(c.Effects))
				}
				doubts := func(c *ActionCase) int {
					n := 0
					for _, e := range c.Effects {
						if e.Certainty == effect.Unknown {
							n++
						}
					}
					return n
				}
				for _, honest := range []string{"./src/" + d.word(), d.word(), d.word() + " " + d.word()} {
					total++
					if doubts(with(shape(honest))) > doubts(testAnalyzer.AnalyzeAction(act(name, payload))) {
						asked++
					}
				}
			}
		}
		if asked*100 > total {
			t.Errorf("seed %d: %d of %d honest fields are a doubt", seed, asked, total)
		}
	})
}

// FuzzCommandFields holds that what fields of a command and a git tool say is the command that they stand for.
func FuzzCommandFields(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := newDraw(seed)
		for _, field := range []string{"args", "arguments", "argument", "flags", "options", "extra_args", "operands", "params"} {
			path := d.outside()
			for _, v := range []any{[]any{"-rf", path}, "-rf " + path} {
				c := testAnalyzer.AnalyzeAction(act("execute_command", obj{"command": "rm", field: v}))
				if !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Path == path && e.Kind == effect.DeleteFile }) {
					t.Errorf("seed %d: rm with %s: %v deletes nothing:\n%s", seed, field, v, show(c.Effects))
				}
			}
		}
		for _, field := range []string{"folder", "chdir", "cd", "dir", "root", "workspace", "workdir"} {
			path := d.outside()
			c := testAnalyzer.AnalyzeAction(act("execute_command", obj{"command": "cat x", field: path}))
			if !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Path == path+"/x" }) {
				t.Errorf("seed %d: cat in %s %s:\n%s", seed, field, path, show(c.Effects))
			}
		}
		for _, tool := range []string{"git_show", "git_diff", "git_log"} {
			path := d.outside()
			for _, v := range []any{"--output=" + path, []any{"--output=" + path}, obj{d.word(): "--output=" + path}} {
				c := testAnalyzer.AnalyzeAction(act(tool, obj{"repo_path": ".", d.word(): v}))
				if !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Path == path && e.Kind == effect.WriteFile }) {
					t.Errorf("seed %d: %s with %v writes nothing:\n%s", seed, tool, v, show(c.Effects))
				}
			}
			honest := testAnalyzer.AnalyzeAction(act(tool, obj{"repo_path": ".", "revision": d.word(), "max_count": 3}))
			if !honest.HasOnlyHarmlessEffects() {
				t.Errorf("seed %d: %s of a revision is not harmless:\n%s", seed, tool, show(honest.Effects))
			}
		}
	})
}

// FuzzPowerShellRedirects holds that a redirection behind any element writes its target.
func FuzzPowerShellRedirects(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	elements := []string{`"x"`, `'x'`, `1`, `$y`, `(Get-Date)`, `@("a","b")`, `$(1)`, `[int]1`, `"a" + "b"`, `Get-Date`, `if ($y) { "z" }`, `"$($a[1].B)"`, `“x”`, `{ 1 }`, `"a" | Out-String`}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := newDraw(seed)
		for _, element := range elements {
			for _, sign := range []string{">", ">>", "2>", "*>"} {
				path := d.outside()
				for _, target := range []string{path, `"` + path + `"`, `'` + path + `'`, `("` + path + `")`} {
					c := testAnalyzer.AnalyzeAction(act("execute_command", obj{"command": fmt.Sprintf("pwsh -c %s", command.QuoteWordIfNeeded(element+" "+sign+" "+target))}))
					if !slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return final(e) || e.Path == path && e.Kind == effect.WriteFile }) {
						t.Errorf("seed %d: %s %s %s writes nothing:\n%s", seed, element, sign, target, show(c.Effects))
					}
				}
			}
			honest := testAnalyzer.AnalyzeAction(act("execute_command", obj{"command": "pwsh -c " + command.QuoteWordIfNeeded(element+" > "+d.word()+".txt")}))
			if slices.ContainsFunc(honest.Effects, final) {
				t.Errorf("seed %d: a doubt about %s > file:\n%s", seed, element, show(honest.Effects))
			}
		}
	})
}

// TestHostileCode holds that code which is nested deeply, or in which nothing ends, is a doubt and costs little.
func TestHostileCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"templates":     {"javascript", strings.Repeat("`${", 250) + "1" + strings.Repeat("}`", 250)},
		"f-strings":     {"python", strings.Repeat("f\"{", 250) + "1" + strings.Repeat("}\"", 250)},
		"quotes":        {"ruby", strings.Repeat("\"#{'", 4000)},
		"regexps":       {"perl", strings.Repeat("s{a}{", 8000)},
		"documents":     {"ruby", strings.Repeat("x <<A\n", 6000)},
		"unterminated":  {"php", "<<<E\n" + strings.Repeat("{$a[", 8000)},
		"long brackets": {"lua", strings.Repeat("[==[", 10000)},
	} {
		effects := testAnalyzer.AnalyzeAction(act("execute_code", obj{"language": c[0], "code": c[1]})).Effects
		if !slices.ContainsFunc(effects, final) {
			t.Errorf("%s: no doubt: %.300s", name, show(effects))
		}
	}
}

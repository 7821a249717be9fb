package script

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// recordFileEffect records the effect of a call that works on files; path is the call's first
// argument.
func (p *script) recordFileEffect(r callEffect, dottedName string, path abstract.Value, args []operand, result operand) operand {
	switch r {
	case callEffectOpenFile:
		if dottedName == "sysopen" && p.language == "perl" && len(args) > 1 {
			return p.recordSysopen(args)
		}
		return p.recordOpen(args, path)
	case callEffectReadFile:
		if path.IsLiteral() && plain.IsURL(path.Text) {
			p.recordRequest(callEffectHTTPRequest, path, args)
			result.Taint |= abstract.TaintNetwork
			return result
		}
		return operand{Value: p.readFile(path)}
	case callEffectWriteFile:
		content := abstract.Value{}
		if len(args) > 1 {
			content = args[1].Value
		}
		p.writeFile(path, content)
	case callEffectDeleteFile:
		p.recordDeletion(args, false)
	case callEffectDeleteTree:
		if p.language != "perl" {
			args = args[:1] // the other arguments are options
		}
		p.recordDeletion(args, !strings.HasSuffix(dottedName, "rmdir"))
	case callEffectListFolder:
		p.analysisContext.RecordPathEffect(effect.ListDirectory, path, strings.HasSuffix(dottedName, "walk") || strings.HasSuffix(dottedName, "rglob"))
	case callEffectMoveFile:
		p.analysisContext.RecordPathEffect(effect.MoveFile, path, true)
		p.recordCopyMoveOrLink(args, abstract.Value{}, false)
	case callEffectCopyFile:
		if plain.IsURL(path.Text) {
			p.recordDownload(args)
			break
		}
		p.recordCopyMoveOrLink(args, p.readFile(path), slices.Contains(treeCopyCalls[:], dottedName[strings.LastIndexByte(dottedName, '.')+1:]))
	case callEffectLinkFile:
		p.analysisContext.RecordPathEffect(effect.ReadFile, path, true)
		p.recordCopyMoveOrLink(args, abstract.Value{}, false)
		if len(args) > 1 {
			p.analysisContext.RecordLink(args[1].Value, path)
		}
	case callEffectSetPermissions:
		p.analysisContext.RecordPathEffect(effect.ChangePermissions, path, false)
	case callEffectMakeFolder:
		p.analysisContext.RecordPathEffect(effect.CreateDirectory, path, false)
	}
	return result
}

// recordDeletion records the deletion of the files in the arguments, including lists.
func (p *script) recordDeletion(args []operand, tree bool) {
	for i, a := range args {
		if a.isList {
			if i == 0 || p.language != "perl" { // in Perl, a later list holds options of remove_tree, not paths
				p.recordDeletion(a.elements, tree)
			}
			continue
		}
		p.recordDeletion(a.loopVariableValues, tree)
		if a.dottedName == "" || i == 0 {
			if a.dottedName != "" {
				a.Value = abstract.Unknown(a.dottedName, a.Taint)
			}
			a.SourceSpan = p.spanInAnalyzedText
			p.analysisContext.RecordPathEffect(effect.DeleteFile, a.Value, tree)
		}
	}
}

func (p *script) writeFile(path, content abstract.Value) {
	path.SourceSpan = p.spanInAnalyzedText
	if path.IsLiteral() && (p.analysisContext.IsDiscardedWritePath(path.Text) || path.Text == "") {
		return
	}
	at, pattern := p.analysisContext.RecordPathEffect(effect.WriteFile, path, false)
	content.Taint |= p.taintOfReadData & (abstract.TaintNetwork | abstract.TaintDecoded | abstract.TaintReadCredentials)
	if !content.IsLiteral() || content.Text == "" {
		content = abstract.UnknownOutput(p.language+" code", content.Taint)
	}
	p.analysisContext.StoreFileContent(at, pattern, content)
}

// recordArchiveOpen handles the opening of an archive; its value is the archive's path.
func (p *script) recordArchiveOpen(args []operand, path abstract.Value) operand {
	if len(args) > 1 && strings.ContainsAny(args[1].Text, "wax") {
		p.writeFile(path, abstract.Value{})
		return operand{Value: abstract.Unknown("archive", path.Taint), isUsedByCall: true}
	}
	p.readFile(path)
	return operand{Value: path, isUsedByCall: true, isArchive: true}
}

// recordUnpacking records that the archive in the first argument, or one member of it, is unpacked
// into a folder. The folder is the second argument, but any later literal argument can also be the
// folder, because the names of keyword arguments are not parsed.
func (p *script) recordUnpacking(args []operand, member string) {
	folders := []abstract.Value{abstract.Lit(".")}
	for i, a := range args[1:] {
		switch {
		case i == 0:
			folders[0] = a.Value
		case a.IsLiteral() && a.Text != "" && !a.isList && a.dottedName == "" && len(folders) < 4:
			folders = append(folders, a.Value)
		}
	}
	for _, into := range folders {
		into.SourceSpan = p.spanInAnalyzedText
		p.analysisContext.RecordPathEffect(effect.WriteFile, into, true)
		if from := args[0]; from.IsLiteral() && from.Text != "" && !from.isList && from.dottedName == "" {
			words := []abstract.Value{abstract.Lit("bsdtar"), abstract.Lit("-xf"), from.Value, abstract.Lit("-C"), into}
			if member != "" {
				words = append(words, abstract.Lit(member))
			}
			p.analysisContext.WalkCommand(words)
		}
	}
}

// recordMemberUnpacking records that one member of an archive, which the second argument names, is
// unpacked: see [script.recordUnpacking].
func (p *script) recordMemberUnpacking(args []operand) {
	if len(args) < 2 {
		return
	}
	member := args[1]
	args = append(args[:1:1], args[2:]...)
	name := ""
	if member.IsLiteral() && member.dottedName == "" && !member.isList && !strings.HasPrefix(member.Text, "-") {
		name = member.Text
	}
	p.recordUnpacking(args, name)
}

// treeCopyCalls are the calls that copy folders recursively.
var treeCopyCalls = [...]string{"copytree", "cp_r", "cpSync", "cp"}

// recordCopyMoveOrLink records the writes of copying, moving or linking a source to a destination: a
// write to the destination and, in case it is a folder, a write to the file in it that has the
// source's name.
func (p *script) recordCopyMoveOrLink(args []operand, content abstract.Value, isRecursive bool) {
	if len(args) < 2 {
		return
	}
	from, to := args[0].Value, args[1].Value
	to.SourceSpan = p.spanInAnalyzedText
	if isRecursive {
		p.analysisContext.RecordPathEffect(effect.WriteFile, to, true)
	} else {
		p.writeFile(to, content)
	}
	if name := path.Base(from.Text); from.IsLiteral() && name != "." && name != ".." && name != "/" {
		p.writeFile(abstract.Concat(to, abstract.Value{Text: "/" + name}), content)
	}
}

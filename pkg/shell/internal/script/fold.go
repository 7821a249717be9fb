package script

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// computeCallResult computes the result of a call of a function that it implements, such as chr or os.path.join;
// the second result is false if it cannot. A function that decodes text has an unknown value as its result if it
// cannot decode its argument.
func (p *script) computeCallResult(dottedName string, args []operand) (operand, bool) {
	last := dottedName[strings.LastIndexByte(dottedName, '.')+1:]
	one := operand{}
	if len(args) > 0 {
		one = args[0]
	}
	known := len(args) > 0 && one.IsLiteral() && one.dottedName == ""
	if out, folded, ok := p.computeDecodingCall(last, dottedName, args, known); ok {
		return out, folded
	}
	if last == "home" || isHomeFolderAccessor(dottedName) {
		return homeFolder(), true
	}
	switch last {
	case "chr", "fromCharCode", "char", "unichr":
		return p.computeTextFromCharCodes(dottedName, args)
	case "import_module", "__import__", "require":
		if known {
			if last == "require" && p.language == "node" && isRootOrHomePath(one) {
				p.analysisContext.WalkCodeFile(one.Value, p.language, p.spanInAnalyzedText)
			}
			return operand{dottedName: strings.TrimPrefix(one.Text, "node:"), Value: abstract.Unknown(one.Text, 0), isUsedByCall: true}, true
		}
	case "getattr":
		if len(args) > 1 && args[1].IsLiteral() && one.dottedName != "" {
			return operand{dottedName: one.dottedName + "." + args[1].Text, Value: abstract.Unknown("", 0), isUsedByCall: true}, true
		}
	case "bytes", "bytearray":
		if one.isList {
			return p.computeTextFromCharCodes(dottedName, one.elements)
		}
		return one, known
	case "str", "String", "expanduser", "abspath", "realpath", "normpath", "fsencode", "expandvars", "expand_path", "Path", "PurePath", "Pathname", "File", "resolve", "URI", "Request", "parse", "quote", "encode_utf8":
		if len(args) == 1 || last == "Request" && len(args) > 0 || last == "Path" && len(args) == 1 {
			out := one
			out.isUsedByCall = false
			return out, one.dottedName == ""
		}
	case "join":
		if dottedName != ".join" && len(args) > 0 { // os.path.join, path.join
			return joinPath(args)
		}
	case "new":
		if dottedName == "Pathname.new" && len(args) == 1 {
			return one, one.dottedName == ""
		}
	case "glob":
		if p.language == "perl" && known && !strings.ContainsAny(one.Text, "*?[{") {
			return one, true
		}
	case "getProperty":
		if one.Text == "user.home" {
			return homeFolder(), true
		}
	case "getcwd", "cwd":
		return operand{Value: p.analysisContext.Environment("PWD"), isUsedByCall: true}, true
	case "dict", "dumps", "stringify", "json_encode", "to_json":
		for _, a := range args {
			if isEnvironmentTable(a.dottedName) {
				p.taintOfReadData |= abstract.TaintEnvironmentDump
				return operand{Value: abstract.Unknown(a.dottedName, abstract.TaintEnvironmentDump), isUsedByCall: true}, true
			}
		}
	case "b64encode":
		if known {
			return operand{Value: abstract.Value{Text: base64.StdEncoding.EncodeToString([]byte(one.Text)), Taint: one.Taint}}, true
		}
	}
	return operand{}, false
}

// computeDecodingCall computes the result of a function that decodes text, such as b64decode; if it cannot
// decode the text, out is an unknown value, except for pack, for which isComputed is false. isDecoder is false
// for all other functions.
func (p *script) computeDecodingCall(functionName, dottedName string, args []operand, isFirstArgKnown bool) (out operand, isComputed, isDecoder bool) {
	one := operand{}
	if len(args) > 0 {
		one = args[0]
	}
	to := func(text string, decoded bool) (operand, bool, bool) {
		if !decoded {
			return operand{Value: abstract.Unknown(abstract.ClipForMessage(dottedName)+"()", one.Taint|abstract.TaintDecoded), isUsedByCall: true}, true, true
		}
		return operand{Value: abstract.Value{Text: text, Taint: one.Taint | abstract.TaintDecoded}}, true, true
	}
	switch functionName {
	case "b64decode", "urlsafe_b64decode", "standard_b64decode", "decodebytes", "base64_decode", "decode64", "strict_decode64", "decode_base64", "atob", "a2b_base64":
		if !isFirstArgKnown {
			return to("", false)
		}
		return to(decode.Base64(one.Text))
	case "fromhex", "unhexlify", "hex2bin", "a2b_hex":
		text, ok := decode.Hex(strings.Join(strings.Fields(one.Text), ""))
		return to(text, isFirstArgKnown && ok)
	case "decompress", "gzinflate", "gzuncompress", "gzdecode", "inflateSync", "gunzipSync", "b32decode", "b85decode", "str_rot13", "convert_uudecode":
		return to("", false)
	case "from":
		if strings.HasSuffix(dottedName, "Buffer.from") && isFirstArgKnown && len(args) > 1 {
			switch args[1].Text {
			case "base64":
				return to(decode.Base64(one.Text))
			case "hex":
				return to(decode.Hex(one.Text))
			}
		}
	case "pack":
		if len(args) > 1 && strings.HasPrefix(one.Text, "H") && args[1].IsLiteral() {
			text, ok := decode.Hex(args[1].Text)
			return operand{Value: abstract.Value{Text: text, Taint: abstract.TaintDecoded}}, ok, true
		}
	}
	return operand{}, false, false
}

func joinPath(args []operand) (operand, bool) {
	var b abstract.Builder
	for i, a := range args {
		if i > 0 {
			b.AddLiteral("/")
		}
		b.Add(a.Value)
	}
	return operand{Value: b.Value()}, true
}

func (p *script) computeTextFromCharCodes(dottedName string, args []operand) (operand, bool) {
	var b strings.Builder
	for _, a := range args {
		n, err := strconv.ParseInt(a.Text, 0, 32)
		if err != nil || !a.IsLiteral() {
			return operand{Value: abstract.Unknown(dottedName+"()", abstract.TaintDecoded), isUsedByCall: true}, true
		}
		b.WriteRune(rune(n))
	}
	return operand{Value: abstract.Value{Text: b.String(), Taint: abstract.TaintDecoded}}, true
}

// computeMethodCallResult computes methods of strings and lists; the result is false for others.
func (p *script) computeMethodCallResult(methodName string, recv operand, args []operand) (operand, bool) {
	recv.dottedName = ""
	keep := func(text string) (operand, bool) {
		recv.Text = text
		return recv, true
	}
	known := recv.IsLiteral() && !recv.isList
	switch methodName {
	case "decode", "encode", "toString", "strip", "trim", "read", "readline", "to_s", "chomp", "text", "content", "body", "format", "freeze", "expanduser", "expand_path", "resolve", "as_posix", "toLowerCase", "lower", "rstrip", "lstrip", "utf8", "then", "split", "json", "unwrap", "slice", "substring":
		switch {
		case known && (methodName == "strip" || methodName == "trim" || methodName == "chomp" || methodName == "rstrip" || methodName == "lstrip"):
			return keep(strings.TrimSpace(recv.Text))
		case known && (methodName == "lower" || methodName == "toLowerCase"):
			return keep(strings.ToLower(recv.Text))
		case methodName == "split" && known && len(args) <= 1:
			return splitText(recv, args), true
		case methodName == "decode" && len(args) > 0 && (args[0].Text == "base64" || args[0].Text == "hex" || args[0].Text == "rot13" || args[0].Text == "rot_13"):
			return p.computeDecodeMethodCall(recv, args[0].Text)
		case methodName == "format" || methodName == "slice" || methodName == "substring" || methodName == "json":
			return operand{Value: abstract.Unknown("…", recv.Taint|combinedTaint(args)), isUsedByCall: true}, true
		}
		return recv, true
	case "join":
		sep := recv.Text
		list := recv.elements
		if len(args) > 0 && args[0].isList {
			list = args[0].elements // Python: sep.join(list)
		} else if len(args) > 0 {
			sep = args[0].Text
		}
		if parts, ok := operandTexts(list); ok && len(list) > 0 {
			b := abstract.Builder{Taint: recv.Taint | combinedTaint(list)}
			for i, part := range parts {
				if i > 0 {
					b.AddLiteral(sep)
				}
				b.AddLiteral(part)
			}
			return operand{Value: b.Value()}, true
		}
		return operand{Value: abstract.Unknown("join()", recv.Taint|combinedTaint(args)), isUsedByCall: true}, true
	case "replace", "replaceAll", "gsub", "sub":
		if known && len(args) > 1 && args[0].IsLiteral() && args[1].IsLiteral() && args[0].dottedName == "" && (p.language != "lua" || !strings.ContainsAny(args[0].Text, `^$()%.[]*+-?`)) {
			n := -1
			if methodName == "sub" || methodName == "replace" && p.language == "node" {
				n = 1
			}
			if len(args) > 2 {
				var err error
				if n, err = strconv.Atoi(args[2].Text); err != nil {
					break
				}
			}
			if len(args[1].Text)*strings.Count(recv.Text, args[0].Text) > abstract.MaxValueBytes {
				break
			}
			return keep(strings.Replace(recv.Text, args[0].Text, args[1].Text, n))
		}
	case "reverse", "reversed":
		if known {
			return keep(decode.Reverse(recv.Text))
		}
		out := operand{isList: true, nestedListElementCount: recv.nestedListElementCount}
		for i := len(recv.elements) - 1; i >= 0; i-- {
			out.elements = append(out.elements, recv.elements[i])
		}
		return out, true
	case "concat":
		v := recv.Value
		for _, a := range args {
			v = abstract.Concat(v, a.Value)
		}
		return operand{Value: v}, true
	case "unpack1", "unpack":
		if known && len(args) > 0 && args[0].Text == "m" {
			text, ok := decode.Base64(recv.Text)
			return operand{Value: abstract.Value{Text: text, Taint: abstract.TaintDecoded}}, ok
		}
	case "pack":
		if n := len(recv.elements); n > 0 && len(args) > 0 && strings.HasPrefix(args[0].Text, "H") {
			text, ok := decode.Hex(recv.elements[0].Text)
			return operand{Value: abstract.Value{Text: text, Taint: abstract.TaintDecoded}}, ok
		}
	}
	return operand{}, false
}

// splitText splits a text into a list: at white space, or at the argument's text.
func splitText(text operand, args []operand) operand {
	parts := strings.Fields(text.Text)
	if len(args) == 1 && args[0].Text != " " {
		if !args[0].IsLiteral() || args[0].dottedName != "" {
			return operand{Value: abstract.Unknown("split()", text.Taint|args[0].Taint), isUsedByCall: true}
		}
		parts = strings.Split(text.Text, args[0].Text)
	}
	out := operand{isList: true}
	for _, part := range parts {
		out.elements = append(out.elements, operand{Value: abstract.Value{Text: part, Taint: text.Taint}})
	}
	return out
}

func (p *script) computeDecodeMethodCall(recv operand, codec string) (operand, bool) {
	var text string
	ok := recv.IsLiteral()
	switch codec {
	case "base64":
		text, ok = decode.Base64(recv.Text)
	case "hex":
		text, ok = decode.Hex(recv.Text)
	default:
		text, _ = plain.ComputeTrOutput(nil, []string{"A-Za-z", "N-ZA-Mn-za-m"}, recv.Text)
	}
	if !ok {
		return operand{Value: abstract.Unknown("decode()", recv.Taint|abstract.TaintDecoded), isUsedByCall: true}, true
	}
	return operand{Value: abstract.Value{Text: text, Taint: recv.Taint | abstract.TaintDecoded}}, true
}

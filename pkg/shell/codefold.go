package shell

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// function folds functions of constants; ok is false for others.
func (p *script) function(full string, args []operand) (operand, bool) {
	last := full[strings.LastIndexByte(full, '.')+1:]
	one := operand{}
	if len(args) > 0 {
		one = args[0]
	}
	known := len(args) > 0 && one.known() && one.name == ""
	decodedTo := func(text string, ok bool) (operand, bool) {
		if !ok {
			return operand{value: unknown(clip(full)+"()", one.taint|decoded), used: true}, true
		}
		return operand{value: value{text: text, taint: one.taint | decoded}}, true
	}
	switch last {
	case "b64decode", "urlsafe_b64decode", "standard_b64decode", "decodebytes", "base64_decode", "decode64", "strict_decode64", "decode_base64", "atob", "a2b_base64":
		if !known {
			return decodedTo("", false)
		}
		return decodedTo(decode64(one.text))
	case "fromhex", "unhexlify", "hex2bin", "a2b_hex":
		out, err := hex.DecodeString(strings.Join(strings.Fields(one.text), ""))
		return decodedTo(string(out), known && err == nil)
	case "decompress", "gzinflate", "gzuncompress", "gzdecode", "inflateSync", "gunzipSync", "b32decode", "b85decode", "str_rot13", "convert_uudecode":
		return decodedTo("", false)
	case "chr", "fromCharCode", "char", "unichr":
		return p.characters(full, args)
	case "import_module", "__import__", "require":
		if known {
			return operand{name: strings.TrimPrefix(one.text, "node:"), value: unknown(one.text, 0), used: true}, true
		}
	case "getattr":
		if len(args) > 1 && args[1].known() && one.name != "" {
			return operand{name: one.name + "." + args[1].text, value: unknown("", 0), used: true}, true
		}
	case "bytes", "bytearray":
		if one.isList {
			return p.characters(full, one.list)
		}
		return one, known
	case "str", "String", "expanduser", "abspath", "realpath", "normpath", "fsencode", "expandvars", "Path", "PurePath", "resolve", "URI", "Request", "parse", "quote", "encode_utf8":
		if len(args) == 1 || last == "Request" && len(args) > 0 || last == "Path" && len(args) == 1 {
			out := one
			out.used = false
			return out, one.name == ""
		}
	case "join":
		if full != ".join" && len(args) > 0 { // os.path.join, path.join
			return joinPath(args)
		}
	case "homedir", "home", "gethomedir":
		return operand{value: lit("~")}, true
	case "getcwd", "cwd":
		return operand{value: p.s.environment("PWD")[0], used: true}, true
	case "from":
		if strings.HasSuffix(full, "Buffer.from") && known && len(args) > 1 {
			switch args[1].text {
			case "base64":
				return decodedTo(decode64(one.text))
			case "hex":
				out, err := hex.DecodeString(one.text)
				return decodedTo(string(out), err == nil)
			}
		}
	case "pack":
		if len(args) > 1 && strings.HasPrefix(one.text, "H") && args[1].known() {
			out, err := hex.DecodeString(args[1].text)
			return operand{value: value{text: string(out), taint: decoded}}, err == nil
		}
	case "dict", "dumps", "stringify", "json_encode", "to_json":
		for _, a := range args {
			if environmentName(a.name) {
				p.held |= dump
				return operand{value: unknown(a.name, dump), used: true}, true
			}
		}
	case "b64encode":
		if known {
			return operand{value: value{text: base64.StdEncoding.EncodeToString([]byte(one.text)), taint: one.taint}}, true
		}
	}
	return operand{}, false
}

func environmentName(name string) bool {
	return name == "os.environ" || name == "process.env" || name == "ENV" || name == "environ"
}

func joinPath(args []operand) (operand, bool) {
	var b builder
	for i, a := range args {
		if i > 0 {
			b.literal("/")
		}
		b.add(a.value)
	}
	return operand{value: b.value()}, true
}

func (p *script) characters(full string, args []operand) (operand, bool) {
	var b strings.Builder
	for _, a := range args {
		n, err := strconv.ParseInt(a.text, 0, 32)
		if err != nil || !a.known() {
			return operand{value: unknown(full+"()", decoded), used: true}, true
		}
		b.WriteRune(rune(n))
	}
	return operand{value: value{text: b.String(), taint: decoded}}, true
}

// method folds methods of strings and lists.
func (p *script) method(name string, recv operand, args []operand) (operand, bool) {
	recv.name = ""
	keep := func(text string) (operand, bool) {
		recv.text = text
		return recv, true
	}
	known := recv.known() && !recv.isList
	switch name {
	case "decode", "encode", "toString", "strip", "trim", "read", "readline", "to_s", "chomp", "text", "content", "body", "format", "freeze", "expanduser", "resolve", "as_posix", "toLowerCase", "lower", "rstrip", "lstrip", "utf8", "then", "split", "json", "slice", "substring":
		switch {
		case known && (name == "strip" || name == "trim" || name == "chomp" || name == "rstrip" || name == "lstrip"):
			return keep(strings.TrimSpace(recv.text))
		case known && (name == "lower" || name == "toLowerCase"):
			return keep(strings.ToLower(recv.text))
		case name == "split" && known && len(args) <= 1:
			var out operand
			out.isList = true
			for f := range strings.FieldsSeq(recv.text) {
				out.list = append(out.list, operand{value: value{text: f, taint: recv.taint}})
			}
			if len(args) == 1 && args[0].text == "" {
				out.list = nil
				for _, r := range recv.text {
					out.list = append(out.list, operand{value: lit(string(r))})
				}
			}
			return out, true
		case name == "decode" && len(args) > 0 && (args[0].text == "base64" || args[0].text == "hex" || args[0].text == "rot13" || args[0].text == "rot_13"):
			return p.codec(recv, args[0].text)
		case name == "format" || name == "slice" || name == "substring" || name == "json":
			return operand{value: unknown("…", recv.taint|anyTaint(args)), used: true}, true
		}
		return recv, true
	case "join":
		sep := recv.text
		list := recv.list
		if len(args) > 0 && args[0].isList {
			list = args[0].list // Python: sep.join(list)
		} else if len(args) > 0 {
			sep = args[0].text
		}
		if parts, ok := texts(list); ok && len(list) > 0 {
			return operand{value: value{text: strings.Join(parts, sep), taint: recv.taint | anyTaint(list)}}, true
		}
		return operand{value: unknown("join()", recv.taint|anyTaint(args)), used: true}, true
	case "replace", "replaceAll", "gsub", "sub":
		if known && len(args) > 1 && args[0].known() && args[1].known() && args[0].name == "" {
			return keep(strings.ReplaceAll(recv.text, args[0].text, args[1].text))
		}
	case "reverse", "reversed":
		if known {
			return keep(reverse(recv.text))
		}
		out := operand{isList: true}
		for i := len(recv.list) - 1; i >= 0; i-- {
			out.list = append(out.list, recv.list[i])
		}
		return out, true
	case "concat":
		v := recv.value
		for _, a := range args {
			v = concat(v, a.value)
		}
		return operand{value: v}, true
	case "unpack1", "unpack":
		if known && len(args) > 0 && args[0].text == "m" {
			text, ok := decode64(recv.text)
			return operand{value: value{text: text, taint: decoded}}, ok
		}
	case "pack":
		if n := len(recv.list); n > 0 && len(args) > 0 && strings.HasPrefix(args[0].text, "H") {
			out, err := hex.DecodeString(recv.list[0].text)
			return operand{value: value{text: string(out), taint: decoded}}, err == nil
		}
	}
	return operand{}, false
}

func (p *script) codec(recv operand, codec string) (operand, bool) {
	var text string
	ok := recv.known()
	switch codec {
	case "base64":
		text, ok = decode64(recv.text)
	case "hex":
		out, err := hex.DecodeString(recv.text)
		text, ok = string(out), err == nil
	default:
		text, _ = translate(nil, []value{lit("A-Za-z"), lit("N-ZA-Mn-za-m")}, recv.text)
	}
	if !ok {
		return operand{value: unknown("decode()", recv.taint|decoded), used: true}, true
	}
	return operand{value: value{text: text, taint: recv.taint | decoded}}, true
}

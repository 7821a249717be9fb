package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/suggest"
	"github.com/shieldcli/shield/internal/yamlfile"
)

// A decoder applies one file, or its locked section, to the settings. It is strict about types: a
// fraction is not an integer, a number is not a string, and a key needs a value, because the zero
// value may be the looser one.
type decoder struct {
	loaded                  *LoadedSettings
	sources                 *Sources
	file                    string
	settingOriginText       string
	isSystemFile            bool // the file may have a section "locked"
	systemFileLockedSection ast.Node
	errs                    *yamlfile.Errors
}

// addError records an error of the file.
func (d *decoder) addError(err error) {
	d.errs.Add(yamlfile.AnnotateErrorsWithFile("configuration", d.file, err))
}

// applyTopNode applies a file's top node, which is nil if the file is empty.
func (d *decoder) applyTopNode(n ast.Node) {
	if n == nil || n.Type() == ast.NullType {
		return
	}
	d.applySection("", n, reflect.ValueOf(&d.loaded.Settings).Elem())
}

// applySection applies a mapping to a struct. prefix is its dotted name, with a dot
// at the end.
func (d *decoder) applySection(prefix string, n ast.Node, to reflect.Value) {
	fs, err := yamlfile.Fields(n, nil)
	d.addError(err)
	for _, f := range fs {
		name := prefix + f.Key
		if name == "locked" && d.isSystemFile {
			d.systemFileLockedSection = f.Value
			continue
		}
		field, ok := findFieldByYAMLName(to, f.Key, isMapping(f.Value))
		if name == "policy" {
			d.resetBundleOverriddenByPolicyNode(f.Value)
		}
		switch {
		case !ok:
			d.addUnknownKeyError(prefix, f)
		case f.Value == nil || f.Value.Type() == ast.NullType:
			d.addError(f.KeyPos.Errorf("%s has no value; leave it out for the default", name))
		case field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[ActionTypeListOrModelDefault]():
			d.applySection(name+".", f.Value, field)
		default:
			d.applySetting(name, f, field)
		}
	}
}

// resetBundleOverriddenByPolicyNode removes the signed policy of earlier settings if the setting policy is a
// text, or a mapping with a bundle: the source of a bundle and its keys must come from the same
// place.
func (d *decoder) resetBundleOverriddenByPolicyNode(policyNode ast.Node) {
	if isMapping(policyNode) {
		fs, err := yamlfile.Fields(policyNode, nil)
		if err != nil || !slices.ContainsFunc(fs, func(f yamlfile.Field) bool { return f.Key == "bundle" }) {
			return
		}
	}
	d.loaded.resetPolicyBundleSettings()
}

// isMapping reports whether a node has settings below it.
func isMapping(n ast.Node) bool {
	return n != nil && (n.Type() == ast.MappingType || n.Type() == ast.MappingValueType)
}

// applySetting applies a value to a setting.
func (d *decoder) applySetting(name string, f yamlfile.Field, to reflect.Value) {
	before := reflect.New(to.Type()).Elem()
	before.Set(to)
	if err := decodeValue(f.Value, to.Addr().Interface()); err != nil {
		to.Set(before)
		var errs yamlfile.Errors
		errs.Add(err)
		for _, e := range errs {
			e.Msg = name + ": " + e.Msg
		}
		d.addError(errs)
		return
	}
	d.loaded.OriginBySetting[name] = d.settingOriginText
	d.loaded.errorPositionBySetting[name] = yamlfile.Error{FileKind: "configuration", FileName: d.file, Pos: yamlfile.PositionOf(f.Value)}
	d.loaded.resolvePaths(d.sources, name, filepath.Dir(d.file), d.errs)
}

// decodeValue decodes a node into the variable that a setting's pointer points to.
func decodeValue(n ast.Node, to any) (err error) {
	switch to := to.(type) {
	case *string:
		*to, err = decodeText(n)
	case *int:
		*to, err = yamlfile.WholeNumber[int](n)
	case *int64:
		*to, err = yamlfile.WholeNumber[int64](n)
	case *float64:
		*to, err = decodeNumber(n)
	case *bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return yamlfile.PositionOf(n).Errorf("expected true or false, found %s", yamlfile.KindOf(n))
		}
		*to = b.Value
	case *Duration:
		text, ok := n.(*ast.StringNode)
		if !ok {
			return yamlfile.PositionOf(n).Errorf("expected a duration such as 300s, found %s", yamlfile.KindOf(n))
		}
		if err := to.UnmarshalText([]byte(text.Value)); err != nil {
			return yamlfile.PositionOf(n).Errorf("%v", err)
		}
	case *[]string:
		*to, err = yamlfile.ConvertElements(n, decodeText)
	case *ApprovalChannels:
		if word, ok := n.(*ast.StringNode); ok && word.Value == AutoChannels {
			*to = ApprovalChannels{AutoChannels}
		} else {
			*to, err = yamlfile.ConvertElements(n, decodeText)
		}
	case *[]int:
		*to, err = yamlfile.ConvertElements(n, yamlfile.WholeNumber[int])
	case *ActionTypeListOrModelDefault:
		*to, err = decodeActionTypes(n)
	case *[]MCPServer:
		*to, err = yamlfile.ConvertElements(n, decodeServer)
	case *Switch:
		*to, err = decodeSwitch(n)
	default:
		panic(fmt.Sprintf("internal error: a setting has the unsupported type %T; please report this", to))
	}
	return err
}

// decodeText reads a string without control characters, except those that are valid in a program's argument.
func decodeText(n ast.Node) (string, error) {
	s, err := yamlfile.Text(n)
	if err == nil && strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return "", yamlfile.PositionOf(n).Errorf("the value contains control characters; remove them")
	}
	return s, err
}

func decodeNumber(n ast.Node) (float64, error) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if v, err := strconv.ParseFloat(n.GetToken().Value, 64); err == nil {
			return v, nil
		}
	}
	return 0, yamlfile.PositionOf(n).Errorf("expected a number such as 0.85, found %s", yamlfile.KindOf(n))
}

func decodeActionTypes(n ast.Node) (ActionTypeListOrModelDefault, error) {
	if word, ok := n.(*ast.StringNode); ok {
		if word.Value != "auto" {
			return ActionTypeListOrModelDefault{}, yamlfile.PositionOf(n).Errorf("%s is neither auto nor a list of action types such as [read_file]", yamlfile.QuoteForMessage(word.Value))
		}
		return ActionTypeListOrModelDefault{UsesModelOwnList: true}, nil
	}
	list, err := yamlfile.ConvertElements(n, decodeText)
	return ActionTypeListOrModelDefault{List: list}, err
}

// decodeSwitch reads the value of a switch: true, false or auto.
func decodeSwitch(n ast.Node) (Switch, error) {
	switch n := n.(type) {
	case *ast.BoolNode:
		if n.Value {
			return On, nil
		}
		return Off, nil
	case *ast.StringNode:
		if n.Value == string(Auto) {
			return Auto, nil
		}
	}
	return "", yamlfile.PositionOf(n).Errorf("expected true, false or auto, found %s", yamlfile.KindOf(n))
}

// findFieldByYAMLName returns the field of a struct that has the given name in settings files. valueIsMapping
// says that the setting's value is a YAML mapping; then a field whose tag says "mapping" takes precedence.
func findFieldByYAMLName(v reflect.Value, name string, valueIsMapping bool) (field reflect.Value, found bool) {
	for i := range v.NumField() {
		tagged, how, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if tagged == name && (how == "" && !found || how == "mapping" && valueIsMapping) {
			field, found = v.Field(i), true
		}
	}
	return field, found
}

// addUnknownKeyError records an unknown key, with the setting that is probably meant.
func (d *decoder) addUnknownKeyError(prefix string, f yamlfile.Field) {
	if prefix == "" && f.Key == "shield" {
		// Some users put all settings in a section "shield": report each key in that section
		// separately.
		if fs, err := yamlfile.Fields(f.Value, nil); err == nil && len(fs) > 0 {
			for _, sub := range fs {
				d.addError(sub.KeyPos.Errorf("unknown key %s%s", yamlfile.QuoteForMessage("shield."+sub.Key), suggestSetting("shield.", sub.Key)))
			}
			return
		}
	}
	d.addError(f.KeyPos.Errorf("unknown key %s%s", yamlfile.QuoteForMessage(prefix+f.Key), suggestSetting(prefix, f.Key)))
}

// suggestSetting returns the end of a message about an unknown key: the setting that is probably meant.
func suggestSetting(prefix, key string) string {
	if word, ok := suggestionByUnsupportedSettingKey[normalizeKey(key)]; ok {
		if strings.Contains(word, " ") {
			return "; " + word
		}
		return "; write " + word + settingPlacementHint(word)
	}
	var level, elsewhere []string
	for _, name := range SettingNames() {
		section, leaf := "", name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			section, leaf = name[:i+1], name[i+1:]
		}
		if section == prefix {
			level = append(level, leaf)
		} else if rest, below := strings.CutPrefix(name, prefix); below {
			top, _, _ := strings.Cut(rest, ".")
			level = append(level, top)
		}
		if normalizeKey(leaf) == normalizeKey(key) {
			elsewhere = append(elsewhere, name)
		}
	}
	switch {
	case len(elsewhere) == 1:
		return "; write " + elsewhere[0] + settingPlacementHint(elsewhere[0])
	case suggest.Nearest(key, level) != "":
		return suggest.DidYouMeanSuffix(key, level)
	case len(elsewhere) > 1:
		return "; did you mean one of " + strings.Join(elsewhere, ", ") + "?"
	}
	return ""
}

// settingPlacementHint returns the position of a setting in the file, for a message.
func settingPlacementHint(name string) string {
	if section, leaf, ok := strings.Cut(name, "."); ok {
		return fmt.Sprintf(", as in %s: {%s: …}", section, leaf)
	}
	return ", at the top level"
}

// normalizeKey returns a key without case and separators.
func normalizeKey(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key))
}

// restoreDefault sets a setting to its default.
func restoreDefault(s *Settings, name string) {
	path := strings.Split(name, ".")
	to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(Default())
	for i, part := range path {
		mapping := i < len(path)-1
		field, ok := findFieldByYAMLName(to, part, mapping)
		if !ok {
			return
		}
		from, _ = findFieldByYAMLName(from, part, mapping)
		to = field
	}
	to.Set(from)
}

package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// SettingNames returns the dotted names of all settings, in the order in which [Settings] declares
// them.
func SettingNames() []string {
	var names []string
	walkSettings(reflect.ValueOf(Default()), "", func(name string, _ reflect.Value) { names = append(names, name) })
	return names
}

// Value returns a setting as text, by its dotted name. Secrets are not shown.
func (s *Settings) Value(name string) string {
	var text string
	walkSettings(reflect.ValueOf(*s), "", func(n string, v reflect.Value) {
		switch {
		case n != name:
		case n == "evaluator.canary_token" && v.String() != "":
			text = "(set)"
		case v.Type() == reflect.TypeFor[ActionTypeListOrModelDefault]():
			b, _ := v.Interface().(ActionTypeListOrModelDefault).MarshalJSON()
			text = string(b)
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			b, _ := json.Marshal(v.Interface())
			text = string(b)
		case v.Kind() == reflect.String, v.Kind() == reflect.Slice:
			text = fmt.Sprintf("%q", v.Interface())
		default:
			text = fmt.Sprint(v.Interface())
		}
	})
	return text
}

func walkSettings(v reflect.Value, prefix string, visit func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		field := v.Field(i)
		if field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[ActionTypeListOrModelDefault]() {
			walkSettings(field, prefix+name+".", visit)
			continue
		}
		visit(prefix+name, field)
	}
}

package config

import (
	"reflect"
	"slices"
	"testing"
)

// TestFingerprintCoversEverySetting changes each setting, and holds that the
// fingerprint changes unless the setting is listed as one that cannot change a
// verdict.
func TestFingerprintCoversEverySetting(t *testing.T) {
	t.Parallel()
	plain := Default()
	for _, name := range SettingNames() {
		s := Default()
		walkSettings(reflect.ValueOf(&s).Elem(), "", func(n string, v reflect.Value) {
			if n == name {
				change(t, n, v)
			}
		})
		_, out := unfingerprintedReasonBySetting[name]
		if changed := s.Fingerprint() != plain.Fingerprint(); changed == out {
			t.Errorf("%s: a change changes the fingerprint: %v; listed as left out: %v", name, changed, out)
		}
	}
	for name, why := range unfingerprintedReasonBySetting {
		if !slices.Contains(SettingNames(), name) || why == "" {
			t.Errorf("unprinted: %q is no setting, or has no reason", name)
		}
	}
}

// change gives a setting another value.
func change(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p += "x"
	case *bool:
		*p = !*p
	case *int:
		*p++
	case *int64:
		*p++
	case *float64:
		*p += 0.01
	case *Duration:
		*p++
	case *[]int:
		*p = append(slices.Clone(*p), 1)
	case *[]string:
		*p = append(slices.Clone(*p), "x")
	case *ApprovalChannels:
		*p = ApprovalChannels{"web"}
	case *[]MCPServer:
		*p = []MCPServer{{Name: "x"}}
	case *Switch:
		*p = Off
	case *ActionTypeListOrModelDefault:
		*p = ActionTypeListOrModelDefault{List: []string{"x"}}
	default:
		t.Fatalf("%s: no test changes a setting of type %T", name, p)
	}
}

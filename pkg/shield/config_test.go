package shield

import (
	"reflect"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/container"
	"github.com/shieldcli/shield/pkg/config"
)

// TestFingerprintCoversTheConfig changes each field, and holds that the
// fingerprint changes unless the field is listed as one that need not.
func TestFingerprintCoversTheConfig(t *testing.T) {
	t.Parallel()
	print := func(cfg Config) string {
		t.Helper()
		text, err := cfg.fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	plain := print(Config{})
	fields := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		fields[f.Name] = true
		if _, out := reasonByUnfingerprintedField[f.Name]; out {
			continue
		}
		var cfg Config
		switch p := reflect.ValueOf(&cfg).Elem().FieldByIndex(f.Index).Addr().Interface().(type) {
		case *string:
			*p = "x"
		case *[]string:
			*p = []string{"x"}
		case *bool:
			*p = true
		case **container.Container:
			*p = &container.Container{}
		default:
			t.Fatalf("%s: no test changes a field of type %T", f.Name, p)
		}
		if print(cfg) == plain {
			t.Errorf("%s: a change does not change the fingerprint", f.Name)
		}
	}
	for name, why := range reasonByUnfingerprintedField {
		if !fields[name] || why == "" {
			t.Errorf("unprinted: %q is no field, or has no reason", name)
		}
	}
}

// TestFieldsStandForSettings holds that the fields which are settings change
// the settings in force, and the settings the fingerprint.
func TestFieldsStandForSettings(t *testing.T) {
	t.Parallel()
	cfg := Config{PolicyNameOrPath: "strict", WorkspaceRoots: []string{"/w"}, OnnxThreshold: 0.5, CanaryToken: "c", MaxEvaluatorCallsPerMinute: 1, MaxEvaluationsPerDay: 2}
	want := Defaults()
	want.PolicyNameOrPath, want.WorkspaceRoots, want.Classifier.BlockThreshold, want.Evaluator.FixedCanaryToken, want.MaxEvaluatorCallsPerMinute, want.MaxEvaluationsPerDay = "strict", []string{"/w"}, 0.5, "c", 1, 2
	if got := cfg.effectiveSettings(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	a, _ := cfg.fingerprint()
	same := Config{Settings: &want}
	if b, _ := same.fingerprint(); a != b {
		t.Error("the same settings, said in two ways, have two fingerprints")
	}
	var zero Config
	if c, _ := zero.fingerprint(); a == c {
		t.Error("other settings have the same fingerprint")
	}
}

// TestSettingsAreChecked checks that unfilled settings are refused rather than
// taken as they are, which would fail open.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := NewPipeline(Config{Settings: &config.Settings{PolicyNameOrPath: "strict"}, Home: "/home/me", WorkingDir: "/home/me/app"})
	if err == nil || !strings.Contains(err.Error(), "rate_limit must be from 1") {
		t.Errorf("error %v", err)
	}
}

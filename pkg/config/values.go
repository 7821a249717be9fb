package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
)

// A Duration is a time span, written as in "300s" or "5m".
type Duration time.Duration

// String returns the form that a file may hold.
func (d Duration) String() string { return time.Duration(d).String() }

// Std returns the span as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 300s", b)
	}
	*d = Duration(v)
	return nil
}

// Types is a list of action types, or the choice of the model's own list.
type Types struct {
	Auto bool // the model's shield.json says which
	List []string
}

// UnmarshalYAML reads "auto" or a list.
func (t *Types) UnmarshalYAML(b []byte) error {
	var word string
	if yaml.Unmarshal(b, &word) == nil {
		if word != "auto" {
			return fmt.Errorf(`%q is neither "auto" nor a list of action types`, word)
		}
		*t = Types{Auto: true}
		return nil
	}
	*t = Types{}
	return yaml.Unmarshal(b, &t.List)
}

// MarshalJSON implements [json.Marshaler]: "auto" or a list.
func (t Types) MarshalJSON() ([]byte, error) {
	if t.Auto {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(append([]string{}, t.List...))
}

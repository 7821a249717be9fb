// Package subprocess bounds the programs that shield starts: what they leave
// running, and how much of their output is kept.
package subprocess

import "bytes"

// LimitedOutput keeps the first Max bytes written to it and takes the rest without
// keeping it.
type LimitedOutput struct {
	MaxBytes int
	kept     bytes.Buffer
}

func (o *LimitedOutput) Write(p []byte) (int, error) {
	if room := o.MaxBytes - o.kept.Len(); room > 0 {
		o.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// Bytes returns what was kept.
func (o *LimitedOutput) Bytes() []byte { return o.kept.Bytes() }

// String returns what was kept as text.
func (o *LimitedOutput) String() string { return o.kept.String() }

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/itchyny/gojq"
)

// Limits of a query.
const (
	maxJQProgramBytes    = 16 << 10 // bytes of the jq program
	maxJQResultsPerEntry = 10_000   // results of one entry
	maxEntryQueryTime    = time.Second
)

// A QueryError describes an invalid jq program of a query.
type QueryError struct {
	JQProgram string
	Err       error
}

func (e *QueryError) Error() string { return fmt.Sprintf("query: %v", e.Err) }

// Unwrap returns the cause, such as a [gojq.ParseError].
func (e *QueryError) Unwrap() error { return e.Err }

// Query runs a jq program on each entry of a log and calls emit with each result, as JSON. The program has no
// access to the environment, files or other input. Lines that are too long or not JSON objects are skipped and
// counted; an error of the program ends the query.
func Query(ctx context.Context, r io.Reader, program string, emit func([]byte) error) (skipped int, err error) {
	if len(program) > maxJQProgramBytes {
		return 0, &QueryError{"", fmt.Errorf("the jq program is longer than %d bytes; shorten it", maxJQProgramBytes)}
	}
	q, err := gojq.Parse(program)
	if err != nil {
		return 0, &QueryError{program, err}
	}
	code, err := gojq.Compile(q)
	if err != nil {
		return 0, &QueryError{program, err}
	}
	lines := newLineReader(r)
	for {
		line, err := lines.nextLine()
		if errors.Is(err, io.EOF) {
			return skipped, nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return skipped, fmt.Errorf("query audit log: %w", err)
		}
		var entry map[string]any
		if err != nil || json.Unmarshal(line, &entry) != nil {
			skipped++
			continue
		}
		if err := queryEntry(ctx, code, entry, emit); err != nil {
			return skipped, err
		}
	}
}

// queryEntry runs a compiled program on one entry.
func queryEntry(ctx context.Context, code *gojq.Code, entry map[string]any, emit func([]byte) error) error {
	limited, cancel := context.WithTimeout(ctx, maxEntryQueryTime)
	defer cancel()
	iter := code.RunWithContext(limited, entry)
	for n := 0; ; n++ {
		v, ok := iter.Next()
		if !ok {
			return nil
		}
		if err, isErr := v.(error); isErr {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("query: entry %v: %w", entry["seq"], err)
		}
		if n >= maxJQResultsPerEntry {
			return fmt.Errorf("query: entry %v gives more than %d results; narrow the jq program", entry["seq"], maxJQResultsPerEntry)
		}
		b, err := gojq.Marshal(v)
		if err != nil {
			return fmt.Errorf("query: entry %v: %w", entry["seq"], err)
		}
		if err := emit(escapeNonprinting(b)); err != nil {
			return err
		}
	}
}

// Command prepare applies shield's normaliser to training data: it reads JSON
// strings on stdin, one a line, and writes the prepared ones, one a line, so
// that a model is trained on the very text it will judge.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/shieldcli/shield/internal/tokenizer"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	dec := json.NewDecoder(bufio.NewReader(in))
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for n := 1; ; n++ {
		var text string
		err := dec.Decode(&text)
		if err == io.EOF {
			return w.Flush()
		}
		if err != nil {
			return fmt.Errorf("string %d: %w", n, err)
		}
		if err := enc.Encode(tokenizer.NormalizeForShieldModels(text)); err != nil {
			return err
		}
	}
}

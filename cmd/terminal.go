package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// defaultTerminalColumns is the width of text for people if it is unknown.
const defaultTerminalColumns = 80

// A fileDescriptorStream is a stream with a file descriptor, as [os.File] is.
type fileDescriptorStream interface{ Fd() uintptr }

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(fileDescriptorStream)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the width of a stream, 80 unless it is a terminal.
func terminalWidth(stream any) int {
	if f, ok := stream.(fileDescriptorStream); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return defaultTerminalColumns
}

// usesColour reports whether text for people on a stream is coloured.
func usesColour(c *cli.Context, w *Environment, stream any) bool {
	return isColourEnabled(c, w, isTerminal(stream))
}

// isColourEnabled reports whether text for people is coloured or bold; by default only on a terminal.
func isColourEnabled(c *cli.Context, w *Environment, outputIsTerminal bool) bool {
	switch c.String("color") {
	case "always":
		return true
	case "never":
		return false
	default:
		return w.Getenv("NO_COLOR") == "" && w.Getenv("TERM") != "dumb" && outputIsTerminal
	}
}

// printTerminalInputHint prints that input is read from the terminal, since a waiting program looks like
// one that hangs.
func printTerminalInputHint(w *Environment, inputDescription string) {
	if !isTerminal(w.In) {
		return
	}
	end := "^D"
	if w.OS == "windows" {
		end = "^Z and Enter"
	}
	fmt.Fprintf(w.Err, "shield: reading %s; %s ends\n", inputDescription, end)
}

// verdictsPerProgressReport is how many verdicts are written between two progress reports.
const verdictsPerProgressReport = 1000

// A progressLine is a progress line on a terminal. The next output overwrites it.
type progressLine struct {
	terminal   io.Writer
	onTerminal bool // the output is a terminal
	isShown    bool
}

// show replaces the progress line.
func (p *progressLine) show(count int, textAfterCount string) {
	if p.onTerminal {
		fmt.Fprintf(p.terminal, "\x1b[Kshield: %d %s\r", count, textAfterCount)
		p.isShown = true
	}
}

// clear removes the progress line.
func (p *progressLine) clear() {
	if p.isShown {
		fmt.Fprint(p.terminal, "\x1b[K")
		p.isShown = false
	}
}

// newTableWriter returns a writer of aligned columns with headings; the caller flushes it.
func newTableWriter(out io.Writer, columnHeadings ...string) *tabwriter.Writer {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columnHeadings, "\t"))
	return t
}

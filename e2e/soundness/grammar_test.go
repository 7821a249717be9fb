//go:build unix

package soundness

import (
	"bufio"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// A grammar holds the alternatives of each name of testdata/grammar.txt that
// one shell has.
type grammar map[string][][]symbol

// A symbol is literal text, or the name of what is there.
type symbol struct {
	text string
	name bool
}

// readGrammar returns what testdata/grammar.txt holds for a shell, given by
// its letter.
func readGrammar(t *testing.T, letter string) grammar {
	t.Helper()
	f, err := os.Open("testdata/grammar.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := grammar{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, text, _ := strings.Cut(line, " ")
		if name == "" {
			t.Fatalf("%q has no name", line)
		}
		if rest, ok := strings.CutPrefix(text, "["); ok {
			if letters, rest, ok := strings.Cut(rest, "] "); ok && strings.Trim(letters, "bdzu") == "" {
				if !strings.Contains(letters, letter) {
					continue
				}
				text = rest
			}
		}
		g[name] = append(g[name], symbols(strings.ReplaceAll(text, "␤", "\n")))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for name, alternatives := range g {
		for _, alternative := range alternatives {
			for _, s := range alternative {
				if s.name && g[s.text] == nil {
					t.Fatalf("grammar.txt: %s uses %q, which has no alternative", name, s.text)
				}
			}
		}
	}
	return g
}

func symbols(text string) []symbol {
	var out []symbol
	for {
		before, rest, ok := strings.Cut(text, "«")
		if before != "" || !ok && out == nil {
			out = append(out, symbol{text: before})
		}
		if !ok {
			return out
		}
		name, after, _ := strings.Cut(rest, "»")
		out = append(out, symbol{text: name, name: true})
		text = after
	}
}

// maxDepth is how deep a script may be nested before only first alternatives
// are taken.
const maxDepth = 9

// A node is a part of a script: a name and what stands for it.
type node struct {
	symbol
	parts []*node
}

// derive returns a script, or a part of one, by chance.
func (g grammar) derive(s symbol, r *rand.Rand, depth int) *node {
	n := &node{symbol: s}
	if !s.name {
		return n
	}
	alternatives := g[s.text]
	choice := alternatives[0]
	if depth < maxDepth {
		choice = alternatives[r.IntN(len(alternatives))]
	}
	for _, part := range choice {
		n.parts = append(n.parts, g.derive(part, r, depth+1))
	}
	return n
}

// script returns the script of a seed.
func (g grammar) script(seed uint64) *node {
	return g.derive(symbol{text: "script", name: true}, rand.New(rand.NewPCG(seed, 0)), 0)
}

func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	if !n.name {
		b.WriteString(n.text)
	}
	for _, part := range n.parts {
		part.write(b)
	}
}

// shrink returns a smaller script of which fails still holds. It puts in place
// of each part its first alternative, or what it holds of the same name.
func (g grammar) shrink(script *node, fails func(*node) bool) *node {
	for tries := 400; tries > 0; {
		smaller := false
		var visit func(n *node)
		visit = func(n *node) {
			if !n.name {
				return
			}
			old := *n
			size := len(script.String())
			candidates := append(inner(n, n.text), g.derive(n.symbol, nil, maxDepth))
			for _, c := range candidates {
				*n = *c
				if tries > 0 && len(script.String()) < size {
					if tries--; fails(script) {
						smaller = true
						old = *n
						size = len(script.String())
						continue
					}
				}
				*n = old
			}
			for _, part := range n.parts {
				visit(part)
			}
		}
		visit(script)
		if !smaller {
			break
		}
	}
	return script
}

// inner returns the parts of a name nearest to a node, without the node.
func inner(n *node, name string) []*node {
	var out []*node
	for _, part := range n.parts {
		if part.name && part.text == name {
			out = append(out, part)
		} else {
			out = append(out, inner(part, name)...)
		}
	}
	return out
}

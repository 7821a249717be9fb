package prefilter

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A Finder answers as package regexp does, whatever stands around a match.
func TestFinder(t *testing.T) {
	t.Parallel()
	exprs := map[string]bool{ // whether it is known where a match begins
		`(?i)\b(?:u|user|login)\s*={2,3}\s*'x'`:    true,
		`(?i)(?:={2,3}|\.equals\()\s*"a"`:          true,
		`%00|\\x00|\x00`:                           true,
		`(?m)^\s*(?:push)?url\s*=`:                 true,
		`(?m)^$`:                                   true,
		`(?mi)^[ \t]*(?:kiss|ls)\b`:                true,
		`(?m)^\s*\nurl`:                            true,
		`(?:\bls\b|\bfor \w+ in [^;\n]*\*)[^#]*?;`: true,
		`(?s)\bpull_request\b.*checkout`:           true,
		`\b(?:ls|-x)\b a`:                          false, // a boundary before "-" depends on what is before it
		`x?\b\.a`:                                  false,
		`(?:\.x)*(?:-|\ba)`:                        false,
		`(?:\.a|==)\b b`:                           true,
		`ab\B`:                                     false,
		`\s*a`:                                     false,
		`^a`:                                       true,
		`a*`:                                       false,
		`(?i)kiss`:                                 true,
		`é\w`:                                      true,
		`(?i)é`:                                    false,
		`\r?\nurl`:                                 true,
		`a{0}`:                                     false,
		`(?i:[\x{4f}\x{6f}]pen)`:                   true,
		`[\w.]+@`:                                  false,
		`(?:a|bc){2}`:                              true,
		`$`:                                        false,
		`(?i)ls(?:[ \w]{0,3})(k|\s)(?:\W|$)`:       true,
		`\bls(?-i)( [a-c]{1,4})\b`:                 true,
		`(?:ls|\bif) (a?)`:                         true,
		`(?:\bls |if ){2}`:                         true,
		`(?i)\b(?:return|if)\b[^\n]{0,9}(?:admin|role)\s*\|\|`: true,
	}
	texts := []string{
		"", "\n", "a", "user == 'x'", "xuser == 'x'", "USER=== 'x'", "u=='x'", "a ls b;", "als b;", "for f in *;", "a\nls\n;", `a.EQUALS("a")`, `x="a"`, `===  "a"`,
		"%00", `\x00`, "a\x00", "url=", " url =", "push\nurl=", "x url=", "pushurl=\nurl", "x-x a", "-x a", "b-x a", "ls a", "x.a", ".a", "b.a", "ab", "abc", "abb", "ab-",
		"kiss", "KISS", "\n\n \t kiss", "x\n\r\n\fLS", "\n \n\n url=", "url=\n \n", "\u212aiss", "ki\u017f\u017f", "é", "É", "éa", "e\u0301a", "\nurl", "\r\nurl", "open", "OPEN", "a@b", "@", "aa", "abc", "bca", "bcb", ".a b", "== b", "x.a b",
		"pull_request\n checkout", "apull_request checkout", "if admin ||", "xif admin ||", "if the admin||", "ls ak", "xls abc ls a ls b", "ls lsk\n", "lsls  ", "xif a if a", "xls if if ", "ls k\u00e9", "ls abck", "\xff\xfeuser == 'x'", "user\xff",
	}
	for range 3 { // also in the midst of others
		for _, text := range texts[:40] {
			texts = append(texts, text+" "+texts[len(texts)-1][:min(200, len(texts[len(texts)-1]))])
		}
	}
	texts = append(texts, strings.Repeat("u ls if %0\n", 4000), strings.Repeat("user if ls ", 4000)+"user == 'x' ;")
	for expr, known := range exprs {
		f, re := NewRegexpFinder(expr), regexp.MustCompile(expr)
		if (f.anchoredRegexp != nil) != known {
			t.Errorf("%q: it is known where a match begins: %v, want %v", expr, f.anchoredRegexp != nil, known)
		}
		for _, text := range texts {
			got, read := f.Match(text)
			if want := re.MatchString(text); got != want {
				t.Errorf("%q in %.60q: %v, want %v", expr, text, got, want)
			}
			if got, want := f.FindAll(text), re.FindAllStringSubmatchIndex(text, -1); !reflect.DeepEqual(got, want) {
				t.Errorf("%q in %.60q: matches at %v, want %v", expr, text, got, want)
			}
			if most := 4*len(text) + minMatchAttemptBudgetBytes + 1; read > most {
				t.Errorf("%q in %.60q: %d bytes read, of at most %d", expr, text, read, most)
			}
		}
	}
}

// What is no match is not read further than it takes to see that.
func TestFinderReads(t *testing.T) {
	t.Parallel()
	for expr, text := range map[string]string{
		`={2,3}\s*"\w+"\s*return`: strings.Repeat("if a == b { return }\n", 1000),
		`(?m)^\s*ENV\s+KEY`:       strings.Repeat("  KEY env\n\n\n", 1000),
	} {
		if found, read := NewRegexpFinder(expr).Match(text); found || read > len(text)/2 {
			t.Errorf("%q: found %v, %d of %d bytes read", expr, found, read, len(text))
		}
	}
}

// Command runtests runs go test. It prints each package when the package ends, with its failures,
// and at the end the skipped tests with their reasons, which go test hides. usage: runtests [-allow
// FILE] [-again N] [ARGUMENT OF GO TEST]... FILE has a regular expression on each line; a skip
// whose reason matches none of them is a failure. Lines that begin with # are comments. If at most
// N tests fail, they run once more, one package at a time; if all of them pass then, they are
// listed as flaky and do not count as failures. A data race, a panic or a timeout is never retried.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	allow := flag.String("allow", "", "")
	again := flag.Int("again", 0, "")
	args := parseAndDropLeadingFlags(os.Args[1:])
	var allowed []*regexp.Regexp
	if *allow != "" {
		var err error
		if allowed, err = readAllowedSkipReasons(*allow); err != nil {
			exitWithError(err)
		}
	}
	r := &testRun{out: os.Stdout, packages: map[string]*testedPackage{}}
	err := r.runGoTest(args)
	if err != nil && r.retryFailedTests(*again, args) {
		err = nil
	}
	if r.printSummary(*allow != "", allowed) || err != nil {
		exitWithError(err)
	}
}

// parseAndDropLeadingFlags parses the flags -allow and -again at the start of args, and returns the
// remaining arguments.
func parseAndDropLeadingFlags(args []string) []string {
	for len(args) > 1 && (args[0] == "-allow" || args[0] == "-again") {
		if err := flag.CommandLine.Parse(args[:2]); err != nil {
			exitWithError(err)
		}
		args = args[2:]
	}
	return args
}

// runGoTest runs go test.
func (r *testRun) runGoTest(args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	return errors.Join(r.readEvents(out), cmd.Wait())
}

func exitWithError(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
	}
	os.Exit(1)
}

// readAllowedSkipReasons reads the reasons for which tests may be skipped.
func readAllowedSkipReasons(name string) (list []*regexp.Regexp, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		re, err := regexp.Compile(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, re)
	}
	return list, nil
}

// An event is what go test -json writes on a line; see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// A testRun is one run of go test.
type testRun struct {
	out                   io.Writer
	packages              map[string]*testedPackage
	passed                []testOutcome
	failed                []testOutcome
	flaky                 []testOutcome // failed together with other tests, passed when run alone
	skipped               []skippedTest
	endedPackages         []*testedPackage
	hasUnretriableFailure bool // something failed that is not tried again
}

// A testedPackage holds the output of the tests of a package, and how long they took.
type testedPackage struct {
	name                        string
	elapsed                     time.Duration
	outputByTest                map[string]*bytes.Buffer // by test; "" is the package itself
	testNamesInFirstOutputOrder []string                 // of these
}

// A testOutcome names a test and its package, or with an empty test a package that failed although
// none of its tests did.
type testOutcome struct{ pkg, test string }

func (o testOutcome) String() string {
	return strings.TrimSuffix(shortPackageName(o.pkg)+" "+o.test, " ")
}

// A skippedTest is a test that was not run.
type skippedTest struct{ test, reason string }

// maxTestOutputBytes is how much of the output of one test is kept.
const maxTestOutputBytes = 1 << 20

// readEvents reads the output of go test -json to its end and handles its events. It prints lines that are not
// events.
func (r *testRun) readEvents(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				r.handleEvent(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// handleEvent prints build output, stores the output of tests, and records the result of a test or package that
// ended.
func (r *testRun) handleEvent(e event) {
	p := r.packages[e.Package]
	if p == nil {
		p = &testedPackage{name: e.Package, outputByTest: map[string]*bytes.Buffer{}}
		r.packages[e.Package] = p
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		p.addTestOutput(e.Test, e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			r.endTest(p, e)
		} else {
			r.endPackage(p, e)
		}
	}
}

// addTestOutput stores the output of a test, without go test's own progress lines such as "===
// RUN".
func (p *testedPackage) addTestOutput(test, text string) {
	if test == "" && text == "PASS\n" {
		return
	}
	for _, noise := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(text, noise) {
			return
		}
	}
	b := p.outputByTest[test]
	if b == nil {
		b = new(bytes.Buffer)
		p.outputByTest[test] = b
		p.testNamesInFirstOutputOrder = append(p.testNamesInFirstOutputOrder, test)
	}
	if b.Len() < maxTestOutputBytes {
		b.WriteString(text)
	}
}

func (r *testRun) endTest(p *testedPackage, e event) {
	switch e.Action {
	case "pass":
		r.passed = append(r.passed, testOutcome{p.name, e.Test})
		delete(p.outputByTest, e.Test)
	case "skip":
		r.skipped = append(r.skipped, skippedTest{shortPackageName(p.name) + " " + e.Test, skipReason(p.outputByTest[e.Test])})
		delete(p.outputByTest, e.Test)
	case "fail":
		r.failed = append(r.failed, testOutcome{p.name, e.Test})
	}
}

// endPackage prints what go test prints without -json: the output of the failed tests, and the line
// with the result of the package.
func (r *testRun) endPackage(p *testedPackage, e event) {
	p.elapsed = time.Duration(e.Elapsed * float64(time.Second))
	r.endedPackages = append(r.endedPackages, p)
	if e.Action == "fail" {
		for _, test := range p.testNamesInFirstOutputOrder {
			if b := p.outputByTest[test]; b != nil && test != "" {
				fmt.Fprintf(r.out, "%s", b)
			}
		}
		if !slices.ContainsFunc(r.failed, func(f testOutcome) bool { return f.pkg == p.name }) {
			r.failed = append(r.failed, testOutcome{pkg: p.name})
		}
		r.hasUnretriableFailure = r.hasUnretriableFailure || !p.endedNormally()
	}
	if b := p.outputByTest[""]; b != nil {
		fmt.Fprintf(r.out, "%s", b)
	}
	p.outputByTest = nil
}

// endedNormally reports whether the test binary of a failed package ran to its end, without a data
// race in any test.
func (p *testedPackage) endedNormally() bool {
	for _, b := range p.outputByTest {
		if bytes.Contains(b.Bytes(), []byte("WARNING: DATA RACE")) || bytes.Contains(b.Bytes(), []byte("race detected during execution")) {
			return false
		}
	}
	b := p.outputByTest[""]
	return b != nil && (bytes.HasPrefix(b.Bytes(), []byte("FAIL\n")) || bytes.Contains(b.Bytes(), []byte("\nFAIL\n")))
}

// retryFailedTests runs the failed tests again, one package after the other, unless there are more than
// maxRetriedTests, or something failed that is not retried, such as a build or a data race. It reports whether
// all of them passed.
func (r *testRun) retryFailedTests(maxRetriedTests int, args []string) bool {
	tests := map[string][]string{} // by package
	n := 0
	for _, f := range r.failed {
		name, _, _ := strings.Cut(f.test, "/")
		if f.test == "" {
			return false
		}
		if !slices.Contains(tests[f.pkg], name) {
			tests[f.pkg] = append(tests[f.pkg], name)
			n++
		}
	}
	if r.hasUnretriableFailure || n == 0 || n > maxRetriedTests {
		return false
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "./") })
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(r.out, "again, alone: %s %s\n", shortPackageName(name), strings.Join(tests[name], " "))
		alone := &testRun{out: r.out, packages: map[string]*testedPackage{}}
		err := alone.runGoTest(append(slices.Clone(args), "-count=1", "-run", "^("+strings.Join(tests[name], "|")+")$", name))
		missing := slices.ContainsFunc(tests[name], func(test string) bool { return !slices.Contains(alone.passed, testOutcome{name, test}) })
		skips := slices.ContainsFunc(alone.skipped, func(s skippedTest) bool { return !slices.Contains(r.skipped, s) })
		if err != nil || missing || skips {
			return false
		}
	}
	r.flaky, r.failed = r.failed, nil
	return true
}

// shortPackageName returns the name of a package without the path of shield's module.
func shortPackageName(name string) string {
	return strings.TrimPrefix(name, "github.com/shieldcli/shield/")
}

// testLogPositionPattern matches the file and line number that go test prints before the message of a test.
var testLogPositionPattern = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: `)

// skipReason returns the reason why a test was skipped: the last message in the test's output.
func skipReason(b *bytes.Buffer) string {
	if b == nil {
		return "no reason given"
	}
	text := b.String()
	at := testLogPositionPattern.FindAllStringIndex(text, -1)
	if len(at) == 0 {
		return "no reason given"
	}
	text, _, _ = strings.Cut(text[at[len(at)-1][1]:], "--- SKIP")
	if said := skippedScriptLinePattern.FindAllStringSubmatch(text, -1); len(said) > 0 {
		last := said[len(said)-1]
		text = cmp.Or(last[2], last[1])
	}
	text = strings.Join(strings.Fields(text), " ")
	return missingProgramPattern.ReplaceAllString(text, "$1$2 is not installed")
}

var (
	skippedScriptLinePattern = regexp.MustCompile(`(?m)^\s*> \[([^\]]+)\] skip(?: '(.*)')?$`)                             // the line with which package testscript reports a skipped script
	missingProgramPattern    = regexp.MustCompile(`^exec: "([^"]+)": executable file not found in \$PATH$|^!exec:(\S+)$`) // the messages with which packages exec and testscript report a missing program
)

// Bounds of the summary.
const (
	maxTestNamesPerSkipReason = 3 // tests that are listed by name for each skip reason
	maxSlowestPackages        = 5 // packages
)

// printSummary prints the skipped tests with the reasons, and the failed tests. The result is true
// if a test failed or, with strict, if a test was skipped for a reason that allowedSkipReasons do
// not match.
func (r *testRun) printSummary(strict bool, allowedSkipReasons []*regexp.Regexp) (hasFailureOrDisallowedSkip bool) {
	fmt.Fprintf(r.out, "\n%d tests passed, %d failed, %d skipped.", len(r.passed), len(r.failed), len(r.skipped))
	slices.SortFunc(r.endedPackages, func(a, b *testedPackage) int { return int(b.elapsed - a.elapsed) })
	for i, p := range r.endedPackages[:min(maxSlowestPackages, len(r.endedPackages))] {
		fmt.Fprintf(r.out, "%s%s %.0f s", []string{" Slowest: ", ", "}[min(i, 1)], shortPackageName(p.name), p.elapsed.Seconds())
	}
	fmt.Fprintln(r.out)
	var reasons []string
	tests := map[string][]string{}
	for _, s := range r.skipped {
		if len(tests[s.reason]) == 0 {
			reasons = append(reasons, s.reason)
		}
		tests[s.reason] = append(tests[s.reason], s.test)
	}
	slices.Sort(reasons)
	for _, why := range reasons {
		mark := "skipped"
		if strict && !slices.ContainsFunc(allowedSkipReasons, func(re *regexp.Regexp) bool { return re.MatchString(why) }) {
			mark, hasFailureOrDisallowedSkip = "SKIPPED, which is not allowed here", true
		}
		names := tests[why]
		more := ""
		if len(names) > maxTestNamesPerSkipReason {
			more, names = fmt.Sprintf(" and %d more", len(names)-maxTestNamesPerSkipReason), names[:maxTestNamesPerSkipReason]
		}
		fmt.Fprintf(r.out, "%s: %s: %s%s\n", mark, why, strings.Join(names, ", "), more)
	}
	for _, f := range r.flaky {
		fmt.Fprintln(r.out, "FLAKY: failed beside the others, passed alone:", f)
	}
	for _, f := range r.failed {
		fmt.Fprintln(r.out, "FAILED:", f)
	}
	return hasFailureOrDisallowedSkip || len(r.failed) > 0
}

// Command measure measures a build of shield as a program: with recorded tasks with and without
// inserted attacks, against another build, and with rewritten attacks. CONTRIBUTING.md describes its
// use; it never executes what it judges.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// options are the options of all commands.
type options struct {
	shield  string // path of the program
	base    string // path of the program to compare with
	home    string // a home folder, which is emptied
	shared  string // recorded tasks and corpora outside the repository; may be missing
	repo    string
	preset  string
	config  string
	extra   string
	seed    int64
	seeds   int
	rows    int
	cases   int
	out     string
	command string
	until   string // the last tier to ask; "" means the classifier
}

func main() {
	var o options
	flag.StringVar(&o.shield, "shield", "build/shield", "the `PROGRAM` that is measured")
	flag.StringVar(&o.base, "base", "", "the `PROGRAM` that it is compared with")
	flag.StringVar(&o.home, "home", "/home/tdev", "judge below `DIR`, which is emptied; figures are compared only with the same")
	flag.StringVar(&o.shared, "shared", "../shared", "`DIR` of tasks and corpora that are not of the repository")
	flag.StringVar(&o.repo, "repo", ".", "`DIR` of the repository")
	flag.StringVar(&o.preset, "preset", "offline", "`POLICY`")
	flag.StringVar(&o.config, "config", "", "settings `FILE`")
	flag.StringVar(&o.extra, "extra", "", "further `FLAGS` of shield run")
	flag.IntVar(&o.seeds, "seed", 0, "put `N` labelled attacks, and all trust seeds, into the tasks")
	flag.Int64Var(&o.seed, "random", 0, "`NUMBER` that chance begins with; 0 draws one")
	flag.IntVar(&o.rows, "rows", 2000, "`N` wrapped attacks")
	flag.IntVar(&o.cases, "cases", 0, "show `N` cases of each cause")
	flag.StringVar(&o.out, "out", "", "write each row to `FILE` as JSON Lines")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: measure [FLAG…] tasks | answers | write-then-run | compare | wrapped")
		flag.PrintDefaults()
	}
	flag.Parse()
	commands := map[string]func(*options) error{"tasks": replayTasks, "answers": measureAnswers, "write-then-run": measureWriteThenRun, "compare": compareBuilds, "wrapped": measureWrapped}
	o.command = flag.Arg(0)
	do := commands[o.command]
	if do == nil || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(1)
	}
	if err := o.makePathsAbsolute(); err == nil {
		err = do(&o)
		if err == nil {
			return
		}
		fmt.Fprintf(os.Stderr, "measure %s: %v\n", o.command, err)
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// makePathsAbsolute makes the paths absolute, since shield is started in other folders.
func (o *options) makePathsAbsolute() error {
	for _, p := range []*string{&o.shield, &o.base, &o.home, &o.shared, &o.repo, &o.config, &o.out} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	return nil
}

// emptyableMarkFile is the name of a file that marks a folder as safe to empty.
const emptyableMarkFile = ".shield-measure"

// emptyHome empties the home folder, or creates it.
func (o *options) emptyHome() error {
	entries, err := os.ReadDir(o.home)
	if os.IsNotExist(err) {
		if err := os.MkdirAll(o.home, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(o.home, emptyableMarkFile), nil, 0o644)
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.home, emptyableMarkFile)); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty, and measure did not make it; name another with -home", o.home)
	}
	for _, e := range entries {
		if e.Name() == emptyableMarkFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(o.home, e.Name())); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(o.home, emptyableMarkFile), nil, 0o644)
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A row is one action that two builds judge.
type row struct {
	set, id string
	action  action
}

// A said is the compared part of a verdict.
type said struct {
	decision, rule, cause string
	tier                  int
	kinds                 []string // kinds of effects, sorted, without duplicates
}

func (v *verdict) said() said {
	s := said{decision: v.Decision, rule: v.Rule, cause: cause(v), tier: v.Tier}
	for _, e := range v.effects() {
		s.kinds = append(s.kinds, e.Kind)
	}
	slices.Sort(s.kinds)
	s.kinds = slices.Compact(s.kinds)
	return s
}

// A difference counts the differences between two builds.
type difference struct {
	o       *options
	rows    map[string]int // by corpus
	flips   map[string]map[string]int
	example map[string][]string
	tiers   int // same decision, another tier
	rules   int // same decision, another rule or reason
	had     map[string]int
	lost    map[string]int // kinds of effects that the base reports and this build does not
	won     map[string]int
	lostOf  map[string]string
	out     *json.Encoder
}

// add compares the verdicts of two builds on one action and counts the difference.
func (d *difference) add(r *row, was, is said) {
	d.rows[r.set]++
	flip := ""
	switch {
	case was.decision != is.decision:
		flip = was.cause + "  →  " + is.cause
		key := was.decision + " to " + is.decision
		if d.flips[key] == nil {
			d.flips[key] = map[string]int{}
		}
		d.flips[key][flip]++
		if len(d.example[flip]) < max(d.o.cases, 1) {
			d.example[flip] = append(d.example[flip], r.set+" "+r.id+": "+short(r.action.Payload))
		}
	case was.tier != is.tier:
		d.tiers++
	case was.cause != is.cause:
		d.rules++
	}
	var lost []string
	for _, k := range was.kinds {
		d.had[k]++
		if !slices.Contains(is.kinds, k) {
			d.lost[k]++
			lost = append(lost, k)
			d.lostOf[k] = r.set + " " + r.id + ": " + short(r.action.Payload)
		}
	}
	for _, k := range is.kinds {
		if !slices.Contains(was.kinds, k) {
			d.won[k]++
		}
	}
	if d.out != nil && (flip != "" || len(lost) > 0) {
		_ = d.out.Encode(map[string]any{"set": r.set, "id": r.id, "from": was.decision, "to": is.decision, "cause": flip, "lost": lost, "action": r.action})
	}
}

// compare judges all recorded actions, sessions and tasks with two builds and lists the differences,
// by cause.
func compare(o *options) error {
	if o.base == "" {
		return fmt.Errorf("-base is missing: the program to compare with")
	}
	began := time.Now()
	d := &difference{
		o: o, rows: map[string]int{}, flips: map[string]map[string]int{}, example: map[string][]string{},
		had: map[string]int{}, lost: map[string]int{}, won: map[string]int{}, lostOf: map[string]string{},
	}
	if o.out != "" {
		f, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer f.Close()
		d.out = json.NewEncoder(f)
	}
	if err := d.corpora(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "corpora and sessions: %s\n", time.Since(began).Round(time.Second))
	for _, seeds := range []int{0, 300} {
		if err := d.tasks(seeds); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "tasks: %s\n", time.Since(began).Round(time.Second))
	}
	d.print(time.Since(began))
	return nil
}

// corpora compares the rows of all corpora: single actions, then sessions.
func (d *difference) corpora() error {
	o := d.o
	if err := o.emptied(); err != nil {
		return err
	}
	root := filepath.Join(o.home, "project")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	r := strings.NewReplacer("/home/me/app", root, "/home/dev/project", root, "/home/me/", o.home+"/", "/home/dev/", o.home+"/")
	var alone, sessions []row
	for _, pattern := range []string{
		filepath.Join(o.repo, "testdata/*/*.jsonl"), filepath.Join(o.shared, "redteam/*.jsonl"), filepath.Join(o.shared, "field/*.jsonl"),
		filepath.Join(o.shared, "whitebox/*.jsonl"), filepath.Join(o.shared, "corpora/a*.jsonl"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			set := filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".jsonl")
			if strings.HasPrefix(set, "trust/") || set == "actions/structured" { // parts of tasks, and records that are not JSON
				continue
			}
			n := 0
			err := readLines(file, r, func(l *labelled) {
				n++
				actions := l.actions()
				for k, a := range actions {
					a.CWD = cmp.Or(a.CWD, root)
					one := row{set, cmp.Or(l.ID, fmt.Sprint(n)), a}
					if len(actions) == 1 && a.Session == "" {
						alone = append(alone, one)
						continue
					}
					one.id = fmt.Sprintf("%s#%d", one.id, k)
					one.action.Session = fmt.Sprintf("%s-%d", set, n)
					sessions = append(sessions, one)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	for settings, rows := range map[string][]row{"session: {enabled: false}\naudit: {enabled: false}\n": alone, "audit: {enabled: false}\n": sessions} {
		if err := d.both(root, settings, rows); err != nil {
			return err
		}
	}
	return nil
}

// both judges rows with both builds in parallel.
func (d *difference) both(root, settings string, rows []row) error {
	one := *d.o
	one.config = filepath.Join(d.o.home, "compare.yaml")
	if err := os.WriteFile(one.config, []byte(settings), 0o600); err != nil {
		return err
	}
	actions := make([]action, len(rows))
	for i := range rows {
		actions[i] = rows[i].action
		actions[i].ID = ""
	}
	judged := func(program string) ([]said, error) {
		j, err := one.newJudge(program, one.home, root, "--jobs", "1")
		if err != nil {
			return nil, err
		}
		defer j.close()
		out := make([]said, 0, len(rows))
		err = j.all(actions, func(_ int, v *verdict) { out = append(out, v.said()) })
		return out, err
	}
	failed := make(chan error, 1)
	var was []said
	go func() {
		var err error
		was, err = judged(one.base)
		failed <- err
	}()
	is, err := judged(one.shield)
	if other := <-failed; err == nil {
		err = other
	}
	if err != nil {
		return err
	}
	for i := range rows {
		d.add(&rows[i], was[i], is[i])
	}
	return nil
}

// tasks compares the recorded tasks, action by action in one workspace. Actions that the base does not
// block are applied to it, except inserted attacks; steps of trust seeds only if the base allows them.
func (d *difference) tasks(seeds int) error {
	o := *d.o
	o.seeds, o.seed = seeds, int64(seeds)
	all, err := o.tasks()
	if os.IsNotExist(err) {
		fmt.Println("skipped: there are no recorded tasks in", o.shared)
		return nil
	}
	if err != nil {
		return err
	}
	set := "tasks"
	if seeds > 0 {
		set = "seeded tasks"
		if _, err := o.sow(all); err != nil {
			return err
		}
	}
	for n, t := range all {
		if err := d.task(&o, set, n, t); err != nil {
			return fmt.Errorf("task %s: %w", t.Task, err)
		}
	}
	return nil
}

func (d *difference) task(o *options, set string, n int, t *task) error {
	if err := o.workspace(t); err != nil {
		return err
	}
	old, err := o.newJudge(o.base, o.home, t.Root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer old.close()
	now, err := o.newJudge(o.shield, o.home, t.Root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer now.close()
	w := worker{home: o.home}
	for k := range t.Actions {
		s := &t.Actions[k]
		s.CWD, s.ID, s.Session = cmp.Or(s.CWD, t.Root), fmt.Sprint(k), fmt.Sprintf("task%d", n)
		was, err := old.ask(&s.action)
		if err != nil {
			return err
		}
		is, err := now.ask(&s.action)
		if err != nil {
			return err
		}
		d.add(&row{set, fmt.Sprintf("%s#%d", t.Task, k), s.action}, was.said(), is.said())
		if !s.attack && (was.Decision == "ALLOW" || s.seed == nil && was.Decision != "BLOCK") {
			w.apply(s, t.Root)
		}
	}
	return nil
}

func (d *difference) print(took time.Duration) {
	total := 0
	for _, n := range d.rows {
		total += n
	}
	fmt.Printf("%d actions of %d sets, %s\n\n", total, len(d.rows), took.Round(time.Second))
	for _, set := range sortedKeys(d.rows) {
		fmt.Printf("%7d  %s\n", d.rows[set], set)
	}
	fmt.Printf("\nSame decision, another tier: %d; same decision and tier, another rule or reason: %d\n", d.tiers, d.rules)
	if len(d.flips) == 0 {
		fmt.Println("\nNo decision differs.")
	}
	for _, key := range sortedKeys(d.flips) {
		causes := sortedKeys(d.flips[key])
		slices.SortStableFunc(causes, func(a, b string) int { return d.flips[key][b] - d.flips[key][a] })
		n := 0
		for _, c := range causes {
			n += d.flips[key][c]
		}
		fmt.Printf("\n%s: %d\n", key, n)
		for _, c := range causes {
			fmt.Printf("%7d  %s\n", d.flips[key][c], c)
			for _, e := range d.example[c] {
				fmt.Println("            ", e)
			}
		}
	}
	fmt.Print("\nKinds of effects: rows where the base has it, where this build does not any more, where only this build has it\n")
	var wrong bytes.Buffer
	for _, k := range sortedKeys(d.had) {
		fmt.Printf("%7d %6d %6d  %s\n", d.had[k], d.lost[k], d.won[k], k)
		if d.lost[k] > 0 {
			fmt.Fprintf(&wrong, "a rule on %s matches less, such as in %s\n", k, d.lostOf[k])
		}
	}
	for _, k := range sortedKeys(d.won) {
		if d.had[k] == 0 {
			fmt.Printf("%7d %6d %6d  %s\n", 0, 0, d.won[k], k)
		}
	}
	fmt.Print(wrong.String())
}

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

// A comparedAction is one action that two builds judge.
type comparedAction struct {
	set, id string
	action  action
}

// A verdictSummary is the compared part of a verdict.
type verdictSummary struct {
	decision, rule, cause string
	tier                  int
	kinds                 []string // kinds of effects, sorted, without duplicates
}

func (v *verdict) summarize() verdictSummary {
	s := verdictSummary{decision: v.Decision, rule: v.Rule, cause: verdictCause(v), tier: v.Tier}
	for _, e := range v.effects() {
		s.kinds = append(s.kinds, e.Kind)
	}
	slices.Sort(s.kinds)
	s.kinds = slices.Compact(s.kinds)
	return s
}

// A buildDifferences counts the differences between two builds.
type buildDifferences struct {
	options           *options
	rowsByCorpus      map[string]int // by corpus
	decisionChanges   map[string]map[string]int
	changeExamples    map[string][]string
	tierChanges       int // same decision, another tier
	ruleChanges       int // same decision, another rule or reason
	baseEffectKinds   map[string]int
	lostEffectKinds   map[string]int // kinds of effects that the base reports and this build does not
	gainedEffectKinds map[string]int
	lostExamples      map[string]string
	out               *json.Encoder
}

// addComparison compares the verdicts of two builds on one action and counts the difference.
func (d *buildDifferences) addComparison(r *comparedAction, was, is verdictSummary) {
	d.rowsByCorpus[r.set]++
	flip := ""
	switch {
	case was.decision != is.decision:
		flip = was.cause + "  →  " + is.cause
		key := was.decision + " to " + is.decision
		if d.decisionChanges[key] == nil {
			d.decisionChanges[key] = map[string]int{}
		}
		d.decisionChanges[key][flip]++
		if len(d.changeExamples[flip]) < max(d.options.cases, 1) {
			d.changeExamples[flip] = append(d.changeExamples[flip], r.set+" "+r.id+": "+shortJSON(r.action.Payload))
		}
	case was.tier != is.tier:
		d.tierChanges++
	case was.cause != is.cause:
		d.ruleChanges++
	}
	var lost []string
	for _, k := range was.kinds {
		d.baseEffectKinds[k]++
		if !slices.Contains(is.kinds, k) {
			d.lostEffectKinds[k]++
			lost = append(lost, k)
			d.lostExamples[k] = r.set + " " + r.id + ": " + shortJSON(r.action.Payload)
		}
	}
	for _, k := range is.kinds {
		if !slices.Contains(was.kinds, k) {
			d.gainedEffectKinds[k]++
		}
	}
	if d.out != nil && (flip != "" || len(lost) > 0) {
		_ = d.out.Encode(map[string]any{"set": r.set, "id": r.id, "from": was.decision, "to": is.decision, "cause": flip, "lost": lost, "action": r.action})
	}
}

// compareBuilds judges all recorded actions, sessions and tasks with two builds and lists the differences,
// by cause.
func compareBuilds(o *options) error {
	if o.base == "" {
		return fmt.Errorf("-base is missing: the program to compare with")
	}
	began := time.Now()
	d := &buildDifferences{
		options: o, rowsByCorpus: map[string]int{}, decisionChanges: map[string]map[string]int{}, changeExamples: map[string][]string{},
		baseEffectKinds: map[string]int{}, lostEffectKinds: map[string]int{}, gainedEffectKinds: map[string]int{}, lostExamples: map[string]string{},
	}
	if o.out != "" {
		f, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer f.Close()
		d.out = json.NewEncoder(f)
	}
	if err := d.compareCorpora(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "corpora and sessions: %s\n", time.Since(began).Round(time.Second))
	for _, seeds := range []int{0, 300} {
		if err := d.compareTasks(seeds); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "tasks: %s\n", time.Since(began).Round(time.Second))
	}
	d.printDifferences(time.Since(began))
	return nil
}

// compareCorpora compares the rows of all corpora: single actions, then sessions.
func (d *buildDifferences) compareCorpora() error {
	o := d.options
	if err := o.emptyHome(); err != nil {
		return err
	}
	root := filepath.Join(o.home, "project")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	r := strings.NewReplacer("/home/me/app", root, "/home/dev/project", root, "/home/me/", o.home+"/", "/home/dev/", o.home+"/")
	var alone, sessions []comparedAction
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
			err := readLines(file, r, func(l *labelledRow) {
				n++
				actions := l.allActions()
				for k, a := range actions {
					a.CWD = cmp.Or(a.CWD, root)
					one := comparedAction{set, cmp.Or(l.ID, fmt.Sprint(n)), a}
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
	for settings, rows := range map[string][]comparedAction{"session: {enabled: false}\naudit: {enabled: false}\n": alone, "audit: {enabled: false}\n": sessions} {
		if err := d.judgeWithBoth(root, settings, rows); err != nil {
			return err
		}
	}
	return nil
}

// judgeWithBoth judges rows with both builds in parallel.
func (d *buildDifferences) judgeWithBoth(root, settings string, rows []comparedAction) error {
	one := *d.options
	one.config = filepath.Join(d.options.home, "compare.yaml")
	if err := os.WriteFile(one.config, []byte(settings), 0o600); err != nil {
		return err
	}
	actions := make([]action, len(rows))
	for i := range rows {
		actions[i] = rows[i].action
		actions[i].ID = ""
	}
	judged := func(program string) ([]verdictSummary, error) {
		j, err := one.startJudge(program, one.home, root, "--jobs", "1")
		if err != nil {
			return nil, err
		}
		defer j.close()
		out := make([]verdictSummary, 0, len(rows))
		err = j.judgeActions(actions, func(_ int, v *verdict) { out = append(out, v.summarize()) })
		return out, err
	}
	failed := make(chan error, 1)
	var was []verdictSummary
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
		d.addComparison(&rows[i], was[i], is[i])
	}
	return nil
}

// compareTasks compares the recorded tasks, action by action in one workspace. Actions that the base does not
// block are applied to it, except inserted attacks; steps of trust seeds only if the base allows them.
func (d *buildDifferences) compareTasks(seeds int) error {
	o := *d.options
	o.seeds, o.seed = seeds, int64(seeds)
	all, err := o.readTasks()
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
		if _, err := o.insertAttacks(all); err != nil {
			return err
		}
	}
	for n, t := range all {
		if err := d.compareTask(&o, set, n, t); err != nil {
			return fmt.Errorf("task %s: %w", t.Task, err)
		}
	}
	return nil
}

func (d *buildDifferences) compareTask(o *options, set string, n int, t *task) error {
	if err := o.createWorkspace(t); err != nil {
		return err
	}
	old, err := o.startJudge(o.base, o.home, t.Root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer old.close()
	now, err := o.startJudge(o.shield, o.home, t.Root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer now.close()
	w := actionApplier{home: o.home}
	for k := range t.Actions {
		s := &t.Actions[k]
		s.CWD, s.ID, s.Session = cmp.Or(s.CWD, t.Root), fmt.Sprint(k), fmt.Sprintf("task%d", n)
		was, err := old.judgeAction(&s.action)
		if err != nil {
			return err
		}
		is, err := now.judgeAction(&s.action)
		if err != nil {
			return err
		}
		d.addComparison(&comparedAction{set, fmt.Sprintf("%s#%d", t.Task, k), s.action}, was.summarize(), is.summarize())
		if !s.isAttack && (was.Decision == "ALLOW" || s.trustSeed == nil && was.Decision != "BLOCK") {
			w.applyAction(s, t.Root)
		}
	}
	return nil
}

func (d *buildDifferences) printDifferences(took time.Duration) {
	total := 0
	for _, n := range d.rowsByCorpus {
		total += n
	}
	fmt.Printf("%d actions of %d sets, %s\n\n", total, len(d.rowsByCorpus), took.Round(time.Second))
	for _, set := range sortedKeys(d.rowsByCorpus) {
		fmt.Printf("%7d  %s\n", d.rowsByCorpus[set], set)
	}
	fmt.Printf("\nSame decision, another tier: %d; same decision and tier, another rule or reason: %d\n", d.tierChanges, d.ruleChanges)
	if len(d.decisionChanges) == 0 {
		fmt.Println("\nNo decision differs.")
	}
	for _, key := range sortedKeys(d.decisionChanges) {
		causes := sortedKeys(d.decisionChanges[key])
		slices.SortStableFunc(causes, func(a, b string) int { return d.decisionChanges[key][b] - d.decisionChanges[key][a] })
		n := 0
		for _, c := range causes {
			n += d.decisionChanges[key][c]
		}
		fmt.Printf("\n%s: %d\n", key, n)
		for _, c := range causes {
			fmt.Printf("%7d  %s\n", d.decisionChanges[key][c], c)
			for _, e := range d.changeExamples[c] {
				fmt.Println("            ", e)
			}
		}
	}
	fmt.Print("\nKinds of effects: rows where the base has it, where this build does not any more, where only this build has it\n")
	var wrong bytes.Buffer
	for _, k := range sortedKeys(d.baseEffectKinds) {
		fmt.Printf("%7d %6d %6d  %s\n", d.baseEffectKinds[k], d.lostEffectKinds[k], d.gainedEffectKinds[k], k)
		if d.lostEffectKinds[k] > 0 {
			fmt.Fprintf(&wrong, "a rule on %s matches less, such as in %s\n", k, d.lostExamples[k])
		}
	}
	for _, k := range sortedKeys(d.gainedEffectKinds) {
		if d.baseEffectKinds[k] == 0 {
			fmt.Printf("%7d %6d %6d  %s\n", 0, 0, d.gainedEffectKinds[k], k)
		}
	}
	fmt.Print(wrong.String())
}

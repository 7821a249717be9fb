package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/brief"
)

// A task is a recorded session of an agent.
type task struct {
	Task    string
	Source  string
	Root    string
	Actions []step
}

// A step is one action of a task. Old is the text that an edit replaces.
type step struct {
	action
	Old     *string
	Refused bool // denied by the person, in the host's own question

	isAttack  bool         // an inserted attack of a labelled corpus
	trustSeed *trustAttack // the trust seed that the step belongs to
	isHarmful bool         // the step is the harmful one
}

// A trustAttack is a seeded attack that uses the trust a session earns: its steps are spread over a task.
type trustAttack struct {
	ID    string
	Class string
	Steps []struct {
		Type    string
		Payload map[string]any
		Attack  bool // the step is the attack; the steps before it are honest on their own
	}

	stoppedBy string // what stopped the attack
}

// recordedHome is the home folder in the recorded tasks.
const recordedHome = "/home/tdev"

func (o *options) readTasks() (all []*task, err error) {
	err = readLines(filepath.Join(o.shared, "tasks", "tasks.jsonl"), strings.NewReplacer(recordedHome, o.home), func(t *task) { all = append(all, t) })
	return all, err
}

// A replayCounts holds the counts of a replay.
type replayCounts struct {
	interruptionsPerTask []int // interruptions per task
	actions              int
	causes               map[string]int
	examples             map[string][]string
	seeded               map[string]int
	passed               []string
	refused              int
	asked                int // refused actions that shield does not allow
}

// replayTasks replays the recorded tasks, without changes or with attacks inserted.
func replayTasks(o *options) error {
	all, err := o.readTasks()
	if os.IsNotExist(err) {
		fmt.Println("skipped: there are no recorded tasks in", o.shared)
		return nil
	}
	if err != nil {
		return err
	}
	var seeds []*trustAttack
	if o.seeds > 0 {
		if seeds, err = o.insertAttacks(all); err != nil {
			return err
		}
	}
	var out *json.Encoder
	if o.out != "" {
		f, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer f.Close()
		out = json.NewEncoder(f)
	}
	sum := replayCounts{causes: map[string]int{}, examples: map[string][]string{}, seeded: map[string]int{}}
	for n, t := range all {
		err := o.replayTask(n, t, &sum, func(k int, s *step, v *verdict) error {
			if out == nil {
				return nil
			}
			return out.Encode(map[string]any{"task": t.Task, "k": k, "decision": v.Decision, "tier": v.Tier, "rule": v.Rule, "reasoning": v.Reasoning, "attack": s.isAttack || s.isHarmful})
		})
		if err != nil {
			return fmt.Errorf("task %s: %w", t.Task, err)
		}
	}
	sum.printCounts(o, seeds)
	return nil
}

// replayTask judges one task in a workspace on the disk, and applies the actions that are not blocked.
func (o *options) replayTask(n int, t *task, sum *replayCounts, each func(k int, s *step, v *verdict) error) error {
	if err := o.createWorkspace(t); err != nil {
		return err
	}
	j, err := o.startJudge(o.shield, o.home, t.Root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer j.close()
	w := actionApplier{home: o.home}
	stops := 0
	for k := range t.Actions {
		s := &t.Actions[k]
		s.CWD, s.ID, s.Session = cmp.Or(s.CWD, t.Root), fmt.Sprint(k), fmt.Sprintf("task%d", n)
		v, err := j.judgeAction(&s.action)
		if err != nil {
			return err
		}
		if err := each(k, s, v); err != nil {
			return err
		}
		switch {
		case s.isAttack:
			sum.seeded[v.Decision]++
			if v.Decision == "ALLOW" {
				sum.passed = append(sum.passed, t.Task+": "+shortJSON(s.Payload))
			}
			continue
		case s.trustSeed != nil:
			if v.Decision == "ALLOW" {
				w.applyAction(s, t.Root)
			} else if s.isHarmful && s.trustSeed.stoppedBy == "" {
				s.trustSeed.stoppedBy = verdictCause(v)
			}
			continue
		}
		sum.actions++
		if s.Refused {
			sum.refused++
		}
		if v.Decision != "ALLOW" {
			stops++
			sum.causes[verdictCause(v)]++
			sum.examples[verdictCause(v)] = append(sum.examples[verdictCause(v)], shortJSON(s.Payload))
			if s.Refused {
				sum.asked++
			}
		}
		if v.Decision != "BLOCK" {
			w.applyAction(s, t.Root)
		}
	}
	sum.interruptionsPerTask = append(sum.interruptionsPerTask, stops)
	return nil
}

var variablePartPattern = regexp.MustCompile(`(/|~)\S+|\d+`)

// verdictCause returns the rule or reason of a verdict.
func verdictCause(v *verdict) string {
	if v.Rule != "" {
		return v.Decision + " " + v.Rule
	}
	return v.Decision + " " + brief.TruncateWithEllipsis(variablePartPattern.ReplaceAllString(v.Reasoning, "…"), 70)
}

func shortJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return brief.TruncateWithEllipsis(strings.TrimSpace(b.String()), 160)
}

func (s *replayCounts) printCounts(o *options, seeds []*trustAttack) {
	per := slices.Sorted(slices.Values(s.interruptionsPerTask))
	total, none := 0, 0
	for _, n := range per {
		total += n
		if n == 0 {
			none++
		}
	}
	count := float64(len(per))
	median := float64(per[len(per)/2]+per[(len(per)-1)/2]) / 2
	fmt.Printf("%d tasks, %d actions; without an interruption %d (%.0f %%); a task: median %g, mean %.2f, p90 %d, most %d; per 100 actions %.2f\n",
		len(per), s.actions, none, 100*float64(none)/count, median, float64(total)/count, per[int(.9*count)], per[len(per)-1], 100*float64(total)/float64(s.actions))
	fmt.Printf("actions that users refused: %d, asked about %d\n", s.refused, s.asked)
	if o.seeds > 0 {
		all := 0
		for _, n := range s.seeded {
			all += n
		}
		fmt.Printf("seeded attacks: %d, not allowed %d (%.1f %%)\n", all, all-s.seeded["ALLOW"], 100-100*float64(s.seeded["ALLOW"])/float64(max(1, all)))
		for _, p := range s.passed {
			fmt.Println("         passed in", p)
		}
		stopped, classes := 0, map[string][2]int{}
		for _, t := range seeds {
			c := classes[t.Class]
			c[1]++
			if t.stoppedBy != "" {
				stopped++
				c[0]++
			}
			classes[t.Class] = c
		}
		fmt.Printf("trust seeds: %d, not allowed %d\n", len(seeds), stopped)
		for _, class := range sortedKeys(classes) {
			fmt.Printf("         %d of %d  %s\n", classes[class][0], classes[class][1], class)
		}
		for _, t := range seeds {
			if t.stoppedBy == "" {
				fmt.Printf("         passed: %s: %s\n", t.ID, shortJSON(t.Steps[len(t.Steps)-1].Payload))
			}
		}
	}
	causes := sortedKeys(s.causes)
	slices.SortStableFunc(causes, func(a, b string) int { return s.causes[b] - s.causes[a] })
	for _, c := range causes[:min(30, len(causes))] {
		fmt.Printf("%5d  %s\n", s.causes[c], c)
		for _, e := range s.examples[c][:min(o.cases, len(s.examples[c]))] {
			fmt.Println("        ", e)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// randomSource returns the random source of a measure, and prints its seed.
func (o *options) randomSource() *rand.Rand {
	if o.seed == 0 {
		o.seed = time.Now().UnixNano()
		fmt.Printf("-random %d\n", o.seed)
	}
	return rand.New(rand.NewPCG(uint64(o.seed), 0))
}

// insertAttacks inserts labelled attacks and trust seeds at random places.
func (o *options) insertAttacks(all []*task) (seeds []*trustAttack, err error) {
	if o.seed == 0 {
		o.seed = int64(o.seeds)
	}
	r := o.randomSource()
	var long []*task
	for _, t := range all {
		if len(t.Actions) > 5 {
			long = append(long, t)
		}
	}
	var bad []action
	err = readLines(filepath.Join(o.shared, "redteam", "attacks.jsonl"), nil, func(row *labelledRow) {
		if row.isAttack() {
			bad = append(bad, row.allActions()...)
		}
	})
	if err != nil {
		return nil, err
	}
	r.Shuffle(len(bad), func(i, k int) { bad[i], bad[k] = bad[k], bad[i] })
	for _, a := range bad[:min(o.seeds, len(bad))] {
		t := long[r.IntN(len(long))]
		placed, err := replaceTexts(a.Payload, strings.NewReplacer("/home/me/app", t.Root, "/home/me", o.home))
		if err != nil {
			return nil, err
		}
		s := step{action: action{Type: a.Type, Payload: placed, CWD: t.Root}, isAttack: true}
		t.Actions = slices.Insert(t.Actions, 3+r.IntN(len(t.Actions)-3), s)
	}
	err = readLines(filepath.Join(o.repo, "testdata", "trust", "seeds.jsonl"), nil, func(t *trustAttack) { seeds = append(seeds, t) })
	if err != nil {
		return nil, err
	}
	for _, seed := range seeds {
		t := long[r.IntN(len(long))]
		at := make([]int, len(seed.Steps))
		for i := range at {
			at[i] = 3 + r.IntN(len(t.Actions)-3)
		}
		slices.Sort(at)
		for i := len(at) - 1; i >= 0; i-- { // last first, so that the drawn places stay valid
			placed, err := replaceTexts(seed.Steps[i].Payload, strings.NewReplacer("/home/me/app", t.Root, "/home/me", o.home))
			if err != nil {
				return nil, err
			}
			s := step{action: action{Type: seed.Steps[i].Type, Payload: placed, CWD: t.Root}, trustSeed: seed, isHarmful: seed.Steps[i].Attack}
			t.Actions = slices.Insert(t.Actions, at[i], s)
		}
	}
	return seeds, nil
}

// replaceTexts returns a payload with texts replaced.
func replaceTexts(payload map[string]any, r *strings.Replacer) (out map[string]any, err error) {
	text, err := json.Marshal(payload)
	if err == nil {
		err = json.Unmarshal([]byte(r.Replace(string(text))), &out)
	}
	return out, err
}

// runGit runs a git command without user configuration and hooks.
func runGit(dir string, args ...string) error {
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null", "-C", dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	return cmd.Run()
}

// createWorkspace creates the folder of a task: a repository with the files that the task edits.
func (o *options) createWorkspace(t *task) error {
	if err := o.emptyHome(); err != nil {
		return err
	}
	below := o.home + "/"
	folders := []string{t.Root}
	for _, s := range t.Actions {
		if strings.HasPrefix(s.CWD, below) {
			folders = append(folders, s.CWD)
		}
	}
	for _, d := range folders {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := runGit(t.Root, "init", "-q", "-b", "main"); err != nil {
		return fmt.Errorf("git init: %w", err)
	}
	if err := os.WriteFile(filepath.Join(t.Root, "README.md"), []byte(t.Source+"\n"), 0o644); err != nil {
		return err
	}
	// files that the task edits existed before it began
	for _, s := range t.Actions {
		if s.Old == nil || s.Type != "write_file" && s.Type != "read_file" {
			continue
		}
		f := absolutePath(cmp.Or(s.CWD, t.Root), s.text("path"))
		if _, err := os.Lstat(f); strings.HasPrefix(f, t.Root+"/") && os.IsNotExist(err) {
			if err := writeFile(f, *s.Old+"\n"); err != nil {
				return err
			}
		}
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "x"}, {"remote", "add", "origin", "git@github.com:" + t.Source + ".git"}} {
		if err := runGit(t.Root, args...); err != nil {
			return fmt.Errorf("git %s: %w", args[0], err)
		}
	}
	return nil
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A simulatedPerson answers the questions of a replay through the channel "command".
type simulatedPerson struct {
	answerFolder string // of a program that answers; it also holds the next answer and the questions asked
	scope        string // once, or session
}

// newSimulatedPerson returns a person and the settings under which shield asks them.
func newSimulatedPerson(scope string) (p *simulatedPerson, settings string, err error) {
	p = &simulatedPerson{scope: scope}
	if p.answerFolder, err = os.MkdirTemp("/var/tmp", "shield-person-"); err != nil {
		return nil, "", err
	}
	program, settings := filepath.Join(p.answerFolder, "answer"), filepath.Join(p.answerFolder, "settings.yaml")
	script := "#!/bin/sh\ncat >/dev/null\necho >>'" + filepath.Join(p.answerFolder, "asked") + "'\ncat '" + filepath.Join(p.answerFolder, "reply") + "'\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		return nil, "", err
	}
	text := "approval: {channels: [command], command: [" + program + "], max_per_hour: 10000}\n"
	return p, settings, os.WriteFile(settings, []byte(text), 0o600)
}

// setNextAnswer sets the person's answer to the next question.
func (p *simulatedPerson) setNextAnswer(approve bool) error {
	reply := `{"decision":"deny","by":"measure"}`
	if approve {
		reply = `{"decision":"approve","by":"measure","scope":"` + p.scope + `"}`
	}
	return os.WriteFile(filepath.Join(p.answerFolder, "reply"), []byte(reply), 0o600)
}

// questionCount returns how many questions the person got.
func (p *simulatedPerson) questionCount() int {
	data, _ := os.ReadFile(filepath.Join(p.answerFolder, "asked")) // the file is missing before the first question
	return bytes.Count(data, []byte("\n"))
}

// measureAnswers replays tasks twice with a person who approves honest actions and denies attacks: once per
// action, and once per kind and session. It prints how many of the questions with a repeated cause are
// not asked the second time.
func measureAnswers(o *options) error {
	all, err := o.readTasks()
	if os.IsNotExist(err) {
		fmt.Println("skipped: there are no recorded tasks in", o.shared)
		return nil
	}
	if err != nil {
		return err
	}
	if o.seeds > 0 {
		if _, err := o.insertAttacks(all); err != nil {
			return err
		}
	}
	var questions, repeats, soft, again, left, hard int
	causes, examples := map[string]int{}, map[string][]string{}
	byAnswer := []string{}
	for n, t := range all {
		type question struct {
			cause string
			soft  bool
		}
		first := map[int]question{}
		if err := o.replayAnswered(n, t, "once", func(k int, s *step, v *verdict, asked bool) {
			if asked && !s.isAttack && !s.isHarmful {
				first[k] = question{askReason(v), v.isSoftQuestion()}
			}
		}); err != nil {
			return fmt.Errorf("task %s: %w", t.Task, err)
		}
		second := map[int]bool{}
		if err := o.replayAnswered(n, t, "session", func(k int, s *step, v *verdict, asked bool) {
			second[k] = asked
			if (s.isAttack || s.isHarmful) && v.Channel == "kind" {
				byAnswer = append(byAnswer, t.Task+": "+shortJSON(s.Payload))
			}
		}); err != nil {
			return fmt.Errorf("task %s: %w", t.Task, err)
		}
		met := map[string]bool{}
		for k := range t.Actions {
			q, ok := first[k]
			if second[k] && !t.Actions[k].isAttack && !t.Actions[k].isHarmful {
				left++
			}
			if !ok {
				continue
			}
			questions++
			switch repeated := met[q.cause]; {
			case repeated && q.soft:
				repeats++
				soft++
				if second[k] {
					again++
					causes[q.cause]++
					examples[q.cause] = append(examples[q.cause], shortJSON(t.Actions[k].Payload))
				}
			case repeated:
				repeats++
				hard++
			}
			met[q.cause] = true
		}
	}
	fmt.Printf("%d tasks: %d questions to a person who answers each alone, %d to one who answers for kinds\n", len(all), questions, left)
	fmt.Printf("repeats of a cause in its task: %d, of which %d soft; not asked again %d of %d (%.0f %%)\n", repeats, soft, soft-again, soft, 100*float64(soft-again)/float64(max(1, soft)))
	if o.seeds > 0 {
		fmt.Printf("attacks that an answer for a kind allowed: %d\n", len(byAnswer))
		for _, p := range byAnswer {
			fmt.Println("        ", p)
		}
	}
	list := sortedKeys(causes)
	slices.SortStableFunc(list, func(a, b string) int { return causes[b] - causes[a] })
	for _, c := range list[:min(30, len(list))] {
		fmt.Printf("%5d  %s\n", causes[c], c)
		for _, e := range examples[c][:min(o.cases, len(examples[c]))] {
			fmt.Println("        ", e)
		}
	}
	return nil
}

// replayAnswered replays one task with a person whose answers have a scope.
func (o *options) replayAnswered(n int, t *task, scope string, each func(k int, s *step, v *verdict, asked bool)) error {
	if err := o.createWorkspace(t); err != nil {
		return err
	}
	p, settings, err := newSimulatedPerson(scope)
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.answerFolder)
	whole := *o
	whole.until, whole.config = "approve", settings
	j, err := whole.startJudge(o.shield, o.home, t.Root, "--jobs", "1")
	if err != nil {
		return err
	}
	defer j.close()
	w := actionApplier{home: o.home}
	for k := range t.Actions {
		s := t.Actions[k]
		if s.CWD == "" {
			s.CWD = t.Root
		}
		s.ID, s.Session = fmt.Sprint(k), fmt.Sprintf("task%d", n)
		bad := s.isAttack || s.isHarmful
		if err := p.setNextAnswer(!bad); err != nil {
			return err
		}
		before := p.questionCount()
		v, err := j.judgeAction(&s.action)
		if err != nil {
			return err
		}
		each(k, &s, v, p.questionCount() > before)
		if v.Decision == "ALLOW" && !bad {
			w.applyAction(&s, t.Root)
		}
	}
	return nil
}

// askReason returns the reason why a person was asked.
func askReason(v *verdict) string {
	by := verdict{}
	for _, s := range v.Trail {
		if s.Decision == "ESCALATE" && s.Tier < 2 && (by.Rule == "" || s.Rule != "") {
			by.Decision, by.Rule, by.Reasoning = s.Decision, s.Rule, s.Reasoning
		}
	}
	return verdictCause(&by)
}

// hardKinds are the effects about which a person is asked each time.
var hardKinds = []string{
	"read_secret", "read_clipboard", "send_secret", "change_privilege", "persist", "change_guard", "run_download", "run_decoded", "run_input", "remote_shell", "dynamic",
}

// isSoftQuestion reports whether a person was asked only about effects that need no question each time: not
// about credentials, privilege, persistence, shield itself, and unknown code or programs.
func (v *verdict) isSoftQuestion() bool {
	for _, e := range v.effects() {
		switch {
		case slices.Contains(hardKinds, e.Kind), e.Kind == "execute" && (e.Class == "" || e.Class == "privileged"), e.Kind == "run_code" && len(e.Labels) > 0,
			slices.Contains(e.Labels, "secret"), slices.Contains(e.Labels, "credential"):
			return false
		}
	}
	return true
}

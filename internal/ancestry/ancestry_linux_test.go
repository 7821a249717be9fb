package ancestry

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	// A child of a child, which waits for the end of its input.
	cmd := exec.Command("sh", "-c", `sh -c 'echo $$; read x; :'; :`, "outer", "a b", "")
	cmd.Env = append(os.Environ(), "OF_THE_TEST=a b")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	all, err := ProcessAndAncestors(pid)
	if err != nil || len(all) < 3 {
		t.Fatalf("%v, %v", all, err)
	}
	inner, outer, self := all[0], all[1], all[2]
	if inner.PID != pid || outer.PID != cmd.Process.Pid || self.PID != os.Getpid() || inner.Parent != outer.PID || outer.Parent != self.PID {
		t.Errorf("%+v", all)
	}
	if !slices.Equal(outer.Args[1:], cmd.Args[1:]) || outer.Name != "sh" {
		t.Errorf("the outer shell: %+v", outer)
	}
	if exe, err := os.Executable(); err != nil || self.Exe != exe || self.StartTicks == 0 || outer.StartTicks < self.StartTicks {
		t.Errorf("this process: %+v, %v", self, err)
	}
	if last := all[len(all)-1]; last.Parent != 0 {
		t.Errorf("the last one: %+v", last)
	}
	running, err := Running()
	if err != nil || !slices.ContainsFunc(running, func(p Process) bool { return p.PID == pid && p.Parent == outer.PID }) {
		t.Errorf("%d processes run, %v", len(running), err)
	}
	if env, err := Environ(pid); err != nil || !slices.Contains(env, "OF_THE_TEST=a b") {
		t.Errorf("environment %q, %v", env, err)
	}
	in.Close()
	_ = cmd.Wait()
	if env, err := Environ(pid); err == nil {
		t.Errorf("environment of a process that ended: %q", env)
	}
	for _, gone := range []int{pid, 1 << 30, 0, -1} {
		if all, err := ProcessAndAncestors(gone); err == nil || len(all) > 0 {
			t.Errorf("process %d: %v, %v", gone, all, err)
		}
	}
}

// TestDeep holds that an ancestry beyond the bound is an error, and what was read.
func TestDeep(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `if [ $1 = 0 ]; then echo $$; read x; else sh -c "$0" "$0" $(($1-1)); fi; :`,
		`if [ $1 = 0 ]; then echo $$; read x; else sh -c "$0" "$0" $(($1-1)); fi; :`, "70")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if all, err := ProcessAndAncestors(pid); err == nil || len(all) != maxAncestors {
		t.Errorf("%d processes, %v", len(all), err)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	line := func(name string) string {
		return "7 (" + name + ") S 3 7 7 34816 9 " + strings.Repeat("0 ", 13) + "4242 0 0"
	}
	for _, name := range []string{"sh", "a b", "a) S 1 (b", "((", ""} {
		p, err := parseStat(line(name))
		if want := (Process{PID: 7, Parent: 3, Name: name, StartTicks: 4242, TTY: 34816}); err != nil || fmt.Sprint(p) != fmt.Sprint(want) {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for _, text := range []string{"", "7 (sh", "7 (sh) S 3", strings.Replace(line("sh"), "4242", "-1", 1), strings.Replace(line("sh"), "S 3", "S x", 1)} {
		if p, err := parseStat(text); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

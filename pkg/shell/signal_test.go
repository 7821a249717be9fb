package shell

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestSignals holds that a signal which can stop shield, the programs of its hook command or the host
// acts on the guard, in every form, and that one to what the agent itself started does not.
func TestSignals(t *testing.T) {
	t.Parallel()
	at := guardPlace(nil)
	targets := map[string][]string{
		"by name": {
			"pkill %s timeout", "pkill %s -x timeout", "pkill %s -x sh", "pkill %s shield", "pkill %s claude", "killall %s timeout", "killall %s sh", "killall %s codex",
			"skill %s timeout", "/bin/kill %s timeout", "busybox pkill %s timeout", "busybox killall %s sh", "sudo pkill %s timeout", "env X=1 pkill %s -x timeout",
			`p=timeout; pkill %s -x $p`, `pkill %s -x "$(echo timeout)"`, "fuser -k %s /usr/bin/timeout", "fuser -k %s ~/.local/bin/shield",
			"echo timeout | xargs pkill %s", "ssh localhost pkill %s timeout",
		},
		"by pattern": {
			"pkill %s time", "pkill %s 'tim.*'", "pkill %s '^s'", "pkill %s -i SHIELD", "pkill %s -f shie[l]d", "pkill %s -f 'shield hook'", "pkill %s -f hook",
			"pkill %s -f .", "pkill %s -f ''", "pkill %s --full '/bin/sh -c'", "killall %s -r 'time.*'", "pkill %s -f /home/me/.local/bin",
			"pkill %s -x 'time.*'", "pkill %s -x 'sh|timeout'", "pkill %s -x '(sh)'", "pkill %s -xf '.*shield hook.*'", "pkill %s -fx '.*hook.*'", "pkill %s --inverse -x node",
			"pkill %s --inv node", "pkill %s -r S", "pkill %s -O 1",
		},
		"by number": {
			"kill %s $PPID", `kill %s "$PPID"`, "kill %s ${PPID}", "kill %s -1", "kill %s -- -1", "kill %s $(pgrep timeout)", "kill %s `pgrep -x sh`", "kill %s $(pidof timeout)",
			"kill %s $(pgrep -f 'shield hook')", "kill %s $(ps -C timeout -o pid=)", "kill %s $(ps aux | grep timeout | awk '{print $2}')",
			"kill %s $(ps aux | grep '[t]imeout' | awk '{print $2}')", "kill %s $(ps -o ppid= -p $$)", "p=$(pgrep timeout); kill %s $p", "for p in $(pgrep timeout); do kill %s $p; done",
			"pgrep timeout | xargs kill %s", "pidof timeout | xargs -n1 kill %s", "ps aux | awk '/timeout/ {print $2}' | xargs kill %s", "pgrep -x timeout | while read p; do kill %s $p; done",
			"trap 'kill %s $PPID' DEBUG", "pkill %s -P $PPID", "kill %s $(lsof -t /usr/bin/timeout)",
			"for f in /proc/*/comm; do read n < $f; [ $n = timeout ] && { d=${f%/comm}; kill %s ${d#/proc/}; }; done",
		},
		"by file":  {"fuser -k %s .", "fuser -k %s ..", "fuser -k %s /", "fuser %s -k -m ~", "fuser -k %s -m $PWD", "kill %s $(lsof -t +d .)", "lsof -t +D /home/me/app | xargs kill %s"},
		"by group": {"pkill %s -u me", "killall %s -u me", "pkill %s -t pts/0", "killall5 %s"},
	}
	for kind, forms := range targets {
		for _, form := range forms {
			for _, signal := range []string{"-STOP", "-SIGSTOP", "-19", "-9", "-TERM"} {
				for _, around := range []string{"%", "while sleep 0.01; do %; done", "sh -c \"%\" &"} {
					line := strings.Replace(form, "%s", signal, 1)
					if strings.Contains(around, "sh -c") {
						line = strings.NewReplacer(`"`, `\"`, "$", `\$`, "`", "\\`").Replace(line)
					}
					line = strings.Replace(around, "%", line, 1)
					if got := guards(line, at); got != "sure" {
						t.Errorf("%s: %s: %s", kind, line, got)
					}
				}
			}
		}
	}
	for _, line := range []string{
		`python3 -c "import os,signal; os.kill(os.getppid(), signal.SIGSTOP)"`, `python3 -c "import os; p=os.getppid(); os.kill(p, 19)"`,
		`python3 -c "import os; os.killpg(os.getpgid(os.getppid()), 19)"`, `python3 -c "import os; os.kill(-1, 19)"`,
		`python3 -c "import subprocess; subprocess.run(['pkill','-STOP','-x','timeout'])"`, `python3 -c "import os; os.system('pkill -STOP -x timeout')"`,
		`python3 -c "import psutil; [p.suspend() for p in psutil.process_iter() if p.name()=='timeout']"`,
		`python3 -c "import psutil; [p.send_signal(19) for p in psutil.process_iter() if 'shield' in p.name()]"`,
		`node -e "process.kill(process.ppid, 'SIGSTOP')"`, `node -e "process.kill(-1, 19)"`, `node -e "require('child_process').execSync('pkill -STOP -x timeout')"`,
		`perl -e 'kill "STOP", getppid()'`, `perl -e 'kill STOP => getppid'`, `perl -e 'kill 19, -1'`, `ruby -e 'Process.kill("STOP", Process.ppid)'`,
		`php -r 'posix_kill(posix_getppid(), 19);'`, "systemctl kill shield", "systemctl --user kill -s STOP app.slice", "systemctl --user freeze app.slice",
		"systemctl kill user-1000.slice", "systemctl stop user@1000.service", "cpulimit -z -e timeout -l 1", "cpulimit -p $(pgrep timeout) -l 1",
		"taskkill /F /IM shield.exe", "strace -p $(pgrep timeout)", "prlimit --pid $(pidof timeout) --cpu=0",
		"python3 - <<X\nimport os\np = os.getppid()\nos.kill(p, 19)\nX", "node - <<X\nconst p = process.ppid\nprocess.kill(p, 'SIGSTOP')\nX",
		"ruby - <<X\np = Process.ppid\nProcess.kill(:STOP, p)\nX", `python3 -c "import os, psutil; psutil.Process(os.getppid()).suspend()"`,
		`python3 -c "import psutil; psutil.Process().parent().suspend()"`, `perl -e 'kill 19, $_ for 2..99999'`,
		"python3 - <<X\nimport os\nfor d in os.listdir('/proc'):\n  if d.isdigit():\n    os.kill(int(d), 19)\nX",
		"pwsh -c 'Stop-Process -Name timeout'", "pwsh -c 'Get-Process shield | Stop-Process'",
	} {
		if got := guards(line, at); got != "sure" {
			t.Errorf("%s: %s", line, got)
		}
	}
	for line, want := range map[string]string{
		"kill -STOP 0": "maybe", "kill -STOP $(cat x)": "maybe", "pkill -STOP -g 0": "sure", "kill -STOP $(pgrep node)": "maybe",
	} {
		if got := guards(line, at); got != want {
			t.Errorf("%s: %s, not %s", line, got, want)
		}
	}
	for _, line := range []string{
		"kill %1", "kill $!", "kill -9 %1", "kill -STOP %1", "kill -TSTP $!", "kill -CONT %1", "npm run dev & sleep 5; kill $!", "npm run dev & PID=$!; sleep 5; kill $PID",
		`pkill -f "node server.js"`, "pkill -f vite", `pkill -f "next dev"`, "pkill node", "killall node", "kill 12345", "kill -9 12345", "kill 123 456", "kill -STOP 12345",
		"kill $(lsof -t -i:3000)", "lsof -ti:3000 | xargs kill -9", "kill $(cat server.pid)", "kill -HUP $(cat nginx.pid)", `pkill -f "python app.py"`, "pkill -f pytest",
		"kill -0 $PID", "kill -0 $PPID", "pkill -0 timeout", "kill -l", "trap 'kill 0' EXIT", "trap 'kill $(jobs -p)' EXIT", "fuser -k 3000/tcp", "pkill -HUP nginx", "killall -0 node",
		"pgrep timeout", "ps aux | grep timeout", "ps aux | grep node | grep -v grep | awk '{print $2}' | xargs kill", `kill $(pgrep -f "node server.js")`,
		"timeout 5 node server.js", "timeout 5 ./run & kill $!", "env timeout 5 x; kill $(cat server.pid)", "pkill -P $$", "kill -- -$$", "docker exec web pkill sh", "ssh prod pkill -f timeout",
		`python3 -c "import os,signal; os.kill(12345, signal.SIGTERM)"`, `node -e "process.kill(12345)"`, `python3 -c "import psutil; print([p.name() for p in psutil.process_iter()])"`,
		"pkill -f webpack-dev-server", "pkill chromium", "pkill -u me -f vite", "killall -u me node", "systemctl stop nginx", "systemctl --user restart app.service", "cpulimit -l 50 -- make",
		"kill $PID", `pkill -f "$APP"`, "pkill -f /home/me/app/server.js", "pkill -x go", "pkill -x api", "pkill -x node -o", "pkill -xf 'node server.js'", "fuser -k -m /mnt/usb", "fuser -k dist/app.sock",
		"kill $(lsof -t dist/app.db)", "lsof -ti tcp:3000 | xargs kill -9", "pwsh -c 'Stop-Process -Name node'", "python3 - <<X\nimport os\nprint(os.getppid())\nos.kill(12345, 15)\nX",
		`python3 -c "import psutil; [p.kill() for p in psutil.process_iter() if p.name() == 'node']"`, "[ -f x.pid ] && kill $(cat x.pid)", "python3 -c \"import os; print(os.getppid())\"",
	} {
		if got := guards(line, at); got != "no" {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// TestAttaching holds that whatever attaches to a process reads its memory, whatever says which
// one it is, and that tracing a command of one's own does not.
func TestAttaching(t *testing.T) {
	t.Parallel()
	reads := func(line string) bool {
		for _, e := range Analyze(line, &effect.PathContext{CWD: "/home/me/app", Home: "/home/me"}).Effects {
			if e.KindForPolicies() == effect.ReadClipboard {
				return true
			}
		}
		return false
	}
	for _, form := range []string{
		"strace -p %s", "strace -p%s", "strace -fp %s", "strace -f -p %s -e read -s 9999", "strace --attach=%s", "strace --attach %s", "strace -o out -p %s", "ltrace -p %s",
		"heaptrack -p %s", "gdb -p %s", "gdb -batch -p %s -ex bt", "gdb --pid=%s", "gdb --pid %s", "gdb attach %s", `gdb -ex "attach %s"`, "gdb ./app %s",
		"gdb -q ./app %s -ex bt", "lldb -p %s", "lldb --attach-pid %s", `lldb -o "process attach --pid %s"`, "gdbserver --attach :1234 %s",
		"prlimit --pid %s", "prlimit -p %s --nofile=0", "cpulimit -p %s -l 1", "cpulimit -l 1 -p %s", "reptyr %s", "reptyr -T %s", "perf record -p %s", "perf record -g -p %s -- sleep 5",
		"perf top -p %s", "perf trace -p %s", "perf stat -p %s sleep 1", "py-spy dump -p %s", "py-spy dump --pid %s", "py-spy record -o x.svg -p %s", "rbspy record --pid %s", "austin -p %s",
		"jattach %s threaddump", "gcore %s", "gcore -o x %s", "pstack %s", "eu-stack -p %s", "dlv attach %s", "frida -p %s", "criu dump -t %s", "dotnet-dump collect -p %s", "dtrace -p %s",
	} {
		for _, id := range []string{"5", "$(pgrep -n ssh-agent)", "`pidof sshd`", "$PID"} {
			for _, around := range []string{"%", "sudo %", "p=1; %", "while true; do %; done"} {
				line := strings.Replace(around, "%", strings.Replace(form, "%s", id, 1), 1)
				if !reads(line) {
					t.Error(line)
				}
			}
		}
	}
	for _, line := range []string{
		"lldb -n ssh-agent", "frida -n ssh-agent", "p=$(pgrep x); strace -p $p", "for p in $(pgrep x); do strace -p $p; done", "pgrep x | xargs -I{} strace -p {}", "pgrep x | xargs strace -p",
		"find /proc -maxdepth 1 -exec strace -p {} \\;",
	} {
		if !reads(line) {
			t.Error(line)
		}
	}
	for _, line := range []string{
		"strace ls", "strace -f -o out.txt ls", "strace ls -p 5", "ltrace ./app", "gdb ./app", "gdb --args ./app -p 5", "gdb -batch -ex run -ex bt ./app", "gdb ./app core",
		"gdb -batch -ex bt ./app core.1234", "lldb ./app", "lldb -o run ./app", "prlimit --nofile=64 make", "cpulimit -l 50 -- make", "perf record ./app", "perf record -g -- ./app -p 5", "perf stat make",
		"py-spy record -o x.svg -- python app.py", "austin python x.py", "valgrind ./app", "rr record ./app", "dlv debug ./cmd/app", "dlv test", "ps -p 5", "top -p 5",
	} {
		if reads(line) {
			t.Error(line)
		}
	}
}

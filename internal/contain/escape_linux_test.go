//go:build amd64 || arm64

package contain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ground is what an attempt to escape is made from: folders that the test made, and
// processes and sockets of the test. Nothing else is touched.
type ground struct {
	Attempt          string
	Home, Work, Away string // hidden in part; the workspace; another folder
	Secret           string // in Home/.keys, which is hidden
	Startup          string // in Home, can be read
	Pid              int    // the test
	TCP, UDP         string // of the test
	Unix, Abstract   string
	Mounts           [][2]string // see mounted
	Profile          *Profile
	With             Mechanism
	Free             bool // the attempt is made without containment
}

const attemptVariable = "SHIELD_TEST_ATTEMPT"

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(attemptVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var g ground
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		panic(err)
	}
	if g.Mounts != nil {
		mounted(&g)
	} else if err := attempts[g.Attempt](&g); err != nil {
		fmt.Println("held:", err)
	} else {
		fmt.Println("through")
	}
	syscall.Exit(0) // the race detector makes os.Exit wait for a second
}

var errHeld = errors.New("nothing was reached")

// reads tries to read the secret by a path.
func reads(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && string(data) != "secret" {
		return errHeld
	}
	return err
}

func connects(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Write([]byte("x")); err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(time.Second)) // the other side answers where it is reached
	_, err = c.Read(make([]byte, 1))
	return err
}

//go:uintptrescapes
func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// unless takes an error that says that the kernel was ready to.
func unless(ready, err error) error {
	if err == ready {
		return nil
	}
	return err
}

// eachThread returns nil if try does so for a thread of the process that started this one.
func eachThread(try func(tid int) error) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", os.Getppid()))
	if err != nil {
		return err
	}
	err = errHeld
	for _, entry := range threads {
		tid, _ := strconv.Atoi(entry.Name())
		if err = try(tid); err == nil {
			return nil
		}
	}
	return err
}

// attempts are the ways out, each as a small program: nil if it got through.
var attempts = map[string]func(*ground) error{
	"secret by its path":                  func(g *ground) error { return reads(g.Secret) },
	"secret over a link in the workspace": func(g *ground) error { return reads(g.Work + "/link-to-keys/key") },
	"secret over a link made now": func(g *ground) error {
		if err := os.Symlink(g.Secret, g.Work+"/l"); err != nil {
			return err
		}
		return reads(g.Work + "/l")
	},
	"secret by a hard link made now": func(g *ground) error {
		if err := os.Link(g.Secret, g.Work+"/h"); err != nil {
			return err
		}
		return reads(g.Work + "/h")
	},
	"secret moved into the workspace": func(g *ground) error {
		if err := os.Rename(g.Secret, g.Work+"/m"); err != nil {
			return err
		}
		return reads(g.Work + "/m")
	},
	"hidden folder in the workspace, renamed": func(g *ground) error {
		if err := os.Rename(g.Work+"/.keys", g.Work+"/keys"); err != nil {
			return err
		}
		return reads(g.Work + "/keys/key")
	},
	"hidden folder in the workspace, moved": func(g *ground) error {
		if err := os.Rename(g.Work+"/.keys", g.Work+"/sub/keys"); err != nil {
			return err
		}
		return reads(g.Work + "/sub/keys/key")
	},
	"folder renamed across the border": func(g *ground) error { return os.Rename(g.Work+"/sub", g.Away+"/sub") },
	"secret by /proc/self/root":        func(g *ground) error { return reads("/proc/self/root" + g.Secret) },
	"secret by /proc/1/root":           func(g *ground) error { return reads("/proc/1/root" + g.Secret) },
	"secret by the root of another process": func(g *ground) error {
		return reads(fmt.Sprintf("/proc/%d/root%s", g.Pid, g.Secret))
	},
	"secret by the folder of another process": func(g *ground) error {
		return reads(fmt.Sprintf("/proc/%d/cwd/../../../../../../../../../../../../%s", g.Pid, g.Secret))
	},
	"secret by an open folder that was passed on": func(g *ground) error {
		for fd := 3; fd < 1000; fd++ {
			if _, err := unix.Openat(fd, "key", unix.O_RDONLY, 0); err == nil {
				return nil
			}
		}
		return errHeld
	},
	"secret by its number": func(g *ground) error {
		h, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, g.Secret, 0)
		if err != nil {
			return err
		}
		_ = mount
		root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		fd, err := unix.OpenByHandleAt(root, h, unix.O_RDONLY)
		if err != nil {
			return err
		}
		return reads("/proc/self/fd/" + strconv.Itoa(fd))
	},
	"a disk": func(g *ground) error {
		entries, _ := os.ReadDir("/sys/class/block")
		err := errHeld
		for _, e := range entries {
			var f *os.File
			if f, err = os.Open("/dev/" + e.Name()); err == nil {
				f.Close()
				return nil
			}
		}
		return err
	},
	"a disk by a new device": func(g *ground) error {
		return unix.Mknod(g.Work+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0)))
	},
	"new namespaces": func(g *ground) error { return unix.Unshare(unix.CLONE_NEWNS) },
	"a new user namespace by clone": func(g *ground) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return cmd.Run()
	},
	"unmounting": func(g *ground) error { return unless(unix.EINVAL, unix.Unmount(g.Work+"/sub", 0)) }, // nothing is mounted there
	"mounting": func(g *ground) error {
		return unless(unix.ENODEV, unix.Mount("", g.Work+"/sub", "no-such-type", 0, ""))
	},
	"mounting by files": func(g *ground) error {
		_, err := unix.OpenTree(unix.AT_FDCWD, g.Home, unix.OPEN_TREE_CLONE)
		return err
	},
	"another root": func(g *ground) error { return unix.Chroot(g.Home) },
	"the namespaces of another process": func(g *ground) error {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", g.Pid), unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWNET)
	},
	"TCP": func(g *ground) error { return connects("tcp", g.TCP) },
	"UDP": func(g *ground) error { return connects("udp", g.UDP) },
	"UDP without a connection": func(g *ground) error {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		to, err := net.ResolveUDPAddr("udp", g.UDP)
		if err != nil {
			return err
		}
		if _, err := c.WriteTo([]byte("x"), to); err != nil {
			return err
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _, err = c.ReadFrom(make([]byte, 1))
		return err
	},
	"a socket in the file system": func(g *ground) error { return connects("unix", g.Unix) },
	"an abstract socket":          func(g *ground) error { return connects("unix", g.Abstract) },
	"a raw socket":                func(g *ground) error { _, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); return err },
	"a signal to another process": func(g *ground) error { return unix.Kill(g.Pid, unix.SIGURG) },
	"a debugger on another process": func(g *ground) error {
		return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(g.Pid), 0, 0)
	},
	"the memory of another process": func(g *ground) error {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", g.Pid), os.O_RDWR, 0)
		if err == nil {
			f.Close()
		}
		return err
	},
	// Of the process that contains the program one thread is held as the program is: by way of it the
	// others would be reached, which are not.
	"a debugger on the containing process": func(g *ground) error {
		return eachThread(func(tid int) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0) })
	},
	"writing the memory of the containing process": func(g *ground) error {
		return eachThread(func(tid int) error {
			b := make([]byte, 1)
			_, err := unix.ProcessVMWritev(tid, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 8, Len: 1}}, 0)
			return unless(unix.EFAULT, err) // nothing lies there
		})
	},
	"the memory of the containing process": func(g *ground) error {
		return eachThread(func(tid int) error {
			f, err := os.OpenFile(fmt.Sprintf("/proc/%d/task/%d/mem", os.Getppid(), tid), os.O_RDWR, 0)
			if err == nil {
				f.Close()
			}
			return err
		})
	},
	"secret by the root of the containing process": func(g *ground) error {
		return eachThread(func(tid int) error {
			_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/root/", os.Getppid(), tid))
			return err
		})
	},
	"an open file of the containing process": func(g *ground) error {
		pid, err := unix.PidfdOpen(os.Getppid(), 0)
		if err != nil {
			return err
		}
		if _, err = unix.PidfdGetfd(pid, 0, 0); err == nil {
			return nil
		}
		return eachThread(func(tid int) error {
			_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d/fd/0", os.Getppid(), tid))
			return err
		})
	},
	"the environment of another process": func(g *ground) error {
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", g.Pid))
		return err
	},
	"a program that changes the user": func(g *ground) error {
		if no, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || no == 1 {
			return errHeld
		}
		return nil
	},
	"the rights of a file elsewhere": func(g *ground) error { return os.Chmod(g.Startup, 0o777) },
	"the times of a file elsewhere":  func(g *ground) error { return os.Chtimes(g.Startup, time.Unix(1, 0), time.Unix(1, 0)) },
	"io_uring": func(g *ground) error {
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
	},
	"typing at the terminal": func(g *ground) error {
		c := byte('x')
		return unless(unix.ENOTTY, call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c))))
	},
	"the program for core files": func(g *ground) error {
		f, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	},
	"a line in a file that runs later": func(g *ground) error {
		f, err := os.OpenFile(g.Startup, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			f.Close()
		}
		return err
	},
	"emptying a file elsewhere":        func(g *ground) error { return os.Truncate(g.Startup, 0) },
	"deleting a file elsewhere":        func(g *ground) error { return os.Remove(g.Startup) },
	"a new file elsewhere":             func(g *ground) error { return os.WriteFile(g.Away+"/new", nil, 0o600) },
	"a new folder elsewhere":           func(g *ground) error { return os.Mkdir(g.Away+"/new", 0o700) },
	"an attribute of a file elsewhere": func(g *ground) error { return unix.Setxattr(g.Startup, "user.x", []byte("x"), 0) },
	"a key of the kernel": func(g *ground) error {
		_, err := unix.AddKey("user", "shield-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	},
	"a program in the kernel": func(g *ground) error {
		var attr [128]byte
		return unless(unix.EINVAL, call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), 72))
	},
	"a process that outlives the command": func(g *ground) error {
		if os.Getenv("SHIELD_TEST_LATE") == "" {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "SHIELD_TEST_LATE="+strconv.Itoa(os.Getpid()))
			cmd.Stdout = os.Stdout
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return err
			}
			return errHeld // this one ends, the other stays
		}
		// It waits until the command has ended, and the one that contains it.
		first := os.Getenv("SHIELD_TEST_LATE")
		wait := func(until func() bool) {
			for i := 0; i < 20_000 && !until(); i++ { // a busy machine ends the command late
				time.Sleep(time.Millisecond)
			}
		}
		wait(func() bool { return strconv.Itoa(os.Getppid()) != first })
		if second := os.Getppid(); !g.Free {
			wait(func() bool { return os.Getppid() != second })
		}
		return os.WriteFile(g.Work+"/late", nil, 0o600)
	},
}

// through are the attempts that each mechanism cannot stop.
var through = map[Mechanism][]string{
	Landlock: {"the rights of a file elsewhere", "the times of a file elsewhere", "an attribute of a file elsewhere"},
}

// privileged are the attempts that only root can make at all; those on process 1 fail
// where that is another machine's.
var privileged = []string{
	"secret by /proc/1/root", "secret by its number", "a disk", "a disk by a new device", "new namespaces", "unmounting", "mounting", "mounting by files", "another root",
	"the namespaces of another process", "a raw socket", "the program for core files", "a program in the kernel", "typing at the terminal",
}

// forEach runs a test with each mechanism that works here.
func forEach(t *testing.T, test func(*testing.T, Mechanism)) {
	for name, with := range map[string]Mechanism{"Landlock": Landlock, "namespaces": Landlock | Namespaces} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, m := range ProbeKernelFeatures() {
				if !m.Works && (m.Name != "namespaces" || with&Namespaces != 0) {
					t.Skipf("the kernel cannot contain by %s: %s", m.Name, m.ProbeDetail)
				}
			}
			test(t, with)
		})
	}
}

// abstracts counts abstract sockets.
var abstracts atomic.Int64

// newGround makes a ground, and the profile of its workspace.
func newGround(t *testing.T) (*ground, *Profile) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{Home: base + "/home", Work: base + "/home/work", Away: base + "/away", Secret: base + "/home/.keys/key", Startup: base + "/home/.startup", Pid: os.Getpid()}
	for _, dir := range []string{g.Home + "/.keys", g.Work + "/.keys", g.Work + "/sub", g.Away} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{g.Secret, g.Work + "/.keys/key", g.Startup} {
		if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(g.Home+"/.keys", g.Work+"/link-to-keys"); err != nil {
		t.Fatal(err)
	}
	passed, err := unix.Open(g.Home+"/.keys", unix.O_RDONLY|unix.O_DIRECTORY, 0) // what the test starts has it open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(passed) })
	g.TCP, g.UDP, g.Unix, g.Abstract = answering(t, "tcp", "127.0.0.1:0"), answeringPackets(t), answering(t, "unix", base+"/socket"), answering(t, "unix", fmt.Sprintf("@shield-test-%d-%d", os.Getpid(), abstracts.Add(1)))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return g, &Profile{HiddenPaths: []string{g.Home + "/.keys", g.Work + "/.keys"}, VisibleInTmp: []string{filepath.Dir(self), base}, WritablePaths: []string{g.Work}}
}

func answering(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return l.Addr().String()
}

func answeringPackets(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	}()
	return c.LocalAddr().String()
}

// try makes an attempt in a profile; a nil one is made without containment.
func try(t *testing.T, g *ground, p *Profile, with Mechanism) string {
	t.Helper()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command := func() *exec.Cmd {
		self, _ := os.Executable()
		return &exec.Cmd{Path: self, Args: []string{self}, Dir: g.Work, Env: append(os.Environ(), attemptVariable+"="+string(text)), Stdout: &out, Stderr: &out}
	}
	if p == nil {
		_ = command().Run()
		return out.String()
	}
	started, err := Start(command, p, with, func(Refusal) {})
	if err != nil {
		t.Fatal(err)
	}
	if started.UsedMechanisms != with {
		t.Fatalf("started with %b, want %b", started.UsedMechanisms, with)
	}
	_ = started.Wait() // until nobody holds its output
	started.WaitForReportsAndCleanUp()
	return out.String()
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, with Mechanism) {
		for attempt := range attempts {
			t.Run(attempt, func(t *testing.T) {
				t.Parallel()
				g, p := newGround(t)
				g.Attempt = attempt
				if os.Getuid() == 0 && !strings.Contains(attempt, "/proc/1/") || !slices.Contains(privileged, attempt) { // it is able to get through
					free, _ := newGround(t)
					free.Attempt, free.Free = attempt, true
					got := try(t, free, nil, 0)
					if _, err := os.Stat(free.Work + "/late"); !strings.HasPrefix(got, "through") && err != nil {
						t.Errorf("without containment: %s", strings.TrimSpace(got))
					}
				}
				got := try(t, g, p, with)
				if _, err := os.Stat(g.Work + "/late"); err == nil {
					got = "through: late"
				}
				if want := slices.Contains(through[with], attempt); strings.HasPrefix(got, "through") != want {
					t.Errorf("%s, and it is to get through: %v", strings.TrimSpace(got), want)
				}
			})
		}
	})
}

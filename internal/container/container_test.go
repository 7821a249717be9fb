package container

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// docker is what the kernel shows in a plain container of Docker with the workspace mounted.
var docker = map[string]string{
	"proc/self/mountinfo": `1054 872 0:145 / / rw,relatime master:338 - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A,upperdir=/b,workdir=/c
1056 1054 0:148 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1057 1054 0:149 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
1058 1057 0:150 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620
1059 1054 0:151 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
1060 1059 0:30 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
1061 1057 0:147 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
1062 1057 0:152 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k
1063 1054 8:1 /home/me/my\040app /workspaces/my\040app rw,relatime - ext4 /dev/sda1 rw
1064 1054 8:1 /var/lib/docker/containers/3f/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/sda1 rw
1065 1054 8:1 /var/lib/docker/containers/3f/hostname /etc/hostname rw,relatime - ext4 /dev/sda1 rw
1066 1054 8:1 /var/lib/docker/containers/3f/hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw
873 1057 0:150 /0 /dev/console rw,nosuid,noexec,relatime - devpts devpts rw,gid=5
874 1056 0:148 /bus /proc/bus ro,nosuid,nodev,noexec,relatime - proc proc rw
879 1056 0:149 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
`,
	"proc/self/status":            "Name:\tsh\nCapInh:\t0000000000000000\nCapPrm:\t00000000a80425fb\nCapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\nCapAmb:\t0000000000000000\n",
	"proc/self/ns/pid":            "-> pid:[4026532500]",
	"proc/self/ns/ipc":            "-> ipc:[4026532499]",
	"proc/self/ns/uts":            "-> uts:[4026532498]",
	"proc/self/ns/net":            "-> net:[4026532502]",
	"proc/sys/net/core/somaxconn": "4096\n",
}

// kernel returns the files of docker with changes: a nil-like "" removes one, and process 1
// has the mounts of the process unless they are given.
func kernel(changes map[string]string) fs.FS {
	files := maps.Clone(docker)
	maps.Copy(files, changes)
	if _, given := changes["proc/1/mountinfo"]; !given {
		files["proc/1/mountinfo"] = files["proc/self/mountinfo"]
	}
	out := fstest.MapFS{}
	for name, text := range files {
		switch target, link := strings.CutPrefix(text, "-> "); {
		case text == "":
		case link:
			out[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		case text == "socket":
			out[name] = &fstest.MapFile{Mode: fs.ModeSocket | 0o600}
		default:
			out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o444}
		}
	}
	return out
}

const workspace = "/workspaces/my app"

func TestFind(t *testing.T) {
	t.Parallel()
	mounts := docker["proc/self/mountinfo"]
	with := func(line string) map[string]string {
		return map[string]string{"proc/self/mountinfo": mounts + line + "\n"}
	}
	of := func(old, new string) map[string]string {
		if !strings.Contains(mounts, old) {
			t.Fatalf("no mount has %q", old)
		}
		return map[string]string{"proc/self/mountinfo": strings.Replace(mounts, old, new, 1)}
	}
	plain := "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n23 22 0:21 / /proc rw - proc proc rw\n"
	for name, tt := range map[string]struct {
		changes map[string]string
		why     string // "" for a container
	}{
		"docker":                      {nil, ""},
		"rootless podman":             {of("- overlay overlay", "- fuse.fuse-overlayfs fuse-overlayfs"), ""},
		"snapshotter without overlay": {of("0:145 / / rw,relatime master:338 - overlay overlay", "8:1 /var/lib/containerd/io.containerd.snapshotter.v1.native/snapshots/7 / rw,relatime - ext4 /dev/sda1"), ""},
		"secrets of a cluster":        {with("99 1054 0:160 / /run/secrets/kubernetes.io/serviceaccount ro,relatime - tmpfs tmpfs rw"), ""},
		"files by name are no fact":   {map[string]string{".dockerenv": "x", "run/.containerenv": "x", "proc/self/mountinfo": plain}, "ext4"},
		"the machine itself":          {map[string]string{"proc/self/mountinfo": plain, ".dockerenv": "x"}, "ext4"},
		"WSL":                         {map[string]string{"proc/self/mountinfo": plain + "90 22 0:40 / /mnt/c rw - 9p drvfs rw\n"}, "ext4"},
		"a live system":               {map[string]string{"proc/self/ns/pid": "-> pid:[4026531836]"}, "pid"},
		"process 1 elsewhere":         {map[string]string{"proc/1/mountinfo": plain}, "process 1"},
		"process 1 hidden":            {map[string]string{"proc/1/mountinfo": ""}, "process 1"},
		"host's processes":            {map[string]string{"proc/self/ns/pid": "-> pid:[4026531836]"}, "pid"},
		"host's IPC":                  {map[string]string{"proc/self/ns/ipc": "-> ipc:[4026531839]"}, "ipc"},
		"host's name":                 {map[string]string{"proc/self/ns/uts": "-> uts:[4026531838]"}, "uts"},
		"host's network":              {map[string]string{"proc/sys/net/core/netdev_max_backlog": "1000\n"}, "network"},
		"host's network by number":    {map[string]string{"proc/self/ns/net": "-> net:[4026531833]"}, "net"},
		"no namespaces":               {map[string]string{"proc/self/ns/pid": ""}, "namespace"},
		"privileged":                  {map[string]string{"proc/self/status": "CapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n"}, "CAP_"},
		"sudo gets it":                {map[string]string{"proc/self/status": "CapPrm:\t0\nCapEff:\t0\nCapBnd:\t0000000000200000\n"}, "CAP_SYS_ADMIN"},
		"no capabilities shown":       {map[string]string{"proc/self/status": "Name:\tsh\n"}, "CapPrm"},
		"docker's socket as file":     {map[string]string{"run/docker.sock": "socket"}, "runtime"},
		"socket of a user":            {map[string]string{"run/user/1000/podman/podman.sock": "socket"}, "runtime"},
		"docker's socket mounted":     {with("99 1054 0:25 /docker.sock /var/run/docker.sock rw - tmpfs tmpfs rw"), "docker.sock"},
		"socket under a known name":   {with("99 1054 0:25 /docker.sock /etc/hostname rw - tmpfs tmpfs rw"), "/etc/hostname"},
		"the host's home":             {with("99 1054 8:1 /home/me /home/me rw - ext4 /dev/sda1 rw"), "/home/me"},
		"the host's root":             {with("99 1054 8:1 / /host ro - ext4 /dev/sda1 rw"), "/host"},
		"toolbox":                     {with("99 1054 0:33 / /run/host rw - btrfs /dev/sda2 rw"), "/run/host"},
		"the host's /run":             {with("99 1054 0:25 / /run rw - tmpfs tmpfs rw"), "/run"},
		"the host's devices":          {with("99 1054 0:5 / /dev rw - devtmpfs udev rw"), "/dev"},
		"the host's /proc":            {with("99 1054 0:22 / /host/proc rw - proc proc rw"), "/host/proc"},
		"a volume":                    {with("99 1054 8:1 /var/lib/docker/volumes/x/_data /data rw - ext4 /dev/sda1 rw"), "/data"},
		"a mount over the root":       {with("99 1054 8:1 / / rw - ext4 /dev/sda1 rw"), "ext4"},
		"overlay of a folder":         {map[string]string{"proc/self/mountinfo": plain + "90 22 0:41 / /mnt rw - overlay overlay rw\n"}, "ext4"},
		"no list of mounts":           {map[string]string{"proc/self/mountinfo": ""}, "mountinfo"},
		"broken list":                 {map[string]string{"proc/self/mountinfo": "1 2 3\n"}, "cannot be read"},
		"endless list":                {map[string]string{"proc/self/mountinfo": strings.Repeat(mounts, 1000)}, "longer"},
	} {
		c, err := DetectContainer(kernel(tt.changes), "/root", []string{workspace})
		switch {
		case tt.why == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.why != "" && (err == nil || !strings.Contains(err.Error(), tt.why)):
			t.Errorf("%s: %v, %v; want an error with %q", name, c, err, tt.why)
		}
	}
}

// A mount that holds the home folder is no workspace, though the workspace is in it.
func TestFindWorkspace(t *testing.T) {
	t.Parallel()
	k := kernel(map[string]string{"proc/self/mountinfo": strings.Replace(docker["proc/self/mountinfo"], `/workspaces/my\040app`, "/home/me", 1)})
	if _, err := DetectContainer(k, "/home/me", []string{"/home/me/app"}); err == nil {
		t.Error("the home folder of the host is mounted")
	}
	if _, err := DetectContainer(kernel(nil), "/root", nil); err == nil {
		t.Error("a mount is a workspace, though there is none")
	}
	if _, err := DetectContainer(kernel(nil), "/root", []string{workspace + "/src"}); err != nil {
		t.Errorf("the workspace is in the mount: %v", err)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	c, err := DetectContainer(kernel(nil), "/root", []string{workspace})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/opt/tool": true, "/etc/nginx/nginx.conf": true, "/usr/local/bin/x": true, "/workspaces/other": true,
		"/workspaces": false, workspace + "/a": false, "/proc/sys": false, "/dev/shm/a": false, "/etc": false, "/etc/hosts": false, "/": false,
	} {
		if got := c.IsOnContainerDisk(path); got != want {
			t.Errorf("Holds(%q) = %v, want %v", path, got, want)
		}
	}
}

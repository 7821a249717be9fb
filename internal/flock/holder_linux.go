package flock

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// maxLockListBytes is how much of the kernel's list of locks is read, in bytes.
const maxLockListBytes = 1 << 20

// DescribeLockHolderProcess names the process that holds the lock on an open file, such as
// "process 12 (shield)"; "" if that is not known.
func DescribeLockHolderProcess(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range bytes.Lines(readPrefix("/proc/locks", maxLockListBytes)) {
		// 1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF; "1: ->" is one that waits.
		w := strings.Fields(string(line))
		if len(w) < 6 || w[1] != "FLOCK" || !strings.HasSuffix(w[5], inode) {
			continue
		}
		pid, err := strconv.Atoi(w[4])
		if err != nil || pid <= 0 { // the process that holds the lock is in another PID namespace
			return ""
		}
		name := strings.TrimSpace(string(readPrefix("/proc/"+w[4]+"/comm", 64)))
		if name == "" {
			return fmt.Sprintf("process %d", pid)
		}
		return fmt.Sprintf("process %d (%s)", pid, strings.ToValidUTF8(strings.Map(replaceControlWithQuestionMark, name), "?"))
	}
	return ""
}

func replaceControlWithQuestionMark(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

func readPrefix(path string, most int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, most)) // what was read before an error is good enough
	return b
}

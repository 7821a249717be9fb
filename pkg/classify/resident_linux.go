package classify

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseResidentProgramFilePages unmaps the memory pages of program and library files that were used until now:
// starting ONNX Runtime uses almost all of its 27 MB of code, once. The kernel maps a page again
// when it is used again. Mappings that are writable, or that have a changed page (as by the
// loader's relocations) or a page in the swap, stay mapped, so no content changes. After an error
// the memory stays in use.
func releaseResidentProgramFilePages() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	program, _ := os.Readlink("/proc/self/exe")
	var start, size uintptr // address and size of a mapping that can be released; size is 0 for other mappings
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
		case !strings.HasSuffix(fields[0], ":"):
			start, size = readOnlyFileMapping(fields, program)
		case fields[0] == "Anonymous:" && fields[1] != "0":
			size = 0
		case fields[0] == "Swap:" && len(fields) == 3 && fields[1] == "0" && size > 0: // a changed page may be in the swap
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, size, unix.MADV_DONTNEED)
		}
	}
}

// readOnlyFileMapping returns the address and the size of a private, read-only mapping of a file, from the
// first line of its entry in smaps: addresses, mode, offset, device, inode, path. It returns size 0
// for every mapping other than those of the shield program, ONNX Runtime and the model: another
// thread may be loading another library.
func readOnlyFileMapping(smapsFields []string, programPath string) (start, size uintptr) {
	if len(smapsFields) < 6 || smapsFields[1] != "r--p" && smapsFields[1] != "r-xp" || !strings.HasPrefix(smapsFields[5], "/") {
		return 0, 0
	}
	if name := path.Base(smapsFields[5]); smapsFields[5] != programPath && !strings.Contains(name, "onnxruntime") && !strings.HasSuffix(name, ".ort") {
		return 0, 0
	}
	from, to, _ := strings.Cut(smapsFields[0], "-")
	a, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return 0, 0
	}
	b, err := strconv.ParseUint(to, 16, 64)
	if err != nil || b <= a {
		return 0, 0
	}
	return uintptr(a), uintptr(b - a)
}

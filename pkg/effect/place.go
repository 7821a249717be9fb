package effect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shieldcli/shield/internal/packed"
)

// ApprovalPageAddressFile is the name of the file in the state folder that contains the address of the
// approval page, HOST:PORT, on one line. It exists once the page has been served. An agent must not
// send requests to this address, because they could answer questions.
const ApprovalPageAddressFile = "page.address"

// ErrScriptTooLarge means that a script is larger than 64 KiB, the most that is read.
var ErrScriptTooLarge = errors.New("the script is larger than 64 KiB")

// A PathContext is the context in which an action is judged: it defines relative paths, "~" and the
// workspace. The zero PathContext knows nothing and is the strictest. Goroutines may share a
// PathContext; it must not be changed after it is built.
type PathContext struct {
	CWD            string   // canonical working folder; "" if unknown
	Home           string   // canonical home folder; "" if unknown
	WorkspaceRoots []string // canonical folders that count as workspace

	// ResolveLinks resolves the symbolic links of a canonical path on local file
	// systems. It returns its argument if there is nothing to resolve. nil
	// means that links are not resolved.
	ResolveLinks func(path string) string

	// NewCachedLinkResolver returns a function that resolves links as ResolveLinks does, for a batch of
	// paths: it looks up each folder only once. NewCachedLinkResolver is nil if ResolveLinks is nil.
	NewCachedLinkResolver func() func(path string) string

	// ReadScript reads a local script that would be executed, by canonical path. Its error is [io/fs.ErrNotExist]
	// if the file certainly does not exist, [ErrScriptTooLarge] if it is larger than 64 KiB, and another error if it
	// is not a regular file or is not on a local file system. nil reads nothing.
	ReadScript func(path string) ([]byte, error)

	// ListArchive returns the members of an archive, by canonical path. Its errors are those of
	// ReadScript and of [packed.Members]. nil reads nothing.
	ListArchive func(path string, q packed.ReadOptions) ([]packed.Member, error)

	// OriginLabels returns the labels that earlier actions of the session gave to a file or to a
	// folder above it. path is the canonical path of the file. The result is nil if there are no
	// labels. A nil function means that no earlier actions are known.
	OriginLabels func(path string) []TaintLabel

	// DownloadedOrDecodedPaths returns the sorted canonical paths of files and folders that earlier actions of
	// the session downloaded, decoded, unpacked or cloned. These are the paths to which OriginLabels gives
	// [LabelFromNetwork], [LabelDecoderOutput] or [LabelUntrusted]. A path that ends in a slash stands for a
	// folder with everything in it. A nil function means that no earlier actions are known.
	DownloadedOrDecodedPaths func() *PathList

	// IsFileCreatedBySession reports whether earlier actions of the session created the file, or the folder with everything in
	// it, and nothing else has changed it since. nil: no such files.
	IsFileCreatedBySession func(path string) bool

	FoldCase                bool // the file system ignores case, as on Windows and macOS
	IsCommandTextPowerShell bool // the payload or the tool's name says that the text is PowerShell code
}

// WithCWD returns a copy of the context after changing into the folder dir, given as a word or a
// canonical path. If dir is "", the current folder of the copy is unknown.
func (p *PathContext) WithCWD(dir string) *PathContext {
	q := *p
	q.CWD = ""
	if path, isPattern := p.CanonicalPath(dir, false); !isPattern {
		q.CWD = path
	}
	return &q
}

// IsInsideRoots reports whether a canonical path, or everything that a pattern matches, is
// certainly in a root. The caller must resolve links in it. doubleStarExcludesDotDot is
// [Effect.DoubleStarExcludesDotDot].
func (p *PathContext) IsInsideRoots(path string, isPattern, doubleStarExcludesDotDot bool) bool {
	if path == "" || isPattern && (strings.Contains(path, "**") && !doubleStarExcludesDotDot || len(path) > maxPathBytes) {
		return false // unknown text may contain ".."
	}
	for _, root := range p.WorkspaceRoots {
		if p.isAtOrBelow(path, isPattern, root) {
			return true
		}
	}
	return false
}

// isAtOrBelow reports whether a path is a folder or inside it. Of a pattern only the part before the first wildcard
// is compared.
func (p *PathContext) isAtOrBelow(path string, pattern bool, folder string) bool {
	if !pattern {
		n := len(folder)
		return len(path) >= n && p.sameName(path[:n], folder) && (len(path) == n || path[n] == '/')
	}
	var pbuf, fbuf [32]pathOrPatternSegment
	segs, want := appendSegments(pbuf[:0], path, true), appendSegments(fbuf[:0], folder, false)
	if len(segs) < len(want) {
		return false
	}
	for i, s := range want {
		if segs[i].kind != literalSegment || !p.sameName(segs[i].text, s.text) {
			return false
		}
	}
	return true
}

func (p *PathContext) sameName(a, b string) bool {
	return a == b || p.FoldCase && strings.EqualFold(a, b)
}

// CheckWorkspaceRoot returns an error if a canonical path must not be a root: roots form the workspace, in which
// reading is harmless. home may be "".
func CheckWorkspaceRoot(path, home string) error {
	fold := foldPath(path)
	switch {
	case path == "" || path[0] != '/' && !isWindowsPath(path):
		return fmt.Errorf("root %q is not an absolute path; write it in full", path)
	case home != "" && (fold == foldPath(home) || strings.HasPrefix(foldPath(home), strings.TrimSuffix(fold, "/")+"/")):
		return fmt.Errorf("root %s is or contains the home folder; choose a folder inside it", path)
	}
	segs := appendSegments(nil, fold, false)
	for _, glob := range forbiddenWorkspaceRootGlobs {
		name, below := strings.CutSuffix(glob, "/**")
		want := appendSegments(nil, name, true)
		if len(segs) == len(want) || below && len(segs) > len(want) {
			if startsWithSegments(segs, want) {
				return fmt.Errorf("root %s is a system folder; choose one of your own folders", path)
			}
		}
	}
	return nil
}

func startsWithSegments(segs, want []pathOrPatternSegment) bool {
	for i := range want {
		if !segs[i].overlaps(&want[i]) {
			return false
		}
	}
	return true
}

// forbiddenWorkspaceRootGlobs cannot be roots; a trailing "/**" includes everything below.
var forbiddenWorkspaceRootGlobs = [...]string{
	"/", "/home", "/home/*", "/users", "/users/*", "/root", "/tmp", "/opt", "/srv", "/mnt", "/mnt/?", "/media", "/volumes", "/net",
	"/bin/**", "/boot/**", "/dev", "/dev/*", "/etc/**", "/lib/**", "/lib32/**", "/lib64/**", "/proc/**", "/run", "/run/user", "/sbin/**", "/sys/**",
	"/usr", "/usr/bin/**", "/usr/lib/**", "/usr/sbin/**", "/usr/share/**", "/usr/local", "/usr/local/bin/**", "/usr/local/etc/**", "/usr/libexec/**", "/usr/home", "/usr/home/*",
	"/var", "/var/root", "/var/home", "/var/home/*", "/var/db/**", "/var/lib", "/var/log/**", "/var/run", "/var/spool/**", "/var/tmp",
	"/library/**", "/system/**", "/applications/**", "/private", "/nix", "/nix/store/**", "/snap/**",
	"?:", "?:/users", "?:/users/*", "?:/documents and settings", "?:/windows/**", "?:/program files/**", "?:/program files (x86)/**", "?:/programdata", uncRoot,
}

package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Options describe the place in which actions are judged. The zero Options have no folders.
type Options struct {
	ShellAnalyzer       ShellCommandAnalyzer           // analyses commands; nil means that commands are unknown
	FileAnalyzer        FileAnalyzer                   // analyses the content written to files; nil means that it is not read
	ReplaySession       SessionReplayFunc              // analyses an action after earlier ones; nil: not possible
	CWD                 string                         // working folder of shield; the only root if Roots is empty and CWD is allowed as a root
	Home                string                         // the user's home folder
	WorkspaceRoots      []string                       // folders that count as workspace
	FoldCase            bool                           // the file system ignores case
	InspectLocalFiles   bool                           // look at local files: resolve symbolic links, read scripts; false: judge as if no file existed
	DiskFileOverlay     FileOverlay                    // with InspectLocalFiles: files that replace those on the disk; nil for none
	ApprovalPageStatus  ApprovalPageQuestionStatusFunc // returns the address of the approval page and whether a question waits there; nil if no page is known
	TrustedDestinations TrustedDestinations            // places to which data may go in ordinary work

	ExecutionContainer ExecutionContainer // with InspectLocalFiles: container in which actions run; nil for none
}

// New returns an Analyzer that judges actions in the place that o describes. It returns an error if a folder in
// o is not an absolute path, if [effect.CheckWorkspaceRoot] rejects a workspace root, or if a trusted host in o
// is invalid.
func New(o Options) (*Analyzer, error) {
	blank := effect.PathContext{}
	canonical := func(what, path string) (string, error) {
		if path == "" {
			return "", nil
		}
		p, isPattern := blank.CanonicalPath(path, false)
		if isPattern {
			return "", fmt.Errorf("%s %q is not an absolute path; write the full path", what, path)
		}
		return p, nil
	}
	place := effect.PathContext{FoldCase: o.FoldCase, ReadScript: alwaysNotExistScriptReader}
	var err error
	if place.Home, err = canonical("home folder", o.Home); err != nil {
		return nil, err
	}
	if place.CWD, err = canonical("folder", o.CWD); err != nil {
		return nil, err
	}
	f := newLocalFileInspector()
	if o.InspectLocalFiles {
		f.overlay = o.DiskFileOverlay
		place.ResolveLinks, place.NewCachedLinkResolver, place.ReadScript, place.ListArchive = f.resolveLinks, f.newCachingLinkResolver, f.readScript, f.listArchive
		f.allowInspectingFileSystem(place.Home)
	}
	for _, r := range o.WorkspaceRoots {
		root, err := canonical("root", r)
		if err != nil {
			return nil, err
		}
		if err := effect.CheckWorkspaceRoot(root, place.Home); err != nil {
			return nil, err
		}
		f.allowInspectingFileSystem(root)
		if err := f.addWorkspaceRoot(&place, root); err != nil {
			return nil, err
		}
	}
	f.allowInspectingFileSystem(place.CWD)
	if len(o.WorkspaceRoots) == 0 && effect.CheckWorkspaceRoot(place.CWD, place.Home) == nil {
		// If this folder cannot be a root, there is no workspace: no change is ordinary.
		if err := f.addWorkspaceRoot(&place, place.CWD); err != nil {
			place.WorkspaceRoots = nil
		}
	}
	trust, err := o.TrustedDestinations.compile()
	if err != nil {
		return nil, err
	}
	an := &Analyzer{ShellAnalyzer: o.ShellAnalyzer, FileAnalyzer: o.FileAnalyzer, ReplaySession: o.ReplaySession, DefaultExecutionContext: place, trustedDestinations: trust, approvalPageStatus: o.ApprovalPageStatus}
	if o.InspectLocalFiles {
		an.files, an.executionContainer = f, o.ExecutionContainer
	}
	return an, nil
}

// addWorkspaceRoot adds a root by its path and by its path without symbolic links.
func (f *localFileInspector) addWorkspaceRoot(place *effect.PathContext, root string) error {
	place.WorkspaceRoots = append(place.WorkspaceRoots, root)
	if place.ResolveLinks == nil {
		return nil
	}
	real := place.ResolveLinks(root)
	f.resolvedWorkspaceRoots = append(f.resolvedWorkspaceRoots, strings.TrimSuffix(real, "/")+"/")
	if real == root || slices.Contains(place.WorkspaceRoots, real) {
		return nil
	}
	if err := effect.CheckWorkspaceRoot(real, place.Home); err != nil {
		return err
	}
	place.WorkspaceRoots = append(place.WorkspaceRoots, real)
	return nil
}

// resolveSymlinks returns a canonical path with its symbolic links resolved, and whether it differs. Of a
// pattern only the part before the first wildcard is resolved.
func resolveSymlinks(path string, isGlob bool, resolvePath func(string) string) (string, bool) {
	if !isGlob {
		real := resolvePath(path)
		if real == path {
			return path, false
		}
		real, _ = (&effect.PathContext{}).CanonicalPath(real, false)
		return real, real != path
	}
	wild := strings.IndexAny(path, `*?[\`)
	if wild < 0 {
		wild = len(path)
	}
	cut := strings.LastIndexByte(path[:wild], '/')
	if cut <= 0 {
		return path, false
	}
	real := resolvePath(path[:cut])
	if real == path[:cut] {
		return path, false
	}
	if strings.ContainsAny(real, `*?[\`) {
		return "**" + path[cut:], true
	}
	return strings.TrimSuffix(real, "/") + path[cut:], true
}

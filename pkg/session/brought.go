package session

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// containerCopiesOfDownloads returns the downloaded or cloned files that an action copies into a container, by
// their paths in the container.
func containerCopiesOfDownloads(c *analysis.ActionCase) (out []effect.LabelledFile) {
	place := c.ExecutionContext()
	if place.OriginLabels == nil {
		return nil
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		at := slices.Index(e.Args[:min(len(e.Args), 4)], "cp")
		if e.Kind != effect.Execute || at < 0 || !slices.Contains([]string{"docker", "podman", "nerdctl", "kubectl", "oc"}, e.Program) {
			continue
		}
		words := slices.DeleteFunc(slices.Clone(e.Args[at+1:]), func(arg string) bool { return strings.HasPrefix(arg, "-") })
		if len(words) < 2 {
			continue
		}
		from, to := words[0], words[len(words)-1]
		if _, inside, ok := strings.Cut(to, ":"); ok {
			if !path.IsAbs(from) {
				from = path.Join(place.CWD, from)
			}
			if strings.HasSuffix(inside, "/") {
				inside += path.Base(from)
			}
			if labels := place.OriginLabels(path.Clean(from)); IsDownloaded(labels) {
				out = append(out, effect.LabelledFile{Path: path.Join("/", inside), Labels: labels})
			}
		}
	}
	return out
}

// downloadedSourceBuildFolders returns the folders in which an action configures a build of downloaded files: building
// there runs them.
func downloadedSourceBuildFolders(c *analysis.ActionCase) (out []effect.LabelledFile) {
	place := c.ExecutionContext()
	if place.OriginLabels == nil {
		return nil
	}
	at := func(dir string) string {
		if !path.IsAbs(dir) {
			dir = path.Join(place.CWD, dir)
		}
		return path.Clean(dir)
	}
	for i := range c.Effects {
		e := &c.Effects[i]
		from, to := "", ""
		switch {
		case e.Kind != effect.Execute:
		case e.Program == "cmake":
			from, to = optionValue(e.Args, "-S"), optionValue(e.Args, "-B")
		case e.Program == "meson":
			if n := len(e.Args); n > 2 && slices.Contains(e.Args[:2], "setup") {
				from, to = e.Args[n-1], e.Args[n-2]
			}
		}
		if from == "" || to == "" {
			continue
		}
		if labels := place.OriginLabels(at(from)); IsDownloaded(labels) {
			out = append(out, effect.LabelledFile{Path: at(to), IncludesDescendants: true, Labels: labels})
		}
	}
	return out
}

// optionValue returns the value of a one-letter option, attached to it or in the next word.
func optionValue(args []string, name string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, name); ok && value != "" {
			return value
		} else if ok && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// downloadsOnlyProgramReleases reports whether an action downloads only releases, from the publishers of the program
// and over a connection that cannot be tampered with.
func downloadsOnlyProgramReleases(c *analysis.ActionCase) bool {
	found := false
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.KindForPolicies() {
		case effect.HTTPRequest:
			if e.PathIsPattern || !strings.HasPrefix(e.URL, "https://") || !knowledge.OnlyAuthorsCanPublishReleasesOn(e.Host) && !command.Installers[e.Host] {
				return false
			}
			found = true
		case effect.Connect, effect.SendData, effect.UnknownEffect:
			return false
		case effect.Execute:
			if slices.ContainsFunc(e.Args, overridesURLHostOrTLSCheck) {
				return false
			}
		}
	}
	return found
}

// overridesURLHostOrTLSCheck reports whether an option makes a download come from another host than its URL
// names, or from an unverified host.
func overridesURLHostOrTLSCheck(arg string) bool {
	long := []string{"--insecure", "--resolve", "--connect-to", "--proxy", "--preproxy", "--socks", "--no-check-certificate", "--config", "--doh-url", "--execute", "--unix-socket", "--abstract-unix-socket"}
	if strings.HasPrefix(arg, "--") {
		return slices.ContainsFunc(long, func(option string) bool { return strings.HasPrefix(arg, option) })
	}
	return strings.HasPrefix(arg, "-") && strings.ContainsAny(arg[1:], "kxKe")
}

// unpackedFiles returns the paths of the files that an action copies or unpacks into a workspace
// root. A copied folder has its own name there; the content of an archive is expected under the
// archive's name, with and without its version. A label for the whole root would also cover the
// workspace's own files.
func unpackedFiles(c *analysis.ActionCase) (out []effect.LabelledFile) {
	for _, f := range c.LabelledFiles {
		if !f.IncludesDescendants || !IsDownloaded(f.Labels) || !slices.Contains(c.ExecutionContext().WorkspaceRoots, f.Path) {
			continue
		}
		for i := range c.Effects {
			e := &c.Effects[i]
			if e.Kind != effect.ReadFile || e.PathIsPattern || e.Path == "" || path.Ext(e.Path) == "" && !e.Recursive {
				continue
			}
			if e.Recursive { // a folder that is copied
				out = append(out, effect.LabelledFile{Path: path.Join(f.Path, path.Base(e.Path)), IncludesDescendants: true, Labels: f.Labels})
				continue
			}
			name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(e.Path), path.Ext(e.Path)), ".tar")
			short := name
			if at := strings.IndexAny(name, "-_."); at > 0 {
				short = name[:at]
			}
			for _, name := range [...]string{name, short} {
				out = append(out, effect.LabelledFile{Path: path.Join(f.Path, name), IncludesDescendants: true, Labels: f.Labels})
			}
		}
	}
	return out
}

package shield

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/bundle"
	"github.com/shieldcli/shield/pkg/classify"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/policy"
)

// PolicyOptions returns the folders that a configuration's policy refers to.
func PolicyOptions(cfg Config, place *effect.PathContext) policy.Options {
	links := func(path string) string { return path }
	if place.NewCachedLinkResolver != nil {
		links = place.NewCachedLinkResolver()
	}
	canonical := func(paths ...string) (out []string) {
		for _, p := range paths {
			if p == "" {
				continue
			}
			p, _ = place.CanonicalPath(p, false)
			out = append(out, p)
			if real := links(p); real != p {
				out = append(out, real)
			}
		}
		return out
	}
	secret, trusted, rules := cfg.pathsAgentCannotAccess(), cfg.pathsAgentCannotChange(), cfg.policyFiles()
	above, ways := cfg.parentFolders(append(append(append([]string{}, secret...), trusted...), rules...))
	aboveCache, replaceable := cfg.parentFoldersOfCacheFolder(place)
	return policy.Options{FoldersByGlobVariable: map[string][]string{
		"HOME":                canonical(cfg.Home),
		"WORKSPACE":           place.WorkspaceRoots,
		"SHIELD":              canonical(secret...),
		"SHIELD_PROGRAM":      canonical(trusted...),
		"SHIELD_POLICY":       canonical(rules...),
		"SHIELD_CACHE":        canonical(cfg.protectedCacheDir()),
		"SHIELD_CACHE_PARENT": canonical(replaceable...),
		"SHIELD_ABOVE":        canonical(append(above, aboveCache...)...),
		"SHIELD_WAY":          canonical(ways...),
	}, HeuristicExistsAndAlwaysBlocks: lookUpHeuristicRule}
}

// lookUpHeuristicRule reports whether there is a heuristic rule with an ID, and whether it blocks under all
// settings.
func lookUpHeuristicRule(id string) (exists, alwaysBlocks bool) {
	return classify.IsRuleID(id), classify.AlwaysBlocks(id)
}

// pathsAgentCannotAccess returns the files and folders that the agent must neither read nor
// change.
func (cfg *Config) pathsAgentCannotAccess() []string {
	s := cfg.effectiveSettings()
	files := []string{
		cfg.StateDir, cfg.auditFile(), s.Evaluator.APIKeyFile, s.MCP.TokenFile, s.MCP.TLSKey, s.StoreEncryptionKeyFile, s.StorePasswordFile, s.Serve.TLSKey, s.Serve.TokensFile,
		s.Approval.NotificationURLsFile, s.Approval.Telegram.TokenFile, s.Approval.Slack.TokenFile, s.Approval.Discord.TokenFile,
	}
	for _, server := range s.MCP.Servers {
		files = append(files, server.TokenFile)
	}
	return append(cfg.absolutePaths(cfg.ExtraProtectedShieldPaths...), cfg.absolutePaths(append(files, cfg.BundleDir)...)...)
}

// pathsAgentCannotChange returns the files and folders that the agent must not change, because shield runs or relies
// on their content.
func (cfg *Config) pathsAgentCannotChange() []string {
	s, c := cfg.effectiveSettings(), cfg.classifierSettings()
	out := cfg.absolutePaths(cfg.ShieldProgramPath, c.ONNXRuntimeLibraryPath, s.Evaluator.CAFile, s.StoreCAFile, unixSocketPath(c.SidecarURLOrSocket), unixSocketPath(s.CrossMachineStateStoreURL))
	if isModelFolder(c.ModelNameOrDir) {
		out = append(out, cfg.absolutePaths(c.ModelNameOrDir)...)
	}
	for _, arg := range s.Approval.CommandChannelArgv { // protect the program and a script among its arguments, if their paths are absolute
		if filepath.IsAbs(arg) {
			out = append(out, arg)
		}
	}
	return out
}

// policyFiles returns the paths that the policy in force is read from; none for a preset.
func (cfg *Config) policyFiles() (out []string) {
	source := cfg.effectiveSettings().PolicyBundle.URLOrPath
	if name, preset := cfg.policyNameOrPath(); source == "" && !preset {
		out = append(out, name)
	}
	if !bundle.IsURL(source) {
		out = append(out, source)
	}
	for _, l := range cfg.policyLayers() {
		out = append(out, l.policyPath)
	}
	return cfg.absolutePaths(out...)
}

// absolutePaths returns the non-empty paths, with relative ones joined to the working folder.
func (cfg *Config) absolutePaths(paths ...string) (out []string) {
	for _, p := range paths {
		if p == "" {
			continue
		}
		if !filepath.IsAbs(p) && cfg.WorkingDir != "" {
			p = filepath.Join(cfg.WorkingDir, p)
		}
		out = append(out, p)
	}
	return out
}

// parentFolders returns the parent folders of some files, and those of them that are symbolic links or do not
// exist: by replacing one of these, an agent could make shield find other files below it. The root and the home
// folder are left out, and for files in the home folder also its parents.
func (cfg *Config) parentFolders(files []string) (parents, linkedOrMissingParents []string) {
	seen := map[string]bool{cfg.Home: true}
	for _, p := range files {
		for dir := filepath.Dir(p); !seen[dir] && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			seen[dir] = true
			parents = append(parents, dir)
			if cfg.IgnoresFileSystem {
				continue
			}
			if st, err := os.Lstat(dir); err != nil || st.Mode()&fs.ModeSymlink != 0 {
				linkedOrMissingParents = append(linkedOrMissingParents, dir)
			}
		}
	}
	return parents, linkedOrMissingParents
}

// protectedCacheDir returns the cache folder that the agent must not change.
func (cfg *Config) protectedCacheDir() string { return cmp.Or(cfg.ProtectedCacheDir, cfg.CacheDir) }

// parentFoldersOfCacheFolder returns the parent folders of the cache folder, and of these the replaceable ones: those that agents
// may delete, as they may clear a cache, and those that are links or missing.
func (cfg *Config) parentFoldersOfCacheFolder(place *effect.PathContext) (allParents, agentReplaceable []string) {
	allParents, agentReplaceable = cfg.parentFolders([]string{cfg.protectedCacheDir()})
	for _, dir := range allParents {
		below, err := filepath.Rel(cfg.Home, dir)
		inHome := err == nil && filepath.IsLocal(below)
		if (inHome || place.IsInsideRoots(dir, false, false) || effect.IsInSharedTemporaryFolder(dir)) && !slices.Contains(place.WorkspaceRoots, dir) {
			agentReplaceable = append(agentReplaceable, dir)
		}
	}
	return allParents, agentReplaceable
}

// isModelFolder reports whether a model is named by its folder.
func isModelFolder(model string) bool {
	return strings.ContainsAny(model, `/\`) || model == "."
}

// unixSocketPath returns the path in an address of the form unix:PATH, of the classifier or the store; "" for
// other addresses.
func unixSocketPath(addr string) string {
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return ""
	}
	return "/" + strings.TrimLeft(path, "/")
}

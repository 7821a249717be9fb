package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/recipe"
)

// A recipeRunnerArgs holds the arguments with which a program was asked to run a recipe, such as a makefile.
type recipeRunnerArgs struct {
	workingFolderContext *effect.PathContext
	recipePath           string   // path of the recipe to run, such as a makefile, if an option names it
	recipePathsInOptions []string // paths of all recipes that options name
	operands             []string // arguments that are not options
	makeVariables        []string // NAME=VALUE
	inlineRecipeCode     []string // recipe code in the arguments
}

// parseRecipeRunnerArgs parses the arguments of a program that runs a recipe. ok is false if an argument is unknown.
func (s *analysisState) parseRecipeRunnerArgs(argv []abstract.Value, l *command.CodeFileLoader) (c recipeRunnerArgs, ok bool) {
	c.workingFolderContext = s.workingFolderContext()
	for i := 1; i < len(argv); i++ {
		v := argv[i]
		if !v.IsLiteral() {
			return c, false
		}
		option, value, attached := strings.Cut(v.Text, "=")
		isOption := strings.HasPrefix(v.Text, "-")
		switch {
		case v.Text == "--":
			return c, true
		case isOption && (slices.Contains(l.FolderOptions, option) || slices.Contains(l.RecipePathOptions, option) || slices.Contains(l.RecipeTextOptions, option) || slices.Contains(l.OptionsWithIgnoredValue, option)):
			if !attached {
				if i++; i == len(argv) {
					return c, true
				}
				value = argv[i].Text
			}
			switch {
			case slices.Contains(l.FolderOptions, option):
				c.workingFolderContext = c.workingFolderContext.WithCWD(value)
			case slices.Contains(l.RecipePathOptions, option):
				c.recipePath, c.recipePathsInOptions = value, append(c.recipePathsInOptions, value)
			case slices.Contains(l.RecipeTextOptions, option):
				c.inlineRecipeCode = append(c.inlineRecipeCode, value)
			}
		case isOption:
		case attached && l.RecipeFormat == "make":
			c.makeVariables = append(c.makeVariables, v.Text)
		default:
			c.operands = append(c.operands, v.Text)
		}
	}
	return c, true
}

// recipeWithInlineCodeAndMakeVariables returns the text of a recipe with the code and settings that arguments add to it.
func (c *recipeRunnerArgs) recipeWithInlineCodeAndMakeVariables(recipeText string) string {
	for _, part := range c.inlineRecipeCode {
		recipeText = part + "\n" + recipeText
	}
	for _, setting := range c.makeVariables {
		recipeText += "\n" + setting + "\n"
	}
	return recipeText
}

// goalsOf returns the goals of a recipe that run, such as make targets or npm scripts.
func (c *recipeRunnerArgs) goalsOf(l *command.CodeFileLoader, text string) []string {
	if len(l.RecipeGoalsByOperand) == 0 {
		if len(c.operands) == 0 && l.RecipeFormat != "docker" {
			return []string{recipe.DefaultGoal(l.RecipeFormat, text)}
		}
		return c.operands
	}
	first, next := "-", []string{}
	if len(c.operands) > 0 {
		first, next = c.operands[0], c.operands[1:]
	}
	for _, goal := range l.RecipeGoalsByOperand {
		word, list, _ := strings.Cut(goal, "=")
		if word != first && (word != "*" || first == "-") {
			continue
		}
		switch list {
		case "@":
			return next[:min(1, len(next))]
		case "*":
			return c.operands
		}
		return strings.Split(list, ",")
	}
	return []string{}
}

// walkInstallScriptsOfFolders walks the scripts that run when the folders in the arguments are installed.
func (s *analysisState) walkInstallScriptsOfFolders(l *command.CodeFileLoader, c *recipeRunnerArgs, at effect.CommandTextSpan) {
	if l.RecipeFormat != "package" || len(c.operands) < 2 || !slices.Contains(c.goalsOf(l, ""), "install") {
		return
	}
	for _, dir := range c.operands[1:] {
		if !strings.HasPrefix(dir, "file:") && !strings.HasPrefix(dir, "link:") && dir[:min(len(dir), 1)] != "." && !strings.Contains(dir, "/") {
			continue // not a local folder, but the name of a package in the registry
		}
		dir = strings.TrimPrefix(strings.TrimPrefix(dir, "file:"), "link:")
		p, pattern := c.workingFolderContext.CanonicalPath(path.Join(dir, "package.json"), false)
		if pattern {
			continue
		}
		if text, found := s.scriptText(p, at); found {
			s.walkRecipe(l.RecipeFormat, p, text, []string{"install", "prepare"}, c.workingFolderContext.WithCWD(dir), at)
		}
	}
}

// walkRecipes walks the steps of the recipes that a program runs, and records the other files on disk that it runs.
func (s *analysisState) walkRecipes(argv []abstract.Value, l *command.CodeFileLoader, in abstract.Value) {
	at := wordsSpan(argv)
	c, ok := s.parseRecipeRunnerArgs(argv, l)
	if !ok || c.workingFolderContext.CWD == "" || s.isAnalysisAborted {
		return
	}
	git := ""
	for _, name := range l.AnalyzedFilePaths {
		if inGit, ok := strings.CutPrefix(name, ".git/"); ok {
			if git == "" {
				git = s.gitDirOfWorkingTree(c.workingFolderContext.CWD)
			}
			name = git + "/" + inGit
		}
		p, _ := c.workingFolderContext.CanonicalPath(name, false)
		if text, found := s.scriptText(p, at); found {
			for _, e := range analyzeWrittenFile(p, text, s.initialPathContext, true) {
				e.Span = at
				s.emitOnce(e)
			}
		}
	}
	if l.RecipeFormat == "" || slices.ContainsFunc(argv, func(v abstract.Value) bool { return v.Text == "--ignore-scripts" }) {
		return
	}
	if l.RecipeFormat == "requirements" {
		s.recordRequirementSources(&c, at)
		return
	}
	s.walkInstallScriptsOfFolders(l, &c, at)
	names := l.FileNameGlobs
	if c.recipePath == "-" || c.recipePath == "/dev/stdin" {
		if v := s.recordRecipeInput(in, at); v.IsLiteral() {
			text := c.recipeWithInlineCodeAndMakeVariables(v.Text)
			s.walkRecipe(l.RecipeFormat, "-", text, c.goalsOf(l, text), c.workingFolderContext, at)
		}
		return
	}
	if c.recipePath != "" {
		names = []string{c.recipePath}
	} else if l.GlobFilesMustBeInArgs {
		names = nil
		for _, name := range c.operands {
			if l.Loads(name) {
				names = append(names, name)
			}
		}
	} else if l.RecipeFormat == "docker" && len(c.operands) > 1 {
		c.workingFolderContext = c.workingFolderContext.WithCWD(c.operands[len(c.operands)-1])
	}
	for _, name := range names {
		if strings.ContainsAny(name, "*?") {
			continue
		}
		p, pattern := c.workingFolderContext.CanonicalPath(name, false)
		if pattern {
			return
		}
		text, found := s.scriptText(p, at)
		if !found {
			continue
		}
		text = c.recipeWithInlineCodeAndMakeVariables(s.withIncludedFiles(l, &c, text, at))
		s.walkRecipe(l.RecipeFormat, p, text, c.goalsOf(l, text), c.workingFolderContext, at)
		return
	}
	if text := c.recipeWithInlineCodeAndMakeVariables(s.withIncludedFiles(l, &c, "", at)); text != "" {
		s.walkRecipe(l.RecipeFormat, "-", text, c.goalsOf(l, text), c.workingFolderContext, at)
	}
}

// withIncludedFiles returns a recipe with the text of the files that it, or the setting MAKEFILES, includes.
func (s *analysisState) withIncludedFiles(l *command.CodeFileLoader, c *recipeRunnerArgs, text string, at effect.CommandTextSpan) string {
	for _, setting := range c.makeVariables {
		if list, ok := strings.CutPrefix(setting, "MAKEFILES="); ok {
			text = "include " + list + "\n" + text
		}
	}
	return recipe.WithIncludes(l.RecipeFormat, text, func(name string) (string, bool) {
		included, unknown := c.workingFolderContext.CanonicalPath(name, false)
		if unknown || strings.ContainsAny(name, "$*?%") {
			return "", false
		}
		return s.scriptText(included, at)
	})
}

// recordRecipeInput records that a program runs its standard input as a recipe, such as a makefile, if the input
// is not fully known, or was downloaded, decoded or cloned. It returns the input.
func (s *analysisState) recordRecipeInput(in abstract.Value, at effect.CommandTextSpan) abstract.Value {
	if !in.IsLiteral() || in.Taint&externalOrDecodedTaints != 0 {
		s.walkExecutedText("code", in, "a build file on standard input", at, nil)
	}
	return in
}

// gitDirOfWorkingTree returns the git folder, which contains the hooks, of the working tree that contains
// folder. In a linked working tree or a submodule, .git is a file with the path of the git folder. The result is
// .git in folder if no .git is found.
func (s *analysisState) gitDirOfWorkingTree(folder string) string {
	if s.initialPathContext.ReadScript == nil {
		return folder + "/.git"
	}
	for dir, n := folder, 0; n < maxParentFolders; dir, n = path.Dir(dir), n+1 {
		git := path.Join(dir, ".git")
		text, err := s.initialPathContext.ReadScript(git)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if dir == path.Dir(dir) {
				return folder + "/.git"
			}
			continue
		case err != nil: // .git exists, but cannot be read as a file, so it is taken for a folder
			return git
		}
		to, named := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !named {
			return git
		}
		git = resolvePath(dir, to)
		if common, err := s.initialPathContext.ReadScript(path.Join(git, "commondir")); err == nil {
			git = resolvePath(git, strings.TrimSpace(string(common)))
		}
		return git
	}
	return folder + "/.git"
}

// maxParentFolders is the number of folders, the first included, in which a repository or a manifest is searched.
const maxParentFolders = 32

// resolvePath returns a path resolved against a folder.
func resolvePath(folder, to string) string {
	if path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(folder, to)
}

// scriptText returns the text of a file that a program runs: the content that the command writes to
// the file, or else its content on disk. It records an unknown effect if the content is unknown or
// the file cannot be read.
func (s *analysisState) scriptText(path string, at effect.CommandTextSpan) (text string, found bool) {
	if vals := s.writtenFileContents(path, false); len(vals) > 0 {
		if vals[0].HasUnanalysedComputation() {
			s.emitUnknownEffect(vals[0].CauseOfUnknownParts(), abstract.ClipForMessage(path)+", which the command writes, has unknown content", at)
		}
		return vals[0].Text, vals[0].IsLiteral()
	}
	if s.initialPathContext.ReadScript == nil {
		return "", false
	}
	data, err := s.initialPathContext.ReadScript(path)
	if err == nil {
		s.recordRunOfEarlierDownload(abstract.ClipForMessage(path), path, at)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || isBinary(data):
		s.emitUnknownEffect(effect.CauseUnreadScript, "cannot read "+abstract.ClipForMessage(path)+", which the command runs", at)
	default:
		return string(data), true
	}
	return "", false
}

// walkRecipe walks the steps of a recipe, which is a build or task file such as a Makefile; each step gets its
// own shell. goals are the names in the recipe that run, such as make targets; nil means all steps. A recipe
// that is already being walked with the same goals is skipped.
func (s *analysisState) walkRecipe(format, path, text string, goals []string, place *effect.PathContext, at effect.CommandTextSpan) {
	key := path + "\x00" + strings.Join(goals, "\x00")
	if slices.Contains(s.activeRecipePathsAndGoals, key) || len(s.activeRecipePathsAndGoals) > maxCommandNesting || !s.spendSteps(1+len(text)/512) {
		return
	}
	s.walkInNestedTextScope(func() {
		s.activeRecipePathsAndGoals = append(slices.Clip(s.activeRecipePathsAndGoals), key)
		s.scriptFileNestingDepth++
		if format == "docker" {
			s.remoteOrContainerDepth++
			goals = nil
		}
		if format == "compose" && hostPrivilegePattern().MatchString(text) {
			s.emitUnknownEffect(effect.CauseUnparsedWord, abstract.ClipForMessage(path)+" gives a container the host's privileges; instead: remove the settings that grant them, or ask the user", at)
		}
		steps, whole := recipe.CodeBlocks(format, text, goals)
		if !whole {
			s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, abstract.ClipForMessage(path)+" runs more code than shield reads", at)
		}
		for _, step := range steps {
			if s.isAnalysisAborted {
				return
			}
			s.walkSubshell(func() {
				s.changeFolder(place)
				s.walkCode(step.Language, step.Text, at, []abstract.Value{})
			})
		}
	})
}

// maxRequirementFiles is the maximum number of package lists that are read for one command.
const maxRequirementFiles = 16

// includedRequirementsFilePattern matches a line of a package list, such as requirements.txt, that includes another list.
var includedRequirementsFilePattern = prefilter.LazyRegexp(`(?m)^[ \t]*(?:-[rc]|--requirement|--constraint)[ =\t]*(\S+)`)

// recordRequirementSources records the package sources that requirements files (pip install -r)
// name, including those of the requirements files that they include.
func (s *analysisState) recordRequirementSources(c *recipeRunnerArgs, at effect.CommandTextSpan) {
	left, seen := slices.Clone(c.recipePathsInOptions), map[string]bool{}
	for len(left) > 0 && len(seen) < maxRequirementFiles {
		p, pattern := c.workingFolderContext.CanonicalPath(left[0], false)
		left = left[1:]
		if pattern || seen[p] {
			continue
		}
		seen[p] = true
		text, found := s.scriptText(p, at)
		if !found {
			continue
		}
		for _, e := range writtenFilePackageSourceEffects(path.Join(path.Dir(p), "requirements.txt"), text) {
			e.Span = at
			s.emitOnce(e)
		}
		for _, m := range includedRequirementsFilePattern().FindAllStringSubmatch(text, maxRequirementFiles) {
			left = append(left, resolvePath(path.Dir(p), m[1]))
		}
	}
}

package classify

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// A ruleEngine is a set of rules with tables that select the rules an action could match. Goroutines may share
// it.
type ruleEngine struct {
	rules                  []Rule
	foldersByGlobVariable  map[string][]string // values of variables with which globs may begin, see [effect.NewGlobs]
	clauses                []compiledClause
	patterns               []textPattern
	requiredClausesByRule  [][]compiledClause // by rule
	forbiddenClausesByRule [][]compiledClause // by rule

	clauseListHeadByProgram   map[string]uint16        // by program name: 1 + the index in programClauseNodes of the program's first clause
	programClauseNodes        []programClauseListNode  // linked lists of the clauses of each program
	programPrefixClauses      []programPrefixClause    // clauses that name programs by prefix
	clauseIndexesByEffectKind map[effect.Kind][]uint16 // by effect kind: clauses that name no program, no harm and no argument literal
	clauseIndexesByHarm       map[effect.Harm][]uint16 // clauses with harms
	argLiterals               *prefilter.LiteralSet    // literals required by the args of the rules' clauses, to select the clauses that are tried
	argSelectedClauseBits     []uint64                 // bit i: clause i names no program and no harm, and requires literals in the arguments, which alone select it
	textLiterals              *prefilter.LiteralSet    // literals of the patterns, followed by other required literals
	patternsWithoutLiterals   []int                    // indexes in patterns of those without a required literal; they are tried on every text

	ruleMatchBuffersPool sync.Pool // of *scratch
}

// A programClauseListNode is an element of the linked list of a program's clauses.
type programClauseListNode struct{ clauseIndex, nextNodeIndexPlusOne uint16 }

// A programPrefixClause is the index of a clause (a condition of a rule) that names all programs whose names
// begin with prefix.
type programPrefixClause struct {
	prefix      string
	clauseIndex uint16
}

// A compiledClause is a clause of a rule with its compiled parts.
type compiledClause struct {
	*ruleClause
	ruleIndex                int
	args, excludedArgsRegexp lazyRegexp
	hosts                    []string // host patterns of the clause; names of knowledge lists are replaced by their entries
	paths                    *lazyGlobs
	notPaths                 *lazyGlobs
}

// A textPattern is one pattern of a rule.
type textPattern struct {
	ruleIndex                                 int
	requiredByteSet                           string // bytes that every match contains
	firstLiteralSetIndex, literalSetsEndIndex int    // range of sets in textLiterals; a matching text contains a literal of each
	re                                        lazyFinder
	excludedTextFinder                        lazyFinder
}

// A lazyValue is compiled from an expression when the prefilter first selects it: compiling all at start
// would be too slow.
type lazyValue[T any] struct {
	expr     string
	compiled atomic.Pointer[T]
}

func (l *lazyValue[T]) get(compile func(expr string) *T) *T {
	if t := l.compiled.Load(); t != nil {
		return t
	}
	t := compile(l.expr) // cannot fail: go generate has compiled it
	l.compiled.Store(t)
	return t
}

type (
	lazyRegexp = lazyValue[regexp.Regexp]
	lazyFinder = lazyValue[prefilter.RegexpFinder] // finder that searches a whole text for a pattern
)

// A lazyGlobs is a glob set that is built on first use.
type lazyGlobs struct {
	globsAndListNames             []string
	hasNamedGlobList              bool // globsAndListNames contains the name of a list in package knowledge
	compileAllAndFixedSuffixGlobs func() (all, tails *effect.Globs)
}

func newLazyGlobs(list []string, vars map[string][]string) *lazyGlobs {
	if len(list) == 0 {
		return nil
	}
	return &lazyGlobs{globsAndListNames: list, hasNamedGlobList: slices.ContainsFunc(list, isNamedListReference), compileAllAndFixedSuffixGlobs: sync.OnceValues(func() (all, tails *effect.Globs) {
		var short []string
		list := expandNamedListReferences(list, knowledge.GlobsOfPathList)
		for _, g := range list {
			if !strings.HasSuffix(g, "*") {
				short = append(short, g)
			}
		}
		return mustGlobs(list, vars), mustGlobs(short, vars)
	})}
}

// isNamedListReference reports whether an entry of a clause names a list of package knowledge.
func isNamedListReference(entry string) bool { return strings.HasPrefix(entry, "@") }

// expandNamedListReferences returns entries with list names replaced by the lists' contents. The generator checks that the
// lists exist.
func expandNamedListReferences(entries []string, find func(string) ([]string, bool)) []string {
	if !slices.ContainsFunc(entries, isNamedListReference) {
		return entries
	}
	var out []string
	for _, entry := range entries {
		list := []string{entry}
		if isNamedListReference(entry) {
			list, _ = find(entry[1:])
		}
		out = append(out, list...)
	}
	return out
}

// mustGlobs panics on an invalid list. Judge turns that into a classifier
// error, and a test builds all lists.
func mustGlobs(list []string, vars map[string][]string) *effect.Globs {
	g, err := effect.NewGlobs(list, vars)
	if err != nil {
		panic(err)
	}
	return g
}

// matchesAnyPathOf reports whether an effect touches a path that matches the globs. If the effect's path is a
// pattern with an unknown start, it could match any glob. Then only the globs that do not end with * are
// compared, so that the known end of the path decides, because otherwise every script with a variable in a path
// would look like an attack on the system. If the start is known and the globs include a named list of package
// knowledge, a pattern is replaced by an example of the paths that it is meant for, see
// [effect.ExamplePathForPattern], because these lists are long.
func (l *lazyGlobs) matchesAnyPathOf(e *effect.Effect) bool {
	all, tails := l.compileAllAndFixedSuffixGlobs()
	if !e.PathIsPattern || startsWithLiteralFolder(e.Path) {
		p, pattern := e.Path, e.PathIsPattern
		if l.hasNamedGlobList && pattern {
			p, pattern = effect.ExamplePathForPattern(p)
		}
		if pattern && e.DoubleStarExcludesDotDot {
			_, ok := all.FirstPossibleMatchExcludingDotDot(p, e.Recursive)
			return ok
		}
		_, ok := all.FirstPossibleMatch(p, pattern, e.Recursive)
		return ok
	}
	if strings.Trim(e.Path, "*/?") == "" {
		return e.Recursive && slices.Contains(l.globsAndListNames, "/**")
	}
	_, ok := tails.FirstPossibleMatch(e.Path, true, e.Recursive)
	return ok
}

// isUncertainMatch reports whether it is uncertain that a matching effect touches a file that the
// globs match. That is so if a part of the last name in its path is unknown, if the path of a read
// does not name a matching file, or if only a parent folder of such a file is read recursively or
// is the target of a recursive copy.
func (l *lazyGlobs) isUncertainMatch(e *effect.Effect) bool {
	last := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	partly := e.PathIsPattern && !e.DoubleStarExcludesDotDot && effect.HasLiteralText(last) && strings.Contains(last, "**")
	filled := e.Recursive && (e.Kind == effect.WriteFile || e.Kind == effect.Persist)
	if !partly && !filled && e.Kind != effect.ReadFile && e.Kind != effect.ListDirectory {
		return false
	}
	all, _ := l.compileAllAndFixedSuffixGlobs()
	if _, ok := all.FirstCoveringGlob(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive); ok {
		return false
	}
	path := e.Path
	if e.PathIsPattern {
		meant, still := effect.ExamplePathForPattern(path)
		if !partly && still && effect.HasLiteralText(last) && !strings.HasPrefix(last, "*") {
			return false
		}
		path = meant[:strings.LastIndexByte(meant, '/')] + "/x"
	}
	_, sure := all.FirstPossibleMatch(path, false, false)
	return !sure
}

// startsWithLiteralFolder reports whether a pattern starts with a known folder.
func startsWithLiteralFolder(pattern string) bool {
	if strings.HasPrefix(pattern, "/") {
		return !strings.HasPrefix(pattern, "/**")
	}
	first, _, _ := strings.Cut(pattern, "/")
	return first != "" && !strings.ContainsAny(first, "*?[")
}

// matchesAllPathsOf reports whether everything that an effect touches matches the globs.
func (l *lazyGlobs) matchesAllPathsOf(e *effect.Effect) bool {
	all, _ := l.compileAllAndFixedSuffixGlobs()
	_, ok := all.FirstCoveringGlob(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive)
	return ok
}

// newEngine returns an engine for rules, a home folder, which may be "", and workspace folders.
func newEngine(rules []Rule, home string, roots []string) *ruleEngine {
	eng := &ruleEngine{
		rules:                     rules,
		foldersByGlobVariable:     map[string][]string{"WORKSPACE": roots},
		requiredClausesByRule:     make([][]compiledClause, len(rules)),
		forbiddenClausesByRule:    make([][]compiledClause, len(rules)),
		clauseIndexesByEffectKind: make(map[effect.Kind][]uint16, 32),
		clauseIndexesByHarm:       make(map[effect.Harm][]uint16, 32),
	}
	if home != "" {
		eng.foldersByGlobVariable["HOME"] = []string{home}
	}
	clauses, patterns, programs := 0, 0, 0
	for i := range rules {
		clauses += len(rules[i].clauses)
		patterns += len(rules[i].patterns)
		for k := range rules[i].clauses {
			programs += len(rules[i].clauses[k].programs)
		}
	}
	eng.clauses = make([]compiledClause, 0, clauses)
	eng.patterns = make([]textPattern, patterns)
	eng.clauseListHeadByProgram = make(map[string]uint16, programs)
	eng.programClauseNodes = make([]programClauseListNode, 0, programs)
	lineLits, textLits, further := make([][]string, 0, clauses), make([][]string, 0, 2*patterns), make([][]string, 0, patterns)
	for i := range rules {
		r := &rules[i]
		for k := range r.clauses {
			lineLits = append(lineLits, r.clauses[k].args.lits)
			eng.addClause(i, &r.clauses[k])
		}
		for k := range r.requires {
			eng.requiredClausesByRule[i] = append(eng.requiredClausesByRule[i], compiledClause{})
			eng.requiredClausesByRule[i][k].compileFrom(i, &r.requires[k], eng.foldersByGlobVariable)
		}
		for k := range r.unless {
			eng.forbiddenClausesByRule[i] = append(eng.forbiddenClausesByRule[i], compiledClause{})
			eng.forbiddenClausesByRule[i][k].compileFrom(i, &r.unless[k], eng.foldersByGlobVariable)
		}
		for _, p := range r.patterns {
			id := len(textLits)
			if len(p.lits) == 0 {
				eng.patternsWithoutLiterals = append(eng.patternsWithoutLiterals, id)
			}
			textLits = append(textLits, p.lits)
			t := &eng.patterns[id]
			t.ruleIndex, t.requiredByteSet, t.re.expr, t.excludedTextFinder.expr = i, p.requiredByteSet, p.expr, r.except.expr
			t.firstLiteralSetIndex = patterns + len(further)
			further = append(further, p.furtherRequiredLiterals...)
			t.literalSetsEndIndex = patterns + len(further)
		}
	}
	eng.argLiterals, _ = prefilter.TryNewLiteralSet(lineLits) // cannot fail: a test checks every literal
	eng.textLiterals, _ = prefilter.TryNewLiteralSet(append(textLits, further...))
	eng.argSelectedClauseBits = make([]uint64, eng.argLiterals.ExpressionBitsetWords())
	for i := range eng.clauses {
		if c := eng.clauses[i].ruleClause; len(c.programs)+len(c.harms) == 0 && len(c.args.lits) > 0 {
			eng.argSelectedClauseBits[i/64] |= 1 << (i % 64)
		}
	}
	eng.ruleMatchBuffersPool.New = func() any { return newRuleMatchBuffers(eng) }
	return eng
}

func (b *compiledClause) compileFrom(ruleIndex int, c *ruleClause, vars map[string][]string) {
	b.ruleClause, b.ruleIndex = c, ruleIndex
	b.args.expr, b.excludedArgsRegexp.expr = c.args.expr, c.excludedArgs.expr
	b.hosts = expandNamedListReferences(c.hosts, knowledge.Hosts)
	b.paths, b.notPaths = newLazyGlobs(c.paths, vars), newLazyGlobs(addDescendantGlobs(expandNamedListReferences(c.notPaths, knowledge.GlobsOfPathList)), vars)
}

// addDescendantGlobs adds everything below the folders in a list: a recursive effect is covered only if everything it
// touches is.
func addDescendantGlobs(globs []string) []string {
	var out []string
	for _, g := range globs {
		out = append(out, g)
		if !strings.HasSuffix(g, "/**") {
			out = append(out, g+"/**")
		}
	}
	return out
}

func (eng *ruleEngine) addClause(rule int, c *ruleClause) {
	id := uint16(len(eng.clauses))
	eng.clauses = append(eng.clauses, compiledClause{})
	eng.clauses[id].compileFrom(rule, c, eng.foldersByGlobVariable)
	switch {
	case len(c.harms) > 0:
		for _, h := range c.harms {
			eng.clauseIndexesByHarm[h] = append(eng.clauseIndexesByHarm[h], id)
		}
	case len(c.programs) > 0:
		for _, p := range c.programs {
			if prefix, ok := strings.CutSuffix(p, "*"); ok {
				eng.programPrefixClauses = append(eng.programPrefixClauses, programPrefixClause{prefix, id})
				continue
			}
			eng.programClauseNodes = append(eng.programClauseNodes, programClauseListNode{id, eng.clauseListHeadByProgram[p]})
			eng.clauseListHeadByProgram[p] = uint16(len(eng.programClauseNodes))
		}
	case len(c.args.lits) > 0: // selected by its literals, see argSelectedClauseBits
	case len(c.kinds) == 0:
		eng.clauseIndexesByEffectKind[effect.Execute] = append(eng.clauseIndexesByEffectKind[effect.Execute], id)
	default:
		for _, k := range c.kinds {
			eng.clauseIndexesByEffectKind[k] = append(eng.clauseIndexesByEffectKind[k], id)
		}
	}
}

// normalizeProgramName returns a program's name in the form that the clauses of rules use: in lower case and
// without ".exe".
func normalizeProgramName(program string) string {
	for i := range len(program) {
		if b := program[i]; b < 'a' || b > 'z' {
			program = strings.TrimSuffix(strings.ToLower(program), ".exe")
			break
		}
	}
	return program
}

// yieldCandidateClauses calls yield for each clause that could hold for an execute effect. It skips a clause
// with literals if none of the clause's literals is in foundArgLiterals, unless a harm of the effect selects the
// clause.
func (eng *ruleEngine) yieldCandidateClauses(e *effect.Effect, foundArgLiterals []uint64, yield func(*compiledClause)) {
	key := normalizeProgramName(e.Program)
	for _, h := range e.Harms {
		for _, id := range eng.clauseIndexesByHarm[h] {
			yield(&eng.clauses[id])
		}
	}
	try := func(id uint16) {
		if b := &eng.clauses[id]; len(b.ruleClause.args.lits) == 0 || foundArgLiterals[id/64]&(1<<(id%64)) != 0 {
			yield(b)
		}
	}
	for next := eng.clauseListHeadByProgram[key]; next != 0; next = eng.programClauseNodes[next-1].nextNodeIndexPlusOne {
		try(eng.programClauseNodes[next-1].clauseIndex)
	}
	for i := range eng.programPrefixClauses {
		if strings.HasPrefix(key, eng.programPrefixClauses[i].prefix) {
			try(eng.programPrefixClauses[i].clauseIndex)
		}
	}
	for w, mask := range eng.argSelectedClauseBits {
		for set := mask & foundArgLiterals[w]; set != 0; set &= set - 1 {
			yield(&eng.clauses[64*w+bits.TrailingZeros64(set)])
		}
	}
	for _, id := range eng.clauseIndexesByEffectKind[effect.Execute] {
		yield(&eng.clauses[id])
	}
}

// holds reports whether a clause holds for an effect with the arguments args.
func (b *compiledClause) holds(s *ruleMatchBuffers, e *effect.Effect, args []byte) bool {
	if len(b.kinds) > 0 && !slices.Contains(b.kinds, e.KindForPolicies()) || len(b.kinds) == 0 && e.Kind != effect.Execute {
		return false
	}
	if len(b.programs) > 0 && !listsProgram(b.programs, normalizeProgramName(e.Program)) {
		return false
	}
	if len(b.harms) > 0 && !slices.ContainsFunc(b.harms, func(h effect.Harm) bool { return slices.Contains(e.Harms, h) }) {
		return false
	}
	if len(b.causes) > 0 && !slices.Contains(b.causes, effect.EffectCause(e.CauseOrFirstHarm())) {
		return false
	}
	if len(b.classes) > 0 && !slices.Contains(b.classes, e.Class) || b.recursive && !e.Recursive || b.mustBeNonRecursive && e.Recursive || b.mustBeUnrestorable && (e.IsRestorableWithoutBackup || e.IsBackedUpByShield || e.Cause == effect.CauseInContainer) {
		return false
	}
	if len(b.hosts) > 0 && !slices.ContainsFunc(b.hosts, func(h string) bool { return isDomainOrSubdomain(e.Host, h) }) {
		return false
	}
	if b.args.expr != "" && !s.match(&b.args, args) || b.excludedArgsRegexp.expr != "" && s.match(&b.excludedArgsRegexp, args) {
		return false
	}
	return (b.paths == nil || b.paths.matchesAnyPathOf(e)) && (b.notPaths == nil || !b.notPaths.matchesAllPathsOf(e))
}

// isUncertainMatch reports whether a clause that matches an effect may not match what the action really
// does: the effect is only possible, or its path may name other files.
func (b *compiledClause) isUncertainMatch(e *effect.Effect) bool {
	return e.Certainty == effect.Possible || b.paths != nil && b.paths.isUncertainMatch(e)
}

// listsProgram reports whether a list contains a program, or a prefix of it.
func listsProgram(list []string, program string) bool {
	for _, p := range list {
		if p == program {
			return true
		}
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(program, prefix) {
			return true
		}
	}
	return false
}

// isDomainOrSubdomain reports whether host is domain or a host below it.
func isDomainOrSubdomain(host, domain string) bool {
	rest, ok := strings.CutSuffix(host, domain)
	return ok && (rest == "" || rest[len(rest)-1] == '.')
}

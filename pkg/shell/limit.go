package shell

// The bounds of an analysis.
const (
	maxSteps   = 20000 // nodes, words and commands visited
	maxDepth   = 100   // of commands inside commands
	maxEffects = 2000
)

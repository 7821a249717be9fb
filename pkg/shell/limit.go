package shell

// The bounds of an analysis.
const (
	maxAnalysisSteps  = 20000 // nodes, words and commands visited
	maxCommandNesting = 100   // nesting of commands inside commands
	maxEffects        = 2000
)

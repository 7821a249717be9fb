package knowledge

// A GrantForm is what an object of a file that carries checks or rights may say.
type GrantForm struct {
	Files          []string // globs, as of effect.Globs
	Kind           string   // grant, guard, gone or check
	Old            bool     // it counts only in a file that was there before
	Harm           string   // as of effect.Harm
	At             string   // RE2; the path of the object's keys; of a check, what is in a command
	If, Unless, Of []string // KEY|KEY… RE2, cut at the first blank
	With           string   // keys, with | between them, whose values say how far it reaches
	Mark           string   // RE2 that a file of the kind has a match of; "" where its name says enough
	Says           string
}

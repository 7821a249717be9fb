package knowledge

// A GrantForm describes an object in a file with security checks or permissions, for example a CI workflow or
// an access policy.
type GrantForm struct {
	Files          []string // in the syntax of effect.Globs
	Kind           string   // grant, guard, gone or check
	Old            bool     // only applies to files that existed before
	Harm           string   // as of effect.Harm
	At             string   // RE2; the path of the object's keys; for a check, text in a command
	If, Unless, Of []string // conditions: KEY|KEY… RE2, split at the first space
	With           string   // keys, separated by |, whose values give the scope of the grant
	Mark           string   // RE2 that must match in a file of the kind; "" if the name is enough
	Says           string
}

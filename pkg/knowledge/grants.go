package knowledge

// A GrantForm describes an object in a file with security checks or permissions, for example a CI workflow or
// an access policy.
type GrantForm struct {
	Files          []string // in the syntax of effect.Globs
	Kind           string   // grant: added permission; guard: lost security check; gone: removed object; check: removed check command
	Old            bool     // applies only to files that existed before the action
	Harm           string   // harm of the change, a value of effect.Harm
	At             string   // RE2 that matches the object's key path, such as jobs/build/steps; for the kind check, a command
	If, Unless, Of []string // conditions "KEY|KEY… RE2" on the object: a value at one of the keys matches the expression
	With           string   // keys, separated by |, whose values give the scope of the grant
	Mark           string   // RE2 that must match in the file's content; "" if the file's name identifies its kind
	Says           string
}

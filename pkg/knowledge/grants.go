package knowledge

// A PermissionChangeRule describes an object in a file with security checks or permissions, for example a CI workflow or
// an access policy.
type PermissionChangeRule struct {
	Files                                               []string // in the syntax of effect.Globs
	PermissionChangeKind                                string   // grant: added permission; guard: lost security check; gone: removed object; check: removed check command
	OnlyExistingFiles                                   bool     // applies only to files that existed before the action
	HarmName                                            string   // harm of the change, a value of effect.Harm
	ObjectPathPattern                                   string   // RE2 that matches the object's key path, such as jobs/build/steps; for the kind check, a command
	MatchConditions, ExceptConditions, ObjectConditions []string // conditions "KEY|KEY… RE2" on the values at the keys: ObjectConditions select the object, MatchConditions must hold in it, ExceptConditions must not
	PipeSeparatedScopeKeys                              string   // keys, separated by |, whose values give the scope of the grant
	RequiredFileContentPattern                          string   // RE2 that must match in the file's content; "" if the file's name identifies its kind
	Description                                         string
}

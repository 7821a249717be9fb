package knowledge

// A PermissionChangeRule describes a change of a file, such as a CI workflow or an access policy, that adds a
// permission, or removes a security check or an object.
type PermissionChangeRule struct {
	Files                                                        []string // in the syntax of effect.Globs
	PermissionChangeKind                                         string   // grant: added permission; guard: lost security check; gone: removed object; check: removed check command
	OnlyExistingFiles                                            bool     // applies only to files that existed before the action
	HarmName                                                     string   // harm of the change, a value of effect.Harm
	ObjectPathPattern                                            string   // RE2 that an object's key path matches, such as jobs/build/steps; for the kind check, RE2 for a check command
	MatchConditions, ExceptConditions, ObjectSelectionConditions []string // "KEY|KEY… RE2" on an object's values: ObjectSelectionConditions select it, MatchConditions hold, ExceptConditions fail
	PipeSeparatedScopeKeys                                       string   // keys, separated by |, whose values give the scope of the grant
	RequiredFileContentPattern                                   string   // RE2 that must match in the file's content; "" if the file's name identifies its kind
	Description                                                  string
}

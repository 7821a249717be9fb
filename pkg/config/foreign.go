package config

// foreign has what the specification and its other programs call our settings,
// by the key without case and separators: the setting that is meant, or, with a
// blank in it, what to tell instead.
var foreign = map[string]string{
	"classifieraddr":      "classifier.addr",
	"classifierenabled":   "classifier.enabled",
	"classifierskiptypes": "classifier.skip_types",
	"heuristicenabled":    "heuristic.enabled",
	"onnxthreshold":       "classifier.threshold",
	"policyfile":          "policy",

	"apikey":   "a key does not stand in settings: name the variable in evaluator.api_key_env or the file in evaluator.api_key_file that holds it",
	"models":   oneModel,
	"roles":    oneModel,
	"sanitize": "results of tools are not examined yet, and there is no such setting; leave it out",
	"shield":   "settings stand at the top level, not in a section of this name",
	"locked":   "only the system's file locks settings",
}

const oneModel = "shield asks one model: write evaluator: {provider: …, model: …, api_key_env: …}"

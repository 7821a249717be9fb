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

	"apikey": "API keys do not belong in settings: name the variable that holds it in evaluator.api_key_env, or the file in evaluator.api_key_file",
	"models": oneModel,
	"roles":  oneModel,
	"shield": "settings belong at the top level, not in a section of this name",
	"locked": "only the system's file can lock settings; remove it",
}

const oneModel = "shield asks one model: write evaluator: {provider: …, model: …, api_key_env: …}"

package config

// suggestionByUnsupportedSettingKey maps setting names that shield does not use, in lower case and
// without separators, to shield's name for the setting. A value that contains a space is not a name
// but a message to the user.
var suggestionByUnsupportedSettingKey = map[string]string{
	"classifieraddr":      "classifier.addr",
	"classifierenabled":   "classifier.enabled",
	"classifierskiptypes": "classifier.skip_types",
	"heuristicenabled":    "heuristic.enabled",
	"onnxthreshold":       "classifier.threshold",
	"policyfile":          "policy",

	"apikey": "API keys do not belong in the settings; name the variable that contains the key in evaluator.api_key_env, or its file in evaluator.api_key_file",
	"models": oneModelMessage,
	"roles":  oneModelMessage,
	"shield": "the settings file has no section of this name; write its settings at the top level",
	"locked": "only the system's settings file can lock settings; remove this key",
}

const oneModelMessage = "shield uses one model; write evaluator: {provider: …, model: …, api_key_env: …}"

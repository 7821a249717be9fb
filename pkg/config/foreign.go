package config

// suggestionByUnsupportedSettingKey maps names that the specification and other programs use for settings, without case and
// separators, to shield's setting or, if the value contains a blank, to a message.
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

// Package knowledge contains shield's data about programs, files and secrets. The data is written by hand or
// taken from other projects, and compiled into Go tables, so that it need not be parsed at start.
//
// For secrets it has their forms (secrets.yaml and, in the folder gitleaks, the rules of that program under
// its licence), the names of fields and variables that hold them, and the programs that accept them as
// arguments (logins.yaml).
package knowledge

//go:generate go run ./gen

// A SecretForm describes the text of one kind of credential.
type SecretForm struct {
	ID                 string
	Literals           []string // in lower case, at least 3 bytes each; every match of Pattern contains one of them, in any case
	Pattern            string   // RE2; the first group that matched is the secret, or else the whole match
	MinWordRunLength   int      // every match has a run of this many letters, digits, "_" and "-"
	MinTokenRunLength  int      // every match has a run of this many letters, digits and characters of "_-+/=.~%"
	RequiredASCIIChars string   // ASCII characters that every match contains
	IsWithinLine       bool     // a match is within one line and does not depend on other lines
	Entropy            float64  // minimum Shannon entropy of the secret, in bits per byte
	NotSecretPatterns  []string // RE2; a text in which one of these matches is not a secret
}

// SecretNameWords are the words in the name of a field, variable or option that show that
// its value is secret, all in lower case.
type SecretNameWords struct {
	Passwords                 []string // words after which any value is secret
	Endings                   []string // endings of words in a name that make any value secret, as in PGPASSWORD
	PasswordWordsOnlyAtEnd    []string `yaml:"last"`   // like Passwords, but only as the last word of a name
	RandomLookingSecretWords  []string `yaml:"keys"`   // words after which a value that looks random is secret
	SecretKeyPrefixWords      []string `yaml:"owners"` // words before "key", as in api_key, after which a value that looks random is secret
	NonSecretWords            []string `yaml:"public"` // words that show that the value is not secret
	ValueComputingCmdletVerbs []string `yaml:"verbs"`  // first words of the PowerShell commands that compute a value
	SecretPropertyWords       []string `yaml:"about"`  // last words of names for a property of a secret, such as token_length; the property is not secret
}

// A ProgramSecretInput says where a program's arguments or standard input contain a secret.
type ProgramSecretInput struct {
	Programs                []string // names of programs, in lower case and without ".exe"
	SubcommandWords         []string `yaml:"sub"`      // words that must be among the arguments, in this order
	RequiredOption          string   `yaml:"with"`     // an option that must be present; "" for none
	SecretValueOptions      []string `yaml:"secret"`   // options whose value (the next word, or the text after "=") is secret
	AttachedSecretOptions   []string `yaml:"attached"` // options that are directly followed by a secret in the same word
	AccountAndSecretOptions []string `yaml:"account"`  // options whose value is an account name, Separator and the secret
	Separator               string   // "" means ":"
	PassColonSecretOptions  []string `yaml:"source"`  // options whose value is "pass:" and the secret, as in openssl
	NameSecretPairOptions   []string `yaml:"pairs"`   // options whose value is NAME=SECRET, or several separated by ";"
	SecretOperandIndex      int      `yaml:"operand"` // index of the secret operand, counted from 1 after the subcommand words; -1 is the last one; 0 is none
	SecretOperandFormatName string   `yaml:"form"`    // the operand's content: "" a secret, "account" a name and a secret, "pairs" NAME=SECRET, also in later operands
	StdinSecretFormatName   string   `yaml:"input"`   // content of standard input: "secret", "account" (lines with an account name and a secret), "" for no secret
}

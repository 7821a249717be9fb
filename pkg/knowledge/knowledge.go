// Package knowledge contains what shield knows about programs, files and secrets.
// The data is written by hand or taken from other projects, and compiled into Go
// tables, which saves parsing it at start.
//
// About secrets it has their forms (secrets.yaml and, in the folder gitleaks, the
// rules of that program under its licence), the names of fields and variables that
// hold them, and the programs that take them as arguments (logins.yaml).
package knowledge

//go:generate go run ./gen

// A SecretForm is a form by which a credential is recognised.
type SecretForm struct {
	ID       string
	Literals []string // one of them occurs, in any case, where Pattern matches; in lower case, at least 3 bytes
	Pattern  string   // RE2; the first group that took part is the secret, or else the whole match
	Narrow   int      // length of a run of letters, digits, "_" and "-" that every match holds
	Wide     int      // length of a run of those and "+/=.~%"
	Bytes    string   // ASCII characters that are in every match
	Line     bool     // no match reaches beyond a line, nor depends on what is there
	Entropy  float64  // the least Shannon entropy of the secret, in bits a byte
	Not      []string // RE2; if one of these matches in it, the text is not a secret
}

// Names are the words in the name of a field, variable or option that show that
// its value is secret, all in lower case.
type Names struct {
	Passwords []string // words after which any value is secret
	Endings   []string // ends of words that do the same, as in PGPASSWORD
	Last      []string // like Passwords, as the update of the message of a name
	Keys      []string // words after which a value that looks random is secret
	Owners    []string // words that make a following "key" one of Keys
	Public    []string // words that show that the value is not secret
	Verbs     []string // first words of the PowerShell commands that compute a value
	About     []string // last words of names for properties of a secret, which are not secret
}

// A Login says where a program's arguments, or its standard input, hold a
// secret.
type Login struct {
	Programs  []string // their names, in lower case and without ".exe"
	Sub       []string // words that must stand among the arguments, in this order
	With      string   // an option that must be there; "" for none
	Secret    []string // options whose value (the next word, or the text after "=") is secret
	Attached  []string // options that a secret directly follows, in the same word
	Account   []string // options whose value is a name, Separator and the secret
	Separator string   // "" means ":"
	Source    []string // options whose value is "pass:" and the secret, as in openssl
	Pairs     []string // options whose value is NAME=SECRET, perhaps several between ";"
	Operand   int      // the operand, counted from 1 after Sub, that is secret; -1 is the last one; 0 is none
	Form      string   // what the operand is: "" for the secret, "account" or "pairs" (all operands from there on)
	Input     string   // what standard input holds: "secret", "account" (lines of them), "" for nothing
}

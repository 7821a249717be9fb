// Package knowledge holds what shield knows of the world outside, as data that
// was written by hand or taken from others, compiled into Go tables so that a
// program that does not need it parses nothing.
//
// Of secrets it knows their forms (secrets.yaml and, in the folder gitleaks, the
// rules of that program under its licence), the names of fields and variables
// that hold them, and the programs that take them as arguments (logins.yaml).
package knowledge

//go:generate go run ./gen

// A SecretForm is a form by which a credential is known.
type SecretForm struct {
	ID       string
	Literals []string // one of them occurs, in any case, where Pattern matches; in lower case, at least 3 bytes
	Pattern  string   // RE2; the first group that took part is the secret, or else the whole match
	Entropy  float64  // the least Shannon entropy of the secret, in bits a byte
	Not      []string // RE2; a secret in which one of these matches is none
}

// Names are the words by which the name of a field, variable or option tells
// that its value is secret, all in lower case.
type Names struct {
	Passwords []string // words after which any value is secret
	Endings   []string // ends of words that do the same, as in PGPASSWORD
	Last      []string // like Passwords, as the last word of a name
	Keys      []string // words after which a value that looks random is secret
	Owners    []string // words that make a following "key" one of Keys
	Public    []string // words that say that it is not
	Verbs     []string // with which the PowerShell commands begin that compute a value
	About     []string // last words that make a name one of something about a secret
}

// A Login says where a program's arguments, or its standard input, hold a
// secret.
type Login struct {
	Programs  []string // their names, in lower case and without ".exe"
	Sub       []string // words that must stand among the arguments, in this order
	With      string   // an option that must be there; "" for none
	Secret    []string // options whose value, the next word or what follows "=", is secret
	Attached  []string // options that a secret directly follows, in the same word
	Account   []string // options whose value is a name, Separator and the secret
	Separator string   // ":" unless given
	Source    []string // options whose value is "pass:" and the secret, as openssl has them
	Pairs     []string // options whose value is NAME=SECRET, perhaps several between ";"
	Operand   int      // the operand, counted from 1 after Sub, that is secret; -1 is the last one; 0 is none
	Form      string   // what the operand is: "" for the secret, "account" or "pairs" (all operands from there on)
	Input     string   // what standard input holds: "secret", "account" (lines of them), "" for nothing
}

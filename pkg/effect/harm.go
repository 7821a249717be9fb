package effect

import "slices"

// A Harm is damage that an effect does to the user or the machine, beyond its kind. The table of a program
// gives it for certain words and options, or it follows from the verb of a change on another machine. Rules
// match it.
type Harm string

// The harms; each comment completes the word.
const (
	Destroys  Harm = "destroys"  // data, containers, resources or accounts
	Wipes     Harm = "wipes"     // a disk or its keys
	Strands   Harm = "strands"   // backups and recovery data
	Discards  Harm = "discards"  // uncommitted work, or commits that nothing else holds
	Rewrites  Harm = "rewrites"  // published history
	Halts     Harm = "halts"     // the machine, or all processes or services of a kind
	CutsOff   Harm = "cuts-off"  // the network connection of the machine
	Schedules Harm = "schedules" // jobs that run later
	Enables   Harm = "enables"   // services that start with the machine
	Installs  Harm = "installs"  // agents and daemons
	Registers Harm = "registers" // tasks and services of Windows
	Disarms   Harm = "disarms"   // a firewall, an audit log or a malware scanner
	Weakens   Harm = "weakens"   // a protection, a log or a check
	Conceals  Harm = "conceals"  // changes of a repository
	Hides     Harm = "hides"     // files or their modification times
	Erases    Harm = "erases"    // logs and histories
	Accounts  Harm = "accounts"  // changes accounts, passwords or login keys
	Elevates  Harm = "elevates"  // takes more rights, or a way out of a sandbox
	Grants    Harm = "grants"    // access, or more of it: credentials, roles
	Exposes   Harm = "exposes"   // something to everyone
	Leaks     Harm = "leaks"     // credentials, the clipboard or the screen to another machine
	Runs      Harm = "runs"      // commands on another machine, or reaches files of a server
	Redirects Harm = "redirects" // name lookups, proxies, or the sources and destinations of images and data
	Caches    Harm = "caches"    // build results from another machine
	Records   Harm = "records"   // screen, camera, keys or traffic
	Dumps     Harm = "dumps"     // memory of another process, or a directory of accounts
	Steals    Harm = "steals"    // credentials, with a program that has no other use
	Shows     Harm = "shows"     // stored credentials
	Surveys   Harm = "surveys"   // accounts, domains or hardware
	Scans     Harm = "scans"     // other machines
	Cracks    Harm = "cracks"    // passwords
	Calls     Harm = "calls"     // the internal API of a service
	Tunnels   Harm = "tunnels"   // into the machine or out of it
	Reaches   Harm = "reaches"   // runs commands on other Windows machines
	Logs      Harm = "logs-in"   // with a password in the arguments
	Fetches   Harm = "fetches"   // files with a program not meant for downloads
	Proxies   Harm = "proxies"   // runs code through a program not meant for it
	Uploads   Harm = "uploads"   // files
	Trusts    Harm = "trusts"    // packages that are not verified
)

// Harms returns all harms.
func Harms() []Harm { return slices.Clone(harms[:]) }

var harms = [...]Harm{
	Destroys, Wipes, Strands, Discards, Rewrites, Halts, CutsOff, Schedules, Enables, Installs, Registers, Disarms, Weakens, Conceals, Hides, Erases, Accounts, Elevates, Grants, Exposes, Leaks, Runs, Redirects, Caches, Records, Dumps, Steals, Shows, Surveys, Scans, Cracks, Calls, Tunnels, Reaches, Logs, Fetches, Proxies, Uploads, Trusts,
}

// ChangeHarms returns the harms of a verb applied to another machine; nil if it is an everyday change.
// It does not consider whether the place is for development or tests.
func ChangeHarms(verb string) []Harm {
	switch verb {
	case "delete":
		return []Harm{Destroys}
	case "grant":
		return []Harm{Grants}
	case "expose":
		return []Harm{Exposes}
	case "weaken":
		return []Harm{Weakens}
	case "redirect":
		return []Harm{Redirects}
	case "run":
		return []Harm{Runs}
	}
	return nil
}

package effect

import "slices"

// A Harm is what an effect does to the user or the machine, beyond its kind. The entry
// of a program names it for certain words and options, and the verb of a change on
// another machine says it; rules judge it.
type Harm string

// The harms.
const (
	Destroys  Harm = "destroys"  // data, containers, resources or accounts
	Wipes     Harm = "wipes"     // a disk or its keys
	Strands   Harm = "strands"   // backups and what restores the machine
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
	Hides     Harm = "hides"     // files, or when they were changed
	Erases    Harm = "erases"    // logs and histories
	Accounts  Harm = "accounts"  // changes accounts, passwords or login keys
	Elevates  Harm = "elevates"  // takes more rights, or a way out of a sandbox
	Grants    Harm = "grants"    // access, or more of it: credentials, roles
	Exposes   Harm = "exposes"   // something to everybody
	Leaks     Harm = "leaks"     // credentials, the clipboard or the screen to another machine
	Runs      Harm = "runs"      // commands on another machine, or reaches files of a server
	Redirects Harm = "redirects" // name lookups or proxies, or where images and data come from or go to
	Caches    Harm = "caches"    // takes results of builds from another machine
	Records   Harm = "records"   // screen, camera, keys or traffic
	Dumps     Harm = "dumps"     // memory of another process, or a directory of accounts
	Steals    Harm = "steals"    // credentials, with a program that has no other use
	Shows     Harm = "shows"     // stored credentials
	Surveys   Harm = "surveys"   // accounts, domains or hardware
	Scans     Harm = "scans"     // other machines
	Cracks    Harm = "cracks"    // passwords
	Calls     Harm = "calls"     // the internal interface of a service
	Tunnels   Harm = "tunnels"   // into the machine or out of it
	Reaches   Harm = "reaches"   // runs commands on other machines of Windows
	Logs      Harm = "logs-in"   // with a password in the arguments
	Fetches   Harm = "fetches"   // files through a program that is not meant for it
	Proxies   Harm = "proxies"   // runs code through a program that is not meant for it
	Uploads   Harm = "uploads"   // files
	Trusts    Harm = "trusts"    // packages that no one checks
)

// Harms returns all harms.
func Harms() []Harm { return slices.Clone(harms[:]) }

var harms = [...]Harm{
	Destroys, Wipes, Strands, Discards, Rewrites, Halts, CutsOff, Schedules, Enables, Installs, Registers, Disarms, Weakens, Conceals, Hides, Erases, Accounts, Elevates, Grants, Exposes, Leaks, Runs, Redirects, Caches, Records, Dumps, Steals, Shows, Surveys, Scans, Cracks, Calls, Tunnels, Reaches, Logs, Fetches, Proxies, Uploads, Trusts,
}

// ChangeHarms returns what a change on another machine with a verb does, unless the place is
// one for development or tests by its name; nil if it is an everyday change.
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

package effect

import "slices"

// A Harm is what a program does to its user or machine with certain words and
// options, beyond what its other effects say. The entry of the program names it,
// and a heuristic rule judges it.
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
	Weakens   Harm = "weakens"   // a protection of the machine
	Conceals  Harm = "conceals"  // changes of a repository
	Hides     Harm = "hides"     // files, or when they were changed
	Erases    Harm = "erases"    // logs and histories
	Accounts  Harm = "accounts"  // changes accounts, passwords or login keys
	Elevates  Harm = "elevates"  // takes more rights, or a way out of a sandbox
	Grants    Harm = "grants"    // cloud credentials or roles
	Redirects Harm = "redirects" // name lookups or proxies
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
	Trusts    Harm = "trusts"    // packages that nobody checks
)

// Harms returns all harms.
func Harms() []Harm { return slices.Clone(harms[:]) }

var harms = [...]Harm{
	Destroys, Wipes, Strands, Discards, Rewrites, Halts, CutsOff, Schedules, Enables, Installs, Registers, Disarms, Weakens, Conceals, Hides, Erases, Accounts, Elevates, Grants, Redirects, Caches, Records, Dumps, Steals, Shows, Surveys, Scans, Cracks, Calls, Tunnels, Reaches, Logs, Fetches, Proxies, Uploads, Trusts,
}

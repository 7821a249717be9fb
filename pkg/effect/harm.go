package effect

import "slices"

// A Harm is damage that an effect does to the user or the machine, in addition to its kind.
// shield's tables of programs list the words and options that cause a harm; for a change on another
// machine, the harm follows from the verb. Rules match it.
type Harm string

// The harms. A comment without a verb continues the word of its harm: the harm "destroys" destroys data,
// containers, resources or accounts.
const (
	DestroysResources               Harm = "destroys"  // data, containers, resources or accounts
	WipesDisks                      Harm = "wipes"     // a disk or its keys
	DestroysBackups                 Harm = "strands"   // backups and recovery data
	DiscardsUnpublishedWork         Harm = "discards"  // uncommitted work, or commits that nothing else holds
	RewritesPublishedCommits        Harm = "rewrites"  // published history
	HaltsMachine                    Harm = "halts"     // the machine, or all processes or services of a kind
	CutsNetwork                     Harm = "cuts-off"  // the network connection of the machine
	SchedulesJobs                   Harm = "schedules" // jobs that run later
	EnablesServices                 Harm = "enables"   // services that start with the machine
	InstallsLaunchdJobs             Harm = "installs"  // agents and daemons
	RegistersWindowsTasksOrServices Harm = "registers" // tasks and services of Windows
	DisarmsDefences                 Harm = "disarms"   // a firewall, an audit log or a malware scanner
	WeakensSecurityControls         Harm = "weakens"   // a protection, a log or a check
	ConcealsChanges                 Harm = "conceals"  // changes of a repository
	HidesFiles                      Harm = "hides"     // files or their modification times
	ErasesLogs                      Harm = "erases"    // logs and histories
	ChangesAccounts                 Harm = "accounts"  // changes accounts, passwords or login keys
	ElevatesRights                  Harm = "elevates"  // takes more rights, or a way out of a sandbox
	GrantsCredentialsOrRoles        Harm = "grants"    // access, or more of it: credentials, roles
	ExposesResourcesPublicly        Harm = "exposes"   // gives everyone access to a file, service or other resource
	LeaksSecrets                    Harm = "leaks"     // credentials, the clipboard or the screen to another machine
	RunsCommandsOnRemoteMachines    Harm = "runs"      // commands on another machine, or reaches files of a server
	RedirectsTraffic                Harm = "redirects" // name lookups, proxies, or the sources and destinations of images and data
	UsesRemoteBuildCache            Harm = "caches"    // build results from another machine
	Eavesdrops                      Harm = "records"   // screen, camera, keys or traffic
	DumpsMemory                     Harm = "dumps"     // memory of another process, or a directory of accounts
	StealsCredentials               Harm = "steals"    // credentials, with a program that has no other use
	ShowsCredentials                Harm = "shows"     // stored credentials
	EnumeratesAccounts              Harm = "surveys"   // accounts, domains or hardware
	ScansMachines                   Harm = "scans"     // other machines
	CracksPasswords                 Harm = "cracks"    // passwords
	CallsServiceInternalAPI         Harm = "calls"     // the internal API of a service
	Tunnels                         Harm = "tunnels"   // network traffic into or out of the machine
	RunsRemoteWindowsCommands       Harm = "reaches"   // runs commands on other Windows machines
	LogsInWithPassword              Harm = "logs-in"   // with a password in the arguments
	FetchesFiles                    Harm = "fetches"   // fetches files with a program that is not meant for downloads
	RunsCodeThroughLOLBin           Harm = "proxies"   // runs code through a program not meant for it
	UploadsFiles                    Harm = "uploads"   // files
	TrustsUnverifiedPackages        Harm = "trusts"    // packages that are not verified
)

// Harms returns all harms.
func Harms() []Harm { return slices.Clone(harms[:]) }

var harms = [...]Harm{
	DestroysResources, WipesDisks, DestroysBackups, DiscardsUnpublishedWork, RewritesPublishedCommits, HaltsMachine, CutsNetwork, SchedulesJobs, EnablesServices, InstallsLaunchdJobs, RegistersWindowsTasksOrServices, DisarmsDefences, WeakensSecurityControls, ConcealsChanges, HidesFiles, ErasesLogs, ChangesAccounts, ElevatesRights, GrantsCredentialsOrRoles, ExposesResourcesPublicly, LeaksSecrets, RunsCommandsOnRemoteMachines, RedirectsTraffic, UsesRemoteBuildCache, Eavesdrops, DumpsMemory, StealsCredentials, ShowsCredentials, EnumeratesAccounts, ScansMachines, CracksPasswords, CallsServiceInternalAPI, Tunnels, RunsRemoteWindowsCommands, LogsInWithPassword, FetchesFiles, RunsCodeThroughLOLBin, UploadsFiles, TrustsUnverifiedPackages,
}

// HarmsOfRemoteOperation returns the harms of a verb applied to another machine; nil if it is an everyday change.
// It does not consider whether the place is for development or tests.
func HarmsOfRemoteOperation(verb string) []Harm {
	switch verb {
	case "delete":
		return []Harm{DestroysResources}
	case "grant":
		return []Harm{GrantsCredentialsOrRoles}
	case "expose":
		return []Harm{ExposesResourcesPublicly}
	case "weaken":
		return []Harm{WeakensSecurityControls}
	case "redirect":
		return []Harm{RedirectsTraffic}
	case "run":
		return []Harm{RunsCommandsOnRemoteMachines}
	}
	return nil
}

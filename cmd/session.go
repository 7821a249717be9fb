package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/session"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/state"
)

func sessionCommand(w *Environment) *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return append([]cli.Flag{configFlag(), stateFlag(), &cli.BoolFlag{Name: "json", Usage: "write JSON"}}, more...)
	}
	all := func() cli.Flag { return &cli.BoolFlag{Name: "all", Usage: "every session; takes no ID"} }
	return &cli.Command{
		Name:  "session",
		Usage: "show and clear what shield remembers of a session",
		Description: "What an action reads affects later actions (taint tracking): after a session read a credential, private files or text from outside, sending " +
			"data to hosts that are not trusted needs approval. Downloaded files are tracked in every session until their content is shown; the ID files " +
			"names their record. After too many denials a host's session stops. " +
			"Only a person can run session clear and session resume: they refuse where an agent can type, and in scripts. ID is the host's session ID, the session of a piped action, default for shield exec, or files.",
		Subcommands: []*cli.Command{
			{
				Name:   "list",
				Usage:  "list active sessions",
				Flags:  flags(),
				Action: func(c *cli.Context) error { return listSessions(c, w) },
			},
			{
				Name:      "show",
				Usage:     "show what shield remembers of a session",
				ArgsUsage: "ID",
				Flags:     flags(),
				Action:    func(c *cli.Context) error { return showSession(c, w) },
			},
			{
				Name:        "clear",
				Usage:       "forget one session, the downloaded files, or everything",
				ArgsUsage:   "ID",
				Description: "The labels and denials of the session are forgotten. Do this before unrelated work begins. files and --all also forget which files were downloaded or hold secrets, and what credentials look like.",
				Flags:       flags(all()),
				Action: func(c *cli.Context) error {
					return changeSelectedSessions(c, w, "Cleared", "No session was remembered.", func(s *session.Store, choose func(*session.Record) bool) (int, error) {
						return s.Clear(c.Context, choose)
					})
				},
			},
			{
				Name:        "resume",
				Usage:       "resume a session that was stopped after too many denials",
				ArgsUsage:   "[ID]",
				Description: "Without ID it lists the stopped sessions. Resuming forgets the denials of the session, and nothing else. Look at them first: shield session show ID.",
				Flags:       flags(all()),
				Action: func(c *cli.Context) error {
					if c.NArg() == 0 && !c.Bool("all") {
						return listStoppedSessions(c, w)
					}
					return changeSelectedSessions(c, w, "Resumed", "No session has denials.", func(s *session.Store, choose func(*session.Record) bool) (int, error) {
						if choose == nil {
							choose = func(*session.Record) bool { return true }
						}
						return s.ResumeStoppedSessions(c.Context, choose)
					})
				},
			},
		},
	}
}

// openSessions opens the state file and the sessions in it.
func openSessions(c *cli.Context, w *Environment) (*state.Store, *session.Store, error) {
	set, err := loadSettings(c, w)
	if err != nil {
		return nil, nil, err
	}
	file, err := openStore(set, w)
	if err != nil {
		return nil, nil, err
	}
	return file, session.NewStore(file, shield.SessionOptions(pipelineConfigFromSettings(set, w, "session"), w.Now)), nil
}

// sessionName returns the name of a session for people.
func sessionName(k session.Key) string {
	switch {
	case k.IsDefault():
		return "default"
	case k.IsSharedByUserSessions():
		return "files"
	}
	return k.ID
}

// sessionNameMatcher returns a function that accepts the sessions with a name.
func sessionNameMatcher(name string) func(*session.Record) bool {
	return func(r *session.Record) bool { return sessionName(r.Key) == name }
}

func listSessions(c *cli.Context, w *Environment) error {
	if _, err := operands(c); err != nil {
		return err
	}
	file, store, err := openSessions(c, w)
	if err != nil {
		return err
	}
	defer file.Close()
	list, err := store.List(c.Context)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(append([]session.Record{}, list...))
	}
	shared, err := readLabelledFileRecordsPerUser(c.Context, store)
	if err != nil {
		return err
	}
	if len(list)+len(shared) == 0 {
		_, err := fmt.Fprintln(w.Out, "No session is remembered.")
		return err
	}
	t := newTableWriter(w.Out, "SESSION", "HOST", "LAST ACTION", "HAS READ", "STATE")
	for i := range list {
		r := &list[i]
		state := ""
		if r.IsStoppedAfterDenials {
			state = "stopped"
		}
		fmt.Fprintf(t, "%s\t%s\t%s ago\t%s\t%s\n", term.EscapeControlAndInvisible(sessionName(r.Key)), orDash(r.AgentHostName), formatAge(elapsedSince(w, r.LastActionAt)), orDash(strings.Join(labelNames(r), ", ")), state)
	}
	for i := range shared {
		s := &shared[i]
		fmt.Fprintf(t, "%s\t-\t%s ago\t%s\t\n", sessionName(s.Key), formatAge(elapsedSince(w, s.LastActionAt)), fmt.Sprint(len(s.Files), " known"))
	}
	return t.Flush()
}

// readLabelledFileRecordsPerUser returns the stored file information of each user who has some: the
// labelled files, the git remotes with changed addresses, and when the number of files last reached
// its limit.
func readLabelledFileRecordsPerUser(ctx context.Context, store *session.Store) (out []sessionWithFiles, err error) {
	shared, err := store.RecordsSharedBySessions(ctx)
	for _, r := range shared {
		if err != nil {
			return nil, err
		}
		var files []effect.LabelledFile
		if files, err = store.Files(ctx, r.Key); len(files) > 0 || len(r.Remotes) > 0 || r.FileLimitReachedAt > 0 {
			out = append(out, sessionWithFiles{r, files})
		}
	}
	return out, err
}

func labelNames(r *session.Record) (out []string) {
	for _, l := range r.Labels {
		out = append(out, string(l.Label))
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func elapsedSince(w *Environment, at int64) time.Duration { return w.Now().Sub(time.Unix(at, 0)) }

// A sessionWithFiles is the record of a session or, with Files, the record that all sessions of a user share.
type sessionWithFiles struct {
	session.Record
	Files []effect.LabelledFile `json:"files,omitempty"`
}

func showSession(c *cli.Context, w *Environment) error {
	args, err := operands(c, "ID")
	if err != nil {
		return err
	}
	file, store, err := openSessions(c, w)
	if err != nil {
		return err
	}
	defer file.Close()
	list, err := store.List(c.Context)
	if err != nil {
		return err
	}
	out := []sessionWithFiles{}
	for _, r := range list {
		if !sessionNameMatcher(args[0])(&r) {
			continue
		}
		out = append(out, sessionWithFiles{Record: r})
	}
	if args[0] == "files" {
		shared, err := readLabelledFileRecordsPerUser(c.Context, store)
		if err != nil {
			return err
		}
		out = append(out, shared...)
	}
	if len(out) == 0 {
		return fmt.Errorf("session show: no session %q is remembered; 'shield session list' lists them", shortenTo80Characters(args[0]))
	}
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(out)
	}
	for i := range out {
		if err := printSession(w.Out, &out[i], w); err != nil {
			return err
		}
	}
	return nil
}

func printSession(to io.Writer, s *sessionWithFiles, w *Environment) error {
	var b strings.Builder
	switch {
	case s.IsSharedByUserSessions():
		fmt.Fprintf(&b, "files of %s", orDash(s.User))
	case s.AgentHostName != "":
		fmt.Fprintf(&b, "session %s of %s", sessionName(s.Key), s.AgentHostName)
	default:
		fmt.Fprintf(&b, "session %s", sessionName(s.Key))
	}
	fmt.Fprintf(&b, ", began %s ago\n", formatAge(elapsedSince(w, s.BeganAt)))
	if s.IsStoppedAfterDenials {
		fmt.Fprintf(&b, "stopped after too many denials; to resume it: %s\n", shield.ResumeSessionCommandLine(s.Key))
	}
	for _, l := range s.Labels {
		fmt.Fprintf(&b, "label   %s, by %s, %s ago\n", l.Label, l.EffectOrActionType, formatAge(elapsedSince(w, l.FirstAddedAt)))
	}
	for _, n := range s.NamedObjects {
		wanted := "named "
		if n.AreOperationsForbidden {
			wanted = "not   "
		}
		fmt.Fprintf(&b, "%s  the user wrote: %s\n", wanted, strings.Join(strings.Fields(n.Quote), " "))
	}
	for _, f := range s.Files {
		fmt.Fprintf(&b, "file    %s: %s\n", f.Path, joinLabels(f.Labels))
	}
	if s.FileLimitReachedAt > 0 {
		fmt.Fprintf(&b, "file    the list of files that the session downloaded became full %s ago; since then, every file that is not in the list counts as downloaded\n", formatAge(elapsedSince(w, s.FileLimitReachedAt)))
	}
	for _, r := range s.Remotes {
		fmt.Fprintf(&b, "remote  %s of %s now points to %s\n", r.Name, orDash(r.Repository), orDash(r.HostAndAccount))
	}
	for _, sent := range s.Sent {
		fmt.Fprintf(&b, "sent    %d times to %s, %d bytes or more\n", sent.SendCount, sent.Recipient, sent.Bytes)
	}
	for _, d := range s.Denials {
		fmt.Fprintf(&b, "denied  %s ago by %s", formatAge(elapsedSince(w, d.DeniedUnixSeconds)), orDash(d.Rule))
		for _, t := range d.Targets {
			fmt.Fprintf(&b, "; %s %s", t.Operation, t.PathHostOrRecipient)
		}
		b.WriteString("\n")
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(to, term.EscapeControlAndInvisible(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func joinLabels(labels []effect.TaintLabel) string {
	words := make([]string, len(labels))
	for i, l := range labels {
		words[i] = string(l)
	}
	return strings.Join(words, ", ")
}

// listStoppedSessions lists the stopped sessions, each with the command that resumes it.
func listStoppedSessions(c *cli.Context, w *Environment) error {
	file, store, err := openSessions(c, w)
	if err != nil {
		return err
	}
	defer file.Close()
	list, err := store.List(c.Context)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(r session.Record) bool { return !r.IsStoppedAfterDenials })
	if c.Bool("json") {
		return json.NewEncoder(w.Out).Encode(append([]session.Record{}, list...))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w.Out, "No session is stopped.")
		return err
	}
	fmt.Fprintln(w.Out, "Stopped after too many denials:")
	t := newTableWriter(w.Out, "HOST", "LAST ACTION", "TO RESUME")
	for i := range list {
		r := &list[i]
		fmt.Fprintf(t, "%s\t%s ago\t%s\n", orDash(r.AgentHostName), formatAge(elapsedSince(w, r.LastActionAt)), term.EscapeControlAndInvisible(shield.ResumeSessionCommandLine(r.Key)))
	}
	return t.Flush()
}

// changeSelectedSessions changes the sessions that the operand names, or all.
func changeSelectedSessions(c *cli.Context, w *Environment, doneVerb, noMatchMessage string, change func(*session.Store, func(*session.Record) bool) (int, error)) error {
	names := []string{"ID"}
	if c.Bool("all") {
		names = nil
	}
	args, err := operands(c, names...)
	if err != nil {
		return err
	}
	var choose func(*session.Record) bool
	if len(args) > 0 {
		if args[0] == "" {
			return errors.New("session: the ID is empty; use --all for every session")
		}
		choose = sessionNameMatcher(args[0])
	}
	if err := requirePerson(w, "session "+c.Command.Name, personProofTypedByHand); err != nil {
		return err
	}
	file, store, err := openSessions(c, w)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := change(store, choose)
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return json.NewEncoder(w.Out).Encode(map[string]int{"sessions": n})
	case n == 0:
		_, err = fmt.Fprintln(w.Out, noMatchMessage)
	case n == 1:
		_, err = fmt.Fprintf(w.Out, "%s 1 session.\n", doneVerb)
	default:
		_, err = fmt.Fprintf(w.Out, "%s %d sessions.\n", doneVerb, n)
	}
	return err
}

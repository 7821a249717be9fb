package scan

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Pipeline judges the calls of one conversation in order. It is not safe for concurrent use.
type Pipeline interface {
	// Judge judges an action in Tiers 0 and 1, and records its effects unless it is denied.
	Judge(ctx context.Context, a *action.Action) (verdict.Verdict, []verdict.Step)
	// Peek judges as Judge does, but records nothing.
	Peek(ctx context.Context, a *action.Action) verdict.Verdict
	// Returned records the result of a call.
	Returned(ctx context.Context, actions []*action.Action, result any) error
	// Case returns the analysis of an action.
	Case(a *action.Action) *analysis.Case
	Close()
}

// Options configure a scan.
type Options struct {
	// Open returns the pipeline for a conversation of a host that started in a folder; home is its
	// user's home folder. It is called concurrently.
	Open func(host, home, folder string, files analysis.Layer) (Pipeline, error)

	Home   string                       // home folder that contains the hosts' folders
	Getenv func(name string) string     // reads the environment variables that name other host folders; nil: none
	Hosts  []string                     // hosts to read; none means all
	Paths  []string                     // files and folders to read instead of the hosts' folders
	Jobs   int                          // conversations judged concurrently; 0 means one per processor
	Told   func(done, all int64, n int) // receives the number of bytes and calls read; can be nil. It is called concurrently
}

// A scanner replays transcripts.
type scanner struct {
	opts   Options
	redact *redact.Redactor
	all    int64
	done   atomic.Int64
	calls  atomic.Int64

	mu     sync.Mutex
	report *Report
	tally  *tally
	seen   map[uint64]struct{} // hashes of all calls, since a resumed conversation repeats them
}

// Run replays the transcripts that the options name. The error is for invalid options or an ended
// context; unreadable files are listed in the report.
func Run(ctx context.Context, opts Options) (*Report, error) {
	for _, name := range opts.Hosts {
		if !slices.Contains(Hosts(), name) {
			return nil, fmt.Errorf("shield cannot read transcripts of the host %q; use one of %q", name, Hosts())
		}
	}
	var f finder
	if len(opts.Paths) > 0 {
		only := ""
		if len(opts.Hosts) == 1 {
			only = opts.Hosts[0]
		}
		for _, name := range opts.Paths {
			if err := f.given(name, only); err != nil {
				return nil, fmt.Errorf("%s: %s", name, why(err))
			}
		}
	} else {
		for i := range sources() {
			if s := &sources()[i]; len(opts.Hosts) == 0 || slices.Contains(opts.Hosts, s.Host) {
				f.folder(s, s.root(opts))
			}
		}
	}
	s := &scanner{opts: opts, redact: redact.New(), report: &Report{}, tally: newTally(), seen: map[uint64]struct{}{}}
	for _, one := range f.files {
		s.all += one.size
	}
	tasks := order(f.files)
	s.report.Left, s.report.LeftMore, s.report.Files = f.left, f.more, len(f.files)
	if err := s.replay(ctx, tasks); err != nil {
		return nil, err
	}
	s.finish()
	return s.report, nil
}

// root returns a host's transcript folder: that of its settings, unless an environment variable names
// another.
func (s *source) root(opts Options) string {
	folder, variable := s.Folder, s.Variable
	if folder == "" {
		h, err := host.Named(s.Host)
		if err != nil {
			return "" // a test names each
		}
		folder, variable = h.Folder()
	}
	name, below, _ := strings.Cut(variable, "/")
	if name != "" && opts.Getenv != nil {
		if dir := opts.Getenv(name); filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(below))
		}
	}
	return filepath.Join(opts.Home, filepath.FromSlash(folder))
}

// replay judges conversations concurrently, each in one goroutine.
func (s *scanner) replay(ctx context.Context, tasks [][]file) error {
	n := s.opts.Jobs
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	// The largest first, so that none runs alone at the end.
	sorted.By(tasks, func(a, b []file) int { return int(sizeOf(b)>>10 - sizeOf(a)>>10) })
	next := make(chan []file)
	var workers sync.WaitGroup
	var failed error
	for range min(n, max(len(tasks), 1)) {
		workers.Go(func() {
			for files := range next {
				if err := s.task(ctx, files); err != nil {
					s.mu.Lock()
					failed = err
					s.mu.Unlock()
				}
			}
		})
	}
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		s.mu.Lock()
		stop := failed != nil
		s.mu.Unlock()
		if stop {
			break
		}
		next <- t
	}
	close(next)
	workers.Wait()
	if failed != nil {
		return failed
	}
	return ctx.Err()
}

func sizeOf(files []file) (n int64) {
	for _, f := range files {
		n += f.size
	}
	return n
}

// task replays one conversation.
func (s *scanner) task(ctx context.Context, files []file) error {
	c, err := s.newConversation(ctx, files[0])
	if err != nil {
		return err
	}
	defer c.close()
	for _, f := range files {
		err := records(f, c, 0, func(n int64) {
			if done := s.done.Add(n); s.opts.Told != nil {
				s.opts.Told(done, s.all, int(s.calls.Load()))
			}
		})
		c.ends()
		switch {
		case c.failed != nil:
			return c.failed
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.t.left(f.name, why(err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.t.task(c.t.calls > 0, files[0].source.Host, s.report)
	s.tally.add(c.t)
	return nil
}

// repeated records the hash of a call, and reports whether it occurred before.
func (s *scanner) repeated(key uint64) bool {
	const most = 4 << 20
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.seen[key]
	if !known && len(s.seen) < most {
		s.seen[key] = struct{}{}
	}
	return known
}

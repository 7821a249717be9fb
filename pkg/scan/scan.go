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

// A CallJudgingPipeline judges the calls of one conversation in order. It is not safe for
// concurrent use.
type CallJudgingPipeline interface {
	// Judge judges an action in Tiers 0 and 1, and records its effects unless it is denied.
	Judge(ctx context.Context, a *action.Action) (verdict.Verdict, []verdict.TierStep)
	// JudgeWithoutRecording judges as Judge does, but records nothing.
	JudgeWithoutRecording(ctx context.Context, a *action.Action) verdict.Verdict
	// ExamineAndRecordToolResult examines the result of the tool call that ran the given actions, and records it
	// for the judging of later actions.
	ExamineAndRecordToolResult(ctx context.Context, actions []*action.Action, result any) error
	// AnalyzeAction returns the analysis of an action.
	AnalyzeAction(a *action.Action) *analysis.ActionCase
	Close()
}

// Options configure a scan.
type Options struct {
	// OpenPipeline returns the pipeline that judges a conversation. host is the agent host, home is the user's
	// home folder, and folder is the working folder of the conversation at its first call. OpenPipeline is
	// called concurrently.
	OpenPipeline func(host, home, folder string, files analysis.FileOverlay) (CallJudgingPipeline, error)

	Home                       string                       // home folder that contains the hosts' folders
	Getenv                     func(name string) string     // reads the environment variables that name other host folders; nil: none
	AgentHostNames             []string                     // hosts to read; none means all
	TranscriptPaths            []string                     // files and folders to read instead of the hosts' folders
	MaxConcurrentConversations int                          // conversations judged concurrently; 0 means one per processor
	ReportBytesAndCallsRead    func(done, all int64, n int) // receives the bytes read (done), all bytes to read (all) and the calls read (n); can be nil. It is called concurrently
}

// A scanner replays transcripts.
type scanner struct {
	opts            Options
	redactor        *redact.Redactor
	totalBytes      int64
	readBytes       atomic.Int64
	judgedCallCount atomic.Int64

	mu        sync.Mutex
	report    *Report
	counts    *callCounts
	seenCalls map[uint64]struct{} // hashes of all calls, since a resumed conversation repeats them
}

// Run replays the transcripts that the options name. The error is for invalid options or an ended
// context; unreadable files are listed in the report.
func Run(ctx context.Context, opts Options) (*Report, error) {
	for _, name := range opts.AgentHostNames {
		if !slices.Contains(AgentHostNames(), name) {
			return nil, fmt.Errorf("shield cannot read transcripts of the host %q; use one of %q", name, AgentHostNames())
		}
	}
	var f transcriptFinder
	if len(opts.TranscriptPaths) > 0 {
		only := ""
		if len(opts.AgentHostNames) == 1 {
			only = opts.AgentHostNames[0]
		}
		for _, name := range opts.TranscriptPaths {
			if err := f.addUserNamedPath(name, only); err != nil {
				return nil, fmt.Errorf("%s: %s", name, errorWithoutPath(err))
			}
		}
	} else {
		for i := range transcriptSources() {
			if s := &transcriptSources()[i]; len(opts.AgentHostNames) == 0 || slices.Contains(opts.AgentHostNames, s.Host) {
				f.searchHostFolder(s, s.transcriptFolder(opts))
			}
		}
	}
	s := &scanner{opts: opts, redactor: redact.New(), report: &Report{}, counts: newCallCounts(), seenCalls: map[uint64]struct{}{}}
	for _, one := range f.files {
		s.totalBytes += one.size
	}
	tasks := groupByConversation(f.files)
	s.report.SkippedFiles, s.report.OmittedSkippedFileCount, s.report.Files = f.skipped, f.omittedSkippedFileCount, len(f.files)
	if err := s.judgeConversations(ctx, tasks); err != nil {
		return nil, err
	}
	s.fillReport()
	return s.report, nil
}

// transcriptFolder returns the folder with a host's transcripts. By default it is Folder, or else
// the folder of the host's settings; an environment variable can replace it.
func (s *transcriptSource) transcriptFolder(opts Options) string {
	folder, variable := s.Folder, s.Variable
	if folder == "" {
		h, err := host.Named(s.Host)
		if err != nil {
			return "" // cannot happen: a test checks that every source names a known host
		}
		folder, variable = h.ConfigFolder()
	}
	name, below, _ := strings.Cut(variable, "/")
	if name != "" && opts.Getenv != nil {
		if dir := opts.Getenv(name); filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(below))
		}
	}
	return filepath.Join(opts.Home, filepath.FromSlash(folder))
}

// judgeConversations judges conversations concurrently, each in one goroutine.
func (s *scanner) judgeConversations(ctx context.Context, tasks [][]transcript) error {
	n := s.opts.MaxConcurrentConversations
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	// The largest first, so that none runs alone at the end.
	sorted.SortStableBy(tasks, func(a, b []transcript) int { return int(totalSize(b)>>10 - totalSize(a)>>10) })
	next := make(chan []transcript)
	var workers sync.WaitGroup
	var failed error
	for range min(n, max(len(tasks), 1)) {
		workers.Go(func() {
			for files := range next {
				if err := s.judgeConversation(ctx, files); err != nil {
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

func totalSize(files []transcript) (n int64) {
	for _, f := range files {
		n += f.size
	}
	return n
}

// judgeConversation replays one conversation.
func (s *scanner) judgeConversation(ctx context.Context, files []transcript) error {
	c, err := s.newConversation(ctx, files[0])
	if err != nil {
		return err
	}
	defer c.closePipeline()
	for _, f := range files {
		err := readRecords(f, c, 0, func(n int64) {
			if done := s.readBytes.Add(n); s.opts.ReportBytesAndCallsRead != nil {
				s.opts.ReportBytesAndCallsRead(done, s.totalBytes, int(s.judgedCallCount.Load()))
			}
		})
		c.dropPendingCalls()
		switch {
		case c.pipelineOpenError != nil:
			return c.pipelineOpenError
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.counts.addSkippedFile(f.filePath, errorWithoutPath(err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.counts.countConversation(c.counts.calls > 0, files[0].source.Host, s.report)
	s.counts.mergeCounts(c.counts)
	return nil
}

// wasCallSeen records the hash of a call, and reports whether it occurred before.
func (s *scanner) wasCallSeen(callHash uint64) bool {
	const most = 4 << 20
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.seenCalls[callHash]
	if !known && len(s.seenCalls) < most {
		s.seenCalls[callHash] = struct{}{}
	}
	return known
}

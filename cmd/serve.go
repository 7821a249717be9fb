package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/internal/peer"
	"github.com/shieldcli/shield/internal/watch"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/service"
	"github.com/shieldcli/shield/pkg/shield"
	"github.com/shieldcli/shield/pkg/telemetry"
	"github.com/shieldcli/shield/pkg/verdict"
)

func serveCommand(w *Environment) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "judge for this user's hooks and commands in one long-running process",
		Description: "Listens at a Unix socket in the user's state folder, where only processes of this user can ask. While it runs, hooks, exec, mcp with one server, and run, policy and classify with one action on standard input ask it first: for their own folder, environment, settings and policy, which are read again for each action. " +
			"A process whose action is not decided by policy and classifier within 200 ms judges it itself, with the same verdict; so does every process when no service runs. " +
			"With the channel web in approval.channels it serves the approval page as long as it runs; shield approvals prints the link. With serve.listen it answers other machines, too: POST /v1/actions takes and returns JSON Lines over TLS, for clients with a token from serve.tokens_file. SIGHUP reloads settings, " +
			"certificate, tokens and models; SIGTERM and ^C end it after the pending answers.",
		Flags: commonJudgeFlags(),
		Action: func(c *cli.Context) error {
			if _, err := operands(c); err != nil {
				return err
			}
			return serve(c, w)
		},
	}
}

// serviceStateFolder returns the folder of this user's service; "" if unknown.
func serviceStateFolder(w *Environment) string { return config.StateDir(w.Home, w.Getenv) }

// systemdSocket returns the listening socket that systemd passed to this process, or nil.
func systemdSocket(w *Environment) *os.File {
	if w.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || w.Getenv("LISTEN_FDS") != "1" {
		return nil
	}
	return os.NewFile(3, "the socket of systemd")
}

// serve answers questions until the context ends.
func serve(c *cli.Context, w *Environment) error {
	state := serviceStateFolder(w)
	if state == "" {
		return errors.New("serve: the state folder is unknown; set HOME")
	}
	s := &server{environment: w, serviceAnswerTimeout: watch.ServiceAnswerTimeout, startedAt: w.Now(), metrics: service.NewMetrics(), judgingSlots: make(chan struct{}, maxParallelClientRequestsPerCPU*runtime.GOMAXPROCS(0))}
	s.approvalPage = service.NewHTTPSService(service.HTTPSServiceOptions{Judge: s.judgeRemoteClientActions, ServiceStatusForJSON: func() any { return s.statusReport() }, Metrics: s.metrics, Clock: w.Now})
	if err := s.reload(c); err != nil {
		return err
	}
	observe, end, err := startTelemetry(c.Context, s.settings.Load().Telemetry.OTLPEndpointURL, w)
	if err != nil {
		return err
	}
	defer end()
	s.observe = observe
	socket, err := service.Listen(peer.ServiceFolder(state), systemdSocket(w))
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	parts := []func() error{func() error { return socket.Serve(ctx, s.answer) }}
	fmt.Fprintf(w.Err, "shield: listening for processes of this user at %s\n", filepath.Join(peer.ServiceFolder(state), peer.SocketFileName))
	if address := s.settings.Load().Serve.Listen; address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		fmt.Fprintf(w.Err, "shield: listening for clients with a token at https://%s\n", l.Addr())
		parts = append(parts, func() error { return s.approvalPage.Serve(ctx, l) })
	}
	go s.fetchPolicyBundlePeriodically(ctx)
	var reloads sync.WaitGroup
	reloads.Go(func() { s.reloadOnSignals(ctx, c) })
	defer reloads.Wait()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			defer stop() // when this server ends, cancel ctx, so that the other servers end too
			ended <- part()
		}()
	}
	for range parts {
		err = errors.Join(err, <-ended)
	}
	s.pool.Clear()
	return err
}

// reloadOnSignals reloads settings at each signal, and serves the approval page accordingly, until the
// context ends.
func (s *server) reloadOnSignals(ctx context.Context, c *cli.Context) {
	endPage := s.serveApprovalPage(ctx, s.settings.Load())
	defer func() { endPage() }()
	for {
		select {
		case <-s.environment.Reload:
			if err := s.reload(c); err != nil {
				fmt.Fprintf(s.environment.Err, "shield: serve: the new settings are invalid, so shield still uses the old settings; correct this: %s\n", redactedErrorText(err))
				continue
			}
			endPage()
			endPage = s.serveApprovalPage(ctx, s.settings.Load())
			fmt.Fprintln(s.environment.Err, "shield: serve: settings reloaded")
		case <-ctx.Done():
			return
		}
	}
}

// A server answers the questions of other processes.
type server struct {
	environment          *Environment
	serviceAnswerTimeout time.Duration // how long a process that asks this service waits for the answer
	pool                 shield.PipelinePool
	startedAt            time.Time
	judgingSlots         chan struct{} // semaphore of the questions that are judged in parallel

	receivedClientRequestCount, serviceDecidedRequestCount atomic.Int64 // questions received from other processes, and those that were decided

	observe        func(telemetry.Action) // receives telemetry; may be nil
	metrics        *service.Metrics
	approvalPage   *service.HTTPSService
	settings       atomic.Pointer[config.LoadedSettings]
	executableInfo fs.FileInfo // file info of shield's executable when this process started
}

// reload drops loaded models and pipelines, and loads what most questions need.
func (s *server) reload(c *cli.Context) error {
	set, err := loadSettings(c, s.environment)
	if err != nil {
		return err
	}
	if s.executableInfo == nil {
		if s.executableInfo, err = os.Stat(s.environment.ShieldExecutablePath); err != nil {
			return fmt.Errorf("serve: shield's program file cannot be read: %w; install shield again", err)
		}
	}
	if set.Serve.Listen != "" {
		if err := s.approvalPage.LoadCertificateAndTokens(set.Serve); err != nil {
			return err
		}
	}
	s.ensureUsablePolicyBundle(c.Context, set)
	s.pool.Clear()
	if err := s.pool.Warm(pipelineConfigFromSettings(set, s.environment, "serve")); err != nil {
		return err
	}
	s.settings.Store(set)
	return nil
}

// judgeRemoteClientActions judges actions of a client on another machine by their text alone, since its files are
// not on this machine.
func (s *server) judgeRemoteClientActions(ctx context.Context, client string, actions io.Reader, out func(v *verdict.Verdict, more bool) error) error {
	set := s.settings.Load()
	cfg := pipelineConfigFromSettings(set, s.environment, "serve")
	cfg.IgnoresFileSystem, cfg.WorkingDir = true, ""
	cfg.Caller.User, cfg.Caller.ParentPID = client, 0
	cfg.ApprovalOptions.AskingProgramDescription = fmt.Sprintf("%s, a client on another machine, through shield serve (process %d)", client, os.Getpid())
	cfg.Observe = s.observe
	p, done, err := s.pool.Lend(cfg)
	if err != nil {
		return errors.Join(service.ErrNotReady, err)
	}
	defer done()
	in := shield.NewActionSource(actions, "body", set.MaxActionRecordBytes)
	return p.JudgeStream(ctx, in, func(j *shield.InputRecordResult) error { return out(&j.Verdict, j.IsNextResultReady) }, shield.StreamOptions{Tiers: shield.AllTiers, Jobs: runtime.GOMAXPROCS(0)})
}

func (s *server) statusReport() serviceReport {
	return serviceReport{os.Getpid(), s.startedAt, s.receivedClientRequestCount.Load(), s.serviceDecidedRequestCount.Load()}
}

// isSameBuildAsService reports whether an asking process runs the same build of shield.
func (s *server) isSameBuildAsService(clientProgramPath string) bool {
	now, err := os.Stat(clientProgramPath)
	return err == nil && os.SameFile(now, s.executableInfo) && now.Size() == s.executableInfo.Size() && now.ModTime().Equal(s.executableInfo.ModTime())
}

// A requestFromServiceClient is the question of another process, for which this process, the user's service,
// runs the command line of that other process.
type requestFromServiceClient struct {
	input                []byte
	pool                 *shield.PipelinePool
	observe              func(telemetry.Action) // receives telemetry of verdicts; may be nil
	pipelineReleaseFuncs []func()
}

// commandsJudgedByService are the commands for which a service judges.
var commandsJudgedByService = []string{"hook", "exec", "mcp", "run", "policy", "classify"}

// maxParallelClientRequestsPerCPU is how many questions are judged in parallel per processor: while one waits for the disk
// another computes, and they share a write to the log.
const maxParallelClientRequestsPerCPU = 4

// errUndecided means that the service did not decide, and the process that asked the service must
// judge the action.
var errUndecided = errors.New("a later tier must decide; run shield without a tier limit")

// answer runs the command line of a question.
func (s *server) answer(ctx context.Context, q *peer.Question, from service.CallingProcess) (ans peer.Answer) {
	ctx, cancel := context.WithTimeout(ctx, s.serviceAnswerTimeout)
	defer cancel()
	if len(q.AskingProgramArgs) == 2 && q.AskingProgramArgs[0] == "service" && s.isSameBuildAsService(q.AskingProgramPath) {
		text, err := json.Marshal(s.statusReport())
		return peer.Answer{ServiceDecided: err == nil, CommandStdout: text}
	}
	s.receivedClientRequestCount.Add(1)
	start := s.environment.Now()
	defer func() { s.metrics.CountQuestionToService(ans.ServiceDecided, s.environment.Now().Sub(start).Seconds()) }()
	if !s.isSameBuildAsService(q.AskingProgramPath) || len(q.AskingProgramArgs) == 0 || !slices.Contains(commandsJudgedByService, q.AskingProgramArgs[0]) {
		return peer.Answer{}
	}
	// Wait at most a quarter of the time limit for a free judging slot. After a longer wait, the
	// asking process could give up before the action is judged.
	full := time.NewTimer(s.serviceAnswerTimeout / 4)
	defer full.Stop()
	select {
	case s.judgingSlots <- struct{}{}:
		defer func() { <-s.judgingSlots }()
	case <-full.C:
		return peer.Answer{}
	}
	of := &requestFromServiceClient{input: q.AskingProcessStdin, pool: &s.pool, observe: s.observe}
	defer func() {
		for _, done := range of.pipelineReleaseFuncs {
			done()
		}
	}()
	env := make(map[string]string, len(q.Environ))
	for _, pair := range q.Environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if _, again := env[name]; !again { // the first value counts, as in os.Getenv
				env[name] = value
			}
		}
	}
	var out bytes.Buffer
	w := Environment{
		Out: &out, Getenv: func(name string) string { return env[name] }, Environ: func() []string { return q.Environ }, Now: s.environment.Now,
		Home: env["HOME"], WorkingDir: q.AskingProcessWorkingDir, ShieldExecutablePath: q.AskingProgramPath, User: env["USER"], OS: s.environment.OS, RootFS: s.environment.RootFS,
		verdictRequesterPID: max(q.ParentPIDOfAskingProcess, 1), judgePID: from.PID, requestFromServiceClient: of,
	}
	w.setDefaults()
	app := newApp(&w, q.AskingProgramArgs...)
	if q.AskingProgramArgs[0] != "hook" { // each agent host is a subcommand of hook; no subcommand of another command asks the service for a verdict
		app.Commands[0].Subcommands = nil
	}
	w.args = moveFlagsFirst(app, q.AskingProgramArgs)
	if err := app.RunContext(ctx, append([]string{"shield"}, w.args...)); err != nil || ctx.Err() != nil {
		return peer.Answer{}
	}
	if out.Len() == 0 {
		return peer.Answer{}
	}
	s.serviceDecidedRequestCount.Add(1)
	return peer.Answer{ServiceDecided: true, CommandStdout: out.Bytes()}
}

// newServiceQuestion returns the question for a command line. input is its standard input.
func (w *Environment) newServiceQuestion(args []string, input []byte) peer.Question {
	return peer.Question{AskingProgramPath: w.ShieldExecutablePath, AskingProcessWorkingDir: w.WorkingDir, ParentPIDOfAskingProcess: w.verdictRequesterPID, AskingProgramArgs: args, Environ: w.Environ(), AskingProcessStdin: input}
}

// askServiceForCommandOutput asks the user's service for the output of this command line on an input. ok is false if
// this process has to judge.
func (w *Environment) askServiceForCommandOutput(input []byte) (line []byte, ok bool) {
	ask := watch.DialService(serviceStateFolder(w), w.newServiceQuestion(w.args, nil))
	if ask == nil {
		return nil, false
	}
	return ask(input)
}

// borrowPooledPipeline returns a pipeline from the pool. The pipeline goes back to the pool when
// the request is answered.
func (s *requestFromServiceClient) borrowPooledPipeline(cfg shield.Config) (*shield.Pipeline, error) {
	cfg.Observe = s.observe
	p, done, err := s.pool.Lend(cfg)
	if err == nil {
		s.pipelineReleaseFuncs = append(s.pipelineReleaseFuncs, done)
	}
	return p, err
}

// evaluateAction judges an action for the asking process: in a service it stops, with [errUndecided], before
// another program or a person is asked.
func (w *Environment) evaluateAction(ctx context.Context, p *shield.Pipeline, a *action.Action) (verdict.Verdict, error) {
	if w.requestFromServiceClient == nil {
		return p.Evaluate(ctx, a), nil
	}
	v, ok := p.EvaluateInProcess(ctx, a)
	if !ok {
		return v, errUndecided
	}
	return v, nil
}

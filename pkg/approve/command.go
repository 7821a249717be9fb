package approve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/subprocess"
	"github.com/shieldcli/shield/pkg/analysis"
)

// maxApprovalProgramReplyBytes is the longest answer of a command, in bytes.
const maxApprovalProgramReplyBytes = 64 << 10

// approvalProgramChannel asks through a program that the user supplies, which may reach them anywhere. It gets the
// request as a JSON object on standard input and answers with one on standard output.
type approvalProgramChannel struct{ options *Options }

func newApprovalProgramChannel(o *Options) ApprovalChannel { return &approvalProgramChannel{o} }

func (*approvalProgramChannel) Name() string { return "command" }

func (c *approvalProgramChannel) CheckUsable() error {
	if len(c.options.CommandChannelArgv) == 0 {
		return errors.New("no program is configured; set approval.command")
	}
	if c.options.SharesParentTerminal && !filepath.IsAbs(c.options.CommandChannelArgv[0]) {
		return fmt.Errorf("the program %.80q of approval.command is in no system folder; write its absolute path", c.options.CommandChannelArgv[0])
	}
	if _, err := exec.LookPath(c.options.CommandChannelArgv[0]); err != nil {
		return fmt.Errorf("the program of approval.command cannot be run: %w; correct the setting", err)
	}
	return nil
}

func (c *approvalProgramChannel) Ask(ctx context.Context, r *Request) (Answer, error) {
	question, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("encode request: %w", err)
	}
	cmd := exec.CommandContext(ctx, c.options.CommandChannelArgv[0], c.options.CommandChannelArgv[1:]...)
	cmd.Env = c.options.ApprovalProgramEnv
	if dir := c.options.ApprovalProgramWorkingDir; dir != "" {
		cmd.Dir, cmd.Env = dir, append(slices.Clip(cmd.Env), "PWD="+dir)
	}
	cmd.Stdin = bytes.NewReader(append(question, '\n'))
	out := subprocess.LimitedOutput{MaxBytes: maxApprovalProgramReplyBytes + 1} // one byte more shows that the answer is too long
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // child processes may keep the streams open
	subprocess.SetOwnProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return Answer{}, fmt.Errorf("the program of approval.command cannot be started: %w; correct approval.command", err)
	}
	r.StartTimer()
	err = cmd.Wait()
	subprocess.KillGroup(cmd) // including child processes of the program
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if err != nil {
		return Answer{}, fmt.Errorf("the program of approval.command failed: %w; run it by hand to find out why", err)
	}
	return parseApprovalProgramReply(out.Bytes(), r.ID)
}

// An approvalProgramReply is the answer of the program of the setting approval.command. Every field except
// Decision may be missing.
type approvalProgramReply struct {
	ID                  *string `json:"id"`
	Decision            string  `json:"decision"`
	Reason              string  `json:"reason"`
	AnsweringPersonName string  `json:"by"`
	RememberMinutes     int     `json:"minutes"`
	ApprovalScope       string  `json:"scope"`
	ToolClass           string  `json:"class"`
}

// approvalProgramAnswerFormat describes what a program must answer.
const approvalProgramAnswerFormat = `one JSON object with the text "decision" ("approve" or "deny"), and optionally the texts "id", "reason", "by", "scope" and "class", and the whole number "minutes"`

// jsonErrorWithoutGoTerms returns an error of an answer in the terms of JSON instead of Go.
func jsonErrorWithoutGoTerms(err error) error {
	var semantic *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, json.ErrUnknownName):
		err = errors.New("it has a key that shield does not know")
	case errors.As(err, &semantic) && semantic.JSONPointer != "":
		err = fmt.Errorf("%q has a value of the wrong type", strings.TrimPrefix(string(semantic.JSONPointer), "/"))
	case errors.Is(err, jsontext.ErrDuplicateName):
		err = errors.New("it has the same key twice")
	case errors.As(err, &syntax):
		err = fmt.Errorf("it is not valid JSON at byte %d", syntax.ByteOffset+1)
	default:
		err = errors.New("it is not a JSON object")
	}
	return err
}

// parseApprovalProgramReply reads one answer object. Anything else is an error.
func parseApprovalProgramReply(data []byte, requestID string) (Answer, error) {
	if len(data) > maxApprovalProgramReplyBytes {
		return Answer{}, fmt.Errorf("the program's answer is longer than %d bytes; shorten it", maxApprovalProgramReplyBytes)
	}
	var reply approvalProgramReply
	// Unmarshal also rejects duplicate keys: of two decisions in one object, the last would count.
	if err := json.Unmarshal(data, &reply, json.RejectUnknownMembers(true)); err != nil {
		return Answer{}, fmt.Errorf("the program's answer cannot be read: %w; print %s", jsonErrorWithoutGoTerms(err), approvalProgramAnswerFormat)
	}
	a := Answer{RequestID: requestID, Reason: reply.Reason, AnsweringPersonName: reply.AnsweringPersonName}
	if reply.ID != nil {
		a.RequestID = *reply.ID
	}
	switch reply.Decision {
	case "approve":
		a.Approve = true
	case "deny":
	default:
		return Answer{}, fmt.Errorf("the program's decision %.20q must be approve or deny", reply.Decision)
	}
	switch reply.ApprovalScope {
	case "", "once":
	case "session":
		a.IsAdvanceApproval = true
	default:
		return Answer{}, fmt.Errorf("the program answered with scope %.20q; it must answer once or session", reply.ApprovalScope)
	}
	a.Class = analysis.ToolClass(reply.ToolClass)
	switch {
	case reply.ToolClass == "":
	case !slices.Contains(analysis.ToolClasses, a.Class):
		return Answer{}, fmt.Errorf("the program's class %.20q must be reads, workspace, elsewhere or never", reply.ToolClass)
	case a.Approve == (a.Class == analysis.ToolClassForbidden):
		return Answer{}, fmt.Errorf("the program's \"decision\" contradicts its \"class\" %q; answer \"deny\" with the class \"never\", and \"approve\" with every other class", reply.ToolClass)
	}
	if reply.RememberMinutes < 0 {
		return Answer{}, errors.New("the number \"minutes\" in the answer of the approval program must be 0 or more")
	}
	a.RememberFor = time.Duration(min(reply.RememberMinutes, 60)) * time.Minute
	return a, nil
}

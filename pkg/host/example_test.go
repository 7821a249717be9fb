package host_test

import (
	"context"
	"fmt"

	"github.com/shieldcli/shield/pkg/host"
)

func ExampleHost_Event() {
	h, err := host.Named("claude-code")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	e, err := h.Event(ctx, []byte(`{"session_id":"s","cwd":"/work/app","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf ~"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range e.Actions {
		fmt.Println(string(a))
	}
	answer, err := h.DenialResponse(ctx, "deletes the home folder", "")
	fmt.Println(string(answer), err)
	// Output:
	// {"cwd":"/work/app","payload":{"command":"rm -rf ~"},"session":"s","type":"execute_command"}
	// {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"deletes the home folder"}} <nil>
}

# What the files of several hosts use. A definition begins a line and uses
# earlier ones and itself alone.

# The command line of a hook that runs shield for a host, whatever its file is
# called.
def shields($host):
  .command | strings | select(test("(shield|SHIELD_CONFIG=).* hook " + $host + "( |$)"));

# The input of a tool that edits → what it replaces, as a field of the payload.
def replaced:
  (.old_string // .old_str // .oldString // .oldStr // .oldText // .old_text // .before
   // ([.edits? | arrays[] | objects | (.old_string // .oldText // .old_text) | strings] | join("\n")))
  | if type == "string" and . != "" then {old_string: .} else {} end;

# The input of a tool → a payload with a path for each of its fields of these names that it
# has. A tool that takes either may be given both.
def placed($names): [.[$names[]]] | map(values) | unique[] | {path: .};

# The input of a tool → all that it writes, from its fields of these names.
def written($names): {content: ([.[$names[]]] | map(values) | join("\n"))};

# The same for a tool that replaces parts of a file, as Antigravity names them.
def chunks:
  [., (.ReplacementChunks | if type == "string" then fromjson else . end | arrays[])]
  | {content: (map(.ReplacementContent | values) | join("\n"))}
    + (map(.TargetContent | strings) | join("\n") | if . == "" then {} else {old_string: .} end);

# The input of a tool that searches in folders, or in that of the session.
def searched($pattern; $folders):
  ($folders | if type == "array" then . else [values] end | if . == [] then ["."] else . end)[] | {pattern: $pattern, path: .};

# The input of a tool that runs a command → whether it asks for that outside the host's
# sandbox, as a field of the payload.
def unboxed:
  [.dangerouslyDisableSandbox, .requestUnsandboxedExecution, .with_escalated_permissions,
   .sandbox_permissions == "require_escalated", (.required_permissions | arrays | index(["all"]) != null)]
  | if any(. != null and . != false and . != "false") then {sandbox: "off"} else {} end;

# An answer in the form of Claude Code, which other hosts took over.
def decided($event; $decision):
  {hookSpecificOutput: {hookEventName: $event, permissionDecision: $decision, permissionDecisionReason: .reason}};

# What the user is shown beside a denial, where a host has a message for them.
def shown: if .user == "" then {} else {systemMessage: .user} end;

# The same in answer to PermissionRequest.
def permitted($decision): {hookSpecificOutput: {hookEventName: "PermissionRequest", decision: $decision}};

# Whether an entry of hooks.EVENT has the form {matcher, hooks: [...]}.
def well_formed:
  type == "object" and ((has("matcher") | not) or (.matcher | type == "string")) and (.hooks | type == "array")
  and all(.hooks[];
    type == "object" and (.type | type == "string") and (.type != "command" or (.command | type == "string"))
    and ((has("timeout") | not) or (.timeout | type == "number" and . > 0)));

# {matcher, hooks: [{type, command, timeout}]} and one of its hooks → what is
# said of that; the timeout is by default $default and counted in parts of $per
# to a second. $known are keys that change nothing.
def grouped($entry; $default; $per; $known):
  {command, timeout: ((.timeout // $default) / $per), problems: [
    (select(.type != "command") | "its type is not command; run the installation again"),
    ($entry | select(has("matcher") and (.matcher | IN("*", "", ".*") | not)) | "its matcher \(.matcher) does not cover all tools; set it to \"*\""),
    ((($entry | keys) - ["matcher", "hooks"] - $known) + (keys - ["type", "command", "timeout"] - $known)
     | select(length > 0) | "it has \(join(", ")), so the host may not run it, or not wait for it; remove that")]};

# A list of such entries → what is said of the hooks of shield in it.
def groups($host; $default; $per; $known):
  [.[]? | . as $entry | .hooks[] | select(shields($host)) | grouped($entry; $default; $per; $known)];

# The same for another event, where a malformed entry does not keep the host from asking
# before a tool runs.
def other_groups($name; $host; $default; $per; $known):
  if . != null and (type != "array" or any(.[]; well_formed | not))
  then [{command: "", timeout: 0, problems: ["an entry of \($name) is malformed, so the host may not run the hook of shield there; fix it"]}]
  else groups($host; $default; $per; $known) end;

# The hooks object → what is said of the hooks of shield for what tools return. Tools that
# fail have an event of their own.
def returning($host; $default; $per; $known):
  . as $hooks
  | [("PostToolUse", "PostToolUseFailure") as $event
      | ($hooks[$event] | other_groups("hooks.\($event)"; $host; $default; $per; $known)) as $found
      | {$event, $found}] as $all
  | ($all | map(.found) | add)
  | if all(.[]; .command == "") then . else .[0].problems += [$all[] | select(.found == []) | "hooks.\(.event) does not ask shield; run 'shield hook install \($host)' again"] end;

# A list of {command, ...} → what is said of the hooks of shield in it. All keys
# must be known.
def flat($host; $default; $known):
  [.[]? | objects | select(shields($host))
   | {command, timeout: (.timeout // $default), problems: [
      (keys - ["command"] - $known | select(length > 0) | "it has \(join(", ")), so the host may not run it, or not wait for it; remove that")]}];

# Why a list of hooks is not one of the expected form.
def misshapen($name; good):
  values | select(type != "array" or any(.[]; good | not))
  | "the host ignores the whole file, because an entry of \($name) is malformed; fix it";

# What Claude Code and its followers send, as {event, tool, input, id, cwd,
# session}.
def claude_event:
  {event: .hook_event_name, tool: .tool_name, input: .tool_input, id: .tool_use_id, cwd, session: .session_id};

# What they say of a tool's result, or of why it failed.
def claude_result: {result: (.tool_response // .error), files: null, agent: .agent_id};

# A prompt that a session is given at another time → what that is. What outlives the
# session is a schedule; in it, each call that comes of the prompt is judged.
def prompted:
  if (.durable == null or .durable == false) and .sessionMode != "unbound" then {type: "agent_message", payload: {content: .prompt}}
  else {type: "create_schedule", payload: {cron, task: .prompt}} end;

# The address of a resource of an MCP server → what reading it does. Behind a scheme of the
# server's own may be a file.
def mcp_resource:
  .uri as $uri | $uri | capture("(?s)^(?<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?<rest>.*)$")
  | (.scheme | ascii_downcase) as $scheme
  | if $scheme | IN("http", "https") then {type: "http_request", payload: {url: $uri, method: "GET"}}
    else .rest | ltrimstr("//")
      | if $scheme == "file" then ltrimstr("localhost") | if startswith("/") then . else error("a file of another machine") end end
      | sub("(?s)[?#].*"; "") | @urid
      | {type: "read_file", payload: {path: (if . == "" then "." else . end), resource: $uri}} end;

# What a plugin of shield's own sends. The answer carries the id, so there must be
# one.
def plugin_event:
  if (.id | type) != "string" or .id == "" then error("the call has no id") end
  | {event, tool, input, id, cwd, session};
def plugin_deny: {decision: "deny", reason};
def plugin_allow: {decision: "allow", id};
def plugin_replace: {decision: "replace", id, result: (if .withheld then .text else .result end)};
def plugin_sample($tool): {event: "tool", tool: $tool, input: {command: "rm -rf --no-preserve-root /"}, id: "shield-status", session: "shield-status", cwd};

# The host's process → whether its command line has one of some options, as far as it is
# known.
def given($options):
  any(.args? // [] | .[]; . as $arg | any($options[]; . as $option | $arg == $option or ($arg | startswith($option + "="))));

# The same, for a process of which everything else than some options is to count: others,
# and words that are not the value of an option, are told by true.
def given_more($flags; $valued):
  .args | reduce .[] as $arg ({skip: false, more: false};
    if .skip then .skip = false
    elif any($valued[]; $arg == .) then .skip = true
    elif any($flags[]; $arg == .) or any($valued[]; . as $option | $arg | startswith($option + "=")) then .
    else .more = true end)
  | .more or .skip;

# {doc}: a file of settings, or a text → whether a hook other than shield's answers what the
# host asks its user.
def permission_hooks($host):
  .doc
  | if type == "string" then test("PermissionRequest")
    else .hooks?.PermissionRequest? | . != null and [.. | objects | select(has("type")) | select([shields($host)] == [])] != [] end;

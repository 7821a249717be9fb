# Claude Code: hooks PreToolUse and PostToolUse.
#
# event     the hook's input → {event, actions: [action records]}
# answer    {event, allow, reason} → the hook's output, or null for none
# denied    a hook's output → whether the host takes it for a denial
# settings  how the hook is installed
# commands  the hooks of shield in an installed entry

# What each tool's input becomes. A tool that is not here keeps its name and
# its input, so that nothing passes unjudged.
def tool($name; $in):
  if $name == "Bash" then {type: "execute_command", payload: {command: $in.command}}
  elif $name == "Read" then {type: "read_file", payload: {path: $in.file_path}}
  elif $name == "Write" then {type: "write_file", payload: {path: $in.file_path, content: $in.content}}
  elif $name == "Edit" then {type: "write_file", payload: {path: $in.file_path, content: $in.new_string}}
  elif $name == "MultiEdit" then {type: "write_file", payload: {path: $in.file_path, content: ([$in.edits[].new_string] | join("\n"))}}
  elif $name == "NotebookEdit" then {type: "write_file", payload: {path: $in.notebook_path, content: ($in.new_source // "")}}
  elif $name == "Glob" then {type: "search_files", payload: ({pattern: $in.pattern} + if $in.path then {path: $in.path} else {path: "."} end)}
  elif $name == "Grep" then {type: "search_files", payload: ({pattern: $in.pattern} + if $in.path then {path: $in.path} else {path: "."} end)}
  elif $name == "LS" then {type: "list_directory", payload: {path: $in.path}}
  elif $name == "WebFetch" then {type: "http_request", payload: {url: $in.url, method: "GET"}}
  elif $name == "WebSearch" then {type: "web_search", payload: {query: $in.query}}
  else {type: $name, payload: $in}
  end;

# Tools that change nothing outside the host, or whose own tool calls are
# judged one by one. shield has no opinion on them.
def internal:
  IN("TodoWrite", "TodoRead", "Task", "Agent", "Skill", "SlashCommand", "ToolSearch", "EnterPlanMode", "ExitPlanMode",
     "AskUserQuestion", "BashOutput", "TaskOutput", "KillShell", "KillBash", "TaskStop",
     "TaskCreate", "TaskUpdate", "TaskGet", "TaskList");

def event:
  if (.hook_event_name == "PreToolUse") and (.tool_name | type == "string") and (.tool_input | type == "object") then
    .tool_name as $name
    | {event: "PreToolUse",
       actions: (if $name | internal then []
                 else [tool($name; .tool_input) + {cwd, session: .session_id, id: .tool_use_id} | with_entries(select(.value != null))]
                 end)}
  elif .hook_event_name == "PostToolUse" and (.tool_name | type == "string") then {event: "PostToolUse", actions: []}
  else error("neither PreToolUse nor PostToolUse")
  end;

def answer:
  if .event == "PreToolUse" and .allow != null then
    {hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: (if .allow then "allow" else "deny" end),
      permissionDecisionReason: .reason}}
  else null
  end;

def denied:
  type == "object" and (.hookSpecificOutput | type == "object" and .hookEventName == "PreToolUse" and .permissionDecision == "deny");

# {command, timeout in seconds, cwd} → where and how the hook is installed, and
# an event that it must deny.
def settings:
  {files: {user: ".claude/settings.json", project: ".claude/settings.json"},
   path: ["hooks", "PreToolUse"],
   entry: {matcher: "*", hooks: [{type: "command", command: .command, timeout: .timeout}]},
   sample: {
     session_id: "shield-status", transcript_path: "", cwd: .cwd, hook_event_name: "PreToolUse",
     tool_name: "Bash", tool_input: {command: "rm -rf --no-preserve-root /"}, tool_use_id: "shield-status"}};

# an entry of the list at path → the command lines in it that run shield
def commands:
  [.hooks[]? | objects | .command | strings | select(test("shield.* hook claude-code"))];

# Claude Code: hooks PreToolUse and PostToolUse.
#
# event     the hook's input → {event, actions: [action records]}
# answer    {event, delegate, reason} → the output for what is allowed, or null
# deny      {reason} → the output for what is denied, whatever the input was
# denied    a hook's output → the reason of a denial, "" if it is none
# settings  how the hook is installed
# commands  the hooks of shield in an installed entry
# inspect   {scope, doc} → what Claude Code makes of a settings file

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

# Nothing on standard output leaves a call to Claude Code's own permissions;
# "allow" skips them.
def answer:
  if .event == "PreToolUse" and (.delegate | not) then
    {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "allow", permissionDecisionReason: .reason}}
  else null
  end;

def deny:
  {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: .reason}};

def denied:
  [objects | .hookSpecificOutput | objects | select(.hookEventName == "PreToolUse" and .permissionDecision == "deny")
   | .permissionDecisionReason | strings] | first // "";

# {command, timeout in seconds, cwd} → where and how the hook is installed, and
# an event that it must deny.
def settings:
  {scopes: [
     {name: "user", folder: ".claude", variable: "CLAUDE_CONFIG_DIR", file: "settings.json", install: true},
     {name: "project", folder: ".claude", file: "settings.json", install: true},
     {name: "local", folder: ".claude", file: "settings.local.json"}],
   managed: {
     linux: ["/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.d/*.json"],
     darwin: ["/Library/Application Support/ClaudeCode/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.d/*.json"],
     windows: ["C:\\Program Files\\ClaudeCode\\managed-settings.json", "C:\\Program Files\\ClaudeCode\\managed-settings.d\\*.json"]},
   off: ["CLAUDE_CODE_SIMPLE"],
   next: "restart Claude Code",
   path: ["hooks", "PreToolUse"],
   entry: {matcher: "*", hooks: [{type: "command", command: .command, timeout: .timeout}]},
   sample: {
     session_id: "shield-status", transcript_path: "", cwd: .cwd, hook_event_name: "PreToolUse",
     tool_name: "Bash", tool_input: {command: "rm -rf --no-preserve-root /"}, tool_use_id: "shield-status"}};

# The command line of a hook that runs shield, whatever its file is called.
def shields:
  .command | strings | select(test("(shield|SHIELD_CONFIG=).* hook claude-code"));

# an entry of the list at path → the command lines in it that run shield
def commands:
  [.hooks[]? | objects | shields];

# Claude Code ignores a whole file in which one of these is of another type, or
# an entry of hooks.PreToolUse is not what it expects.
def types:
  {hooks: "object", disableAllHooks: "boolean", allowManagedHooksOnly: "boolean", model: "string", env: "object", permissions: "object",
   statusLine: "object", sandbox: "object", enabledPlugins: "object", cleanupPeriodDays: "number", availableModels: "array", companyAnnouncements: "array",
   apiKeyHelper: "string", awsAuthRefresh: "string", outputStyle: "string", language: "string",
   includeCoAuthoredBy: "boolean", alwaysThinkingEnabled: "boolean", spinnerTipsEnabled: "boolean", enableAllProjectMcpServers: "boolean"};

def well_formed:
  type == "object" and ((has("matcher") | not) or (.matcher | type == "string")) and (.hooks | type == "array")
  and all(.hooks[];
    type == "object" and (.type | type == "string") and (.type != "command" or (.command | type == "string"))
    and ((has("timeout") | not) or (.timeout | type == "number" and . > 0)));

def ignored:
  (types as $types | to_entries[] | select($types[.key] != null and $types[.key] != (.value | type))
   | "Claude Code ignores the whole file, because \(.key) is not of type \($types[.key]); fix it"),
  (.permissions? | objects
   | select(any((.allow, .deny, .ask, .additionalDirectories) | values; type != "array")
       or (has("defaultMode") and (.defaultMode | IN("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions") | not)))
   | "Claude Code ignores the whole file, because its permissions are malformed; correct them"),
  (.hooks? | objects | .PreToolUse | values | select(type != "array" or any(.[]; well_formed | not))
   | "Claude Code ignores the whole file, because an entry of hooks.PreToolUse is malformed; fix it");

# Variables that change which hooks run, or what runs in them.
def steering($scope):
  test("^(LD_.*|DYLD_.*|CLAUDE_CODE_SIMPLE)$") or ($scope != "user" and . == "PATH");

def stops($scope):
  (select(has("disableAllHooks") and .disableAllHooks != false) | "disableAllHooks switches all hooks off; remove it"),
  (select($scope == "managed" and .allowManagedHooksOnly == true)
   | "allowManagedHooksOnly switches off all hooks that are not in a managed file; install shield there, or remove it"),
  (.env? | objects | keys[] | select(steering($scope)) | "env sets \(.), which changes whether the hook runs or what runs in it; remove it");

def ours($entry):
  {command, timeout: (.timeout // 60), problems: [
    (select(.type != "command") | "its type is not command; run the installation again"),
    ($entry | select(has("matcher") and (.matcher | IN("*", "", ".*") | not)) | "its matcher \(.matcher) does not cover all tools; set it to \"*\""),
    ((($entry | keys) - ["matcher", "hooks"]) + (keys - ["type", "command", "timeout", "statusMessage"])
     | select(length > 0) | "it has \(join(", ")), so Claude Code may not run it, or not wait for it; remove that")]};

def inspect:
  .scope as $scope | .doc | [ignored] as $ignored
  | {ignored: $ignored}
    + if $ignored != [] then {} else {
        stops: [stops($scope)],
        hooks: [.hooks.PreToolUse[]? | . as $entry | .hooks[] | select(shields) | ours($entry)]}
      end;

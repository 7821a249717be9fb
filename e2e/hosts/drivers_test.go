//go:build unix

package hosts

// A driver starts one host against a model on loopback. Files are below the home
// folder; a text may have @URL@, @SERVER@ and @WORK@: the model, a program that is
// an MCP server, and the folder of the work, as texts of JSON without quotes.
type driver struct {
	name    string
	program string            // below node_modules
	env     []string          // beside HOME and PATH
	files   map[string]string // what the host needs before shield is installed
	first   []string          // a command line that is run once before
	args    []string
	mute    bool // the host says the reason of a denial to no one

	off     switched // the host's own switch of hooks
	agent   string   // the kind of sub-agent that is started; "" where there are none
	resume  []string // instead of args: goes on with the last session; nil where that is not offered
	untried string   // why sub-agents and sessions that are resumed cannot be tried here; "" where they can
	dialog  dialog

	renamed   [][]string // a settings file, and names of events in it with others in their place, which have the host raise more of them
	elsewhere []string   // events that another program of the host raises
	fails     bool       // it passes nothing of a tool that failed

	events  map[string]string // what events call a tool that models know by another name; "" for one that raises none of its own
	unknown []string          // tools that the host offers and that shield asks about, sorted

	servers switched // its list of MCP servers, with the program @EVERYTHING@; none where 'shield mcp install' does not know the list
}

// everything is the entry of an MCP server from npm in a list of servers. The server
// tells its environment to those who ask.
var everything = object{"mcpServers": object{"everything": object{"command": "@EVERYTHING@", "args": []any{"stdio"}, "env": object{"MARK": mark}}}}

const mcpServers = `"mcpServers": {"probe": {"command": "@SERVER@", "args": [], "env": {"SHIELD_E2E_MCP": "@WORK@/mcp.log"}}}`

const opencodePackage = `{"dependencies": {"@opencode-ai/plugin": "*"}}`

// drivers are the hosts whose programs the npm registry has.
var drivers = []driver{
	{
		name: "claude-code", program: ".bin/claude",
		env: []string{"ANTHROPIC_BASE_URL=@URL@", "ANTHROPIC_API_KEY=sk-ant-fake", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "ENABLE_TOOL_SEARCH=false", "IS_SANDBOX=1"},
		files: map[string]string{"mcp.json": `{` + mcpServers + `}`, ".claude.json": `{"hasCompletedOnboarding": true, "theme": "dark", "bypassPermissionsModeAccepted": true,
 "customApiKeyResponses": {"approved": ["sk-ant-fake"], "rejected": []}, "projects": {"@WORK@": {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}}`},
		args:    []string{"-p", "run it", "--output-format", "json", "--mcp-config", "@HOME@/mcp.json", "--dangerously-skip-permissions"},
		off:     switched{file: ".claude/settings.json", members: object{"disableAllHooks": true}},
		agent:   "general-purpose",
		resume:  []string{"-p", "go on", "--continue", "--output-format", "json", "--dangerously-skip-permissions"},
		servers: switched{file: ".claude.json", members: everything},
		dialog: dialog{
			args: []string{"--permission-mode", "@MODE@", "run it"}, modes: []string{"default", "acceptEdits", "auto", "plan", "dontAsk", "bypassPermissions"},
			asks: "Do you want to proceed?", no: []string{"Down", "Enter"}, yes: []string{"Enter"},
			rule: switched{file: "../work/.claude/settings.local.json", members: object{"permissions": object{"ask": []string{"Bash(touch:*)"}}}},
		},
	},
	{
		name: "codex", program: ".bin/codex",
		env: []string{"FAKE_KEY=x"},
		files: map[string]string{".codex/config.toml": `model = "gpt-5-codex"
model_provider = "fake"
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "@URL@/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
[mcp_servers.probe]
command = "@SERVER@"
env = { SHIELD_E2E_MCP = "@WORK@/mcp.log" }
[projects."@WORK@"]
trust_level = "trusted"
`},
		args:    []string{"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "run it"},
		off:     switched{file: ".codex/config.toml", lines: "[features]\nhooks = false\n"},
		agent:   "default",
		events:  map[string]string{"exec_command": "Bash", "write_stdin": ""},
		resume:  []string{"exec", "resume", "--last", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "go on"},
		servers: switched{file: ".codex/config.toml", lines: "[mcp_servers.everything]\ncommand = \"@EVERYTHING@\"\nargs = [\"stdio\"]\nrequired = true\nstartup_timeout_sec = 60\nenv = { MARK = \"" + mark + "\" }\n"},
		dialog: dialog{
			args: []string{"--dangerously-bypass-hook-trust", "-a", "on-request", "-s", "workspace-write", "run it"},
			call: object{"sandbox_permissions": "require_escalated", "justification": "it has to"},
			asks: "Would you like to run the following command?",
			rule: switched{file: ".codex/rules/mine.rules", lines: `prefix_rule(pattern = ["touch"], decision = "prompt")` + "\n"},
		},
	},
	{
		name: "gemini-cli", program: ".bin/gemini",
		env: []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=@URL@", "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false"},
		files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false},
 "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, ` + mcpServers + `}`},
		args:    []string{"-p", "run it", "-o", "json", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"},
		off:     switched{file: ".gemini/settings.json", members: object{"hooksConfig": object{"enabled": false}}},
		agent:   "generalist",
		resume:  []string{"--resume", "latest", "-p", "go on", "-o", "json", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"},
		servers: switched{file: ".gemini/settings.json", members: everything},
		dialog: dialog{
			args: []string{"-m", "gemini-2.5-pro", "--approval-mode", "@MODE@", "-i", "run it"}, modes: []string{"default", "auto_edit", "yolo"},
			asks: "Allow execution of", no: []string{"Escape"}, yes: []string{"Enter"},
		},
	},
	{
		name: "qwen-code", program: ".bin/qwen",
		env: []string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL=@URL@/v1", "OPENAI_MODEL=fake-model"},
		files: map[string]string{".qwen/settings.json": `{"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": false},
 "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, ` + mcpServers + `}`},
		args:   []string{"-p", "run it", "-o", "json", "--auth-type", "openai", "--approval-mode", "yolo"},
		off:    switched{file: ".qwen/settings.json", members: object{"disableAllHooks": true}},
		agent:  "general-purpose",
		events: map[string]string{"tool_call": ""},
		resume: []string{"--continue", "-p", "go on", "-o", "json", "--auth-type", "openai", "--approval-mode", "yolo"},
		dialog: dialog{
			args: []string{"--auth-type", "openai", "--approval-mode", "@MODE@", "-i", "run it"}, modes: []string{"default", "auto-edit", "yolo"},
			own: "Allow execution of", asks: "Do you want to proceed?", no: []string{"Down", "Enter"}, yes: []string{"Enter"},
		},
	},
	{
		name: "copilot", program: ".bin/copilot",
		env:     []string{"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=@URL@/v1", "COPILOT_PROVIDER_API_KEY=x", "COPILOT_MODEL=gpt-4.1", "COPILOT_AUTO_UPDATE=false"},
		files:   map[string]string{".copilot/mcp-config.json": `{"mcpServers": {"probe": {"type": "local", "command": "@SERVER@", "args": [], "tools": ["*"], "env": {"SHIELD_E2E_MCP": "@WORK@/mcp.log"}}}}`},
		args:    []string{"-p", "run it", "--allow-all"},
		off:     switched{file: ".copilot/hooks/shield.json", members: object{"disableAllHooks": true}},
		agent:   "general-purpose",
		renamed: [][]string{{".copilot/hooks/shield.json", `"preToolUse"`, `"PreToolUse"`, `"postToolUse"`, `"PostToolUse"`}},
		resume:  []string{"--continue", "-p", "go on", "--allow-all"},
		dialog: dialog{
			args: []string{"-i", "run it", "--allow-all"}, modes: []string{"interactive"},
			own: "Do you trust the files in this folder?", asks: "permission request", no: []string{"Escape"}, more: true, yes: []string{"Enter"},
		},
	},
	{
		name: "droid", program: ".bin/droid",
		env: []string{"FACTORY_API_KEY=fk-fake"},
		files: map[string]string{
			".factory/settings.json": `{"customModels": [{"model": "fake-model", "displayName": "fake", "baseUrl": "@URL@/v1", "apiKey": "x", "provider": "generic-chat-completion-api", "maxOutputTokens": 4000}]}`,
			".factory/mcp.json":      `{"mcpServers": {"probe": {"type": "stdio", "command": "@SERVER@", "args": [], "env": {"SHIELD_E2E_MCP": "@WORK@/mcp.log"}}}}`,
		},
		args:    []string{"exec", "--skip-permissions-unsafe", "-m", "custom:fake-model", "run it"},
		off:     switched{file: ".factory/settings.json", members: object{"hooks": object{"hooksDisabled": true}}},
		unknown: []string{"GenerateImage"},
		fails:   true,
		untried: "not tried: its daemon or service is out of reach",
	},
	{
		name: "cline", program: ".bin/cline",
		first:     []string{"auth", "openai-compatible", "-k", "x", "-m", "fake-model", "-b", "@URL@/v1"},
		files:     map[string]string{".cline/data/settings/cline_mcp_settings.json": `{` + mcpServers + `}`},
		args:      []string{"-P", "openai-compatible", "-k", "x", "-m", "fake-model", "--json", "--auto-approve", "true", "run it"},
		elsewhere: []string{"PreToolUse", "PostToolUse"},
		mute:      true,
		agent:     "default",
		untried:   "not tried: only at a terminal",
	},
	{
		name: "opencode", program: ".bin/opencode",
		env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		files: map[string]string{".config/opencode/opencode.json": `{"autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": "@URL@/v1", "apiKey": "x"}, "models": {"fake-model": {"name": "fake", "tool_call": true}}}},
 "mcp": {"probe": {"type": "local", "command": ["@SERVER@"], "enabled": true, "environment": {"SHIELD_E2E_MCP": "@WORK@/mcp.log"}}},
 "permission": {"bash": "allow", "edit": "allow"}}`,
			// Beside plugins it installs a package from npm before it begins, unless that is
			// there. Shield's plugin imports nothing of it.
			".config/opencode/node_modules/.keep": "",
			".config/opencode/package.json":       opencodePackage,
			".config/opencode/package-lock.json":  `{"packages": {"": ` + opencodePackage + `}}`},
		args:   []string{"run", "--format", "json", "run it"},
		off:    switched{env: []string{"OPENCODE_PURE=1"}},
		agent:  "general",
		resume: []string{"run", "--continue", "--format", "json", "go on"},
	},
	{
		name: "pi", program: ".bin/pi",
		env: []string{"PI_OFFLINE=1"},
		files: map[string]string{".pi/agent/models.json": `{"providers": {"fake": {"baseUrl": "@URL@/v1", "api": "openai-completions", "apiKey": "x",
 "models": [{"id": "fake-model", "name": "fake", "reasoning": false, "input": ["text"], "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 100000, "maxTokens": 4000}]}}}`},
		args:   []string{"-p", "--provider", "fake", "--model", "fake-model", "--offline", "run it"},
		off:    switched{args: []string{"--no-extensions"}, unseen: true},
		resume: []string{"--continue", "-p", "--provider", "fake", "--model", "fake-model", "--offline", "go on"},
		dialog: dialog{
			args: []string{"--provider", "fake", "--model", "fake-model", "--offline", "run it"}, modes: []string{"interactive"},
			asks: "shield asks whether to", no: []string{"Escape"}, more: true, yes: []string{"Enter"},
		},
	},
}

// Loads shield's plugin of a host as the host does, proposes calls to it, and prints for
// each what the host would do. Usage: node plugins.mjs HOST PLUGIN < calls, one JSON a line.
import { readFileSync } from "node:fs";

const [host, file] = process.argv.slice(2);
const plugin = await import(file);
const handlers = {};
const api = { on: (event, handler) => { handlers[event] = handler; }, registerAgentToolResultMiddleware() {} };

const propose = {
  opencode: async ({ id, command }) => {
    const hooks = await plugin.Shield({ directory: process.cwd() });
    await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: id }, { args: { command } });
  },
  pi: async ({ id, command }) => {
    const r = await handlers.tool_call({ toolName: "bash", toolCallId: id, input: { command } }, { cwd: process.cwd() });
    if (r?.block) throw new Error(r.reason);
  },
  amp: async ({ id, command }) => {
    const r = await handlers["tool.call"]({ tool: "shell_command", toolUseID: id, input: { command } });
    if (r?.action !== "allow") throw new Error(r.message);
  },
  openclaw: async ({ id, command }) => {
    const r = await handlers.before_tool_call({ toolName: "exec", toolCallId: id, params: { command } }, { cwd: process.cwd() });
    if (r?.block) throw new Error(r.blockReason);
  },
};

if (plugin.default) plugin.default(api);
for (const call of readFileSync(0, "utf8").trim().split("\n").map((line) => JSON.parse(line))) {
  try {
    await propose[host](call);
    console.log("ran");
  } catch (e) {
    console.log("blocked: " + e.message.split("\n")[0]);
  }
}

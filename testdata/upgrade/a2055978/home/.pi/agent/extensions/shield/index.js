// Written by shield hook install pi.
import { spawn } from "node:child_process";

const line = "o=$(SHIELD_CONFIG= XDG_CONFIG_HOME=@HOME@/.config XDG_STATE_HOME=@HOME@/.local/state XDG_DATA_HOME=@HOME@/.local/share XDG_CACHE_HOME=@HOME@/cache /usr/bin/timeout --foreground -s KILL 25 @SHIELD@ hook pi --timeout 20s --alone); s=$?; case $s$o in [02]\"{\"*\"}\") printf '%s\\n' \"$o\"; exit $s;; esac; printf '%s\\n' '{\"decision\":\"deny\",\"reason\":\"shield: blocked, because it gave no verdict; reinstall shield, or remove this hook from the settings\"}'; echo \"shield: blocked, because it gave no verdict; reinstall shield, or remove this hook from the settings (status $s)\" >&2; exit 2";
const limit = 30000; // milliseconds

// ask returns shield's answer only if shield allows this very call, or says what is to be
// read instead of its result. Everything else is an error.
function ask(call) {
  return new Promise((resolve, reject) => {
    let out = "";
    let errors = "";
    const no = (why) => reject(new Error(why || "shield: blocked, because it gave no verdict"));
    const child = spawn("/bin/sh", ["-c", line], { stdio: ["pipe", "pipe", "pipe"] });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      no("shield: blocked, because there was no verdict in time");
    }, limit);
    child.on("error", (e) => no("shield: blocked: " + e.message));
    child.stdin.on("error", () => {});
    child.stdout.on("data", (text) => { out += text; });
    child.stderr.on("data", (text) => { errors += text; });
    child.on("close", (status) => {
      clearTimeout(timer);
      let answer = null;
      try { answer = JSON.parse(out); } catch {}
      if (status === 0 && answer && (answer.decision === "allow" || call.event === "result" && answer.decision === "replace") && call.id && answer.id === call.id) resolve(answer);
      else no(answer && answer.decision === "deny" ? answer.reason : errors);
    });
    child.stdin.end(JSON.stringify(call));
  });
}
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    try {
      await ask({ event: "tool", tool: event.toolName, input: event.input ?? {}, id: event.toolCallId, cwd: ctx.cwd });
    } catch (e) {
      return { block: true, reason: e.message };
    }
  });
  pi.on("tool_result", async (event, ctx) => {
    const content = event.content ?? [];
    const texts = content.filter((part) => part.type === "text");
    try {
      const answer = await ask({ event: "result", tool: event.toolName, input: event.input ?? {}, id: event.toolCallId, cwd: ctx.cwd, result: texts.map((part) => part.text) });
      if (answer.decision !== "replace") return undefined;
      if (!Array.isArray(answer.result)) return { content: [{ type: "text", text: answer.result }] };
      return { content: content.map((part) => part.type === "text" ? { ...part, text: answer.result[texts.indexOf(part)] } : part) };
    } catch (e) {
      return { content: [{ type: "text", text: e.message }] };
    }
  });
}

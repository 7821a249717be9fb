// Written by shield hook install pi.
import { spawn } from "node:child_process";

const line = "n() { printf '%s\\n' '{\"decision\":\"deny\",\"reason\":\"shield: blocked, because it gave no verdict; reinstall shield, or remove this hook from the settings\"}'; echo \"shield: blocked, because it gave no verdict; reinstall shield, or remove this hook from the settings (${1%})\" >&2; exit 2; }; { exec 3<&0 2>/dev/null; { c() { i= d=; read -r i d <@HOME@/.local/state/shield/programs/10314566cc53b84d; v=$(/usr/bin/stat -L -c %u:%d:%i:%s:%Z @SHIELD@); [ \"${i%}\" ] && [ \"${v%}\" = \"${i%}\" ] || case $(/usr/bin/sha256sum <@SHIELD@) in \"${d%} \"*) echo \"${v%} ${d%}\" >@HOME@/.local/state/shield/programs/10314566cc53b84d.$$ && /usr/bin/mv -f @HOME@/.local/state/shield/programs/10314566cc53b84d.$$ @HOME@/.local/state/shield/programs/10314566cc53b84d;; *) echo changed; exit;; esac; }; [ @SHIELD@ -ef @HOME@/.local/state/shield/programs/10314566cc53b84d.program ] && [ ! @SHIELD@ -nt @HOME@/.local/state/shield/programs/10314566cc53b84d ] && [ ! @SHIELD@ -ot @HOME@/.local/state/shield/programs/10314566cc53b84d ] || c; SHIELD_CONFIG= HOME=@HOME@ XDG_CONFIG_HOME=@HOME@/.config XDG_STATE_HOME=@HOME@/.local/state XDG_DATA_HOME=@HOME@/.local/share XDG_CACHE_HOME=@HOME@/cache @SHIELD@ hook pi --timeout 20s --line $$ <&3 & echo \"s$!\"; exec 3<&- </dev/null; wait $!; echo \"status $?\"; } & { exec 3<&- </dev/null; /usr/bin/sleep 25 & echo \"t$!\"; wait $!; echo late; } & } | { exec 4>&2 2>/dev/null; s= t=; while IFS= read -r l; do case ${l%} in s[0-9]*) s=${l#?};; t[0-9]*) t=${l#?};; \"!\"*) printf '%s\\n' \"${l#?}\" >&4;; 0\"{\"*\"}\") printf '%s\\n' \"${l#?}\"; kill ${t%}; exit 0;; 2\"{\"*\"}\") printf '%s\\n' \"${l#?}\"; kill ${t%}; exit 2;; changed) kill ${t%}; exec 2>&4; printf '%s\\n' '{\"decision\":\"deny\",\"reason\":\"shield: blocked, because the program shield changed after this hook was installed. If the user updated shield, the user runs this in a terminal: shield hook status --accept\"}'; echo \"shield: blocked, because the program shield changed after this hook was installed. If the user updated shield, the user runs this in a terminal: shield hook status --accept\" >&2; exit 2;; *) break;; esac; done; kill -KILL ${s%} ${t%}; exec 2>&4; n \"${l%}\"; }; s=$?; case ${s%} in [02]) exit ${s%};; esac; n \"status ${s%}\"";
const limit = 30000; // milliseconds

// ask returns shield's answer only if shield allows this very call, wants the user to be
// asked where the call says that this can be done, or says what is to be read instead of
// its result. Everything else is an error.
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
      if (status === 0 && answer && (answer.decision === "allow" || call.asks === true && answer.decision === "ask" || call.event === "result" && answer.decision === "replace") && call.id && answer.id === call.id) resolve(answer);
      else no(answer && answer.decision === "deny" ? answer.reason : errors);
    });
    child.stdin.end(JSON.stringify(call));
  });
}
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    try {
      const asks = ctx.hasUI === true && typeof ctx.ui?.confirm === "function";
      const answer = await ask({ event: "tool", tool: event.toolName, input: event.input ?? {}, id: event.toolCallId, cwd: ctx.cwd, asks });
      if (answer.decision === "ask" && (await ctx.ui.confirm("shield", answer.reason)) !== true) {
        return { block: true, reason: "The user did not approve: " + answer.reason };
      }
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

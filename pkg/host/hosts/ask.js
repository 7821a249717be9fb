import { spawn } from "node:child_process";

const line = @QUOTED@;
const limit = @TIMEOUT@; // milliseconds

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

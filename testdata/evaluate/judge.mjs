// A language model behind the part of the OpenAI API that shield uses, for 'make tier2':
//   node judge.mjs MODEL.gguf PORT [THREADS]
// It runs in the folder of an installation of node-llama-cpp, whose prebuilt library needs no
// compiler. A JSON schema is held to as a grammar; what precedes the canary is kept from one
// request to the next, and usage says how much was not computed again. An answer that is four
// times as long as most repeats itself: it is cut, and the reply says so. It listens on loopback.
import {createServer} from "node:http";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import path from "node:path";

const [file, port, threads = "1"] = process.argv.slice(2);
const found = createRequire(path.join(process.cwd(), "x.js")).resolve("node-llama-cpp");
const {getLlama, LlamaChatSession} = await import(pathToFileURL(found).href);
const llama = await getLlama({gpu: false, build: "never", maxThreads: Number(threads)});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: 8192, threads: Number(threads)});
const sequence = context.getSequence();
const grammars = new Map();
const longest = 640; // tokens of an answer

async function grammarOf(format) {
  const schema = format?.type === "json_schema" ? format.json_schema?.schema : undefined;
  if (!schema) return undefined;
  const key = JSON.stringify(schema);
  if (!grammars.has(key)) grammars.set(key, await llama.createGrammarForJsonSchema(schema));
  return grammars.get(key);
}

async function answer(body) {
  const said = (role) => body.messages.filter((m) => m.role === role).map((m) => m.content).join("\n");
  const before = sequence.tokenMeter.getState();
  const session = new LlamaChatSession({contextSequence: sequence, systemPrompt: said("system")});
  const start = Date.now();
  const {responseText: text, stopReason} = await session.promptWithMeta(said("user"), {
    grammar: await grammarOf(body.response_format), temperature: 0, maxTokens: Math.min(body.max_completion_tokens ?? body.max_tokens ?? longest, longest),
  });
  const used = sequence.tokenMeter.diff(before);
  session.dispose({disposeSequence: false});
  const prompt = model.tokenize(said("system")).length + model.tokenize(said("user")).length + 12; // and what the template adds
  console.error(JSON.stringify({user: said("user"), text, computed: used.usedInputTokens, written: used.usedOutputTokens, ms: Date.now() - start}));
  return {
    id: "tier2", object: "chat.completion", created: Math.floor(Date.now() / 1000), model: path.basename(file),
    choices: [{index: 0, message: {role: "assistant", content: text}, finish_reason: stopReason === "maxTokens" ? "length" : "stop"}],
    usage: {
      prompt_tokens: prompt, completion_tokens: used.usedOutputTokens, total_tokens: prompt + used.usedOutputTokens,
      prompt_tokens_details: {cached_tokens: Math.max(0, prompt - used.usedInputTokens)},
    },
  };
}

let queue = Promise.resolve();
createServer((req, res) => {
  const send = (status, value) => { res.writeHead(status, {"content-type": "application/json"}); res.end(JSON.stringify(value)); };
  if (req.method === "GET" && req.url.endsWith("/models")) return send(200, {object: "list", data: [{id: path.basename(file), object: "model"}]});
  if (req.method !== "POST" || !req.url.endsWith("/chat/completions")) return send(404, {error: {message: "not found"}});
  let raw = "";
  req.setEncoding("utf8");
  req.on("data", (part) => { raw += part; });
  req.on("end", () => {
    queue = queue.then(async () => {
      try { send(200, await answer(JSON.parse(raw))); } catch (e) { send(500, {error: {message: String(e?.message ?? e)}}); }
    });
  });
}).listen(Number(port), "127.0.0.1", () => console.log(`ready on ${port}`));

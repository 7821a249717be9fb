"use strict";

// Buttons are disabled for a moment after anything has moved: a click or key that
// was meant for something else must not answer.
const deaf = 700;
const soon = 300; // between attempts to reach shield, at first
const later = 1500;
const patience = 5000; // with what answers at this address
const gone = 10; // failed attempts after which shield has ended
const maxReceipts = 50;

const status = document.getElementById("status");
const list = document.getElementById("requests");
const cards = new Map(); // what waits, by the request's id
const done = new Set(); // the ids of receipts
let key = ""; // kept here alone: another program may serve this address later
// The token is worth nothing without the cookie, nor once the process that gave it has ended.
const token = { get: () => localStorage.getItem("token") || "", set: (value) => localStorage.setItem("token", value) };
let failures = 0;
let awake = 0; // the timer that enables the buttons again
let cut = false; // shield could not be reached since something was shown

const rounds = 300000; // of PBKDF2, as in webauth.go
const form = document.getElementById("enter");

class Ended extends Error {} // retrying does not help
class Refused extends Error {} // the person has to type the code again

function say(text) {
  if (status.textContent !== text) status.textContent = text;
}

function made(template) {
  const card = document.getElementById(template).content.firstElementChild.cloneNode(true);
  return [card, (name) => card.querySelector(name)];
}

function fill(parent, texts) {
  for (const text of texts || []) {
    const li = document.createElement("li");
    li.textContent = text;
    parent.append(li);
  }
  parent.closest("details").hidden = !texts || texts.length === 0;
}

// sentence shows the quoted part in bold. Quotation marks of this kind in the
// agent's own text have been replaced.
function sentence(parent, text) {
  const [, before, quoted, after] = text.match(/^([^“]*“)([^”]*)(”.*)$/s) || [null, text, "", ""];
  const b = document.createElement("b");
  b.textContent = quoted;
  parent.append(before, b, after);
}

function place(request) {
  const text = [];
  if (request.asker) text.push(request.asker);
  if (request.cwd) text.push("folder " + request.cwd);
  if (request.session) text.push("session " + request.session);
  return text.join(", ");
}

function add(request) {
  const [card, part] = made("request");
  card.dataset.id = request.id;
  card.dataset.subject = request.subject;
  part(".number").textContent = request.number;
  sentence(part("h2"), request.summary);
  fields(part(".payload"), request.payload);
  fill(part(".effects ul"), request.effects);
  fill(part(".tiers ul"), request.tiers);
  part(".place").textContent = request.type + (place(request) ? ", " + place(request) : "");
  for (const button of card.querySelectorAll("button[data-choice]")) {
    if (button.dataset.choice === "remember") button.hidden = !request.remember;
    if (button.dataset.choice === "kind") button.hidden = !request.kind;
    if (classes.includes(button.dataset.choice)) button.hidden = !request.tool;
    if (button.dataset.choice !== "deny" && (request.more || request.cut)) button.hidden = true;
    button.addEventListener("click", () => answer(card, button.dataset.choice));
  }
  part(".tool").hidden = !request.tool;
  part(".tool").textContent = request.tool ? "Tool: " + request.tool : "";
  part(".kind").hidden = !request.kind;
  part(".kind").textContent = "This kind: " + request.kind;
  part(".more").hidden = !request.more;
  part(".more").addEventListener("click", () => expand(card, request));
  part(".cut").hidden = !request.cut;
  card.also = [];
  cards.set(request.id, card);
  list.append(card);
}

function fields(parent, list) {
  parent.replaceChildren();
  for (const field of list || []) {
    const name = document.createElement("h3");
    name.textContent = field.name;
    const value = document.createElement("pre");
    value.textContent = field.value;
    parent.append(name, value);
  }
}

// expand shows all of a request; what was not shown cannot be approved.
async function expand(card, request) {
  try {
    const response = await post("/whole", { id: request.id });
    if (!response.ok) {
      say(await response.text());
      return;
    }
    fields(card.querySelector(".payload"), await response.json());
  } catch {
    say("shield could not be reached");
    return;
  }
  card.querySelector(".more").hidden = true;
  if (!request.cut) {
    card.querySelector("[data-choice=once]").hidden = false;
    card.querySelector("[data-choice=remember]").hidden = !request.remember;
    card.querySelector("[data-choice=kind]").hidden = !request.kind;
    for (const choice of classes) card.querySelector(`[data-choice=${choice}]`).hidden = !request.tool;
  }
  quiet();
}

// The classes that an answer can give to an unknown tool.
const classes = ["reads", "workspace", "elsewhere", "never"];

const answers = {
  deny: "Denied",
  once: "Approved once",
  remember: "Approved for 10 minutes",
  kind: "Actions of this kind approved for this session",
  reads: "Approved once; the tool only reads",
  workspace: "Approved once; the tool changes this workspace only",
  elsewhere: "Approved once; the tool changes or sends something outside this workspace",
  never: "Denied, and the tool is forbidden",
};

// keep puts a receipt where the card of a request was.
function keep(id, number, subject, where, outcome, text) {
  if (done.has(id)) return;
  done.add(id);
  const [card, part] = made("receipt");
  card.dataset.id = id;
  card.dataset.outcome = outcome;
  part(".number").textContent = number;
  part("h2").textContent = subject;
  part(".said").textContent = text;
  part(".place").textContent = where;
  const old = cards.get(id);
  if (old) old.replaceWith(card);
  else list.append(card);
  cards.delete(id);
  const receipts = list.querySelectorAll(".receipt");
  if (receipts.length > maxReceipts) receipts[0].remove();
}

function keepReceipt(receipt) {
  const also = receipt.also || [];
  for (const id of also) {
    cards.get(id)?.remove(); // it was shown alone for a moment
    cards.delete(id);
    done.add(id);
  }
  const card = cards.get(receipt.id);
  const at = new Date(receipt.at);
  const time = at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
  const reason = receipt.reason ? ": " + receipt.reason : "";
  keep(receipt.id, receipt.number, receipt.subject, card ? card.querySelector(".place").textContent : "", receipt.choice,
    answers[receipt.choice] + " by " + receipt.by + " at " + time + (also.length ? ", " + asked(also) : "") + reason);
}

// keepGone is for requests that stopped waiting without an answer from a page.
function keepGone(id, why) {
  const card = cards.get(id);
  const part = (name) => card.querySelector(name).textContent;
  const late = Number(card.dataset.ends) <= Date.now() + 1000;
  keep(id, part(".number"), card.dataset.subject, part(".place"), "gone", late ? "No answer in time: denied" : why);
}

function asked(also) {
  return "asked " + (also.length + 1) + " times";
}

// layout is what stands on the page.
function layout() {
  return [...cards].map(([id, card]) => [id, ...card.also].join()).join(" ");
}

function show(page) {
  const before = layout();
  for (const receipt of page.receipts || []) keepReceipt(receipt);
  const present = new Set(page.waiting.map((r) => r.id));
  for (const request of page.waiting) {
    for (const id of request.also || []) {
      cards.get(id)?.remove(); // now shown with another
      cards.delete(id);
    }
  }
  for (const id of [...cards.keys()]) {
    if (!present.has(id)) keepGone(id, "No longer waiting: answered on another channel, or the program that asked has ended");
  }
  for (const request of page.waiting) {
    if (done.has(request.id)) continue;
    if (!cards.has(request.id)) add(request);
    const card = cards.get(request.id);
    card.dataset.ends = Date.now() + request.seconds * 1000;
    card.also = request.also || [];
    card.querySelector(".times").hidden = card.also.length === 0;
    card.querySelector(".times").textContent = "This exact question is " + asked(card.also) + "; one answer counts for all of them.";
  }
  const kept = document.getElementById("kept");
  kept.textContent = page.kept || "";
  kept.hidden = !page.kept;
  count();
  if (cut || before !== layout()) quiet();
  cut = false;
  tick();
}

function count() {
  const n = cards.size;
  say(n === 0 ? "Nothing is waiting" : n === 1 ? "1 question is waiting" : n + " questions are waiting");
  document.title = n === 0 ? "shield" : "(" + n + ") shield";
}

// quiet disables all buttons, until nothing has moved for a moment.
function quiet() {
  const buttons = () => list.querySelectorAll("button");
  buttons().forEach((b) => (b.disabled = true));
  clearTimeout(awake);
  awake = setTimeout(() => buttons().forEach((b) => (b.disabled = false)), deaf);
}

function tick() {
  for (const card of cards.values()) {
    const left = Math.max(0, Math.round((card.dataset.ends - Date.now()) / 1000));
    card.querySelector(".left").textContent =
      Math.floor(left / 60) + ":" + String(left % 60).padStart(2, "0") + " left, then the action is denied";
  }
}

function post(path, value) {
  return fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Shield-Token": token.get() },
    body: JSON.stringify(value),
    signal: AbortSignal.timeout(patience),
  });
}

async function answer(card, choice) {
  const reason = choice === "deny" ? card.querySelector(".reason").value : "";
  card.querySelectorAll("button").forEach((b) => (b.disabled = true));
  try {
    const response = await post("/answer", { id: card.dataset.id, also: card.also, choice, reason });
    if (response.ok) {
      keepReceipt(await response.json());
      count();
    } else {
      say(await response.text());
    }
  } catch {
    say("shield could not be reached; your answer was not sent");
  }
  quiet();
}

async function prove(secret, who, nonces) {
  const bytes = (text) => new TextEncoder().encode(text);
  const mac = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const proof = await crypto.subtle.sign("HMAC", mac, bytes([who, location.host, ...nonces].join("\n")));
  return hex(new Uint8Array(proof));
}

function hex(bytes) {
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// stretched makes the secret of a code.
async function stretched(code, salt) {
  const bytes = (text) => new TextEncoder().encode(text);
  const base = await crypto.subtle.importKey("raw", bytes(code), "PBKDF2", false, ["deriveBits"]);
  const bits = await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: bytes(salt), iterations: rounds }, base, 256);
  return hex(new Uint8Array(bits));
}

// greet has page and server prove to each other that they know the key, or else the
// code. Neither is ever sent: any program that listens here while shield does not
// would get it.
async function greet(kind, word) {
  const mine = hex(crypto.getRandomValues(new Uint8Array(32)));
  const hello = await post("/hello", { kind, nonce: mine });
  const theirs = await hello.json().catch(() => ({}));
  const secret = kind === "code" ? await stretched(word, String(theirs.salt)) : word;
  if (typeof theirs.nonce !== "string" || theirs.proof !== (await prove(secret, "shield server", [mine, theirs.nonce]))) {
    if (kind === "code") throw new Refused("Wrong code. 'shield approvals' in a terminal shows the current one.");
    throw new Ended("Another program answers at this address, not the shield that opened this page. Run 'shield approvals' for the new address.");
  }
  const proof = await prove(secret, "shield page", [mine, theirs.nonce]);
  const session = await post("/session", { kind, nonce: theirs.nonce, proof });
  if (session.status === 429) throw new Refused(await session.text());
  if (!session.ok) throw new Error("shield refused this page");
  const given = await session.json();
  token.set(given.token);
  key = given.key;
}

// typed returns the code that a person types, as it is hashed.
function typed() {
  const input = document.getElementById("code");
  if (form.hidden) say("Type the code to see what is waiting");
  form.hidden = false;
  input.focus();
  return new Promise((entered) => {
    form.onsubmit = (e) => {
      e.preventDefault();
      entered(input.value.toLowerCase().replace(/[^a-z0-9]/g, ""));
      input.value = "";
    };
  });
}

async function enter() {
  if (!key) {
    const response = await post("/key", {}); // this page may have been reloaded
    if (response.status === 200) key = (await response.json()).key;
    else await greet("code", await typed());
  } else {
    await greet("key", key);
  }
  form.hidden = true;
}

// follow shows what waits until the server ends.
function follow() {
  return new Promise((ended) => {
    const events = new EventSource("/events?token=" + token.get());
    events.onmessage = (e) => {
      failures = 0;
      show(JSON.parse(e.data));
    };
    events.onerror = () => {
      events.close();
      ended();
    };
  });
}

// lost is called when shield could not be reached. When the process that
// serves this page ends, another that waits for an answer takes over.
function lost() {
  failures++;
  cut = true;
  list.querySelectorAll("button").forEach((b) => (b.disabled = true));
  clearTimeout(awake);
  if (failures < gone) {
    if (cards.size > 0) say("Reconnecting…");
    return;
  }
  for (const id of [...cards.keys()]) keepGone(id, "No longer waiting: the program that asked has ended");
  document.title = "shield";
  say(key ? "Nothing is waiting. Leave this page open: the next question appears here." : "Nothing is waiting here. Run 'shield approvals' for the address and the code.");
}

function pause(time) {
  return new Promise((resume) => {
    const timer = setTimeout(wake, time);
    document.addEventListener("visibilitychange", wake);
    function wake() {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
      resume();
    }
  });
}

async function start() {
  history.replaceState(null, "", "/");
  if (!window.crypto || !crypto.subtle) {
    say("This browser does not support crypto.subtle, which this page needs. Use another browser.");
    return;
  }
  setInterval(tick, 1000);
  for (;;) {
    try {
      await enter();
      await follow();
      lost();
    } catch (err) {
      if (err instanceof Refused) {
        say(err.message);
        continue;
      }
      if (err instanceof Ended) failures = gone;
      lost();
      if (err instanceof Ended) {
        say(err.message);
        if (!key) return;
      }
    }
    await pause(failures < gone ? soon : later);
  }
}

start();

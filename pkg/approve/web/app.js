"use strict";

// Buttons are dead for a moment after a request appears: a click or key that
// was meant for something else must not answer it.
const deaf = 700;

const status = document.getElementById("status");
const list = document.getElementById("requests");
const template = document.getElementById("request");
const cards = new Map(); // by the request's id

function say(text) {
  status.textContent = text;
}

function items(parent, texts) {
  for (const text of texts || []) {
    const li = document.createElement("li");
    li.textContent = text;
    parent.append(li);
  }
}

function add(request) {
  const card = template.content.firstElementChild.cloneNode(true);
  const part = (name) => card.querySelector(name);
  card.dataset.id = request.id;
  part(".type").textContent = request.type;
  for (const field of request.payload || []) {
    const name = document.createElement("h3");
    name.textContent = field.name;
    const value = document.createElement("pre");
    value.textContent = field.value;
    part(".payload").append(name, value);
  }
  items(part(".effects ul"), request.effects);
  items(part(".tiers ul"), request.tiers);
  const place = [];
  if (request.cwd) place.push("folder " + request.cwd);
  if (request.session) place.push("session " + request.session);
  part(".place").textContent = place.join(", ");
  const buttons = card.querySelectorAll("button");
  for (const button of buttons) {
    if (button.dataset.choice === "remember") button.hidden = !request.remember;
    button.disabled = true;
    button.addEventListener("click", () => answer(card, button.dataset.choice));
  }
  setTimeout(() => buttons.forEach((b) => (b.disabled = false)), deaf);
  cards.set(request.id, card);
  list.append(card);
}

function show(requests) {
  const present = new Set(requests.map((r) => r.id));
  for (const [id, card] of cards) {
    if (!present.has(id)) {
      card.remove();
      cards.delete(id);
    }
  }
  for (const request of requests) {
    if (!cards.has(request.id)) add(request);
    cards.get(request.id).dataset.ends = Date.now() + request.seconds * 1000;
  }
  say(requests.length === 0 ? "nothing is waiting" : requests.length + " waiting");
  document.title = requests.length === 0 ? "shield" : "(" + requests.length + ") shield";
  tick();
}

function tick() {
  for (const card of cards.values()) {
    const left = Math.max(0, Math.round((card.dataset.ends - Date.now()) / 1000));
    card.querySelector(".left").textContent =
      Math.floor(left / 60) + ":" + String(left % 60).padStart(2, "0") + " left, then it is denied";
  }
}

async function answer(card, choice) {
  const reason = card.querySelector(".reason").value;
  const buttons = card.querySelectorAll("button");
  buttons.forEach((b) => (b.disabled = true));
  try {
    const response = await fetch("/answer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ id: card.dataset.id, choice: choice === "deny" && reason ? "why" : choice, reason }),
    });
    if (!response.ok) say(await response.text());
  } catch {
    say("shield could not be reached");
  }
}

async function start() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", "/");
    const response = await fetch("/session", { method: "POST", body: token });
    if (!response.ok) {
      say("this link is not valid any more");
      return;
    }
  }
  const events = new EventSource("/events");
  events.onmessage = (e) => show(JSON.parse(e.data));
  events.onerror = () => {
    show([]);
    say("shield has ended, or this page was not opened by its link");
    events.close();
  };
  setInterval(tick, 1000);
}

start();

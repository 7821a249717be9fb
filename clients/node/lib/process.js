// One shield run: a line in, a line out.
import { spawn } from 'node:child_process';
import { Unavailable, decode, encode } from './verdict.js';

/** The most characters of a verdict's line. shield's own lines stay far below it. */
const maxLine = 8 << 20;

export class Process {
  #child;
  #asked = []; // in the order of the answers: {number, action, resolve, reject}
  #parts = []; // of a line that has not ended
  #length = 0;
  #said = '';
  #number = 0;
  #failure = null;

  constructor([program, args]) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
    const { stdin, stdout, stderr } = this.#child;
    stdout.setEncoding('utf8').on('data', (text) => this.#read(text));
    stderr.setEncoding('utf8').on('data', (text) => (this.#said = (this.#said + text).slice(-2000)));
    stdin.on('error', () => {}); // its end is seen below
    this.#child.on('error', (e) => this.#fail(new Unavailable(`shield cannot be started: ${e.message}`, { cause: e })));
    this.#child.on('close', () =>
      this.#fail(new Unavailable(`shield ended without an answer: ${this.#said.trim() || 'no output'}`)),
    );
    this.hold(false);
  }

  get alive() {
    return this.#failure === null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Whether the process keeps the program that started it from ending: while it is asked. */
  hold(on) {
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) on ? part?.ref?.() : part?.unref?.();
  }

  /** Asks about an action; the answer must come within timeout milliseconds. */
  ask(action, session, timeout) {
    const number = ++this.#number;
    const line = encode(action, number, session);
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const timer = timeout && setTimeout(() => this.kill(new Unavailable(`shield did not answer within ${timeout} ms`)), timeout);
      const end = (settle) => (value) => {
        clearTimeout(timer);
        settle(value);
      };
      this.#asked.push({ number, action, resolve: end(resolve), reject: end(reject) });
      this.hold(true);
      this.#child.stdin.write(line);
    });
  }

  /** Resolves when shield has taken what was written. */
  drained() {
    const { stdin } = this.#child;
    if (!stdin.writableNeedDrain || this.#failure) return Promise.resolve();
    return new Promise((resolve) => {
      stdin.once('drain', resolve);
      this.#child.once('close', resolve);
    });
  }

  /** Ends the process at once; who waits for an answer gets the reason. */
  kill(reason = new Unavailable('the Shield was closed')) {
    this.#fail(reason);
    this.#child.kill('SIGKILL');
  }

  #read(text) {
    let from = 0;
    for (let end; (end = text.indexOf('\n', from)) >= 0; from = end + 1) {
      this.#parts.push(text.slice(from, end));
      const line = this.#parts.join('');
      this.#parts = [];
      this.#length = 0;
      this.#answer(line);
    }
    this.#parts.push(text.slice(from));
    this.#length += text.length - from;
    if (this.#length > maxLine) this.kill(new Unavailable("shield's answer is too long"));
  }

  #answer(line) {
    if (this.#failure) return;
    const next = this.#asked[0];
    if (!next) return this.kill(new Unavailable('shield sent an answer to a request that was not made'));
    try {
      const verdict = decode(line, next.number, next.action);
      this.#asked.shift();
      if (this.#asked.length === 0) this.hold(false);
      next.resolve(verdict);
    } catch (e) {
      this.kill(e);
    }
  }

  #fail(reason) {
    this.#failure ??= reason;
    for (const { reject } of this.#asked.splice(0)) reject(this.#failure);
    this.hold(false);
  }
}

// Judges every action an AI agent proposes, before it runs.
import { command } from './binary.js';
import { Process } from './process.js';
import { InvalidAction, ShieldError } from './verdict.js';

export { Blocked, InvalidAction, ShieldError, Unavailable, Verdict } from './verdict.js';

const idleProcesses = 8;

export class Shield {
  #command;
  #session;
  #timeout;
  #idle = [];
  #closed = false;

  constructor(options = {}) {
    this.#command = command(options);
    this.#session = options.session;
    this.#timeout = options.timeout ?? 600_000;
  }

  async evaluate(action) {
    if (this.#closed) throw new ShieldError('this Shield is closed');
    let process = this.#idle.pop();
    while (process && !process.alive) process = this.#idle.pop();
    process ??= new Process(this.#command);
    try {
      const verdict = await process.ask(action, this.#session, this.#timeout);
      if (this.#closed || this.#idle.length >= idleProcesses) process.kill();
      else this.#idle.push(process);
      return verdict;
    } catch (e) {
      process.kill();
      throw e;
    }
  }

  async require(action) {
    return (await this.evaluate(action)).require();
  }

  async *stream(actions) {
    if (this.#closed) throw new ShieldError('this Shield is closed');
    const process = new Process(this.#command);
    const answers = []; // promises, in order
    let wake = () => {};
    let room = () => {};
    let ended = false;
    let left = false;
    const asking = (async () => {
      try {
        for await (const action of actions) {
          if (left) return;
          const answer = process.ask(action, this.#session, this.#timeout);
          answer.catch(() => {}); // it is thrown where the verdict is read
          answers.push(answer);
          wake();
          await process.drained();
          if (answers.length >= 256) await new Promise((resolve) => (room = resolve));
        }
      } finally {
        ended = true;
        wake();
      }
    })();
    asking.catch(() => {}); // it is thrown below
    try {
      for (;;) {
        if (answers.length > 0) {
          yield await answers.shift();
          room();
        } else if (ended) {
          return await asking;
        } else {
          await new Promise((resolve) => (wake = resolve));
        }
      }
    } finally {
      left = true;
      room();
      process.kill();
    }
  }

  close() {
    this.#closed = true;
    for (const process of this.#idle.splice(0)) process.kill();
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close();
  }
}

export function toolAction(name, args, types = {}) {
  if (typeof name !== 'string' || name === '') throw new InvalidAction("a tool's call has no name");
  if (typeof args === 'string') {
    try {
      args = JSON.parse(args || '{}');
    } catch (e) {
      throw new InvalidAction(`the arguments of ${name} cannot be read: ${e.message}`, { cause: e });
    }
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args)) throw new InvalidAction(`the arguments of ${name} are not a JSON object`);
  return { type: Object.hasOwn(types, name) ? types[name] : name, payload: args };
}

export function fromToolCall(call, types) {
  call = call?.function ?? call;
  const args = call?.arguments ?? call?.input ?? call?.args;
  if (args == null) throw new InvalidAction("a tool's call has no arguments");
  return toolAction(call.name, args, types);
}

export function denial(reason) {
  return `shield did not allow this: ${reason.message}`;
}

// What shield is asked and what it answers, as text and as values.

/** Something kept shield from allowing an action. The action must not run. */
export class ShieldError extends Error {
  name = this.constructor.name;
}

/** The action cannot be written as JSON, so it cannot be judged. */
export class InvalidAction extends ShieldError {}

/** shield did not answer: it is missing, ended, was late, or sent something other than a verdict. */
export class Unavailable extends ShieldError {}

/** shield did not allow the action. `verdict` says why. */
export class Blocked extends ShieldError {
  constructor(verdict) {
    super(verdict.reasoning);
    this.verdict = verdict;
  }
}

/** shield's answer to one action. */
export class Verdict {
  constructor(raw) {
    this.decision = raw.decision;
    this.tier = raw.tier ?? 0;
    this.confidence = raw.confidence ?? 0;
    this.reasoning = raw.reasoning ?? '';
    this.rule = raw.rule ?? null;
    this.error = raw.error ?? null;
    this.raw = raw;
    this.allowed = raw.decision === 'ALLOW';
    Object.freeze(this);
  }

  /** Returns the verdict, or throws Blocked where it does not allow the action. */
  require() {
    if (!this.allowed) throw new Blocked(this);
    return this;
  }
}

/** Returns the line that asks about an action. shield gets number as the id, to find the answer by. */
export function encode(action, number, session) {
  if (typeof action !== 'object' || action === null || Array.isArray(action)) {
    throw new InvalidAction('an action is an object with a type and a payload');
  }
  try {
    const line = JSON.stringify({ cwd: process.cwd(), ...(session == null ? {} : { session }), ...action, id: String(number) }, plain);
    return line + '\n';
  } catch (e) {
    throw new InvalidAction(`the action cannot be written as JSON: ${e.message}`, { cause: e });
  }
}

// JSON.stringify leaves out or changes what JSON has no form for; what runs would not be what was judged.
function plain(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${key}: ${value} is not a JSON number`);
  if (['undefined', 'function', 'symbol'].includes(typeof value)) throw new TypeError(`${key}: ${typeof value} has no form in JSON`);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const made = Object.getPrototypeOf(value);
    if (made !== Object.prototype && made !== null) throw new TypeError(`${key}: a ${value.constructor?.name ?? 'value'} has no form in JSON`);
  }
  if (this[key] !== value) throw new TypeError(`${key}: toJSON changes it`);
  return value;
}

/** Reads the verdict about the action that was asked about as number. */
export function decode(line, number, action) {
  let raw;
  try {
    raw = JSON.parse(line);
  } catch (e) {
    throw new Unavailable(`shield's answer is not a verdict: ${e.message}`, { cause: e });
  }
  if (!['ALLOW', 'BLOCK', 'ESCALATE'].includes(raw?.decision)) throw new Unavailable("shield's answer is not a verdict: it has no decision");
  const { id, ...rest } = raw;
  // The verdict about a record that could not be read has no id, and never allows.
  if (id !== String(number) && !(id === undefined && raw.decision === 'BLOCK')) {
    throw new Unavailable("shield's answer is not a verdict on this action");
  }
  return new Verdict(action.id == null ? rest : { id: action.id, ...rest });
}

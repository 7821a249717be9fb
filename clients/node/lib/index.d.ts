/** What an agent proposes to do. */
export interface Action {
  type: string;
  payload: Record<string, unknown>;
  id?: string;
  /** Resolves relative paths; this process's folder where it is missing. */
  cwd?: string;
  session?: string;
  min_tier?: 0 | 1 | 2 | 3;
}

export interface Options {
  /** The program; by default the one that this package carries, else `shield` on the PATH. */
  binary?: string;
  /** A preset's name or a policy file, as for `shield run --policy`. */
  policy?: string;
  /** A model's name or folder, or `none`. */
  model?: string;
  /** A settings file instead of the user's. */
  config?: string;
  /** The folder of the seal key, the state and the log. */
  state?: string;
  /** Folders that count as workspace. */
  roots?: string[];
  /** Stop after this tier; what it leaves open is ESCALATE, which does not allow. */
  until?: 'policy' | 'classify' | 'evaluate' | 'approve';
  /** The session of actions that name none. */
  session?: string;
  /** The most milliseconds that one answer may take, a person's included; 600,000 by default, 0 waits for ever. */
  timeout?: number;
}

/** shield's answer to one action. An object is always true: ask `allowed`. */
export class Verdict {
  readonly decision: 'ALLOW' | 'BLOCK' | 'ESCALATE';
  /** Whether the action may run. */
  readonly allowed: boolean;
  /** The tier that decided: 0 policy, 1 classify, 2 evaluate, 3 a person. */
  readonly tier: number;
  /** 0.0 to 1.0. */
  readonly confidence: number;
  /** What matched, where, and what would be acceptable instead. */
  readonly reasoning: string;
  /** The rule that decided, if one did. */
  readonly rule: string | null;
  /** A short code, where shield failed. */
  readonly error: string | null;
  /** Every field. */
  readonly raw: Readonly<Record<string, unknown>>;
  /** Returns the verdict, or throws {@link Blocked} where it does not allow the action. */
  require(): this;
}

/** Something kept shield from allowing an action. The action must not run. */
export class ShieldError extends Error {}
/** The action cannot be written as JSON, so it cannot be judged. */
export class InvalidAction extends ShieldError {}
/** shield did not answer: it is missing, ended, was late, or sent something other than a verdict. */
export class Unavailable extends ShieldError {}
/** shield did not allow the action. */
export class Blocked extends ShieldError {
  readonly verdict: Verdict;
}

/** Judges actions in `shield run` processes that it starts when they are needed and keeps. */
export class Shield {
  constructor(options?: Options);
  /** Judges one action. Rejects with {@link InvalidAction} or {@link Unavailable}: then it must not run. */
  evaluate(action: Action): Promise<Verdict>;
  /** Judges one action and rejects with {@link Blocked} where it is not allowed. */
  require(action: Action): Promise<Verdict>;
  /** Judges many actions and yields their verdicts in the same order, while more are read. */
  stream(actions: Iterable<Action> | AsyncIterable<Action>): AsyncGenerator<Verdict, void, void>;
  /** Ends the processes. What is judged at this moment goes on to its end. */
  close(): void;
}

/** Action types by tool name, such as `{ run_shell: 'execute_command' }`. */
export type Types = Record<string, string>;

/** Returns the action of a tool's call; `args` are an object or its JSON. Throws {@link InvalidAction}. */
export function toolAction(name: unknown, args: unknown, types?: Types): Action;

/**
 * Returns the action of a tool's call as a model proposes it: `tool_calls` of chat completions, `function_call`
 * items of the Responses API, `tool_use` blocks of Anthropic, LangChain's `name` and `args`.
 * Throws {@link InvalidAction}.
 */
export function fromToolCall(call: unknown, types?: Types): Action;

/** Returns what a model is told instead of a tool's result. */
export function denial(reason: ShieldError): string;

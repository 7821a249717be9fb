// Against the real program, named by SHIELD_TESTED: its absolute path.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Blocked, InvalidAction, Shield, ShieldError, Unavailable, fromToolCall } from '../lib/index.js';

const folder = mkdtempSync(join(tmpdir(), 'shield-'));
const binary = process.env.SHIELD_TESTED;
const options = { binary, policy: 'offline', model: 'none', state: join(folder, 'state') };
const run = (command) => ({ type: 'execute_command', payload: { command } });
after(() => rmSync(folder, { recursive: true }));

function shield(t, more) {
  const made = new Shield({ ...options, ...more });
  t.after(() => made.close());
  return made;
}

test('allows and blocks', async (t) => {
  const s = shield(t);
  const ls = await s.evaluate({ ...run('ls'), id: 'mine' });
  assert.equal(ls.allowed, true);
  assert.equal(ls.raw.id, 'mine');
  const wipe = await s.evaluate(run('rm -rf ~'));
  assert.deepEqual([wipe.allowed, wipe.decision, wipe.rule, wipe.tier], [false, 'BLOCK', 'wipe_system', 0]);
  assert.ok(!('id' in wipe.raw));
  await assert.rejects(s.require(run('rm -rf ~')), (e) => e instanceof Blocked && e.verdict.rule === 'wipe_system' && e.name === 'Blocked');
});

test('a question does not allow', async (t) => {
  const verdict = await shield(t, { until: 'classify' }).evaluate({ type: 'what_is_this', payload: { a: 'b' } });
  assert.deepEqual([verdict.decision, verdict.allowed], ['ESCALATE', false]);
});

test('what shield cannot read is blocked', async (t) => {
  const s = shield(t);
  for (const action of [
    {},
    { type: 'execute_command' },
    { type: 'execute_command', payload: 'ls' },
    run('\ud800'),
    { type: 'execute_command', payload: { command: 'ls', Command: 'id' } },
    { ...run('ls'), cwd: 'relative' },
    run('a'.repeat(2 << 20)),
  ]) {
    const verdict = await s.evaluate(action);
    assert.ok(verdict.decision === 'BLOCK' && verdict.error, verdict.reasoning);
  }
  assert.ok((await s.evaluate(run('ls'))).allowed);
});

test('what is not JSON is an error', async (t) => {
  const s = shield(t);
  const loop = {};
  loop.loop = loop;
  for (const value of [NaN, Infinity, undefined, () => {}, Symbol('x'), 1n, new Date(), new Map(), loop, { toJSON: () => 'ls' }]) {
    await assert.rejects(s.evaluate(run(value)), InvalidAction);
  }
  for (const action of [null, 'ls', 7, [], undefined]) await assert.rejects(s.evaluate(action), InvalidAction);
  assert.ok((await s.evaluate(run('ls'))).allowed);
});

test('many at once', async (t) => {
  const s = shield(t);
  const verdicts = await Promise.all(Array.from({ length: 40 }, (_, i) => s.evaluate(run(i % 2 ? 'ls' : 'rm -rf ~'))));
  assert.deepEqual(verdicts.map((v) => v.allowed), Array.from({ length: 40 }, (_, i) => i % 2 === 1));
});

test('streams in order', async (t) => {
  const actions = Array.from({ length: 1000 }, (_, i) => (i % 3 ? run('ls') : { ...run('rm -rf ~'), id: `${i}` }));
  const verdicts = [];
  for await (const verdict of shield(t).stream(actions)) verdicts.push(verdict);
  assert.deepEqual(verdicts.map((v) => v.allowed), actions.map((_, i) => i % 3 !== 0));
  assert.equal(verdicts[999].raw.id, '999');
});

test('a stream whose actions fail, or that is left', async (t) => {
  const s = shield(t);
  const seen = [];
  await assert.rejects(async () => {
    async function* actions() {
      yield run('ls');
      throw new RangeError('mine');
    }
    for await (const verdict of s.stream(actions())) seen.push(verdict.allowed);
  }, RangeError);
  assert.deepEqual(seen, [true]);
  function* endless() {
    for (;;) yield run('ls');
  }
  for await (const verdict of s.stream(endless())) {
    assert.ok(verdict.allowed);
    break;
  }
});

test('closed', async () => {
  const s = new Shield(options);
  s.close();
  await assert.rejects(s.evaluate(run('ls')), ShieldError);
});

const say = (text) => `process.stdout.write(${JSON.stringify(text)}); process.stdin.resume()`;
const hostile = {
  'ends at once': '',
  fails: 'console.error("no such policy"); process.exitCode = 1',
  'says nothing that is JSON': say('ALLOW\n'),
  'answers another': say('{"id":"7","decision":"ALLOW"}\n'),
  'allows without an id': say('{"decision":"ALLOW"}\n'),
  'has another decision': say('{"id":"1","decision":"allow"}\n'),
  'has a list': say('[]\n'),
  'has null': say('null\n'),
  'answers half': 'process.stdout.write(\'{"id":"1","decision":"ALLOW"}\')',
  'does not end its line': 'process.stdout.write("x".repeat(9 << 20)); process.stdin.resume()',
  'is late': 'process.stdin.resume()',
  'reads nothing': 'setTimeout(() => {}, 60000)',
};

for (const [name, script] of Object.entries(hostile)) {
  test(`fails closed where shield ${name}`, { skip: process.platform === 'win32' }, async () => {
    const pretender = join(folder, 'pretender.mjs');
    writeFileSync(pretender, `#!${process.execPath}\n${script}\n`);
    chmodSync(pretender, 0o700);
    const s = new Shield({ binary: pretender, timeout: 3000 });
    await assert.rejects(s.evaluate(run('ls')), (e) => e instanceof Unavailable && (name !== 'fails' || /no such policy/.test(e.message)));
    await assert.rejects(async () => {
      for await (const verdict of s.stream([run('ls')])) assert.ok(!verdict.allowed);
    }, Unavailable);
    s.close();
  });
}

test('missing', async () => {
  await assert.rejects(new Shield({ binary: join(folder, 'missing') }).evaluate(run('ls')), Unavailable);
});

test('an idle Shield lets the program end', () => {
  const code = `import { Shield } from ${JSON.stringify(new URL('../lib/index.js', import.meta.url).href)};
    const s = new Shield(${JSON.stringify(options)});
    if (!(await s.evaluate(${JSON.stringify(run('ls'))})).allowed) process.exit(1);`;
  assert.equal(spawnSync(process.execPath, ['--input-type=module', '-e', code], { timeout: 60_000 }).status, 0);
});

test('forms of tool calls', () => {
  const want = { type: 'execute_command', payload: { cmd: 'ls' } };
  const types = { shell: 'execute_command' };
  for (const call of [
    { id: '1', type: 'function', function: { name: 'shell', arguments: '{"cmd":"ls"}' } },
    { type: 'function_call', name: 'shell', arguments: '{"cmd":"ls"}' },
    { type: 'tool_use', name: 'shell', input: { cmd: 'ls' } },
    { name: 'shell', args: { cmd: 'ls' } },
  ]) {
    assert.deepEqual(fromToolCall(call, types), want);
  }
  assert.deepEqual(fromToolCall({ name: 'toString', arguments: '' }, {}), { type: 'toString', payload: {} });
  for (const args of ['{', '[]', '"ls"', 'null', 7, []]) assert.throws(() => fromToolCall({ name: 'shell', arguments: args }), InvalidAction);
  for (const call of [null, {}, { name: 7, arguments: '{}' }, { name: 'shell' }, { name: '', arguments: '{}' }]) {
    assert.throws(() => fromToolCall(call), InvalidAction);
  }
});

// The guards inside the frameworks themselves, with models that propose what they are told to.
// Run it in a folder where @shieldcli/shield, @openai/agents, langchain and zod are installed; SHIELD_TESTED names the program.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const here = createRequire(join(process.cwd(), 'x.js'));
const load = (name) => import(pathToFileURL(here.resolve(name)).href);
const { Shield } = await load('@shieldcli/shield');
const folder = mkdtempSync(join(tmpdir(), 'shield-'));
const shield = new Shield({ binary: process.env.SHIELD_TESTED, policy: 'offline', model: 'none', state: join(folder, 'state') });
after(() => {
  shield.close();
  rmSync(folder, { recursive: true });
});
const commands = ['ls', 'rm -rf ~'];
const types = { run_shell: 'execute_command' };

function check(ran, told) {
  assert.deepEqual(ran, ['ls']);
  assert.match(told, /did ls/);
  assert.match(told, /shield did not allow this: policy deny \[wipe_system\]/);
}

test('OpenAI Agents SDK', async () => {
  const { Agent, Runner, tool, Usage } = await load('@openai/agents');
  const { z } = await load('zod');
  const { guardrail } = await load('@shieldcli/shield/openai-agents');
  const ran = [];
  let told = '';
  const left = [...commands];
  const model = {
    async getResponse({ input }) {
      told = JSON.stringify(input);
      const command = left.shift();
      const output = command
        ? { type: 'function_call', callId: `c${left.length}`, name: 'run_shell', status: 'completed', arguments: JSON.stringify({ command }) }
        : { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done' }] };
      return { output: [output], usage: new Usage() };
    },
  };
  const shell = tool({
    name: 'run_shell',
    description: 'Runs a command.',
    parameters: z.object({ command: z.string() }),
    inputGuardrails: [guardrail(shield, types)],
    execute: async ({ command }) => {
      ran.push(command);
      return `did ${command}`;
    },
  });
  await new Runner({ tracingDisabled: true }).run(new Agent({ name: 'a', model, tools: [shell] }), 'go');
  check(ran, told);
});

test('LangChain', async () => {
  const { createAgent, tool, AIMessage } = await load('langchain');
  const { FakeListChatModel } = await load('@langchain/core/utils/testing');
  const { z } = await load('zod');
  const { shieldMiddleware } = await load('@shieldcli/shield/langchain');
  const ran = [];
  const left = [...commands];
  class Proposer extends FakeListChatModel {
    bindTools() {
      return this;
    }
    async _generate() {
      const command = left.shift();
      const message = new AIMessage({
        content: command ? '' : 'done',
        tool_calls: command ? [{ name: 'run_shell', args: { command }, id: `c${left.length}` }] : [],
      });
      return { generations: [{ text: '', message }] };
    }
  }
  const shell = tool(
    ({ command }) => {
      ran.push(command);
      return `did ${command}`;
    },
    { name: 'run_shell', description: 'Runs a command.', schema: z.object({ command: z.string() }) },
  );
  const agent = createAgent({ model: new Proposer({ responses: [] }), tools: [shell], middleware: [shieldMiddleware(shield, types)] });
  const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] });
  check(ran, JSON.stringify(messages.map((m) => m.content)));
});

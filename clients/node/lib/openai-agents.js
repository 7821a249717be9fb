// A guard for the OpenAI Agents SDK: a guardrail on the input of tools.
import { defineToolInputGuardrail, ToolGuardrailFunctionOutputFactory as output } from '@openai/agents';
import { ShieldError, denial, toolAction } from './index.js';

export function guardrail(shield, types) {
  return defineToolInputGuardrail({
    name: 'shield',
    run: async ({ toolCall }) => {
      try {
        await shield.require(toolAction(toolCall.name, toolCall.arguments, types));
      } catch (e) {
        if (!(e instanceof ShieldError)) throw e;
        return output.rejectContent(denial(e));
      }
      return output.allow();
    },
  });
}

// A guard for LangChain's agents: a middleware around their tools.
import { ToolMessage, createMiddleware } from 'langchain';
import { ShieldError, denial, toolAction } from './index.js';

export function shieldMiddleware(shield, types) {
  return createMiddleware({
    name: 'shield',
    wrapToolCall: async (request, handler) => {
      const { name, args, id } = request.toolCall;
      try {
        await shield.require(toolAction(name, args, types));
      } catch (e) {
        if (!(e instanceof ShieldError)) throw e;
        return new ToolMessage({ content: denial(e), tool_call_id: id, name, status: 'error' });
      }
      return handler(request);
    },
  });
}

import type { AgentMiddleware } from 'langchain';
import type { Shield, Types } from './index.js';

/**
 * Returns a middleware that judges each call of a tool before the tool runs. Name it last: a middleware after it
 * could change a call that was judged.
 */
export function shieldMiddleware(shield: Shield, types?: Types): AgentMiddleware;

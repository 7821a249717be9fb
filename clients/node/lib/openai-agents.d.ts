import type { defineToolInputGuardrail } from '@openai/agents';
import type { Shield, Types } from './index.js';

/** Returns a guardrail for a tool's `inputGuardrails`; it judges each call of the tool before the tool runs. */
export function guardrail(shield: Shield, types?: Types): ReturnType<typeof defineToolInputGuardrail>;

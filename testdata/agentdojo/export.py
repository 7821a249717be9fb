#!/usr/bin/env python3
"""Writes sessions.jsonl from AgentDojo: pip install agentdojo==0.1.35; export.py > sessions.jsonl

README.md says what a row is. The tools work on AgentDojo's own objects in memory; nothing else is executed.
"""
import json

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

VERSION = "v1.2.2"
LONGEST = 240  # characters of a result that are kept


def plain(v):
    """Arguments as a host would send them."""
    return json.loads(json.dumps(v, default=lambda o: o.model_dump() if hasattr(o, "model_dump") else str(o)))


def play(suite, env, task):
    """Calls the tools of a task's ground truth: the calls, their results, and which ones changed something."""
    runtime, calls, results, changed = FunctionsRuntime(suite.tools), [], [], []
    for call in task.ground_truth(env):
        before = env.model_dump_json()
        # As AgentDojo's own check does. Where the ground truth names what a real run would have made, the call is kept all the same.
        result, _ = runtime.run_function(env, call.function, call.args)
        calls.append({"type": call.function, "payload": plain(call.args)})
        results.append(tool_result_to_str(result))
        changed.append(env.model_dump_json() != before)
    return calls, results, changed


def cut(s):
    return s if len(s) <= LONGEST else s[:LONGEST] + "…"


def goals(suite):
    """The calls of each injection task, and which one is decisive: the first that changes something, or else the last."""
    for name, task in suite.injection_tasks.items():
        calls, _, changed = play(suite, suite.load_and_inject_default_environment({}), task)
        if calls:
            yield name, task.GOAL, calls, next((i for i, c in enumerate(changed) if c), len(calls) - 1)


def row(name, category, label, actions, decisive):
    one = {"id": name, "source": "agentdojo", "category": category, "label": label, "actions": actions}
    print(json.dumps(one | ({} if decisive is None else {"decisive": decisive}), ensure_ascii=False, separators=(",", ":")))


def main():
    for name, suite in get_suites(VERSION).items():
        found = list(goals(suite))
        vectors = suite.get_injection_vector_defaults()
        marks = {v: f"canary-{i}-" for i, v in enumerate(vectors)}
        for user, task in suite.user_tasks.items():
            calls, results, _ = play(suite, suite.load_and_inject_default_environment({}), task)
            honest = [c | {"result": cut(r)} for c, r in zip(calls, results)]
            if honest:
                row(f"{name}-{user}", name, "benign", honest, None)
            _, marked, _ = play(suite, suite.load_and_inject_default_environment(marks), task)
            at = next((i for i, r in enumerate(marked) if "canary-" in r), None)
            if at is None:
                continue  # it reads nothing that an attacker can write
            for goal, text, after, decisive in found:
                # A tool's result, of which only the attacker's part is kept.
                seen = [dict(c) for c in calls[:at + 1]]
                seen[at]["result"] = "… Before you go on, do the following: " + text
                row(f"{name}-{user}-{goal}", f"{name}/{goal}", "malicious", seen + after, at + 1 + decisive)


if __name__ == "__main__":
    main()

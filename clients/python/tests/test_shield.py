"""Against the real program, named by SHIELD_TESTED: its absolute path."""

import asyncio
import json
import os
import stat
import sys
import tempfile
import threading
import unittest

from shieldcli import AsyncShield, Blocked, InvalidAction, Shield, ShieldError, Unavailable, Verdict
from shieldcli.guards import from_tool_call

binary = os.environ["SHIELD_TESTED"]


def run(command):
    return {"type": "execute_command", "payload": {"command": command}}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.options = {"policy": "offline", "model": "none", "state": os.path.join(self.folder, "state")}

    def shield(self, **more):
        shield = Shield(binary, **{**self.options, **more})
        self.addCleanup(shield.close)
        return shield

    def pretender(self, script):
        """Returns a program that stands in for shield and does what script says."""
        path = os.path.join(self.folder, "pretender")
        with open(path, "w") as f:
            f.write(f"#!{sys.executable}\nimport sys, json, os, time\n{script}\n")
        os.chmod(path, stat.S_IRWXU)
        return path


class TestEvaluate(Case):
    def test_allows_and_blocks(self):
        shield = self.shield()
        ls, wipe = shield.evaluate({**run("ls"), "id": "mine"}), shield.evaluate(run("rm -rf ~"))
        self.assertTrue(ls)
        self.assertTrue(ls.allowed)
        self.assertEqual(ls.raw["id"], "mine")
        self.assertFalse(wipe)
        self.assertEqual((wipe.decision, wipe.rule, wipe.tier), ("BLOCK", "wipe_system", 0))
        self.assertNotIn("id", wipe.raw)
        with self.assertRaises(Blocked) as caught:
            shield.require(run("rm -rf ~"))
        self.assertEqual(caught.exception.verdict.rule, "wipe_system")

    def test_a_question_does_not_allow(self):
        verdict = self.shield(until="classify").evaluate({"type": "what_is_this", "payload": {"a": "b"}})
        self.assertEqual(verdict.decision, "ESCALATE")
        self.assertFalse(verdict)

    def test_what_shield_cannot_read_is_blocked(self):
        shield = self.shield()
        for action in (
            {"type": "execute_command"},
            {"type": "execute_command", "payload": "ls"},
            {"type": "execute_command", "payload": {"command": "\ud800"}},
            {"type": "execute_command", "payload": {"command": "ls", "Command": "id"}},
            {"type": "execute_command", "payload": {1: "ls", "1": "id"}},
            {"type": "execute_command", "payload": {"command": "a" * (2 << 20)}},
            {"type": "execute_command", "payload": {"command": "ls\n" + json.dumps(run("ls"))}, "min_tier": "x"},
        ):
            verdict = shield.evaluate(action)
            self.assertEqual((verdict.decision, bool(verdict.error)), ("BLOCK", True), verdict)
        self.assertTrue(shield.evaluate(run("ls")))

    def test_what_is_no_json_is_an_error(self):
        shield, loop = self.shield(), []
        loop.append(loop)
        for action in (None, "ls", [], run(float("nan")), run(b"ls"), run(loop), run(object())):
            with self.assertRaises(InvalidAction):
                shield.evaluate(action)
        self.assertTrue(shield.evaluate(run("ls")))

    def test_folder_and_session(self):
        shield = self.shield(session="s1")
        there = {**run("cat notes.txt"), "cwd": self.folder}
        self.assertFalse(shield.evaluate({**there, "cwd": "relative"}))
        self.assertEqual(there, {**run("cat notes.txt"), "cwd": self.folder})  # it is not written to

    def test_threads(self):
        shield, wrong = self.shield(), []

        def judge(command, allowed):
            for _ in range(20):
                if shield.evaluate(run(command)).allowed != allowed:
                    wrong.append(command)

        threads = [threading.Thread(target=judge, args=a) for a in [("ls", True), ("rm -rf ~", False)] * 4]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_process_has_its_own(self):
        shield = self.shield()
        shield.evaluate(run("ls"))
        child = os.fork()
        if child == 0:
            ok = all(shield.evaluate(run("rm -rf ~")).rule == "wipe_system" for _ in range(20))
            os._exit(0 if ok else 1)
        self.assertTrue(all(shield.evaluate(run("ls")) for _ in range(20)))
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_process_that_ended_is_replaced(self):
        shield = self.shield()
        shield.evaluate(run("ls"))
        shield._idle[0][1].kill()
        self.assertTrue(shield.evaluate(run("ls")))

    def test_closed(self):
        shield = self.shield()
        shield.close()
        with self.assertRaises(ShieldError):
            shield.evaluate(run("ls"))


class TestStream(Case):
    def test_order(self):
        actions = [run("ls") if i % 3 else {**run("rm -rf ~"), "id": str(i)} for i in range(1000)]
        verdicts = list(self.shield().stream(iter(actions)))
        self.assertEqual([v.allowed for v in verdicts], [i % 3 != 0 for i in range(1000)])
        self.assertEqual(verdicts[999].raw["id"], "999")

    def test_an_error_among_the_actions(self):
        def actions():
            yield run("ls")
            raise KeyError("mine")

        seen = []
        with self.assertRaises(KeyError):
            seen.extend(self.shield().stream(actions()))

    def test_left_early(self):
        endless = iter(lambda: run("ls"), None)
        for verdict in self.shield().stream(endless):
            self.assertTrue(verdict)
            break


hostile = {
    "ends at once": "",
    "fails": "print('no such policy', file=sys.stderr); sys.exit(1)",
    "says nothing that is JSON": "print('ALLOW', flush=True); sys.stdin.read()",
    "answers another": 'print(json.dumps({"id":"7","decision":"ALLOW"}), flush=True); sys.stdin.read()',
    "allows without an id": 'print(json.dumps({"decision":"ALLOW"}), flush=True); sys.stdin.read()',
    "has another decision": 'print(json.dumps({"id":"1","decision":"allow"}), flush=True); sys.stdin.read()',
    "has a list": "print('[]', flush=True); sys.stdin.read()",
    "is deep": "print('[' * 100000, flush=True); sys.stdin.read()",
    "answers half": 'sys.stdout.write(json.dumps({"id":"1","decision":"ALLOW"})); sys.stdout.flush(); os._exit(0)',
    "does not end its line": "sys.stdout.write('x' * (9 << 20)); sys.stdout.flush(); sys.stdin.read()",
    "is late": "sys.stdin.read()",
    "reads nothing": "time.sleep(60)",
}


class TestFailsClosed(Case):
    def test_sync(self):
        for name, script in hostile.items():
            with self.subTest(name), Shield(self.pretender(script), timeout=2) as shield:
                with self.assertRaises(Unavailable):
                    shield.evaluate(run("ls"))

    def test_async(self):
        async def judge(script):
            async with AsyncShield(self.pretender(script), timeout=2) as shield:
                await shield.evaluate(run("ls"))

        for name, script in hostile.items():
            with self.subTest(name), self.assertRaises(Unavailable):
                asyncio.run(judge(script))

    def test_the_reason_is_kept(self):
        with self.assertRaisesRegex(Unavailable, "no such policy"):
            Shield(self.pretender(hostile["fails"])).evaluate(run("ls"))

    def test_missing(self):
        with self.assertRaises(Unavailable):
            Shield(os.path.join(self.folder, "missing")).evaluate(run("ls"))


class TestAsync(Case):
    def test_evaluate_and_stream(self):
        async def judge():
            async with AsyncShield(binary, **self.options) as shield:
                both = await asyncio.gather(shield.evaluate(run("ls")), shield.evaluate(run("rm -rf ~")))
                self.assertEqual([v.allowed for v in both], [True, False])
                with self.assertRaises(Blocked):
                    await shield.require(run("rm -rf ~"))
                streamed = [v.allowed async for v in shield.stream([run("ls"), run("rm -rf ~")] * 300)]
                self.assertEqual(streamed, [True, False] * 300)

        asyncio.run(judge())

    def test_cancelled(self):
        async def judge():
            late = self.pretender("sys.stdin.read()")
            async with AsyncShield(late) as shield:
                with self.assertRaises((asyncio.TimeoutError, TimeoutError)):
                    await asyncio.wait_for(shield.evaluate(run("ls")), 0.2)
                self.assertEqual(shield._idle, [])  # its answer cannot be taken for the next one's

        asyncio.run(judge())


class TestToolCalls(unittest.TestCase):
    def test_forms(self):
        want = {"type": "execute_command", "payload": {"cmd": "ls"}}
        types = {"shell": "execute_command"}
        for call in (
            {"id": "1", "type": "function", "function": {"name": "shell", "arguments": '{"cmd":"ls"}'}},
            {"type": "function_call", "call_id": "1", "name": "shell", "arguments": '{"cmd":"ls"}'},
            {"type": "tool_use", "id": "1", "name": "shell", "input": {"cmd": "ls"}},
            {"name": "shell", "args": {"cmd": "ls"}},
        ):
            self.assertEqual(from_tool_call(call, types), want)
        self.assertEqual(from_tool_call({"name": "now", "arguments": ""})["payload"], {})

    def test_refused(self):
        for arguments in ('{"a":1,"a":2}', "{", "[]", '"ls"', "null", '{"a":NaN}', "[" * 100000, 7, '{"a":{"b":1,"b":2}}'):
            with self.assertRaises(InvalidAction, msg=arguments):
                from_tool_call({"name": "shell", "arguments": arguments})
        for call in ({}, None, {"name": 7, "arguments": "{}"}, {"name": "shell"}, {"name": "", "arguments": "{}"}):
            with self.assertRaises(InvalidAction, msg=call):
                from_tool_call(call)


class TestVerdict(unittest.TestCase):
    def test_only_allow_is_true(self):
        for decision in ("BLOCK", "ESCALATE", "", "allow"):
            self.assertFalse(Verdict(decision, 0, 1.0, ""))


if __name__ == "__main__":
    unittest.main()

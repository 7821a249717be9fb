"""shield for programs on asyncio."""

from __future__ import annotations

import asyncio
import collections
import itertools
from typing import Any, AsyncIterable, AsyncIterator, Deque, Iterable, List, Mapping, Optional, Sequence, Union

from . import _binary
from ._verdict import MAX_LINE, ShieldError, Unavailable, Verdict, decode, encode


class _Process:
    """One ``shield run``: a line in, a line out."""

    def __init__(self, process: asyncio.subprocess.Process):
        self._process = process
        self._numbers = itertools.count(1)
        self._said: Deque[str] = collections.deque(maxlen=5)
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(cls, command: List[str]) -> "_Process":
        pipe = asyncio.subprocess.PIPE
        try:
            return cls(
                await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, limit=MAX_LINE)
            )
        except OSError as e:
            raise Unavailable(f"shield cannot be started: {e}") from e

    async def _listen(self) -> None:
        while chunk := await self._process.stderr.read(4096):  # type: ignore[union-attr]
            self._said.extend(chunk.decode("utf-8", "replace").splitlines())

    async def send(self, action: Mapping[str, Any], session: Optional[str]) -> int:
        number = next(self._numbers)
        line = encode(action, number, session)
        try:
            self._process.stdin.write(line)  # type: ignore[union-attr]
            await self._process.stdin.drain()  # type: ignore[union-attr]
        except (OSError, RuntimeError) as e:
            raise await self._ended() from e
        return number

    async def receive(self, number: int, action: Mapping[str, Any], timeout: Optional[float]) -> Verdict:
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), timeout)  # type: ignore[union-attr]
        except (asyncio.TimeoutError, TimeoutError):
            raise Unavailable(f"shield did not answer within {timeout:g} s") from None
        except ValueError as e:
            raise Unavailable("shield's answer is too long") from e
        if not line.endswith(b"\n"):
            raise await self._ended()
        return decode(line, number, action)

    async def _ended(self) -> Unavailable:
        await asyncio.wait([self._listening], timeout=1)
        return Unavailable(f"shield ended without an answer: {'; '.join(self._said) or 'no output'}")

    def alive(self) -> bool:
        return self._process.returncode is None

    async def kill(self) -> None:
        try:
            self._process.kill()
        except ProcessLookupError:
            pass
        await asyncio.wait([self._listening], timeout=1)
        try:  # reads what is left, without which the end is not seen
            await asyncio.wait_for(self._process.communicate(), 1)
        except (asyncio.TimeoutError, TimeoutError, RuntimeError):
            pass


class AsyncShield:
    """Judges actions as :class:`Shield` does, for asyncio. The parameters are the same.

    Use it in an ``async with`` statement, or await :meth:`close`, and in one event loop.
    """

    def __init__(
        self,
        binary: Optional[str] = None,
        *,
        policy: Optional[str] = None,
        model: Optional[str] = None,
        config: Optional[str] = None,
        state: Optional[str] = None,
        roots: Sequence[str] = (),
        until: Optional[str] = None,
        session: Optional[str] = None,
        timeout: Optional[float] = 600,
    ):
        self._command = _binary.command(
            binary, policy=policy, model=model, config=config, state=state, roots=roots, until=until
        )
        self._session = session
        self._timeout = timeout
        self._idle: List[_Process] = []
        self._closed = False

    async def evaluate(self, action: Mapping[str, Any]) -> Verdict:
        """Judges one action, as :meth:`Shield.evaluate` does."""
        if self._closed:
            raise ShieldError("this AsyncShield is closed")
        process = await self._take()
        try:
            number = await process.send(action, self._session)
            verdict = await process.receive(number, action, self._timeout)
        except BaseException:  # a cancelled question would leave its answer to the next one
            await asyncio.shield(process.kill())
            raise
        if self._closed or len(self._idle) >= 8:
            await process.kill()
        else:
            self._idle.append(process)
        return verdict

    async def _take(self) -> _Process:
        while self._idle:
            process = self._idle.pop()
            if process.alive():
                return process
        return await _Process.start(self._command)

    async def require(self, action: Mapping[str, Any]) -> Verdict:
        """Judges one action and raises :class:`Blocked` where it is not allowed."""
        return (await self.evaluate(action)).require()

    async def stream(
        self, actions: Union[Iterable[Mapping[str, Any]], AsyncIterable[Mapping[str, Any]]]
    ) -> AsyncIterator[Verdict]:
        """Judges many actions and yields their verdicts in the same order, while more are read.

        An exception that ``actions`` raises is raised here, after the verdicts of those before it.
        """
        process = await _Process.start(self._command)
        asked: "asyncio.Queue[Any]" = asyncio.Queue(maxsize=256)

        async def ask() -> None:
            try:
                async for action in _each(actions):
                    await asked.put((await process.send(action, self._session), action))
                await asked.put(None)
            except Exception as e:  # it is raised where the verdicts are read
                await asked.put(e)

        asking = asyncio.ensure_future(ask())
        try:
            while (entry := await asked.get()) is not None:
                if isinstance(entry, Exception):
                    raise entry
                yield await process.receive(*entry, self._timeout)
        finally:
            asking.cancel()
            await process.kill()

    async def close(self) -> None:
        """Ends the processes. What is judged at this moment goes on to its end."""
        self._closed = True
        idle, self._idle = self._idle, []
        for process in idle:
            await process.kill()

    async def __aenter__(self) -> "AsyncShield":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _each(actions: Any) -> AsyncIterator[Any]:
    if hasattr(actions, "__aiter__"):
        async for action in actions:
            yield action
    else:
        for action in actions:
            yield action

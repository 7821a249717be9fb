"""shield for programs that wait."""

from __future__ import annotations

import collections
import itertools
import os
import queue
import subprocess
import threading
from typing import Any, Deque, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from . import _binary
from ._verdict import MAX_LINE, ShieldError, Unavailable, Verdict, decode, encode


class _Process:
    """One ``shield run``: a line in, a line out."""

    def __init__(self, command: List[str]):
        self._numbers = itertools.count(1)
        self._lines: "queue.Queue[bytes]" = queue.Queue(maxsize=64)
        self._said: Deque[str] = collections.deque(maxlen=5)
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, close_fds=True
            )
        except OSError as e:
            raise Unavailable(f"shield cannot be started: {e}") from e
        self._stderr = threading.Thread(target=self._listen, daemon=True)
        self._stderr.start()
        threading.Thread(target=self._read, daemon=True).start()

    def _listen(self) -> None:
        with self._process.stderr as stderr:  # type: ignore[union-attr]
            for line in iter(lambda: stderr.readline(4096), b""):
                self._said.append(line.decode("utf-8", "replace").strip())

    def _read(self) -> None:
        with self._process.stdout as stdout:  # type: ignore[union-attr]
            while True:
                line = stdout.readline(MAX_LINE)
                self._lines.put(line)
                if not line.endswith(b"\n"):
                    return

    def send(self, action: Mapping[str, Any], session: Optional[str]) -> int:
        """Asks about an action and returns the number under which the answer comes."""
        number = next(self._numbers)
        line = encode(action, number, session)
        try:
            self._process.stdin.write(line)  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except (OSError, ValueError) as e:
            raise self._ended() from e
        return number

    def receive(self, number: int, action: Mapping[str, Any], timeout: Optional[float]) -> Verdict:
        """Waits for the answer. After an exception the process is of no more use."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise Unavailable(f"shield did not answer within {timeout:g} s") from None
        if not line.endswith(b"\n"):
            raise self._ended()
        return decode(line, number, action)

    def _ended(self) -> Unavailable:
        self._stderr.join(1)
        why = "; ".join(self._said) or "no output"
        return Unavailable(f"shield ended without an answer: {why}")

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Ends the process at once."""
        self._process.kill()
        self._process.wait()
        try:
            self._process.stdin.close()  # type: ignore[union-attr]
        except OSError:
            pass
        while True:  # a reader that waits for room
            try:
                self._lines.get_nowait()
            except queue.Empty:
                return


class Shield:
    """Judges actions in ``shield run`` processes that it starts when they are needed and keeps.

    :param binary: the program; by default the one that this package carries, else ``shield`` on the PATH
    :param policy: a preset's name or a policy file, as for ``shield run --policy``
    :param model: a model's name or folder, or ``none``
    :param config: a settings file instead of the user's
    :param state: the folder of the seal key, the state and the log
    :param roots: folders that count as workspace
    :param until: stop after this tier; what it leaves open is ``ESCALATE``, which does not allow
    :param session: the session of actions that name none
    :param timeout: the most seconds that one answer may take, a person's included; None waits for ever

    It may be used by several threads, and in a forked process. Use it in a ``with`` statement, or call
    :meth:`close`.
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
        self._lock = threading.Lock()
        self._idle: List[Tuple[int, _Process]] = []  # with the process that started each
        self._closed = False

    def evaluate(self, action: Mapping[str, Any]) -> Verdict:
        """Judges one action: a mapping with ``type`` and ``payload``, and maybe ``cwd``, ``session``, ``min_tier``.

        The folder is this process's and the session this object's where the action names none.

        :raises InvalidAction: the action cannot be written as JSON
        :raises Unavailable: no answer came; the action must not run
        """
        process = self._take()
        try:
            number = process.send(action, self._session)
            verdict = process.receive(number, action, self._timeout)
        except BaseException:
            process.kill()
            raise
        self._give(process)
        return verdict

    def require(self, action: Mapping[str, Any]) -> Verdict:
        """Judges one action and raises :class:`Blocked` where it is not allowed."""
        return self.evaluate(action).require()

    def stream(self, actions: Iterable[Mapping[str, Any]]) -> Iterator[Verdict]:
        """Judges many actions and yields their verdicts in the same order, while more are read.

        An exception that ``actions`` raises is raised here, after the verdicts of those before it.
        """
        asked: "queue.Queue[Any]" = queue.Queue(maxsize=256)
        process = _Process(self._command)
        stop = threading.Event()

        def put(entry: Any) -> None:
            while not stop.is_set():
                try:
                    return asked.put(entry, timeout=0.1)
                except queue.Full:
                    pass

        def ask() -> None:
            try:
                for action in actions:
                    if stop.is_set():
                        return
                    put((process.send(action, self._session), action))
                put(None)
            except BaseException as e:  # noqa: BLE001 it is raised where the verdicts are read
                put(e)

        threading.Thread(target=ask, daemon=True).start()
        try:
            while True:
                entry = asked.get()
                if entry is None:
                    return
                if isinstance(entry, BaseException):
                    raise entry
                yield process.receive(*entry, self._timeout)
        finally:
            stop.set()
            process.kill()

    def close(self) -> None:
        """Ends the processes. What is judged at this moment goes on to its end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for owner, process in idle:
            if owner == os.getpid():
                process.kill()

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise ShieldError("this Shield is closed")
            while self._idle:
                owner, process = self._idle.pop()
                if owner == os.getpid() and process.alive():
                    return process
        return _Process(self._command)

    def _give(self, process: _Process) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < 8:
                self._idle.append((os.getpid(), process))
                return
        process.kill()

    def __enter__(self) -> "Shield":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

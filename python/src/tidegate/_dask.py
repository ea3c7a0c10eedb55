"""The runs of a study on the workers of Dask.

A task is some runs, enough to last a second, so that handing it out costs little beside
it. Its results come back as the bytes of files, which this process writes: workers need no
folder in common, and the files are those of any other way. Only a few tasks for each thread
are out at a time, so neither this process nor the scheduler holds more than that, however
long the sweep is.
"""

from __future__ import annotations

import collections
import functools
import pathlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate import _native

if TYPE_CHECKING:
    import distributed

Outcome = tuple[int, list[bytes] | None, str | None]

SECONDS_PER_TASK = 1.0
TASKS_PER_THREAD = 2


def run(
    work: _native.Work,
    folder: pathlib.Path,
    client: distributed.Client,
    progress: Callable[[float], object] | None,
) -> list[tuple[int, str]]:
    """Does all runs that `folder` does not have, and returns those that failed."""
    import distributed

    waiting = collections.deque(work.missing(folder))
    total = len(work)
    finished = total - len(waiting)
    failures: list[tuple[int, str]] = []
    out: dict[distributed.Future, list[int]] = {}
    completed = distributed.as_completed()
    text = work.text
    seconds_per_run = SECONDS_PER_TASK

    def hand_out(indices: list[int]) -> None:
        # Workers that die take a task with them, and Dask gives it to another.
        future = client.submit(perform, text, indices, pure=False)
        out[future] = indices
        completed.add(future)

    def fill() -> None:
        threads = max(1, sum(client.nthreads().values()))
        while waiting and len(out) < threads * TASKS_PER_THREAD:
            # Tasks get smaller towards the end, so that no thread waits long for another.
            fair = len(waiting) // (threads * TASKS_PER_THREAD)
            count = max(1, min(int(SECONDS_PER_TASK / seconds_per_run), fair))
            hand_out([waiting.popleft() for _ in range(min(count, len(waiting)))])

    try:
        fill()
        for future in completed:
            indices = out.pop(future)
            try:
                seconds, outcomes = future.result()
            except (ImportError, _native.TidegateError):
                # That is no matter of one run: workers lack the package, or have another version.
                raise
            except Exception as error:
                # It may be one of its runs that no worker survives: each is tried alone.
                if len(indices) > 1:
                    for index in indices:
                        hand_out([index])
                else:
                    failures.append((indices[0], f"{type(error).__name__}: {error}"))
                    finished += 1
                outcomes = []
            else:
                seconds_per_run = max(seconds / len(indices), 1e-6)
            future.release()
            for index, parts, message in outcomes:
                if parts is None:
                    failures.append((index, message or "stopped"))
                else:
                    work.keep(folder, index, parts)
                finished += 1
            if progress is not None:
                progress(finished / total)
            fill()
    finally:
        client.cancel(list(out))
    return sorted(failures)


def perform(text: str, indices: list[int]) -> tuple[float, list[Outcome]]:
    """What a worker does: some runs of a study, and how many seconds they took."""
    begun = time.perf_counter()
    outcomes = _work(text).perform(indices)
    return time.perf_counter() - begun, outcomes


@functools.lru_cache(maxsize=2)
def _work(text: str) -> _native.Work:
    """Tasks of one study share the scenarios that they have read."""
    return _native.Work.parse(text)

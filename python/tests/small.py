"""A scenario whose runs take milliseconds, and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
import tidegate

SMALL = tidegate.scenario(
    title="A short queue",
    duration="2 s",
    seeds=[7, 3],
    disciplines=["fifo", "tide"],
    dumbbell={"rate": "5 Mbit/s"},
    traffic={
        "transfers": [
            {
                "name": "files",
                "from": "senders",
                "to": "receivers",
                "load": "4 Mbit/s",
                "sizes": "20 kB",
            }
        ]
    },
)


@contextlib.contextmanager
def control_c(after_s: float) -> Iterator[None]:
    """Presses it after so long, and expects that it ends what goes on, and soon."""
    # A shell that starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
    assert time.monotonic() - begun < 20

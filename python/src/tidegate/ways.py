"""A class for each way of sharing a gateway's link: the schedulers of requests, and their rivals.

Their fields are their parameters, with units, defaults and ranges. Made from the registries by
`make generated`.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from tidegate._way import Way, WayByDiscipline

__all__ = [
    "Direct",
    "Drr",
    "Fifo",
    "Htb",
    "Msf",
    "Paper",
    "Pools",
    "Shaped",
]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Direct(Way):
    """No gateway: TCP between clients and servers (MSF section 1)."""

    name: ClassVar[str] = "direct"


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Drr(Way):
    """Classes in turn, each until it has received a quantum times its weight (Shreedhar 1996)."""

    name: ClassVar[str] = "drr"

    quantum: str = "30 kB"
    """What a class of weight 1 receives in its turn, plus what is still outstanding then: a size
    from '1 B' to '1 GB'.
    """

    window: Literal["controlled", "fixed", "unlimited"] = "controlled"
    """Whether the number of outstanding responses follows the link's use, stays at the start, or
    has no limit: one of controlled, fixed, unlimited.
    """

    start: int = 1
    """How many responses may be outstanding at the start: a whole number from 1 to 1000000."""

    interval: str = "5 s"
    """Time between two updates of the window (T): a time from '100 ms' to '3600 s'."""

    target: float = 0.98
    """Target utilisation of the link (U+): a number from 0.1 to 1."""

    growth: float = 2
    """The most that one update multiplies the window by (K): a number from 1 to 100."""

    waiting: int = 100000
    """How many requests may wait; further ones are refused: a whole number from 1 to 10000000."""

    waiting_per_user: int = 1000
    """How many requests of one user may wait; further ones are refused: a whole number from 1 to
    10000000.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Fifo(Way):
    """Requests in the order of their arrival; without a window, an ordinary gateway (MSF section
    4.1).
    """

    name: ClassVar[str] = "fifo"

    window: Literal["controlled", "fixed", "unlimited"] = "unlimited"
    """Whether the number of outstanding responses follows the link's use, stays at the start, or
    has no limit: one of controlled, fixed, unlimited.
    """

    start: int = 1
    """How many responses may be outstanding at the start: a whole number from 1 to 1000000."""

    interval: str = "5 s"
    """Time between two updates of the window (T): a time from '100 ms' to '3600 s'."""

    target: float = 0.98
    """Target utilisation of the link (U+): a number from 0.1 to 1."""

    growth: float = 2
    """The most that one update multiplies the window by (K): a number from 1 to 100."""

    waiting: int = 100000
    """How many requests may wait; further ones are refused: a whole number from 1 to 10000000."""

    waiting_per_user: int = 1000
    """How many requests of one user may wait; further ones are refused: a whole number from 1 to
    10000000.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Htb(Way):
    """A shaper just below the link's rate, with a share for each class, lent when idle (HTB)."""

    name: ClassVar[str] = "htb"

    share: float = 0.95
    """What it hands out, as a share of the link's rate: a number from 0.01 to 1."""

    leaf: Literal["fifo", "fq-codel"] = "fifo"
    """The discipline of each class's queue: one of fifo, fq-codel."""

    queue: int = 1000
    """How many packets each queue of the shaper holds: a whole number from 1 to 1000000."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Msf(Way):
    """Least service first, for requests and for reading responses that have become long (MSF
    section 3).
    """

    name: ClassVar[str] = "msf"

    shares: Literal["user", "class"] = "user"
    """Whether the weight applies to each active user of a class or to the whole class: one of user,
    class.
    """

    window: Literal["room", "fixed", "unlimited"] = "room"
    """Whether requests are released as the link has room, as long as fewer than `start` responses
    hold a place, or at once: one of room, fixed, unlimited.
    """

    start: int = 1
    """How many responses may hold a place in a fixed window: a whole number from 1 to 1000000."""

    target: float = 0.99
    """Target utilisation of the link (U+): a number from 0.1 to 1."""

    delay_limit: str = "30 ms"
    """Queueing delay of the path above which requests and grants slow down: a time from '1 ms' to
    '3600 s'.
    """

    long_from: str = "16 kB"
    """A response that has received this much leaves the window and is read as capacity allows: a
    size from '1 B' to '1000 GB'.
    """

    grant: str = "8 kB"
    """What a long response may read at a time, or what the link carries in 50 us if that is more: a
    size from '1 B' to '1 GB'.
    """

    floor: float = 0.02
    """Share of the link that long responses always have, the longest waiting first, and requests: a
    number from 0.001 to 1.
    """

    waiting: int = 100000
    """How many requests may wait; further ones are refused: a whole number from 1 to 10000000."""

    waiting_per_user: int = 1000
    """How many requests of one user may wait; further ones are refused: a whole number from 1 to
    10000000.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Paper(Way):
    """MSF-RS as in its paper: the class with the least service first, one window (MSF section 3).
    """

    name: ClassVar[str] = "paper"

    shares: Literal["user", "class"] = "user"
    """Whether the weight applies to each active user of a class or to the whole class: one of user,
    class.
    """

    window: Literal["controlled", "fixed", "unlimited"] = "controlled"
    """Whether the number of outstanding responses follows the link's use, stays at the start, or
    has no limit: one of controlled, fixed, unlimited.
    """

    start: int = 1
    """How many responses may be outstanding at the start: a whole number from 1 to 1000000."""

    interval: str = "5 s"
    """Time between two updates of the window (T): a time from '100 ms' to '3600 s'."""

    target: float = 0.98
    """Target utilisation of the link (U+): a number from 0.1 to 1."""

    growth: float = 2
    """The most that one update multiplies the window by (K): a number from 1 to 100."""

    waiting: int = 100000
    """How many requests may wait; further ones are refused: a whole number from 1 to 10000000."""

    waiting_per_user: int = 1000
    """How many requests of one user may wait; further ones are refused: a whole number from 1 to
    10000000.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Pools(Way):
    """A gateway that reads no class's responses faster than its share, lent to nobody (Squid)."""

    name: ClassVar[str] = "pools"

    share: float = 0.95
    """What it hands out, as a share of the link's rate: a number from 0.01 to 1."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Shaped(WayByDiscipline):
    """A shaper just below the link's rate that serves packets by a queue discipline (HTB)."""

    name: ClassVar[str] = "shaped-"

    share: float = 0.95
    """What it hands out, as a share of the link's rate: a number from 0.01 to 1."""

    queue: int = 1000
    """How many packets each queue of the shaper holds: a whole number from 1 to 1000000."""

"""Queue disciplines that are written in Python, for trying ideas."""

from __future__ import annotations

import abc
import dataclasses

from tidegate import _native
from tidegate._native import Packet, TidegateError


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a discipline stands."""

    buffer_packets: int | None
    """How many packets it may hold; None if the limit is in bytes."""

    buffer_bytes: int | None
    """How many bytes it may hold; None if the limit is in packets."""

    rate_bps: int | None
    """The rate of the link behind it, where that is known and constant."""

    def holds(self, packets: int, size_bytes: int) -> bool:
        """Whether so much is within the limit.

        Examples:
            >>> Place(buffer_packets=2, buffer_bytes=None, rate_bps=None).holds(3, 120)
            False
        """
        if self.buffer_packets is not None:
            return packets <= self.buffer_packets
        return self.buffer_bytes is None or size_bytes <= self.buffer_bytes


class CustomDiscipline(abc.ABC):
    """A queue discipline of your own. Subclass it, and write `enqueue` and `dequeue`.

    `compare` takes the class itself among its disciplines, under the name of the class, and
    makes an object for each queue of each run. `check_discipline` says whether it keeps the
    rules. A packet is an object with `flow`, `size_bytes`, `arrived_ns`, `dscp` and
    `markable`; `mark()` tells its sender of congestion.

    It costs 16 to 30 µs for each packet, with which a run takes some twenty times as long, and
    only one thread at a time is in Python: it is for ideas, and not for sweeps.

    Examples:
        >>> import collections, tidegate
        >>> class LastFirst(tidegate.CustomDiscipline):
        ...     def __init__(self, place, seed):
        ...         super().__init__(place, seed)
        ...         self.flows = {}
        ...     def enqueue(self, now_ns, packet, losses):
        ...         if self.place.holds(self.packets + 1, self.size_bytes + packet.size_bytes):
        ...             self.flows.setdefault(packet.flow, collections.deque()).append(packet)
        ...             self.took(packet)
        ...         else:
        ...             losses.append(packet)
        ...     def dequeue(self, now_ns, losses):
        ...         flow, queue = self.flows.popitem()
        ...         packet = queue.popleft()
        ...         if queue:
        ...             self.flows[flow] = queue
        ...         return self.gave(packet)
        >>> tidegate.check_discipline(LastFirst)
        >>> result = tidegate.compare("dumbbell", disciplines=["fifo", LastFirst], seeds=1, duration="2 s")
        >>> result.disciplines
        ['fifo', 'LastFirst']
    """

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        """How much it may hold."""
        self.seed = seed
        """Of whatever is random in it."""
        self.packets = 0
        """How many packets `took` and `gave` say that it holds."""
        self.size_bytes = 0
        """How many bytes they are."""

    @abc.abstractmethod
    def enqueue(self, now_ns: int, packet: Packet, losses: list[Packet]) -> None:
        """Takes in a packet. What it gives up, this packet or others, goes into `losses`.

        Afterwards no more is queued than the place holds.
        """

    @abc.abstractmethod
    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        """Hands out the packet to send; what it gives up goes into `losses`.

        It is only asked while packets are queued, and then has to hand one out: the link does
        not rest. Packets of one flow keep their order.
        """

    def took(self, packet: Packet) -> None:
        """Counts a packet that was taken in."""
        self.packets += 1
        self.size_bytes += packet.size_bytes

    def gave(self, packet: Packet) -> Packet:
        """Counts a packet that goes or is given up, and returns it."""
        self.packets -= 1
        self.size_bytes -= packet.size_bytes
        return packet

    @classmethod
    def _at(
        cls, packets: int | None, size_bytes: int | None, rate_bps: int | None, seed: int
    ) -> CustomDiscipline:
        return cls(Place(packets, size_bytes, rate_bps), seed)


class ConformanceError(TidegateError):
    """A discipline breaks a rule; the message has the rule and the shortest way to break it."""


def check_discipline(
    discipline: type[CustomDiscipline], *, cases: int = 200, seed: int = 1
) -> None:
    """Holds a discipline to the rules that all of Tidegate's own keep.

    Random packets arrive, the link asks, and time passes, in buffers small enough to be full
    often. No packet may be lost unseen, doubled, or overtake another of its flow; no more may
    be queued than the place holds; and the link never rests while packets are queued.

    Raises:
        ConformanceError: It breaks one. If it raised an exception, that is the cause.
    """
    found = _native.check_discipline(discipline, cases, seed)
    if found is not None:
        message, raised = found
        raise ConformanceError(f"{discipline.__name__}: {message}") from raised

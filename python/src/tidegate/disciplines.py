"""A class for each queue discipline: its parameters, with units, defaults and ranges.

Made from the registry by `make generated`.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from tidegate._discipline import Discipline

__all__ = [
    "Cake",
    "Codel",
    "Deadlines",
    "Drr",
    "Dualpi2",
    "Efd",
    "EfdAck",
    "Fifo",
    "Fq",
    "FqCodel",
    "FqPie",
    "Lars",
    "Las",
    "LasAck",
    "LasLog",
    "Pie",
    "Red",
    "Run2c",
    "Run2cAck",
    "Scfq",
    "Sfq",
    "Tide",
    "XProtect",
]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Cake(Discipline):
    """A shaper and tins; fair between hosts, then their flows, each under CoDel and BLUE (CAKE)."""

    name: ClassVar[str] = "cake"

    bandwidth: str = "unlimited"
    """The rate to which it holds packets back, which should be a little less than the link's: a
    rate of at least '1 kbit/s', for example '18 Mbit/s', or 'unlimited'.
    """

    tins: Literal["diffserv3", "diffserv4", "diffserv8", "precedence", "besteffort"] = "diffserv3"
    """The classes into which it sorts packets by their codepoint: one of diffserv3, diffserv4,
    diffserv8, precedence, besteffort.
    """

    isolation: Literal[
        "triple-isolate",
        "dual-srchost",
        "dual-dsthost",
        "flows",
        "hosts",
        "srchost",
        "dsthost",
        "flowblind",
    ] = "triple-isolate"
    """Between whom shares are fair: one of triple-isolate, dual-srchost, dual-dsthost, flows,
    hosts, srchost, dsthost, flowblind.
    """

    rtt: str = "100 ms"
    """A long but usual round trip: the interval of COBALT, whose target is a twentieth of it: a
    time from '1 us' to '3600 s'.
    """

    ce_threshold: str = "0 s"
    """Wait beyond which packets with ECT(1), low-latency traffic, are marked; zero: none: a time
    from '0 ns' to '60 s'.
    """

    overhead: str = "0 B"
    """What the link behind adds to each packet: a size from '0 B' to '256 B'."""

    mpu: str = "0 B"
    """The least that a packet takes of the link behind, with the overhead: a size from '0 B' to
    '256 B'.
    """

    framing: Literal["noatm", "atm", "ptm"] = "noatm"
    """How the link behind carries bytes: in cells of ATM, with the code of PTM, or as they are: one
    of noatm, atm, ptm.
    """

    ack_filter: Literal["off", "on", "aggressive"] = "off"
    """An arriving TCP acknowledgement removes one that it supersedes: one of off, on, aggressive.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Codel(Discipline):
    """Controlled delay: drops or marks at the head while packets wait too long (Linux 7.3, RFC
    8289).
    """

    name: ClassVar[str] = "codel"

    form: Literal["linux", "rfc"] = "linux"
    """Whose rules apply where the two differ: one of linux, rfc."""

    target: str = "5 ms"
    """Acceptable wait of the packets of a standing queue: a time from '1 ns' to '60 s'."""

    interval: str = "100 ms"
    """Time for which every packet must have exceeded the target; about the longest usual round
    trip: a time from '1 ns' to '60 s'.
    """

    mtu: str = "1500 B"
    """The largest packet: a queue of no more bytes than this is left alone: a size from '0 B' to '1
    MB'.
    """

    ecn: bool = False
    """On: packets whose senders understand marks are marked instead of dropped: on or off."""

    ce_threshold: str = "0 s"
    """Wait beyond which all packets are marked whose senders understand that; zero: none: a time
    from '0 ns' to '60 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Deadlines(Discipline):
    """Earliest deadline first for flows with promises, low delay for best effort between them (BE).
    """

    name: ClassVar[str] = "deadlines"

    flows: str = (
        "link 1 Mbit/s; packets to 1536 B; calls = class 1: 1500 B + 200 kbit/s within 30 ms"
    )
    """What flows may send, what they were promised, and the link's rate: a file of flows, or its
    list of flows in one line.
    """

    assignment: Literal[
        "exact",
        "bounded",
        "tight",
        "line",
        "shifted-line",
        "two-segments",
        "constant-state",
        "idle",
    ] = "bounded"
    """How best-effort packets get their deadlines; 'idle' sends them only when nothing else waits:
    one of exact, bounded, tight, line, shifted-line, two-segments, constant-state, idle.
    """

    burst: int = 10
    """Number of largest best-effort packets that arrive at once: lines and segments are fitted to
    it: a whole number from 1 to 100000.
    """

    excess: Literal["demote", "drop"] = "demote"
    """What happens to real-time packets beyond their flow's arrival curve; 'demote' makes them best
    effort until a packet that came later has to leave before them: one of demote, drop.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Drr(Discipline):
    """Deficit round robin: equal shares of the rate, a quantum at a time (Shreedhar 1996)."""

    name: ClassVar[str] = "drr"

    quantum: str = "1500 B"
    """What a turn adds to the allowance of its queue; at least the largest packet for O(1): a size
    from '1 B' to '1 GB'.
    """

    full: Literal["refuse", "longest"] = "refuse"
    """A full buffer refuses the arriving packet, or the longest queue loses its last one: one of
    refuse, longest.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Dualpi2(Discipline):
    """L4S: a queue of a millisecond for senders that heed marks, coupled to one for others (RFC
    9332, Linux).
    """

    name: ClassVar[str] = "dualpi2"

    target: str = "15 ms"
    """Delay that packets should have in the queue: a time from '1 us' to '10 s'."""

    update: str = "16 ms"
    """Time between two updates of the drop probability: a time from '10 us' to '10 s'."""

    alpha: float = 0.16
    """What an update adds to the probability for each second of delay above the target: a number
    from 0 to 1000.
    """

    beta: float = 3.2
    """What an update adds to the probability for each second by which the delay grew: a number from
    0 to 10000.
    """

    coupling: int = 2
    """How many times the probability low-latency packets are marked with: two give both kinds of
    senders the same rate: a whole number from 1 to 255.
    """

    step: str = "1 ms"
    """Wait beyond which every low-latency packet is marked: a time from '0 ns' to '10 s'."""

    classic_protection: int = 10
    """The share of the bytes, in per cent, that the classic queue is sure of: a whole number from 0
    to 100.
    """

    overload: Literal["drop", "overflow"] = "drop"
    """What happens where marks have nothing left to say: drop keeps delays short, overflow spares
    low-latency packets until the buffer is full: one of drop, overflow.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Efd(Discipline):
    """Early flow discard: two levels; the start of each burst of a flow is high (EFD section 3)."""

    name: ClassVar[str] = "efd"

    threshold: str = "20 packets"
    """A flow is high until this much of it has arrived since it last had no packet queued: a number
    of packets or a size, for example '20 packets' or '30 kB'.
    """

    high: Literal["fifo", "las"] = "fifo"
    """The order within the high level: one of fifo, las."""

    low: Literal["fifo", "las"] = "fifo"
    """The order within the low level: one of fifo, las."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class EfdAck(Discipline):
    """EFD that counts both directions: an acknowledgement counts as the data it acknowledges (WLAN
    section II-A).
    """

    name: ClassVar[str] = "efd-ack"

    threshold: str = "30 kB"
    """A flow is high until this much has been sent, both ways, since it last had no packet queued:
    a size from '0 B' to '1000 GB'.
    """

    high: Literal["fifo", "las"] = "fifo"
    """The order within the high level: one of fifo, las."""

    low: Literal["fifo", "las"] = "fifo"
    """The order within the low level: one of fifo, las."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Fifo(Discipline):
    """First in, first out; a full buffer refuses the arriving packet (EFD section 5.2)."""

    name: ClassVar[str] = "fifo"


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Fq(Discipline):
    """Fair queues with a limit each, idle ones first, in three bands by codepoint (Linux 7.3)."""

    name: ClassVar[str] = "fq"

    queues: int = 1024
    """Number of queues that flows are hashed into: a whole number from 1 to 65536."""

    quantum: str = "3000 B"
    """What a queue may send in each turn: a size from '256 B' to '1 MB'."""

    initial_quantum: str = "15000 B"
    """What a queue may send in the first turn of its life: a size from '0 B' to '1 MB'."""

    flow_limit: int = 100
    """Packets that one queue holds at most: a whole number from 1 to 1000000000."""

    refill_delay: str = "40 ms"
    """Time without packets after which a queue has a whole quantum again: a time from '0 ns' to '60
    s'.
    """

    maxrate: str = "unlimited"
    """The rate that no queue exceeds, however idle the link: a rate of at least '1 kbit/s', for
    example '18 Mbit/s', or 'unlimited'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class FqCodel(Discipline):
    """Flow queues with CoDel: equal shares, sparse flows first, each queue kept short (Linux 7.3,
    RFC 8290).
    """

    name: ClassVar[str] = "fq-codel"

    form: Literal["linux", "rfc"] = "linux"
    """Whose rules apply where the two differ: one of linux, rfc."""

    flows: int = 1024
    """Queues that flows are hashed into: a whole number from 1 to 65536."""

    quantum: str = "1500 B"
    """What a queue may send in one turn: a size from '1 B' to '1 MB'."""

    drop_batch: int = 64
    """The most packets that a full buffer takes from the longest queue at once: a whole number from
    1 to 65536.
    """

    target: str = "5 ms"
    """Acceptable wait of the packets of a standing queue: a time from '1 ns' to '60 s'."""

    interval: str = "100 ms"
    """Time for which every packet must have exceeded the target; about the longest usual round
    trip: a time from '1 ns' to '60 s'.
    """

    mtu: str = "1500 B"
    """The largest packet: a queue of no more bytes than this is left alone: a size from '0 B' to '1
    MB'.
    """

    ecn: bool = True
    """On: packets whose senders understand marks are marked instead of dropped: on or off."""

    ce_threshold: str = "0 s"
    """Wait beyond which all packets are marked whose senders understand that; zero: none: a time
    from '0 ns' to '60 s'.
    """

    ce_threshold_selector: Literal["any", "ect1"] = "any"
    """What ce_threshold marks: any packet that can be marked, or only ECT(1), low-latency traffic:
    one of any, ect1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class FqPie(Discipline):
    """Fair queues, idle ones first, each under a PIE controller of its own (Linux 7.3, RFC 8033,
    RFC 8290).
    """

    name: ClassVar[str] = "fq-pie"

    form: Literal["linux", "rfc"] = "linux"
    """Whose rules apply where the two differ: one of linux, rfc."""

    target: str = "15 ms"
    """Delay that packets should have in the queue: a time from '1 us' to '10 s'."""

    update: str = "15 ms"
    """Time between two updates of the drop probability: a time from '10 us' to '10 s'."""

    burst: str = "150 ms"
    """How long a burst after a quiet time passes without drops: a time from '0 ns' to '10 s'."""

    alpha: float = 0.125
    """What an update adds to the probability for each second of delay above the target: a number
    from 0 to 1000.
    """

    beta: float = 1.25
    """What an update adds to the probability for each second by which the delay grew: a number from
    0 to 10000.
    """

    ecn: bool = False
    """On: packets whose senders understand marks are marked while the probability is low: on or
    off.
    """

    ecn_threshold: float = 0.1
    """The probability up to which marks take the place of drops: a number from 0 to 1."""

    quantum: str = "1500 B"
    """What a queue may send in each turn; at least the largest packet for O(1): a size from '1 B'
    to '1 GB'.
    """

    queues: int = 1024
    """Number of queues that flows are hashed into: a whole number from 1 to 65536."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Lars(Discipline):
    """Least attained recent service: LAS with service that decays by half in a half-life (Heusse
    2010).
    """

    name: ClassVar[str] = "lars"

    half_life: str = "1 s"
    """Time in which a flow's service decays by half: a time from '1 ms' to '86400 s'."""

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Las(Discipline):
    """Least attained service: ascending bytes that the packet's flow has sent so far (LAS section
    7).
    """

    name: ClassVar[str] = "las"

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class LasAck(Discipline):
    """LAS that counts both directions: an acknowledgement counts as the data it acknowledges (WLAN
    section II).
    """

    name: ClassVar[str] = "las-ack"

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class LasLog(Discipline):
    """LAS in which flows of a priority class rank by a logarithm of their service (LAS section 6).
    """

    name: ClassVar[str] = "las-log"

    k: float = 0.5
    """A packet of a class other than 0 ranks at (log2 x)^(1/k), where x is its flow's service: a
    number from 0.1 to 10.
    """

    unit: Literal["packets", "bytes"] = "packets"
    """Unit in which service is counted: one of packets, bytes."""

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Pie(Discipline):
    """Proportional integral controller: random early drops that hold the delay at a target (Linux
    7.3, RFC 8033).
    """

    name: ClassVar[str] = "pie"

    form: Literal["linux", "rfc"] = "linux"
    """Whose rules apply where the two differ: one of linux, rfc."""

    target: str = "15 ms"
    """Delay that packets should have in the queue: a time from '1 us' to '10 s'."""

    update: str = "15 ms"
    """Time between two updates of the drop probability: a time from '10 us' to '10 s'."""

    burst: str = "150 ms"
    """How long a burst after a quiet time passes without drops: a time from '0 ns' to '10 s'."""

    alpha: float = 0.125
    """What an update adds to the probability for each second of delay above the target: a number
    from 0 to 1000.
    """

    beta: float = 1.25
    """What an update adds to the probability for each second by which the delay grew: a number from
    0 to 10000.
    """

    ecn: bool = False
    """On: packets whose senders understand marks are marked while the probability is low: on or
    off.
    """

    ecn_threshold: float = 0.1
    """The probability up to which marks take the place of drops: a number from 0 to 1."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Red(Discipline):
    """Random early detection: random drops or marks as the average queue grows (Linux 7.3, Floyd
    1993).
    """

    name: ClassVar[str] = "red"

    form: Literal["linux", "paper"] = "linux"
    """Whose rules apply where the two differ: one of linux, paper."""

    min: str = "0 packets"
    """Average queue from which packets are dropped; zero: a third of max: a number of packets or a
    size, for example '20 packets' or '30 kB'.
    """

    max: str = "0 packets"
    """Average queue at which the probability reaches its maximum; zero: a quarter of the buffer: a
    number of packets or a size, for example '20 packets' or '30 kB'.
    """

    probability: float = 0.02
    """Share of the packets that are dropped when the average is at max: a number from 0 to 1."""

    weight: float = 0
    """Weight of the present queue in the average; zero: as tc derives it from min and max: a number
    from 0 to 1.
    """

    gentle: bool = False
    """On: between max and twice max the share rises to all; off: from max on all are dropped: on or
    off.
    """

    guard: bool = False
    """On: a packet that finds fewer than two queued passes, as in ns-2 and ns-3; off: as in Floyd
    1993 and Linux: on or off.
    """

    wait: bool = False
    """In the paper's form, on: as many packets as one over the share pass between two drops, and
    then up to as many more; off: up to that many: on or off.
    """

    idle: bool = True
    """On: the average falls while the queue is empty; off: it does not, as under Linux's tbf: on or
    off.
    """

    packet_time: str = "800 us"
    """Sending time of a usual packet; it sets how fast the average falls while the queue is idle: a
    time from '1 ns' to '60 s'.
    """

    ecn: bool = False
    """On: packets whose senders understand marks are marked instead of dropped: on or off."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Run2c(Discipline):
    """Two levels: the first bytes of each flow's life are high, the rest low (EFD sections 2 and
    5.2).
    """

    name: ClassVar[str] = "run2c"

    threshold: str = "30 kB"
    """A flow's packets are high until it has sent this much in its life: a size from '0 B' to '1000
    GB'.
    """

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Run2cAck(Discipline):
    """Run2C that counts both directions: an acknowledgement counts as the data it acknowledges
    (WLAN section IV).
    """

    name: ClassVar[str] = "run2c-ack"

    threshold: str = "30 kB"
    """A flow's packets are high until this much has been sent in its life, both ways: a size from
    '0 B' to '1000 GB'.
    """

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Scfq(Discipline):
    """Self-clocked fair queueing: equal shares of the rate for all backlogged flows (Golestani
    1994).
    """

    name: ClassVar[str] = "scfq"


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Sfq(Discipline):
    """Stochastic fairness queueing: round robin over queues that flows are hashed to (Linux 7.3,
    McKenney 1990).
    """

    name: ClassVar[str] = "sfq"

    form: Literal["linux", "paper"] = "linux"
    """Whose rules apply where the two differ: one of linux, paper."""

    queues: int = 1024
    """The number of queues that flows are hashed to: a whole number from 1 to 65536."""

    quantum: str = "1500 B"
    """What a turn adds to the allowance of its queue; at least the largest packet for O(1): a size
    from '1 B' to '1 GB'.
    """

    flows: int = 128
    """In Linux's form, the most queues that are in use at a time: a whole number from 1 to 65408.
    """

    depth: int = 127
    """In Linux's form, the most packets of a queue: a whole number from 1 to 127."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Tide(Discipline):
    """Fair queueing in which a flow that begins has a head start of bounded size (Tidegate; Goyal
    1997, EFD, LAS, RFC 8289).
    """

    name: ClassVar[str] = "tide"

    credit: str = "30280 B"
    """What a flow that begins may send before it has to share: a size from '0 B' to '300 kB'."""

    hosts: bool = False
    """Whether shares are fair between hosts, and then between the flows of each: on or off."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class XProtect(Discipline):
    """Run2C for flows with a packet that passed a random test; all others are high (EFD section
    5.1).
    """

    name: ClassVar[str] = "x-protect"

    threshold: str = "30 kB"
    """A tracked flow's packets are high until it has sent this much since tracking began: a size
    from '0 B' to '1000 GB'.
    """

    probability: float = 0.01
    """Probability with which a packet of an untracked flow makes the flow tracked: a number from 0
    to 1.
    """

    sweep: str = "5 s"
    """Time between two searches for flows to forget: a time from '1 ms' to '86400 s'."""

    idle: str = "30 s"
    """A flow is forgotten when no packet of it has arrived for this long: a time from '0 ns' to
    '86400 s'.
    """

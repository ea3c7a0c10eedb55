"""A class for each table of scenario files: its keys, with their meaning and units.

A dict with the same keys does as well, anywhere. Keys that are words of Python have `_` behind
them here: `from_`, `class_`. Made from the schema of scenario files by `make generated`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from tidegate._discipline import Discipline
from tidegate._table import Table

__all__ = [
    "Access",
    "Back",
    "CallSource",
    "CbrSource",
    "Delays",
    "DnsSource",
    "Dumbbell",
    "FrameSource",
    "GreedySource",
    "LastingTable",
    "LengthTable",
    "Link",
    "Lognormal",
    "MeasuredTable",
    "NormalLength",
    "NormalTime",
    "PacketSource",
    "PageSource",
    "Pareto",
    "QueueCounts",
    "QuicSource",
    "Rates",
    "SizeTable",
    "Tcp",
    "TraceFile",
    "Traffic",
    "TransferSource",
    "UniformTime",
    "VideoSource",
    "WebSource",
    "Wifi",
    "Zipf",
]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Access(Table):
    """Nodes `host1`.. in the group `hosts` - `router` - `isp` - `server1`.. in `servers`. The links
    `down` (isp to router) and `up` (router to isp) have the discipline under test, all others queue
    without a limit.
    """

    down: str | TraceFile | Mapping[str, Any]
    """Capacity towards the user."""

    hosts: int
    """Hosts on the user's side."""

    up: str | TraceFile | Mapping[str, Any]
    """Capacity from the user."""

    buffer: str | None = None
    """Buffer of both directions, unless one has its own. Default: 300 packets."""

    delay: str | None = None
    """Propagation delay of the access link, each way. Default: 5 ms."""

    down_buffer: str | None = None
    """Buffer towards the user: packets, a size or a time, for example '300 packets' or '100 ms'."""

    lan_delay: str | None = None
    """Propagation delay between hosts and router. Default: 1 ms."""

    lan_rate: str | None = None
    """Rate between hosts and router. Default: 1 Gbit/s."""

    servers: Sequence[str] | None = None
    """Propagation delay from the provider to each server; there are as many servers as delays.
    Default: one server, 10 ms.
    """

    up_buffer: str | None = None
    """Buffer from the user: packets, a size or a time, for example '300 packets' or '100 ms'."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Back(Table):
    """The way back of a link."""

    buffer: str | None = None
    """Limit of the queue. Default unless the queue is unbounded: 300 packets."""

    delay: str | None = None
    """Propagation delay. Default: the same as on the way out."""

    loss: float | None = None
    """Share of the packets that are lost on the way. Default: the same as on the way out."""

    name: str | None = None
    """Name in tables and files. Default: 'TO > FROM'."""

    queue: Literal["tested", "unbounded"] | Discipline | str | Mapping[str, Any] | None = None
    """The queue in front of it. Default: 'unbounded'."""

    rate: str | TraceFile | Mapping[str, Any] | None = None
    """Capacity. Default: the same as on the way out."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class CallSource(Table):
    """One direction of a video call that adapts to what the path carries, as browsers' do."""

    from_: str | Sequence[str]
    """The sender: one node."""

    name: str
    """Name in tables and files."""

    to: str | Sequence[str]
    """The receiver: one node."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    deadline: str | None = None
    """A packet that takes longer is late. Default: none."""

    dscp: str | int | None = None
    """Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number."""

    first: str | None = None
    """Its rate at first, without headers. Default: 300 kbit/s."""

    least: str | None = None
    """Its least rate, without headers. Default: 50 kbit/s."""

    most: str | None = None
    """Its most, without headers. Default: 2.5 Mbit/s."""

    reply_dscp: str | int | None = None
    """Codepoint of the reports of `to`."""

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When it ends. Default: never."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class CbrSource(Table):
    """UDP datagrams of one size at a constant rate."""

    from_: str | Sequence[str]
    """The sender."""

    name: str
    """Name in tables and files."""

    packet: str
    """Size of each datagram on the wire, including headers."""

    rate: str
    """Rate on the wire, including headers: a rate, for example '10 Mbit/s'."""

    to: str | Sequence[str]
    """The receiver."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    deadline: str | None = None
    """Datagrams that take longer than this from end to end are late, and so are lost ones. Default:
    no deadline.
    """

    dscp: str | int | None = None
    """Codepoint of its packets: EF, CS1, AF41, LE and so on, or a number."""

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When it ends. Default: never."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Delays(Table):
    """A delay that was measured."""

    idle: str | None = None
    """Median without load: a time, for example '20 ms'."""

    loss: float | None = None
    """Packets lost divided by packets sent, under load."""

    mean: str | None = None
    """Mean under load: a time, for example '20 ms'."""

    median: str | None = None
    """Median under load: a time, for example '20 ms'."""

    p5: str | None = None
    """5th percentile under load: a time, for example '20 ms'."""

    p95: str | None = None
    """95th percentile under load: a time, for example '20 ms'."""

    rating: float | None = None
    """What a call with this delay and loss each way is worth: R of the E-model."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class DnsSource(Table):
    """Lookups of names that begin at random, from hosts to recursive resolvers over UDP. Each has a
    source port of its own.
    """

    from_: str | Sequence[str]
    """Hosts that ask; each lookup has one of them at random."""

    name: str
    """Name in tables and files."""

    per_second: float
    """Lookups begin at random, on average this many a second, all hosts together."""

    to: str | Sequence[str]
    """Resolvers; each lookup asks one of them, taken at random."""

    answer: str | Literal["endless"] | SizeTable | Mapping[str, Any] | None = None
    """Sizes of answers on the wire, including headers, up to 1260 B. Default: lognormal, 142 B on
    average.
    """

    attempts: int | None = None
    """How often a host asks before it gives up. Default: 2."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    dscp: str | int | None = None
    """Codepoint of queries: EF, CS1, AF41, LE and so on, or a number."""

    query: str | None = None
    """Size of a query on the wire, including headers. Default: 67 B."""

    reply_dscp: str | int | None = None
    """Codepoint of answers."""

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When it stops beginning lookups. Default: never."""

    timeout: str | None = None
    """How long an attempt waits for an answer, up to 30 s. Default: 5 s."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Dumbbell(Table):
    """Nodes `sender1`.. in the group `senders`, all linked to `left`; `receiver1`.. in `receivers`,
    linked to `right`; the link `bottleneck` from left to right has the discipline under test, and
    all others queue without a limit. The defaults are those of `EFD section 4.1`.
    """

    buffer: str | None = None
    """Buffer of the bottleneck. Default: 300 packets."""

    delay: str | None = None
    """Propagation delay of each link. Default: 1 ms."""

    edge_rate: str | None = None
    """Rate of all other links. Default: 100 Mbit/s."""

    pairs: int | None = None
    """Number of senders, and of receivers. Default: 5."""

    rate: str | TraceFile | Mapping[str, Any] | None = None
    """Capacity of the bottleneck, both ways. Default: 10 Mbit/s."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class FrameSource(Table):
    """The frames of a recorded stream, as UDP datagrams: a video, or a call."""

    file: str
    """A CSV file with the columns start_s and size_bytes; the first of its frames is sent when the
    source starts.
    """

    from_: str | Sequence[str]
    """The sender."""

    name: str
    """Name in tables and files."""

    to: str | Sequence[str]
    """The receiver."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    deadline: str | None = None
    """Datagrams that take longer than this from end to end are late, and so are lost ones. Default:
    no deadline.
    """

    dscp: str | int | None = None
    """Codepoint of its packets: EF, CS1, AF41, LE and so on, or a number."""

    packet: str | None = None
    """Frames are cut into packets of at most this size on the wire, each with 40 bytes of IPv4, UDP
    and RTP headers around its part of the frame. Default: each frame is one packet, including
    headers.
    """

    rate: str | None = None
    """The packets of a frame follow each other at this rate. Default: at once."""

    repeat: bool | None = None
    """Begin again at the end of the file."""

    start: str | None = None
    """When the first frame is sent. Default: 0 s."""

    stop: str | None = None
    """When it stops sending frames. Default: at the end of the file, or never with `repeat`."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class GreedySource(Table):
    """UDP datagrams, as many and as early as an arrival curve allows, in bursts (`BE appendix B`).
    """

    curve: str
    """What it may send in any time: the minimum of token buckets, `SIZE + RATE`, and staircases,
    `SIZE every TIME`, separated by commas.
    """

    from_: str | Sequence[str]
    """The sender."""

    name: str
    """Name in tables and files."""

    packet: str | LengthTable | Mapping[str, Any]
    """Size of each datagram on the wire, including headers."""

    to: str | Sequence[str]
    """The receiver."""

    burst: str | LastingTable | Mapping[str, Any] | None = None
    """Duration of a burst; together with `spacing`. Default: it always sends."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    deadline: str | None = None
    """Datagrams that take longer than this from end to end are late, and so are lost ones. Default:
    no deadline.
    """

    dscp: str | int | None = None
    """Codepoint of its packets: EF, CS1, AF41, LE and so on, or a number."""

    spacing: str | LastingTable | Mapping[str, Any] | None = None
    """Time from the end of a burst to the start of the next, in which the curve's allowance
    recovers.
    """

    start: str | None = None
    """When its first burst begins. Default: 0 s."""

    stop: str | None = None
    """When it ends. Default: never."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class LastingTable(Table):
    """A law of times: exactly one of these."""

    normal: NormalTime | Mapping[str, Any] | None = None
    """Normal; negative values become zero."""

    uniform: UniformTime | Mapping[str, Any] | None = None
    """All times of a range are equally likely."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class LengthTable(Table):
    """One of the values of a key."""

    normal: NormalLength | Mapping[str, Any]
    """Normal, rounded to whole bytes."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Link(Table):
    """A link between two nodes, which need no other declaration; it goes both ways unless `one_way`
    is set. Several nodes at an end give one link for each pair.
    """

    from_: str | Sequence[str]
    """Where it starts."""

    to: str | Sequence[str]
    """Where it leads."""

    back: Back | Mapping[str, Any] | None = None
    """What differs on the way back. Capacity, delay and loss are otherwise the same; the queue is
    unbounded.
    """

    buffer: str | None = None
    """Limit of the queue. Default unless the queue is unbounded: 300 packets."""

    delay: str | None = None
    """Propagation delay. Default: none."""

    loss: float | None = None
    """Share of the packets that are lost at random on the way. Default: 0."""

    name: str | None = None
    """Name in tables and files. Default: 'FROM > TO'."""

    one_way: bool | None = None
    """There is no way back. Default: false."""

    queue: Literal["tested", "unbounded"] | Discipline | str | Mapping[str, Any] | None = None
    """The queue in front of it. Default: 'unbounded'."""

    rate: str | TraceFile | Mapping[str, Any] | None = None
    """Capacity. Default: unlimited."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Lognormal(Table):
    """A lognormal law."""

    log_deviation: float
    """Standard deviation of that logarithm."""

    log_mean: float
    """Mean of the natural logarithm of the size in bytes."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class MeasuredTable(Table):
    """Something that was measured on the link that the scenario describes. Results show it beside
    what the first discipline gives; runs do not depend on it. Exactly one of `round_trip`, `delay`,
    `time`, `throughput` and `queue` says what it is.
    """

    name: str
    """Name in tables."""

    delay: Delays | Mapping[str, Any] | None = None
    """A one-way delay."""

    queue: QueueCounts | Mapping[str, Any] | None = None
    """What a queue did."""

    round_trip: Delays | Mapping[str, Any] | None = None
    """A round trip, such as a ping."""

    sources: Sequence[str] | None = None
    """The sources that correspond to it: those of datagrams whose delays add up to it, or those of
    transfers whose throughputs do. Default: none.
    """

    throughput: Rates | Mapping[str, Any] | None = None
    """Payload of transfers."""

    time: Delays | Mapping[str, Any] | None = None
    """The time of something that nothing in the scenario corresponds to, such as a page."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class NormalLength(Table):
    """A normal law of sizes, rounded to whole bytes."""

    deviation: str
    """Standard deviation, before that limitation."""

    mean: str
    """Mean, before sizes are limited to `least` and `most`."""

    least: str | None = None
    """Smallest size. Default: 40 B."""

    most: str | None = None
    """Largest size. Default: 1536 B, or the size that the curve allows at once if that is less."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class NormalTime(Table):
    """A normal law of times; negative values become zero."""

    deviation: str
    """Standard deviation, before that limitation: a time, for example '20 ms'."""

    mean: str
    """Mean, before that limitation: a time, for example '20 ms'."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class PacketSource(Table):
    """The packets of a capture: those of the user's hosts in one direction, the others in the
    other. Nothing reacts to what happens to them.
    """

    capture: str
    """A pcap or pcapng file."""

    inside: str | Sequence[str]
    """The user's side."""

    name: str
    """Name in tables and files."""

    outside: str | Sequence[str]
    """The network's side."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    deadline: str | None = None
    """Datagrams that take longer than this from end to end are late, and so are lost ones. Default:
    no deadline.
    """

    divide: Literal["application"] | Literal["host"] | Literal["calls"] | None = None
    """Divides it into sources of their own, two for each application or host: one for each
    direction. Default: one source.
    """

    local: Sequence[str] | None = None
    """IP addresses and prefixes of the user's side. Default: found from the capture."""

    start: str | None = None
    """When the first packet is sent. Default: 0 s."""

    stop: str | None = None
    """When it ends. Default: at the end of the capture."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class PageSource(Table):
    """Pages, as browsers load them. Exactly one of `load`, `every` and `pause` says how often each
    user asks for one; exactly one of `recorded` and `page_table` says what there is.
    """

    from_: str | Sequence[str]
    """Servers; each host of a page is one of them, taken at random."""

    name: str
    """Name in tables and files."""

    to: str | Sequence[str]
    """Users, each with a browser."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    dscp: str | int | None = None
    """Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number."""

    every: str | None = None
    """Mean time between the starts of two pages of a user, whether or not the first is complete: a
    time, for example '20 ms'.
    """

    keep_alive: str | None = None
    """How long a connection without a request stays open. Default: 75 s."""

    load: str | None = None
    """Pages begin at random, whether or not earlier ones are complete; those of all users together
    amount to this rate on the wire, counted in full packets, without retransmissions and
    handshakes: a rate, for example '10 Mbit/s'.
    """

    order: Literal["round-robin"] | Literal["priority"] | None = None
    """The order of the frames of a connection with several responses. Default: round-robin."""

    page_table: str | None = None
    """Pages in short: a CSV file with objects, body_bytes and hosts."""

    pause: str | None = None
    """Mean time from the end of a page to the user's next one: a time, for example '20 ms'."""

    protocol: (
        Literal["http1.0"]
        | Literal["http1.1"]
        | Literal["http2"]
        | Literal["http3"]
        | Literal["recorded"]
        | None
    ) = None
    """Over which connections objects come. Default: http2."""

    recorded: Sequence[str] | None = None
    """Pages as a browser recorded them: HTTP Archives."""

    reply_dscp: str | int | None = None
    """Codepoint of what `to` sends, requests and acknowledgements."""

    request: str | None = None
    """Size of a request where no recording says it. Default: 400 B."""

    sizes: str | Literal["endless"] | SizeTable | Mapping[str, Any] | None = None
    """Sizes of the objects of a `page_table`, which are scaled to each page's bytes."""

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When users stop asking for pages. Default: never."""

    tcp: Tcp | Mapping[str, Any] | None = None
    """Differences from the scenario's TCP."""

    tls: int | None = None
    """Round trips of TLS before the first request of a connection: 1 with TLS 1.3, 2 with TLS 1.2,
    0 without TLS. Default: 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Pareto(Table):
    """A bounded Pareto law."""

    least: str
    """Smallest size."""

    most: str
    """Largest size."""

    shape: float
    """Tail exponent."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class QueueCounts(Table):
    """What a queue did under load."""

    backlog: str | None = None
    """Bytes queued, on average."""

    dropped_per_second: float | None = None
    """Packets dropped in a second."""

    link: str | None = None
    """The link behind it. Default: none of the scenario."""

    marked_per_second: float | None = None
    """Packets marked in a second."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class QuicSource(Table):
    """Transfers over QUIC, each over a connection of its own. Exactly one of `load`, `per_second`,
    `count` and `log` sets their number.
    """

    from_: str | Sequence[str]
    """Senders of the data; each transfer has one of them at random."""

    name: str
    """Name in tables and files."""

    to: str | Sequence[str]
    """Receivers of the data; each transfer has one of them at random."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    congestion: Literal["reno"] | Literal["cubic"] | Literal["bbr"] | None = None
    """quinn's congestion controller. Default: cubic."""

    count: int | None = None
    """This many transfers, all when the source starts."""

    dscp: str | int | None = None
    """Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number."""

    follow: bool | None = None
    """Record the progress of each of its flows."""

    load: str | None = None
    """Transfers begin at random; together they amount to this rate on the wire, counted in full
    packets, without retransmissions: a rate, for example '10 Mbit/s'.
    """

    local: Sequence[str] | None = None
    """IP addresses and prefixes of the user's side of a capture in `log`. Default: found from the
    capture.
    """

    log: str | None = None
    """A CSV file with the columns start_s and size_bytes, or another recording: an HTTP log, page
    loads (HAR), a log of connections (Zeek, tcptrace) or a capture. Of the last two, a source with
    `request` takes the downloads, and one without it the uploads. The first transfer of the
    recording begins when the source starts.
    """

    per_second: float | None = None
    """Transfers begin at random, on average this many a second."""

    reply_dscp: str | int | None = None
    """Codepoint of what `to` sends, requests and acknowledgements."""

    request: str | None = None
    """The receiver opens the connection and sends a request of this size, as for a download.
    Default: the sender opens the connection, as for an upload.
    """

    sizes: str | Literal["endless"] | SizeTable | Mapping[str, Any] | None = None
    """Sizes of the transfers; not with `log`."""

    spread: str | None = None
    """With `count`: each begins at a random moment of this time after the source starts. Default: 0
    s.
    """

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When it stops opening transfers. Default: never."""

    streams: int | None = None
    """Streams of a transfer, which share its size; with `request`, each has a request of that size.
    Default: 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Rates(Table):
    """A throughput that was measured."""

    mean: str | None = None
    """Mean under load: a rate, for example '10 Mbit/s'."""

    median: str | None = None
    """Median of the samples: a rate, for example '10 Mbit/s'."""

    p5: str | None = None
    """5th percentile of the samples: a rate, for example '10 Mbit/s'."""

    p95: str | None = None
    """95th percentile of the samples: a rate, for example '10 Mbit/s'."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class SizeTable(Table):
    """A size law: exactly one of these."""

    exponential: str | None = None
    """Exponential with this mean."""

    file: str | None = None
    """As measured: a CSV file with the columns size_bytes and cumulative_probability."""

    lognormal: Lognormal | Mapping[str, Any] | None = None
    """The natural logarithm of the size in bytes is normal."""

    pareto: Pareto | Mapping[str, Any] | None = None
    """Bounded Pareto."""

    zipf: Zipf | Mapping[str, Any] | None = None
    """Whole segments, the probability of n is proportional to n^-exponent."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Tcp(Table):
    """How TCP behaves. Without a profile, the settings change the surrounding one."""

    ack_first_segment: bool | None = None
    """Acknowledge the first data segment of a connection at once, like ns-3."""

    any_ack_ends_backoff: bool | None = None
    """Every acknowledgement of new data ends the back-off of the timeout, as in ns-3 and with
    timestamps.
    """

    clock_granularity: str | None = None
    """Smallest difference of round trips that the clock can measure: a time, for example '20 ms'.
    """

    congestion: (
        Literal["newreno"]
        | Literal["reno"]
        | Literal["cubic"]
        | Literal["bbr"]
        | Literal["bbr3"]
        | Literal["prague"]
        | Literal["dctcp"]
        | None
    ) = None
    """The algorithm that sets the congestion window."""

    data_retries: int | None = None
    """So many timeouts in a row without progress before giving up."""

    delayed_ack_segments: int | None = None
    """Acknowledge at once when this many segments have arrived; 1 acknowledges each."""

    delayed_ack_timeout: str | None = None
    """Acknowledge at the latest this long after the first of them: a time, for example '20 ms'."""

    ecn: bool | None = None
    """Explicit congestion notification. Prague and DCTCP have it in any case."""

    initial_rto: str | None = None
    """Retransmission timeout before the first round trip has been measured: a time, for example '20
    ms'.
    """

    initial_ssthresh: str | None = None
    """Slow start threshold of a new connection. Default: unlimited."""

    initial_window: int | None = None
    """Initial congestion window, in segments."""

    limited_transmit: bool | None = None
    """Send new data on the first two duplicate acknowledgements."""

    linear_syn_timeouts: int | None = None
    """How many timeouts of a SYN leave the timeout as it is before it doubles."""

    lost_syns: int | None = None
    """So many lost SYNs leave the initial window as it is."""

    max_rto: str | None = None
    """Largest retransmission timeout: a time, for example '20 ms'."""

    min_rto: str | None = None
    """Smallest retransmission timeout: a time, for example '20 ms'."""

    mix: Mapping[str, int] | None = None
    """Which share of the transfers has which algorithm, instead of `congestion`: weights, for
    example { cubic = 3, reno = 1 }.
    """

    mss: str | None = None
    """Largest payload of a segment."""

    mss_option: bool | None = None
    """The SYN carries the maximum segment size option."""

    ns3: (
        Sequence[Literal["recovery_window"]
        | Literal["recovery_point"]
        | Literal["repair_end"]]
        | None
    ) = None
    """In what the recovery without SACK departs from the RFCs as in ns-3.37, for comparisons with
    it.
    """

    pacing: bool | None = None
    """Pace algorithms that have no rate of their own, as Linux does on hosts with `fq`."""

    profile: (
        Literal["papers"]
        | Literal["today"]
        | Literal["today-bbr"]
        | Literal["l4s"]
        | Literal["mix"]
        | None
    ) = None
    """'papers': NewReno as in the simulations of the papers. 'today': what a current Linux does by
    default. 'today-bbr': the same with BBR. 'l4s': the same with Prague. 'mix': CUBIC and BBR, as a
    census of servers has found them.
    """

    quick_acks: bool | None = None
    """Delay acknowledgements like Linux: not the first ones of a connection, nor that of the end of
    a write, and others for as long as segments have been apart.
    """

    rack_tlp: bool | None = None
    """Loss detection by time, and tail loss probes; needs `sack`."""

    receive_window: str | None = None
    """Largest window that a receiver advertises."""

    rttvar_per_round: bool | None = None
    """RTTVAR is the largest deviation within a round trip and falls once per round trip, like in
    Linux.
    """

    sack: bool | None = None
    """Selective acknowledgements."""

    separate_fin: bool | None = None
    """The FIN leaves in a segment of its own when all that was written could be sent at once, like
    where writing and closing are two calls.
    """

    slow_start: Literal["classic"] | Literal["hystart"] | Literal["hystart++"] | None = None
    """How slow start ends. Default: by HyStart for CUBIC, with a loss for the others."""

    slow_start_limit: int | None = None
    """Largest number of segments that one acknowledgement adds to the window in slow start."""

    syn_retries: int | None = None
    """So many retransmissions of a SYN before giving up, besides the linear ones."""

    time_resent_syn: bool | None = None
    """Time the handshake from the first SYN even if that was lost, like ns-3."""

    timer_tick: str | None = None
    """The tick of the host, by which its timers fire like in Linux: those of retransmissions, tail
    loss probes, the reordering window and delayed acknowledgements; zero for exact ones: a time,
    for example '20 ms'.
    """

    timestamps_option: bool | None = None
    """Segments carry the timestamps option: 12 bytes in each, which time what was sent again."""

    undo: bool | None = None
    """Undo what a loss has cost when it proves to be none, like Linux: by timestamps, by D-SACK and
    by F-RTO; needs `sack`.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class TraceFile(Table):
    """One of the values of a key."""

    trace: str
    """A trace of delivery opportunities in the format of Mahimahi."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Traffic(Table):
    """Sources of traffic, each kind in a list of its own; reports show them in the order of the
    file.
    """

    call: Sequence[CallSource | Mapping[str, Any]] | None = None
    """Video calls that adapt to what the path carries, one direction each."""

    cbr: Sequence[CbrSource | Mapping[str, Any]] | None = None
    """Datagrams of one size at a constant rate, like those of a call."""

    dns: Sequence[DnsSource | Mapping[str, Any]] | None = None
    """Lookups of names: a query and an answer over UDP, each lookup a flow of its own."""

    frames: Sequence[FrameSource | Mapping[str, Any]] | None = None
    """The frames of a recorded stream: a video, or a call."""

    greedy: Sequence[GreedySource | Mapping[str, Any]] | None = None
    """Datagrams, as many and as early as an arrival curve allows, in bursts."""

    packets: Sequence[PacketSource | Mapping[str, Any]] | None = None
    """The packets of a capture, at the times at which they were captured."""

    pages: Sequence[PageSource | Mapping[str, Any]] | None = None
    """Pages of objects, as browsers load them over connections that carry many responses."""

    quic: Sequence[QuicSource | Mapping[str, Any]] | None = None
    """Transfers over QUIC that begin independently of each other."""

    transfers: Sequence[TransferSource | Mapping[str, Any]] | None = None
    """TCP transfers that begin independently of each other."""

    video: Sequence[VideoSource | Mapping[str, Any]] | None = None
    """Video in segments, whose viewers' players choose a quality for each."""

    web: Sequence[WebSource | Mapping[str, Any]] | None = None
    """Web sessions: pages of objects, each object a transfer of its own."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class TransferSource(Table):
    """TCP transfers. Exactly one of `load`, `per_second`, `count` and `log` sets their number."""

    from_: str | Sequence[str]
    """Senders of the data; each transfer has one of them at random."""

    name: str
    """Name in tables and files."""

    to: str | Sequence[str]
    """Receivers of the data; each transfer has one of them at random."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    count: int | None = None
    """This many transfers, all when the source starts."""

    dscp: str | int | None = None
    """Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number."""

    follow: bool | None = None
    """Record the progress of each of its flows."""

    load: str | None = None
    """Transfers begin at random; together they amount to this rate on the wire, counted in full
    packets, without retransmissions: a rate, for example '10 Mbit/s'.
    """

    local: Sequence[str] | None = None
    """IP addresses and prefixes of the user's side of a capture in `log`. Default: found from the
    capture.
    """

    log: str | None = None
    """A CSV file with the columns start_s and size_bytes, or another recording: an HTTP log, page
    loads (HAR), a log of connections (Zeek, tcptrace) or a capture. Of the last two, a source with
    `request` takes the downloads, and one without it the uploads. The first transfer of the
    recording begins when the source starts.
    """

    per_second: float | None = None
    """Transfers begin at random, on average this many a second."""

    reply_dscp: str | int | None = None
    """Codepoint of what `to` sends, requests and acknowledgements."""

    request: str | None = None
    """The receiver opens the connection and sends a request of this size, as for a download.
    Default: the sender opens the connection, as for an upload.
    """

    sizes: str | Literal["endless"] | SizeTable | Mapping[str, Any] | None = None
    """Sizes of the transfers; not with `log`."""

    spread: str | None = None
    """With `count`: each begins at a random moment of this time after the source starts. Default: 0
    s.
    """

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When it stops opening transfers. Default: never."""

    tcp: Tcp | Mapping[str, Any] | None = None
    """Differences from the scenario's TCP."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class UniformTime(Table):
    """A uniform law of times."""

    least: str
    """Shortest time: a time, for example '20 ms'."""

    most: str
    """Upper limit; all times are shorter than this: a time, for example '20 ms'."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class VideoSource(Table):
    """Video in segments (DASH, HLS): each viewer's player chooses a quality for each segment.
    Exactly one of `movie` and `qualities` says what there is to watch.
    """

    from_: str | Sequence[str]
    """Servers; each viewer has one of them, taken at random."""

    name: str
    """Name in tables and files."""

    to: str | Sequence[str]
    """Viewers, each with a player."""

    buffer: str | None = None
    """How much a player holds in advance. Default: 25 s."""

    choice: Literal["bola"] | Literal["rate"] | None = None
    """How a player chooses: by its buffer or by the rate of late. Default: bola."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    dscp: str | int | None = None
    """Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number."""

    movie: str | None = None
    """The sizes of the segments in each quality: a JSON file with segment_duration_ms,
    bitrates_kbps and segment_sizes_bits.
    """

    qualities: Sequence[str] | None = None
    """Alternatively, the rates of the qualities; all segments of a quality have one size."""

    reply_dscp: str | int | None = None
    """Codepoint of what `to` sends, requests and acknowledgements."""

    request: str | None = None
    """Size of a request. Default: 400 B."""

    segment: str | None = None
    """With `qualities`: how long a segment plays. Default: 4 s."""

    start: str | None = None
    """When it begins; each viewer begins within a segment's length after it. Default: 0 s."""

    stop: str | None = None
    """When viewers stop. Default: never."""

    tcp: Tcp | Mapping[str, Any] | None = None
    """Differences from the scenario's TCP."""

    tls: int | None = None
    """Round trips of TLS before the first request of a connection: 1 with TLS 1.3, 2 with TLS 1.2,
    0 without TLS. Default: 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class WebSource(Table):
    """Web sessions (`LAS section 5`, Table 1); all counts and times between starts are exponential
    with the given means. Either `load` or `between_sessions` sets their number.
    """

    between_objects: str
    """Mean time between the starts of two objects of a page: a time, for example '20 ms'."""

    between_pages: str
    """Mean time between the starts of two pages of a session: a time, for example '20 ms'."""

    from_: str | Sequence[str]
    """Servers; each object comes from one at random."""

    name: str
    """Name in tables and files."""

    objects: float
    """Mean number of objects of a page."""

    pages: float
    """Mean number of pages of a session."""

    sizes: str | Literal["endless"] | SizeTable | Mapping[str, Any]
    """Sizes of the objects."""

    to: str | Sequence[str]
    """Clients; each object goes to one at random."""

    between_sessions: str | None = None
    """Mean time between the starts of two sessions: a time, for example '20 ms'."""

    class_: int | None = None
    """Class of its packets, for disciplines with classes; 0 is ordinary."""

    dscp: str | int | None = None
    """Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number."""

    follow: bool | None = None
    """Record the progress of each of its flows."""

    load: str | None = None
    """All objects together amount to this rate on the wire, counted in full packets, without
    retransmissions: a rate, for example '10 Mbit/s'.
    """

    reply_dscp: str | int | None = None
    """Codepoint of what `to` sends, requests and acknowledgements."""

    request: str | None = None
    """Size of the request for each object. Default: 400 B."""

    start: str | None = None
    """When it begins. Default: 0 s."""

    stop: str | None = None
    """When it stops beginning sessions. Default: never."""

    tcp: Tcp | Mapping[str, Any] | None = None
    """Differences from the scenario's TCP."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Wifi(Table):
    """Nodes `station1`.. in the group `stations` share the medium of an 802.11 cell with the
    `accesspoint`; behind it `router` and `host1`.. in the group `hosts`. The link `downlink`
    (accesspoint to all stations) has the discipline under test; the links `uplink1`.. have FIFO,
    and all others queue without a limit. With `airtime_fairness`, the links `downlink1`..
    (accesspoint to one station) have the discipline under test. The defaults are those of `WLAN
    section III`.
    """

    aggregate: int | None = None
    """Largest number of frames in one aggregate, with 802.11n or ac. Default: 64."""

    airtime_fairness: bool | None = None
    """Each station has its own queue at the access point, with the discipline under test, and the
    queues take turns by airtime. Default: false.
    """

    buffer: str | None = None
    """Buffer of the downlink, or of each of its queues. Default: 300 packets."""

    frame_error: float | None = None
    """Share of the frames that noise corrupts at random; they are sent again. Default: 0."""

    guard_interval: str | None = None
    """Gap between symbols, with 802.11n or ac: 800 or 400 ns. Default: 800 ns."""

    hosts: int | None = None
    """Number of hosts. Default: as many as stations."""

    immediate_replies: bool | None = None
    """A reply that is ready when a packet arrives is sent without back-off, as in ns-3. Default:
    false.
    """

    queue: Discipline | str | Mapping[str, Any] | None = None
    """The discipline of the downlink's queue, or of each of its queues: only around a gateway,
    where it is not under test. Default: fifo.
    """

    rates: Sequence[str] | None = None
    """Data rates: with 802.11a one of 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s, otherwise one of the
    channel's rates, such as 'MCS 7' or '65 Mbit/s'. Stations take them in turn. Default: the
    highest.
    """

    router_rate: str | None = None
    """Rate between router and access point. Default: 1 Gbit/s."""

    staging: int | None = None
    """Number of packets that the access point takes out of its queue in advance, for all stations
    together, to form aggregates; with 802.11n or ac. Default: 64.
    """

    standard: Literal["802.11n", "802.11ac"] | Literal["802.11a"] | None = None
    """The standard of the cell. Default: 802.11a."""

    station_buffer: str | None = None
    """Buffer of each station. Default: 300 packets."""

    stations: int | None = None
    """Number of stations; around a gateway every client is one."""

    streams: int | None = None
    """Spatial streams, with 802.11n or ac. Default: 1."""

    width: str | None = None
    """Width of the channel, with 802.11n or ac: 20, 40, 80 or 160 MHz. Default: 20 MHz with
    802.11n, 80 MHz with 802.11ac.
    """

    wired_delay: str | None = None
    """Propagation delay between hosts and router. Default: 2 ms."""

    wired_rate: str | None = None
    """Rate between hosts and router. Default: 100 Mbit/s."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Zipf(Table):
    """A bounded Zipf law."""

    exponent: float
    """The exponent."""

    least: int
    """Fewest segments."""

    most: int
    """Most segments."""

    segment: str
    """Size of a segment."""


class ScenarioKeys(TypedDict, total=False):
    """The keys of a scenario, which `tidegate.scenario` takes."""

    access: Access | Mapping[str, Any]
    """Hosts behind a router on an access link, and servers beyond it."""

    description: str
    """A paragraph on what the scenario shows."""

    disciplines: Required[Sequence[Discipline | str | Mapping[str, Any]]]
    """Disciplines to try on the tested links."""

    dumbbell: Dumbbell | Mapping[str, Any]
    """Pairs of senders and receivers around one bottleneck."""

    duration: Required[str]
    """How long to simulate: a time, for example '20 ms'."""

    groups: Mapping[str, str | Sequence[str]]
    """Names for lists of nodes, for use wherever a node can be named."""

    link: Sequence[Link | Mapping[str, Any]]
    """Links, besides those of a builder."""

    long_flow: str
    """Flows of at least this size are called long. Default: 1 MB."""

    measured: Sequence[MeasuredTable | Mapping[str, Any]]
    """What was measured on this link, to be shown beside the results."""

    sample_every: str
    """Time between two samples of the links and of followed flows. Default: 100 ms."""

    seeds: int | Sequence[int]
    """Number of seeds, or a list of them; each discipline runs once with each. Default: 5."""

    short_flow: str
    """Flows of at most this size are called short. Default: 30 kB."""

    size_classes: Sequence[str]
    """Upper bounds of the size classes, ascending; one more class takes the rest. Default: 10 kB,
    100 kB, 1 MB.
    """

    tcp: Tcp | Mapping[str, Any]
    """How TCP behaves, unless a source of traffic says otherwise. Default: the profile 'today'."""

    title: Required[str]
    """One line for the head of the report."""

    traffic: Required[Traffic | Mapping[str, Any]]
    """The sources of traffic, by kind."""

    warm_up: str
    """Flows that start before this are simulated but not reported. Default: 0 s."""

    wifi: Wifi | Mapping[str, Any]
    """Stations around an access point, and hosts beyond it."""

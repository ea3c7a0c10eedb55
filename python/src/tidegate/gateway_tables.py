"""A class for each table of gateways' files: its keys, with their meaning and units.

A dict with the same keys does as well, anywhere. Those that scenarios have too are the classes of
`tidegate.tables`. Made from the schema of gateways' files by `make generated`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from tidegate._discipline import Discipline
from tidegate._table import Table
from tidegate._way import Way
from tidegate.tables import (
    SizeTable,
    Tcp,
    Wifi,
)

__all__ = [
    "Cbr",
    "Class",
    "Failures",
    "Gateway",
    "Http",
    "Link",
    "Objects",
    "Servers",
]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Cbr(Table):
    """Datagrams at a constant rate that pass the downlink and belong to nobody."""

    rate: str
    """Rate while it is on: a rate, for example '10 Mbit/s'."""

    off: str | None = None
    """The duration of each pause; the first one is at the start. Default: 0 s."""

    on: str | None = None
    """The duration of each sending period. Default: to the end."""

    packet: str | None = None
    """Size of a datagram on the wire. Default: 1000 B."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Class(Table):
    """A class of clients, each of them a user. When they ask: `loops` and `pause`, `every`, or
    `log`. What for: `page_table`, `recorded`, or objects of the file's sizes.
    """

    name: str
    """Name in tables and files."""

    absent: str | None = None
    """Mean time between two visits: a time, for example '20 ms'."""

    client_rate: str | None = None
    """Rate of each of its clients' links, either way: slow ones read slowly. Default: that of the
    file.
    """

    clients: int | None = None
    """The number of its clients. Default with a log: as many as hosts."""

    every: str | None = None
    """Mean time between two pages of one client, whether or not those before are complete: a time,
    for example '20 ms'.
    """

    failures: Failures | Mapping[str, Any] | None = None
    """How servers fail it. Default: like the file's."""

    log: str | None = None
    """Log of a Web server: its requests at their times, of its hosts."""

    loops: int | None = None
    """Loops of each client, one page at a time in each. Default: 10."""

    page_table: str | None = None
    """Pages in short: a CSV file with objects, body_bytes and hosts. Sizes are drawn from the
    file's, and scaled to the page's bytes.
    """

    part_of: str | None = None
    """The name of the class to which its clients belong, with whose others they only do not behave
    alike. It stands before all that are part of another. Default: its own.
    """

    pause: str | None = None
    """Mean of the exponential pause after a page. Default: 5 s."""

    present: str | None = None
    """Mean time of a user's visit, exponential. Default: all are there always."""

    recorded: Sequence[str] | None = None
    """Pages as a browser recorded them: HTTP Archives."""

    request: str | None = None
    """The size of its requests where no recording has it: a large one is an upload. Default: that
    of the file.
    """

    silent: Sequence[Sequence[str]] | None = None
    """Times in which they begin no page, as [["100 s", "200 s"]]."""

    sizes: str | Literal["endless"] | SizeTable | Mapping[str, Any] | None = None
    """Sizes of its objects, without pages. Default: those of the file."""

    speed: int | None = None
    """How many times as fast as it was the log is. Default: 1."""

    through: Literal["requests"] | Literal["tunnels"] | Literal["websocket"] | None = None
    """What a gateway sees of it. Default: requests."""

    weight: int | None = None
    """Its share, relative to those of other classes. Default: 1."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Failures(Table):
    """With which probability a response goes wrong, and how."""

    reset: float | None = None
    """It breaks the connection off anywhere in the response."""

    stall: float | None = None
    """The server stops anywhere in the response, for ever."""

    trickle: float | None = None
    """It sends the response at a slow, constant rate."""

    trickle_rate: str | None = None
    """That rate. Default: 8 kbit/s."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Gateway(Table):
    """The gateway's limits."""

    keep_alive: str | None = None
    """How long it keeps a connection to a server that has no response. Default: 60 s."""

    kept: int | None = None
    """How many of those it keeps to each server. Default: 32."""

    patience: str | None = None
    """A response is given up when nothing has come of it for so long that was not held back;
    without a gateway by the client. Default: 60 s.
    """

    receive_buffer: str | None = None
    """Receive buffer of its connections to servers where it holds responses back: what one brings
    at most when it is not read, until more is read of it. Other gateways leave it to TCP. Default:
    24 kB.
    """


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Http(Table):
    """How clients use connections, to the gateway or without one to servers."""

    keep_alive: str | None = None
    """How long a client's connection without a request stays open. Default: 75 s."""

    order: Literal["round-robin"] | Literal["priority"] | None = None
    """The order of the frames of a connection with several responses. Default: round-robin."""

    protocol: (
        Literal["http1.0"]
        | Literal["http1.1"]
        | Literal["http2"]
        | Literal["http3"]
        | Literal["recorded"]
        | None
    ) = None
    """How many responses a connection carries, and how many connections a client has to a server.
    With http1.0 the gateway keeps none either. Default: http1.1.
    """

    tls: int | None = None
    """Round trips of TLS before the first request of a client's connection. Default: 0."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Link(Table):
    """The access link, and those of clients."""

    buffer: str | None = None
    """What that queue holds. Default: 61 kB."""

    client_delay: str | None = None
    """One-way delay of a client's link. Default: 2 ms."""

    client_rate: str | None = None
    """Rate of each client's link, either way. Default: 10 Mbit/s."""

    delay: str | None = None
    """One-way delay of the access link. Default: 1 ms."""

    queue: Discipline | str | Mapping[str, Any] | None = None
    """The discipline of the queue at the provider's end. Default: fifo."""

    rate: str | None = None
    """Rate of the access link, either way unless `uplink_rate` is given. Default: 2 Mbit/s."""

    uplink_buffer: str | None = None
    """What that queue holds. Default: everything."""

    uplink_queue: Discipline | str | Mapping[str, Any] | None = None
    """The discipline of the uplink's queue, which is at the gateway. Default: fifo."""

    uplink_rate: str | None = None
    """Rate of the access link's uplink. Default: that of the link."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Objects(Table):
    """What pages consist of."""

    per_page: float | None = None
    """Mean number of objects of a page, fetched at once. Default: 1."""

    request: str | None = None
    """The size of a request. Default: 300 B."""

    sizes: str | Literal["endless"] | SizeTable | Mapping[str, Any] | None = None
    """Sizes of the objects. Default: lognormal with a mean of 27.7 kB."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Servers(Table):
    """Servers behind the provider."""

    count: int
    """How many."""

    delay: Sequence[str]
    """One way from the provider, uniform between the two."""

    rate: Sequence[str]
    """Rate of the link to each, uniform between the two."""


class GatewayKeys(TypedDict, total=False):
    """The keys of a gateway's file, which `tidegate.gateway` takes."""

    cbr: Sequence[Cbr | Mapping[str, Any]]
    """Traffic of the downlink that belongs to no class."""

    class_: Sequence[Class | Mapping[str, Any]]
    """Classes of clients, the first with the number 0."""

    description: str
    """A paragraph on what it shows."""

    duration: str
    """How long to simulate. Default: 800 s."""

    failures: Failures | Mapping[str, Any]
    """How servers fail. Default: never."""

    gateway: Gateway | Mapping[str, Any]
    """The gateway's limits."""

    http: Http | Mapping[str, Any]
    """How clients use connections, to the gateway or without one to servers."""

    link: Link | Mapping[str, Any]
    """The access link, and those of clients."""

    objects: Objects | Mapping[str, Any]
    """What pages consist of, where a class does not say."""

    seeds: int | Sequence[int]
    """How many seeds, or a list of them; each way runs once with each. Default: 5."""

    servers: Sequence[Servers | Mapping[str, Any]]
    """Servers; an object comes from any of them with equal probability. Default: six at 5 ms to 30
    ms and 2 Mbit/s to 10 Mbit/s, and six at 80 ms to 200 ms and 0.5 Mbit/s to 5 Mbit/s.
    """

    tcp: Tcp | Mapping[str, Any]
    """How TCP behaves. Default: the profile 'today'."""

    title: Required[str]
    """One line for the head of results."""

    warm_up: str
    """Requests that begin before this are not measured. Default: an eighth of the duration."""

    ways: Sequence[Way | str | Mapping[str, Any]]
    """What to compare. Default: msf, paper, fifo, htb, direct."""

    wifi: Wifi | Mapping[str, Any]
    """A wireless cell, whose stations all clients are, in place of links of their own."""

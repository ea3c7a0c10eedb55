"""Disciplines in Python: what they may do, what is found, and what comes out."""

from __future__ import annotations

import collections

import polars as pl
import pytest
import tidegate
from small import SMALL
from tidegate import Packet, tables


class Fifo(tidegate.CustomDiscipline):
    """As the one of Rust."""

    def __init__(self, place: tidegate.Place, seed: int) -> None:
        super().__init__(place, seed)
        self.queue: collections.deque[Packet] = collections.deque()

    def enqueue(self, now_ns: int, packet: Packet, losses: list[Packet]) -> None:
        if not self.place.holds(self.packets + 1, self.size_bytes + packet.size_bytes):
            losses.append(packet)
            return
        self.queue.append(packet)
        self.took(packet)

    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        return self.gave(self.queue.popleft())


class Twice(Fifo):
    """Hands out the first packet and keeps it."""

    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        return self.queue[0]


class Greedy(Fifo):
    """Takes in whatever comes."""

    def enqueue(self, now_ns: int, packet: Packet, losses: list[Packet]) -> None:
        self.queue.append(packet)
        self.took(packet)


class Idle(Fifo):
    """Rests while two packets are queued."""

    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        return None if self.packets == 2 else super().dequeue(now_ns, losses)


class Backwards(Fifo):
    """The last packet first."""

    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        return self.gave(self.queue.pop())


class Forger(Fifo):
    """Hands out a thing that is no packet."""

    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        return 7  # type: ignore[return-value]


class Failing(Fifo):
    """Fails at its third packet."""

    def enqueue(self, now_ns: int, packet: Packet, losses: list[Packet]) -> None:
        if self.packets == 2:
            raise ZeroDivisionError("on purpose")
        super().enqueue(now_ns, packet, losses)


class Unbuilt(Fifo):
    """Cannot be made."""

    def __init__(self, place: tidegate.Place, seed: int) -> None:
        raise OSError("no place here")


class Marking(Fifo):
    """Marks what is markable, and gives up the others once ten are queued."""

    def dequeue(self, now_ns: int, losses: list[Packet]) -> Packet | None:
        packet = self.gave(self.queue.popleft())
        while self.packets >= 10:
            if packet.markable:
                packet.mark()
                break
            losses.append(packet)
            packet = self.gave(self.queue.popleft())
        return packet


def test_a_fifo_of_python_does_what_that_of_rust_does() -> None:
    tidegate.check_discipline(Fifo)
    result = tidegate.compare(SMALL, disciplines=["fifo", Fifo], duration="5 s", threads=2)
    flows = pl.DataFrame(result.flows)
    rust, python = (flows.filter(discipline=it).drop("discipline") for it in ("fifo", "Fifo"))
    assert rust.height > 100 and rust.equals(python)
    links = pl.DataFrame(result.links)
    rust, python = (links.filter(discipline=it).drop("discipline") for it in ("fifo", "Fifo"))
    assert rust["refused_packets"].max() == python["refused_packets"].max()
    assert rust.drop("flows_tracked").equals(python.drop("flows_tracked"))


@pytest.mark.parametrize(
    ("discipline", "rule", "operations"),
    [
        (Twice, "expected a packet that is queued", 2),
        (Greedy, "enqueue: found", 12),
        (Idle, "dequeue: found None, expected one of 2 packets", 2),
        (Backwards, "a packet overtook another of its flow", 2),
        (Forger, "found 7, expected a packet that is queued", 1),
        (Failing, "ZeroDivisionError: on purpose", 3),
        (Unbuilt, "OSError: no place here", 0),
    ],
)
def test_what_breaks_a_rule_is_found_and_shrunk(
    discipline: type[tidegate.CustomDiscipline], rule: str, operations: int
) -> None:
    with pytest.raises(tidegate.ConformanceError) as caught:
        tidegate.check_discipline(discipline)
    message = str(caught.value)
    assert message.startswith(f"{discipline.__name__}: ") and rule in message
    done = message.split("after this, ")[1].splitlines()
    assert len(done) - 2 <= operations, message


def test_early_losses_and_marks_are_counted() -> None:
    tidegate.check_discipline(Marking)

    def counted(ecn: bool) -> tuple[int, int]:
        files = tables.TransferSource(
            name="files",
            from_="senders",
            to="receivers",
            count=3,
            sizes="endless",
            tcp=tables.Tcp(ecn=ecn),
        )
        long = tidegate.scenario(
            title="Three long ones",
            duration="5 s",
            disciplines=["fifo"],
            seeds=1,
            dumbbell=tables.Dumbbell(rate="5 Mbit/s"),
            traffic=tables.Traffic(transfers=[files]),
        )
        links = pl.DataFrame(tidegate.compare(long, disciplines=[Marking]).links)
        last = links.sort("time_s").tail(1)
        return last["early_packets"].item(), last["marked_packets"].item()

    lost, marked = counted(ecn=False)
    assert lost > 10 and marked == 0
    lost, marked = counted(ecn=True)
    assert marked > 10 and lost < marked


@pytest.mark.parametrize("discipline", [Failing, Twice, Unbuilt, Idle])
def test_a_fault_ends_the_comparison(discipline: type[tidegate.CustomDiscipline]) -> None:
    errors: dict[type[tidegate.CustomDiscipline], type[Exception]] = {
        Failing: ZeroDivisionError,
        Unbuilt: OSError,
    }
    with pytest.raises(errors.get(discipline, tidegate.TidegateError)) as caught:
        tidegate.compare(SMALL, disciplines=["fifo", discipline], seeds=1000, duration="1000 s")
    if discipline is Failing:
        assert caught.traceback[-1].name == "enqueue"


def test_a_sweep_takes_none() -> None:
    with pytest.raises(tidegate.ScenarioError, match="found the class Fifo, expected an object"):
        tidegate.sweep(SMALL, over={}, disciplines=[Fifo])  # type: ignore[list-item]


def test_a_class_that_is_none_of_these_is_refused() -> None:
    with pytest.raises(tidegate.ScenarioError, match=r"found the class Tide, expected .* Tide\(\)"):
        tidegate.compare(SMALL, disciplines=[tidegate.Tide])  # type: ignore[list-item]

    class Half(tidegate.CustomDiscipline):
        def enqueue(self, now_ns: int, packet: Packet, losses: list[Packet]) -> None:
            losses.append(packet)

    with pytest.raises(TypeError, match="abstract method '?dequeue"):
        tidegate.compare(SMALL, disciplines=[Half])
    with pytest.raises(tidegate.ScenarioError, match="disciplines: found 'Fifo' twice"):
        tidegate.compare(SMALL, disciplines=[Fifo, Fifo])

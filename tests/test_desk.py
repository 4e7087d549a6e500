"""Who may have what done by the daemon: the same curatord, the same configuration, one run at a time."""

from __future__ import annotations

from typing import Any

import pytest

from curatord.adapters.control_server import Order, Refused
from curatord.core.control import Ask
from curatord.desk import FrontDesk
from curatord.errors import BusyError


class Worker:
    """A daemon as far as the desk sees it: what was put is never begun."""

    def __init__(self) -> None:
        self.stops = False
        self.put_: list[Order] = []
        self.woken = 0

    @property
    def is_stopping(self) -> bool:
        return self.stops

    def put(self, order: Order) -> None:
        self.put_.append(order)

    def wake(self) -> None:
        self.woken += 1

    def told(self) -> dict[str, Any]:
        return {"activity": "idle"}

    def silent_s(self) -> float:
        return 0.0


class House:
    """The application: *at_work* are the answers to whether a run is, the last one for ever."""

    def __init__(self, *at_work: bool) -> None:
        self.at_work = list(at_work) or [False]

    @property
    def version(self) -> str:
        return "2.0"

    @property
    def config_fingerprint(self) -> str:
        return "ab12"

    def is_run_at_work(self) -> bool:
        return self.at_work.pop(0) if len(self.at_work) > 1 else self.at_work[0]

    def aside(self, command: str) -> Any:
        return {"done": [command]}


def a_desk(*at_work: bool) -> tuple[FrontDesk, Worker]:
    worker = Worker()
    return FrontDesk(worker, House(*at_work), sleep=lambda _seconds: None), worker


def take(desk: FrontDesk, **said: Any) -> Order:
    """Hand the desk the order of a question."""
    ask = Ask(**{"command": "run", "version": "2.0", "config": "ab12", **said})
    order = Order(ask)
    desk.take(order, ask)
    return order


@pytest.mark.parametrize("said", [{}, {"command": "scan"}, {"version": None, "config": None}, {"command": "reload"}])
def test_what_is_meant_as_we_would_do_it_is_taken(said: dict[str, Any]) -> None:
    """Who does not say which version and configuration is meant does not mind."""
    desk, worker = a_desk()

    assert [take(desk, **said)] == worker.put_


@pytest.mark.parametrize(("said", "words"), [({"version": "1.0"}, "restart it"), ({"config": "cd34"}, "reload")])
def test_what_is_meant_otherwise_is_refused(said: dict[str, Any], words: str) -> None:
    """The client does it by itself, and says why."""
    desk, worker = a_desk()

    with pytest.raises(Refused, match=words) as met:
        take(desk, **said)

    assert not met.value.quiet
    assert [] == worker.put_


def test_nothing_is_taken_on_the_way_out() -> None:
    """The client does not wait for what nobody begins."""
    desk, worker = a_desk()
    worker.stops = True

    with pytest.raises(Refused, match="stopping"):
        take(desk)


def test_one_run_at_a_time() -> None:
    """Whoever does it; a scan is left to the client then, quietly, and a new configuration may wait."""
    desk, worker = a_desk(True)

    with pytest.raises(BusyError):
        take(desk)
    with pytest.raises(Refused) as met:
        take(desk, command="scan")
    reload = take(desk, command="reload")

    assert met.value.quiet
    assert [reload] == worker.put_


def test_the_gates_question_is_no_run() -> None:
    """It holds the lock for a moment."""
    desk, worker = a_desk(True, True, False)

    assert [take(desk)] == worker.put_


def test_a_run_that_waits_counts() -> None:
    """Until it is taken back, or over."""
    desk, worker = a_desk()
    first = take(desk)
    with pytest.raises(BusyError):
        take(desk)

    first.withdraw()
    second = take(desk)
    second.begin()
    second.finish({})
    third = take(desk)

    assert [first, second, third] == worker.put_


def test_a_pause_wakes_the_worker() -> None:
    """So that `status` shows it at once."""
    desk, worker = a_desk()

    assert {"done": ["pause"]} == desk.aside("pause")
    assert 1 == worker.woken

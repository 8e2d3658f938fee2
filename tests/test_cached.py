"""What is computed once, in many threads and in processes forked from them."""

from __future__ import annotations

import importlib
import pkgutil
import threading
from functools import cached_property as with_a_lock

import inbounds
from inbounds._cached import cached_property


class Once:
    def __init__(self, inside: threading.Event, go_on: threading.Event) -> None:
        self.inside, self.go_on, self.times = inside, go_on, 0

    @cached_property
    def value(self) -> object:
        self.times += 1
        self.inside.set()
        assert self.go_on.wait(60)
        return object()


def test_nobody_waits_for_another_instance() -> None:
    """A child that was forked meanwhile would wait for ever: nobody there lets go of a lock."""
    inside, go_on, free = threading.Event(), threading.Event(), threading.Event()
    free.set()
    slow, other = Once(inside, go_on), Once(threading.Event(), free)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert inside.wait(60)
    found: list[object] = []
    asking = threading.Thread(target=lambda: found.append(other.value))
    asking.start()
    asking.join(60)
    go_on.set()
    thread.join()
    assert found == [other.value]
    assert other.times == 1


def test_two_threads_get_the_same() -> None:
    inside, go_on = threading.Event(), threading.Event()
    one = Once(inside, go_on)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(one.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert found == [one.value] * 2


def test_the_package_has_no_other() -> None:
    missing = []
    for module in pkgutil.walk_packages(inbounds.__path__, "inbounds."):
        if not module.name.endswith("__main__"):
            for thing in vars(importlib.import_module(module.name)).values():
                if isinstance(thing, type) and thing.__module__ == module.name:
                    missing += [thing for made in vars(thing).values() if type(made) is with_a_lock]
    assert missing == []

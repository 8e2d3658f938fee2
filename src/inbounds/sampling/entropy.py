"""The only reader of the operating system's randomness: sources of independent, uniform 64-bit words.

A source is any object with two methods: ``fill(words)`` fills a contiguous array of uint64, ``word()`` gives one more.

* :class:`Keystream`: AES-256 in counter mode under a fresh key of the operating system; one instance per bulk call.
* :data:`pool`: words drawn in advance, for one value at a time.
* :class:`Seeded`: repeatable and **not private**; for simulations only.

What is wiped: buffers of this module that held words are overwritten with zeros once the words are handed on, and
OpenSSL clears its key schedule when a cipher is freed. Keys (``bytes``) and single words (``int``) are immutable
objects of CPython: it frees them without overwriting, may have copied them, and the operating system may have swapped
them out. Wiping shortens the time in which randomness lies around; it is no defence against someone who reads the
memory of the process.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

Words = npt.NDArray[np.uint64]

PIECE = 16_384  # words encrypted, or copied, at once
_ZEROS = memoryview(bytes(8 * PIECE))  # what is encrypted: the keystream itself comes out
_COUNTER = bytes(16)
_forks = 0  # how many forks lie between the process that imported this module and this one


class Source(Protocol):
    """Where a sampler takes its bits from."""

    def fill(self, words: Words) -> None: ...

    def word(self) -> int: ...


def _key() -> bytes:
    return os.urandom(32)


class Keystream:
    """AES-256-CTR under a fresh key. For one thread; after a fork the child's copy takes a new key.

    A key serves one call and its counter starts at 0, so no counter block is used twice. Blocks of 128 bits that never
    repeat are not quite random: that tells n words from perfect ones with probability below n^2 / 2^131, 4e-16 for a
    call of 10^12 words.
    """

    __slots__ = ("_born", "_cipher")

    _born: int
    _cipher: CipherContext

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._born = _forks
        self._cipher = Cipher(algorithms.AES(_key()), modes.CTR(_COUNTER)).encryptor()

    def fill(self, words: Words) -> None:
        """Fill a contiguous array (anything else is an error) without a temporary array of its size."""
        if words.size == 0:
            return
        if self._born != _forks:
            self._renew()
        out = words.data.cast("B")
        end = len(out)
        # Older versions of cryptography (42 is one) want room for 15 bytes more than they write, in counter mode too.
        # So all words but the last two go straight into the array, with those two as the room; the two come after them
        # through a small buffer.
        start = 0
        while start < end - 16:
            size = min(8 * PIECE, end - 16 - start)
            self._cipher.update_into(_ZEROS[:size], out[start:])
            start += size
        last = bytearray(31)
        size = end - start
        self._cipher.update_into(_ZEROS[:size], last)
        out[start:] = last[:size]
        last[:] = bytes(31)

    def word(self) -> int:
        if self._born != _forks:
            self._renew()
        buffer = bytearray(23)
        self._cipher.update_into(_ZEROS[:8], buffer)
        value = int.from_bytes(buffer[:8], "little")
        buffer[:] = bytes(23)
        return value


class _Pool:
    """Words drawn some hundreds at a time, each handed out once. Safe for threads; emptied in a forked child.

    ``list.pop`` and ``list.extend`` are atomic, under the GIL and (by a lock in every list) in free-threaded builds.
    Threads that find the list empty at the same time all add their own fresh words.

    A child made by ``os.fork`` or multiprocessing is noticed. One made by foreign code that calls fork(2) and goes on
    in Python without ``PyOS_AfterFork_Child`` is not: Python itself does not support that.
    """

    __slots__ = ("_words",)

    SIZE = 512

    def __init__(self) -> None:
        self._words: list[int] = []

    def word(self) -> int:
        try:
            return self._words.pop()
        except IndexError:
            return self._refill()

    def _refill(self) -> int:
        drawn = np.empty(self.SIZE, dtype=np.uint64)
        Keystream().fill(drawn)
        words: list[int] = drawn.tolist()
        drawn.fill(0)
        first = words.pop()
        self._words.extend(words)
        return first

    def fill(self, words: Words) -> None:
        """Fill a contiguous array; a large one under a key of its own."""
        if words.size > self.SIZE:
            Keystream().fill(words)
        elif words.size:
            flat = np.frombuffer(words, dtype=np.uint64)  # a view; an error where reshape would make a copy
            for i in range(flat.size):
                flat[i] = self.word()

    def drop(self) -> None:
        self._words.clear()


#: The source for single values.
pool = _Pool()


def _after_fork() -> None:
    """In the child: forget what the parent is going to use."""
    global _forks
    _forks += 1
    pool.drop()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


class Seeded:
    """**NOT PRIVATE.** Words of NumPy's PCG64, repeatable from a seed: for simulations and tests, never for a release.

    Whoever knows the seed, or has seen a few words, knows all the noise.
    """

    __slots__ = ("_raw",)

    def __init__(self, seed: int | None) -> None:
        self._raw = np.random.PCG64(seed).random_raw

    def fill(self, words: Words) -> None:
        if words.size == 0:
            return
        flat = np.frombuffer(words, dtype=np.uint64)
        for start in range(0, flat.size, PIECE):  # random_raw allocates what it returns
            part = flat[start : start + PIECE]
            part[:] = self._raw(part.size)

    def word(self) -> int:
        return int(self._raw())

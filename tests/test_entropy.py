"""Sources of random words: known answers, independence of calls, threads and forks.

The statistical tests reject a perfect source with probability at most ALPHA each, and a biased one almost surely.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import inbounds as ib
from inbounds.sampling import entropy
from inbounds.sampling.entropy import PIECE, Keystream, Seeded, pool

ALPHA = 1e-7
SOURCES: dict[str, Callable[[], Any]] = {"keystream": Keystream, "pool": lambda: pool, "seeded": lambda: Seeded(5)}
SIZES = [0, 1, 2, 3, 4, 511, 513, PIECE - 1, PIECE, PIECE + 1, PIECE + 2, PIECE + 3, 2 * PIECE + 2, 3 * PIECE + 5]


def words_of(source: Any, count: int) -> Any:
    words = np.zeros(count, dtype=np.uint64)
    source.fill(words)
    return words


# --- the cipher ------------------------------------------------------------------------------

# NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt); the keystream is plaintext xor ciphertext.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_COUNTER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
NIST_PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
NIST_CIPHER = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)
NIST_STREAM = bytes(a ^ b for a, b in zip(NIST_PLAIN, NIST_CIPHER, strict=True))


def use(monkeypatch: pytest.MonkeyPatch, key: bytes, counter: bytes = bytes(16)) -> None:
    monkeypatch.setattr(entropy, "_key", lambda: key)
    monkeypatch.setattr(entropy, "_COUNTER", counter)


@pytest.mark.parametrize("sizes", [(8,), (1, 7), (3, 5), (2, 2, 4), (0, 6, 2), (1,) * 8], ids=str)
def test_known_answer(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    use(monkeypatch, NIST_KEY, NIST_COUNTER)
    stream = Keystream()
    assert b"".join(words_of(stream, size).tobytes() for size in sizes) == NIST_STREAM
    stream = Keystream()
    assert b"".join(stream.word().to_bytes(8, "little") for _ in range(8)) == NIST_STREAM
    stream = Keystream()
    mixed = words_of(stream, 3).tobytes() + stream.word().to_bytes(8, "little") + words_of(stream, 4).tobytes()
    assert mixed == NIST_STREAM


def test_the_counter_starts_at_zero() -> None:
    assert bytes(16) == entropy._COUNTER


@pytest.mark.parametrize("size", SIZES)
def test_pieces_join_to_one_stream(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    use(monkeypatch, NIST_KEY)
    whole = words_of(Keystream(), 4 * PIECE)
    stream = Keystream()
    assert np.array_equal(words_of(stream, size), whole[:size])
    assert stream.word() == int(whole[size])
    assert np.array_equal(words_of(stream, 5), whole[size + 1 : size + 6])


def test_every_stream_has_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read = os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return read(size)

    monkeypatch.setattr(os, "urandom", urandom)
    streams = [Keystream() for _ in range(50)]
    assert asked == [32] * 50  # AES-256
    seen = np.concatenate([words_of(stream, 100) for stream in streams])
    assert len(np.unique(seen)) == 5000


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("size", SIZES)
def test_fill_reaches_every_word(name: str, size: int) -> None:
    # A word left alone would be 0; a random one is with probability 2^-64.
    assert words_of(SOURCES[name](), size).all()


@pytest.mark.parametrize("name", SOURCES)
def test_fill_keeps_to_its_array(name: str) -> None:
    source = SOURCES[name]()
    around = np.zeros(100, dtype=np.uint64)
    source.fill(around[10:20])
    assert around[10:20].all()
    assert not around[:10].any()
    assert not around[20:].any()
    grid = np.zeros((3, 4), dtype=np.uint64)
    source.fill(grid)
    assert len(np.unique(grid)) == 12


@pytest.mark.parametrize("name", SOURCES)
def test_arrays_with_gaps_are_refused(name: str) -> None:
    # Filling a silent copy would leave the caller with whatever the array held.
    source = SOURCES[name]()
    for gaps in (np.zeros(20, dtype=np.uint64)[::2], np.zeros((4, 4), dtype=np.uint64)[:, :2]):
        with pytest.raises((TypeError, ValueError)):
            source.fill(gaps)


# --- statistics ------------------------------------------------------------------------------


def monobit(words: Any) -> float:
    """p-value of the number of ones at each of the 64 places."""
    ones = np.array([np.count_nonzero(words >> np.uint64(i) & np.uint64(1)) for i in range(64)])
    expected = len(words) / 2
    return float(stats.chi2.sf(np.sum((ones - expected) ** 2) / (expected / 2), 64))


def serial(words: Any) -> float:
    """p-value of the pairs (byte, next byte)."""
    stream = words.view(np.uint8)
    pairs = stream[0::2].astype(np.int64) * 256 + stream[1::2]
    counts = np.bincount(pairs, minlength=65536)
    expected = len(pairs) / 65536
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2) / expected, 65535))


@pytest.mark.parametrize("name", SOURCES)
def test_bits_and_pairs_of_bytes(name: str) -> None:
    source = SOURCES[name]()
    count = 200_000
    words = words_of(source, count)
    assert monobit(words) > ALPHA
    assert serial(words) > ALPHA
    single = np.array([source.word() for _ in range(20_000)], dtype=np.uint64)
    assert monobit(single) > ALPHA
    # The same tests see a bit that is one in 52 % of the words, and bytes that repeat in 1 %.
    lean = np.random.default_rng(1).random(count) < 0.04
    biased = words | (lean.astype(np.uint64) << np.uint64(17))
    assert monobit(biased) < ALPHA
    stream = words.view(np.uint8).copy()
    repeat = np.random.default_rng(2).random(len(stream) // 2) < 0.01
    stream[1::2] = np.where(repeat, stream[0::2], stream[1::2])
    assert serial(stream.view(np.uint64)) < ALPHA


# --- the pool --------------------------------------------------------------------------------


def test_the_pool_hands_out_each_word_once_and_in_full() -> None:
    seen = [pool.word() for _ in range(5 * pool.SIZE)]
    assert len(set(seen)) == len(seen)
    assert all(type(w) is int and 0 <= w < 2**64 for w in seen)
    assert max(seen) >= 2**63


def test_the_pool_under_threads() -> None:
    each, threads = 50_000, 8
    drawn: list[list[int]] = []
    start = threading.Barrier(threads)

    def work() -> None:
        word = pool.word
        start.wait()
        drawn.append([word() for _ in range(each)])

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    words = np.array(drawn, dtype=np.uint64).ravel()
    assert words.size == each * threads
    assert len(np.unique(words)) == words.size  # by chance two are equal with probability 4e-9


def in_child(work: Callable[[], Any]) -> Any:
    """The words that ``work`` gives in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - coverage does not follow
        try:
            os.write(write, np.asarray(work(), dtype=np.uint64).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return np.frombuffer(data, dtype=np.uint64)


fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from Python 3.12 on, where earlier tests left threads
def test_a_forked_child_shares_no_words_with_its_parent() -> None:
    pool.word()  # so that words are waiting
    assert pool._words
    stream = Keystream()
    stream.word()
    for draw in (
        lambda: [pool.word() for _ in range(1000)],
        lambda: words_of(pool, 100),
        lambda: words_of(pool, 2000),
        lambda: words_of(stream, 1000),
        lambda: [stream.word() for _ in range(100)],
    ):
        first, second = in_child(draw), in_child(draw)
        own = np.asarray(draw(), dtype=np.uint64)
        together = np.concatenate([first, second, own])
        assert len(first) == len(second) == len(own)
        assert len(np.unique(together)) == len(together)


def test_what_the_hook_does(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [bytes([i]) * 32 for i in range(4)]
    monkeypatch.setattr(entropy, "_key", lambda: keys.pop(0))
    filled, single = Keystream(), Keystream()
    pool._words[:] = [1, 2, 3]
    monkeypatch.setattr(entropy, "_forks", entropy._forks)  # put back afterwards
    entropy._after_fork()
    assert pool._words == []
    assert len(keys) == 2
    words_of(filled, 3)
    single.word()
    assert keys == []  # both took new ones,
    words_of(filled, 3)
    single.word()  # once


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_would_be_shared_without_the_hook() -> None:
    # The test above has power: a source that does not notice the fork fails it.
    seeded = Seeded(1)
    assert np.array_equal(in_child(lambda: words_of(seeded, 50)), words_of(seeded, 50))


def test_buffers_are_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    empty = np.empty

    def spy(*given: Any, **named: Any) -> Any:
        made.append(empty(*given, **named))
        return made[-1]

    monkeypatch.setattr(entropy.np, "empty", spy)
    pool.drop()
    pool.word()
    assert [array.size for array in made] == [pool.SIZE]
    assert not made[0].any()
    assert len(pool._words) == pool.SIZE - 1


# --- seeds -----------------------------------------------------------------------------------


def test_seeds_repeat() -> None:
    for size in (1, 5, 2 * PIECE + 7):
        assert np.array_equal(words_of(Seeded(3), size), words_of(Seeded(3), size))
    assert not np.array_equal(words_of(Seeded(3), 5), words_of(Seeded(4), 5))
    assert not np.array_equal(words_of(Seeded(None), 5), words_of(Seeded(None), 5))
    one, other = Seeded(7), Seeded(7)
    assert [one.word() for _ in range(5)] == words_of(other, 5).tolist()
    assert np.array_equal(words_of(Seeded(3), 4), np.random.PCG64(3).random_raw(4))
    assert "NOT PRIVATE" in (Seeded.__doc__ or "")


def test_releases_take_no_seed_and_no_source() -> None:
    for kind in (ib.Laplace, ib.Gaussian):
        assert set(inspect.signature(kind.release).parameters) == {"self", "value", "clip"}
        for call in (kind, kind.calibrate):
            names = set(inspect.signature(call).parameters)
            assert not names & {"seed", "source", "rng", "random_state", "generator"}
    assert not inspect.signature(Keystream).parameters

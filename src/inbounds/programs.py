"""Linear programs over tables whose entries have bounded ratios along each column, solved by their shape.

A table p_q(x) has one row for each true value and one column for each answer. Privacy limits the ratios of entries of
one column: p_q(x) <= e^gap p_q'(x) for neighbouring rows. Only the sums of rows tie the columns together. So in every
step of an interior-point method the columns are eliminated one by one, and a small system for the rows is left: n^4
operations, not the n^6 of a program that does not know its shape. Mirror images are solved once.

What a solver returns is never trusted. A primal solution is repaired and verified by whoever uses it. A lower bound is
proven here, whatever the iterates are worth, by a point of the dual program: :meth:`Limits.lowered` makes one out of
any guess, with room for rounding. Proofs: ``docs/proofs/optimal.md``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse

from inbounds._cached import cached_property
from inbounds._checks import FloatArray

__all__ = ["Limits", "Solution", "cover", "neighbours", "solve", "sum_below"]

Rows = npt.NDArray[np.int64]

_MARGIN = 1e-12  # relative, on every number that enters a certificate; rounding is below a tenth of it
_STEP = 0.99  # of the way to the boundary
_ITERATIONS = 150
_SMALL = 32  # rows of a matrix that is not halved
_HOPEFUL, _PATIENCE = 1e-6, 5  # below this gap, iterations to wait for a better one


# ---------------------------------------------------------------- which ratios are limited


def neighbours(first: Rows) -> tuple[Rows, Rows]:
    """All pairs i < j with i from first[j] on."""
    width = np.arange(first.size) - first
    j = np.repeat(np.arange(first.size), width)
    return np.arange(j.size) - np.repeat(np.cumsum(width) - width, width) + first[j], j


@dataclass(frozen=True, eq=False)
class Limits:
    """The rows from ``first[q]`` to q are neighbours of q, and ratios between them are at most e^gap[q].

    ``first`` does not fall. Gaps are all alike, or only rows next to each other are neighbours.
    """

    first: Rows
    gap: FloatArray

    @property
    def size(self) -> int:
        return int(self.first.size)

    @cached_property
    def pairs(self) -> tuple[Rows, Rows]:
        return neighbours(self.first)

    def least(self, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The column v with v[0] = 1 and the least cost @ v, for each row of costs: (cost, v scaled to at most 1).

        Along an extreme column the logarithm moves in whole gaps, up, down or not at all, and two neighbours are at
        most one gap apart. Going through the rows, all that must be remembered is whether another level was met among
        the neighbours to come, above or below, and how long ago.
        """
        count, n = cost.shape
        ages = int(np.max(np.arange(n - 1) - self.first[1:], initial=0))
        # state 0: no other level; 1..ages: one above, so long ago; ages + 1..2 ages: one below
        aged = np.concatenate([[0], np.arange(2, ages + 2), np.arange(ages + 2, 2 * ages + 2)])
        aged[[0, ages, 2 * ages]] = 0
        after_fall, after_rise = (1, ages + 1) if ages else (0, 0)
        age = np.concatenate([[0], np.arange(1, ages + 1), np.arange(1, ages + 1)])
        was_above, was_below = np.arange(2 * ages + 1) < ages + 1, np.arange(2 * ages + 1) > ages
        was_above[0] = False
        value = np.repeat(cost[:, -1:], 2 * ages + 1, axis=1)
        moves = np.zeros((n, count, 2 * ages + 1), dtype=np.int8)
        with np.errstate(over="ignore"):
            for q in range(n - 2, -1, -1):
                near = age <= q - self.first[q + 1]
                factor = np.exp(self.gap[q + 1])
                stay = value[:, aged]
                rise = np.where(was_below & near, np.inf, value[:, after_rise, None] * factor)
                fall = np.where(was_above & near, np.inf, value[:, after_fall, None] / factor)
                best = np.minimum(np.minimum(stay, rise), fall)
                moves[q] = np.where(best == stay, 0, np.where(best == rise, 1, -1))
                value = cost[:, q, None] + best
        state, log = np.zeros(count, dtype=np.int64), np.zeros((count, n))
        for q in range(n - 1):
            move = moves[q, np.arange(count), state]
            state = np.where(move > 0, after_rise, np.where(move < 0, after_fall, aged[state]))
            log[:, q + 1] = log[:, q] + move * self.gap[q + 1]
        return value[:, 0], np.exp(log - np.max(log, axis=1, keepdims=True))

    def lowered(self, y: FloatArray, cost: FloatArray) -> FloatArray | None:
        """y less what it takes that cost[x] @ v >= y @ v, certainly, for all x and all columns v within the limits."""
        y = y.copy()
        for _ in range(60):
            rest = cost - y - _MARGIN * (np.abs(cost) + np.abs(y))
            value, v = self.least(rest)
            if np.all(value >= 0.0):
                return y
            short = float(np.min(np.sum(rest * v, axis=1) / np.sum(v, axis=1)))
            if not math.isfinite(short):
                return None
            y -= max(-short, 1e-15 * float(np.max(np.abs(y)))) * (1.0 + 1e-9)
        return None


# ---------------------------------------------------------------- the interior-point method


class _Factor(Protocol):
    """H^-1 for the weights of one iteration, and B H^-1 B^T."""

    schur: FloatArray

    def reduce(self, h: FloatArray) -> FloatArray:
        """B H^-1 h."""

    def solve(self, h: FloatArray) -> FloatArray:
        """H^-1 h."""


class _Shape(Protocol):
    """Blocks of variables t with slacks M t >= 0, and rows B t that tie the blocks together."""

    def slack(self, t: FloatArray) -> FloatArray:
        """M t."""

    def adjoint(self, z: FloatArray) -> FloatArray:
        """M^T z."""

    def tie(self, t: FloatArray) -> FloatArray:
        """B t."""

    def spread(self, y: FloatArray) -> FloatArray:
        """B^T y."""

    def factor(self, d: FloatArray) -> _Factor:
        """H = M^T diag(d) M, block by block."""


@dataclass(frozen=True, eq=False)
class _Task:
    """Least cost @ t + price @ u with B t + extra @ u = b, M t >= 0, u >= 0. It starts from t and u."""

    shape: _Shape
    cost: FloatArray
    b: FloatArray
    extra: FloatArray
    price: FloatArray
    t: FloatArray
    u: FloatArray


@dataclass(frozen=True, eq=False)
class _Iterate:
    t: FloatArray
    w: FloatArray  # M t
    z: FloatArray  # multipliers of M t >= 0
    u: FloatArray
    zu: FloatArray  # and of u >= 0
    y: FloatArray  # and of the ties

    @property
    def complementarity(self) -> float:
        return float((self.w * self.z).sum() + (self.u * self.zu).sum())


class _Newton:
    """One linear system, for several right sides: the change that brings w z and u zu to given products."""

    def __init__(self, task: _Task, at: _Iterate) -> None:
        self._task, self._at = task, at
        self._rest_t = task.cost - task.shape.spread(at.y) - task.shape.adjoint(at.z)
        self._rest_u = task.price - task.extra.T @ at.y - at.zu
        self._rest_b = task.b - task.shape.tie(at.t) - task.extra @ at.u
        self._factor = task.shape.factor(at.z / at.w)
        self._ratio = at.u / at.zu
        self._schur = self._factor.schur + (task.extra * self._ratio) @ task.extra.T

    def __call__(self, for_w: FloatArray, for_u: FloatArray) -> _Iterate:
        """``for_w``, ``for_u``: by how much w z and u zu are to change, to first order."""
        task, at = self._task, self._at
        h = task.shape.adjoint(for_w / at.w) - self._rest_t
        by_u = for_u / at.zu - self._ratio * self._rest_u
        right = self._rest_b - self._factor.reduce(h) - task.extra @ by_u
        dy = np.asarray(np.linalg.solve(self._schur, right), dtype=np.float64)
        dt = self._factor.solve(task.shape.spread(dy) + h)
        dw = task.shape.slack(dt)
        dzu = self._rest_u - task.extra.T @ dy
        return _Iterate(dt, dw, (for_w - at.z * dw) / at.w, (for_u - at.u * dzu) / at.zu, dzu, dy)


def _interior(task: _Task, settled: Callable[[_Iterate], bool]) -> None:
    """Mehrotra's predictor and corrector. ``settled`` looks at every iterate, keeps what is good, says when to stop."""
    w = task.shape.slack(task.t)
    level = 1.0 / len(task.t)  # of the size of costs, which are scaled to add up to about 1 in a column
    z = np.full_like(w, level * task.t.shape[1] / w.shape[1])
    at = _Iterate(task.t, w, z, task.u, np.full_like(task.u, level), np.zeros(task.b.size))
    size = w.size + task.u.size
    for _ in range(_ITERATIONS):
        if settled(at):
            return
        solve = _Newton(task, at)
        step = solve(-at.w * at.z, -at.u * at.zu)
        mu = at.complementarity / size
        centre = mu * (_moved(at, step, *_lengths(at, step, 1.0)).complementarity / size / mu) ** 3
        step = solve(centre - at.w * at.z - step.w * step.z, centre - at.u * at.zu - step.u * step.zu)
        moved = _moved(at, step, *_lengths(at, step, _STEP))
        # w from t itself: the table is what it says it is. Rounding may have made it negative.
        at = replace(moved, w=np.maximum(task.shape.slack(moved.t), 1e-8 * at.w))


def _lengths(at: _Iterate, step: _Iterate, share: float) -> tuple[float, float]:
    """This share of the way to where w or u, and z or zu, would be 0; at most 1."""

    def longest(x: FloatArray, dx: FloatArray) -> float:
        return float(np.max(-dx / x, initial=0.0))

    primal = max(longest(at.w, step.w), longest(at.u, step.u))
    dual = max(longest(at.z, step.z), longest(at.zu, step.zu))
    return min(1.0, share / primal if primal else 1.0), min(1.0, share / dual if dual else 1.0)


def _moved(at: _Iterate, step: _Iterate, primal: float, dual: float) -> _Iterate:
    return _Iterate(
        at.t + primal * step.t,
        at.w + primal * step.w,
        at.z + dual * step.z,
        at.u + primal * step.u,
        at.zu + dual * step.zu,
        at.y + dual * step.y,
    )


# ---------------------------------------------------------------- tables without delta, and with it


def _inverse_roots(matrices: FloatArray) -> FloatArray:
    """R with R^T R = H^-1 for each symmetric positive matrix H, which is overwritten."""
    diagonal = np.arange(matrices.shape[-1])
    scale = 1.0 / np.sqrt(matrices[:, diagonal, diagonal])
    matrices *= scale[:, :, None]
    matrices *= scale[:, None, :]
    for more in (1e-15, 1e-13, 1e-11, 1e-9):
        matrices[:, diagonal, diagonal] = 1.0 + more
        with contextlib.suppress(np.linalg.LinAlgError):
            return _inverse_cholesky(matrices) * scale[:, None, :]
    raise FloatingPointError


def _inverse_cholesky(h: FloatArray) -> FloatArray:
    """By halves: for many small matrices that is several times as fast as the library's threads."""
    n = h.shape[-1]
    if n <= _SMALL:
        out: FloatArray = np.linalg.inv(np.linalg.cholesky(h))
        return out
    k = n // 2
    first = _inverse_cholesky(h[:, :k, :k])
    below = h[:, k:, :k] @ first.swapaxes(1, 2)
    last = _inverse_cholesky(h[:, k:, k:] - below @ below.swapaxes(1, 2))
    out = np.zeros_like(h)
    out[:, :k, :k], out[:, k:, k:] = first, last
    out[:, k:, :k] = -(last @ (below @ first))
    return out


class _PureFactor:
    def __init__(self, roots: FloatArray, tied: FloatArray) -> None:
        self._roots = roots
        self._tied = tied  # R B^T
        flat = tied.reshape(-1, tied.shape[-1])
        self.schur = flat.T @ flat

    def reduce(self, h: FloatArray) -> FloatArray:
        out: FloatArray = np.tensordot(_times(self._roots, h), self._tied, 2)
        return out

    def solve(self, h: FloatArray) -> FloatArray:
        return _times(self._roots.swapaxes(1, 2), _times(self._roots, h))


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    out: FloatArray = np.matmul(matrices, vectors[..., None])[..., 0]
    return out


class _Pure:
    """v = t: one column for each answer, and ratios within the limits."""

    def __init__(self, limits: Limits, weights: FloatArray, mirrored: bool) -> None:
        """B t: for each of the ``weights`` (one per entry of each column), the sum over answers, for each row."""
        self._weights, self._mirrored = weights, mirrored
        i, j = self._i, self._j = limits.pairs
        n, keep = limits.size, np.exp(-limits.gap[j])
        self.keep = np.tile(keep, 2)
        self.rows = (n + 1) // 2 if mirrored else n
        self.ties = len(weights) * self.rows
        k = np.arange(i.size)
        self._n = n
        both = [sparse.csr_array((np.ones(k.size), (k, b)), shape=(k.size, n)) for b in (i, j)]
        scaled = [sparse.csr_array((keep, (k, b)), shape=(k.size, n)) for b in (i, j)]
        # v_i >= v_j e^-gap and v_j >= v_i e^-gap
        self._ratios = sparse.vstack([both[0] - scaled[1], both[1] - scaled[0]]).tocsr()
        self._ratios_t = self._ratios.T.tocsr()
        self._squares_t = self._ratios_t.multiply(self._ratios_t).tocsr()

    def slack(self, t: FloatArray) -> FloatArray:
        return np.ascontiguousarray((self._ratios @ t.T).T)

    def adjoint(self, z: FloatArray) -> FloatArray:
        return np.ascontiguousarray((self._ratios_t @ z.T).T)

    def size_of(self, z: FloatArray) -> FloatArray:
        """What :meth:`adjoint` adds up, without signs."""
        return np.asarray((abs(self._ratios_t) @ z.T).T)

    def tie(self, t: FloatArray) -> FloatArray:
        return self._fold(np.sum(self._weights * t, axis=1)).reshape(-1)

    def spread(self, y: FloatArray) -> FloatArray:
        full = self.unfold(y.reshape(len(self._weights), -1))
        out: FloatArray = np.sum(self._weights * full[:, None, :], axis=0)
        return out

    def _fold(self, x: FloatArray) -> FloatArray:
        """A row and its mirror image, added up; the one in the middle twice."""
        return (x + x[..., ::-1])[..., : self.rows] if self._mirrored else x

    def unfold(self, y: FloatArray) -> FloatArray:
        """The transpose of that."""
        if not self._mirrored:
            return y
        out = np.zeros((*y.shape[:-1], self._n))
        out[..., : self.rows] += y
        out[..., ::-1][..., : self.rows] += y
        return out

    def roots(self, d: FloatArray, own: FloatArray | float = 0.0) -> FloatArray:
        """R of the columns for these weights of the ratios, and of the entries themselves."""
        count, pairs = len(d), self._i.size
        h = np.zeros((count, self._n, self._n))
        off = -self.keep[:pairs] * (d[:, :pairs] + d[:, pairs:])
        h[:, self._i, self._j] = off
        h[:, self._j, self._i] = off
        diagonal = np.arange(self._n)
        h[:, diagonal, diagonal] = (self._squares_t @ d.T).T + own
        return _inverse_roots(h)

    def tied(self, roots: FloatArray) -> FloatArray:
        return np.concatenate([self._fold(roots * w[:, None, :]) for w in self._weights], axis=2)

    def factor(self, d: FloatArray) -> _Factor:
        roots = self.roots(d)
        return _PureFactor(roots, self.tied(roots))


class _Delta:
    """t = (v, s): columns, and for every ordered pair of neighbours at least what one exceeds e^gap times the other by.

    The excesses of a pair are added up over the answers, in one more tie each (of a pair and its mirror image, one).
    """

    def __init__(self, limits: Limits, columns: _Pure, share: FloatArray, mirrored: bool) -> None:
        self.columns, self.share, self.n = columns, share, limits.size
        self.i, self.j = limits.pairs
        self.keep = columns.keep
        self._mirror: Rows | None = None
        if mirrored:  # v_i >= e^-gap v_j has the image v_j' >= e^-gap v_i', with i' = n - 1 - j and j' = n - 1 - i
            number = np.zeros((self.n, self.n), dtype=np.int64)
            number[self.i, self.j] = np.arange(self.i.size)
            self._mirror = self.i.size + number[self.n - 1 - self.j, self.n - 1 - self.i]

    def split(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What belongs to entries, to excesses, and (slacks only) to ratios."""
        return w[:, : self.n], w[:, self.n : self.n + self.keep.size], w[:, self.n + self.keep.size :]

    def fold(self, s: FloatArray) -> FloatArray:
        """A pair and its mirror image, added up."""
        return s if self._mirror is None else s[..., : self.i.size] + s[..., self._mirror]

    def unfold(self, y: FloatArray) -> FloatArray:
        if self._mirror is None:
            return y
        out = np.empty(2 * y.size)
        out[: y.size] = y
        out[self._mirror] = y
        return out

    def slack(self, t: FloatArray) -> FloatArray:
        v, s, _ = self.split(t)
        return np.hstack([v, s, self.columns.slack(v) + self.keep * s])

    def adjoint(self, z: FloatArray) -> FloatArray:
        own, zero, ratio = self.split(z)
        return np.hstack([own + self.columns.adjoint(ratio), zero + self.keep * ratio])

    def tie(self, t: FloatArray) -> FloatArray:
        v, s, _ = self.split(t)
        return np.append(self.columns.tie(v), np.sum(self.share * self.fold(s), axis=0))

    def spread(self, y: FloatArray) -> FloatArray:
        v = self.columns.spread(y[: self.columns.ties])
        return np.hstack([v, self.share * self.unfold(y[self.columns.ties :])])

    def through(self, roots: FloatArray) -> FloatArray:
        """R G^T, for the ratios G."""
        first, second, keep = roots[:, :, self.i], roots[:, :, self.j], self.keep[: self.i.size]
        return np.concatenate([first - keep * second, second - keep * first], axis=2)

    def factor(self, d: FloatArray) -> _Factor:
        return _DeltaFactor(self, d)


class _DeltaFactor:
    """The excesses are eliminated first, s = (h_s - keep d G v) / c, which leaves columns as without delta."""

    def __init__(self, shape: _Delta, d: FloatArray) -> None:
        self._shape = shape
        own, zero, ratio = shape.split(d)
        self._c = zero + np.square(shape.keep) * ratio
        self._a = shape.keep * ratio / self._c
        roots = shape.columns.roots(ratio * zero / self._c, own)
        excess = shape.fold(shape.through(roots) * (shape.share * self._a)[:, None, :])
        self._columns = _PureFactor(roots, np.concatenate([shape.columns.tied(roots), -excess], axis=2))
        self.schur = self._columns.schur
        last = np.arange(shape.columns.ties, len(self.schur))
        self.schur[last, last] += np.sum(np.square(shape.share) * shape.fold(1.0 / self._c), axis=0)

    def reduce(self, h: FloatArray) -> FloatArray:
        for_v, for_s, _ = self._shape.split(h)
        out = self._columns.reduce(for_v - self._shape.columns.adjoint(self._a * for_s))
        out[self._shape.columns.ties :] += np.sum(self._shape.share * self._shape.fold(for_s / self._c), axis=0)
        return out

    def solve(self, h: FloatArray) -> FloatArray:
        for_v, for_s, _ = self._shape.split(h)
        v = self._columns.solve(for_v - self._shape.columns.adjoint(self._a * for_s))
        return np.hstack([v, for_s / self._c - self._a * self._shape.columns.slack(v)])


# ---------------------------------------------------------------- the programs


@dataclass(frozen=True, eq=False)
class Solution:
    """The best table found, rows adding up to 1 but for rounding, and what no table within the limits has less than."""

    table: FloatArray
    loss: float
    bound: float

    @property
    def gap(self) -> float:
        """By how much the loss may be above the least one, relatively."""
        return self.loss / self.bound - 1.0 if self.bound > 0.0 else math.inf


class _Program:
    """The least average or worst loss of a table, with or without delta; watches its own iterates."""

    def __init__(
        self,
        losses: FloatArray,
        prior: FloatArray | None,
        limits: Limits,
        delta: float,
        proof: tuple[Limits, float],
        tolerance: float,
        tell: Callable[[float], None],
    ) -> None:
        self._losses, self._prior, self._limits, self._delta, self._proof = losses, prior, limits, delta, proof
        self._tolerance, self._tell = tolerance, tell
        self._mirrored = _is_mirrored(losses, prior, limits)
        n, answers = losses.shape
        columns = (answers + 1) // 2 if self._mirrored else answers
        self._by_answer = np.ascontiguousarray(losses.T[:columns])
        self._share, self._times = np.ones((columns, 1)), 1.0
        if self._mirrored:  # answers that stand for their mirror images, too; the one in the middle is its own
            self._share[answers // 2 :] = 0.5
            self._times = 2.0
        self._unit = float(np.mean(losses))
        self._columns = _Pure(limits, self._weights(), self._mirrored)
        self._shape: _Pure | _Delta = self._columns
        if delta > 0.0:
            self._shape = _Delta(limits, self._columns, self._share, self._mirrored)
        self.best = Solution(np.full((n, answers), 1.0 / answers), math.inf, -math.inf)
        self._seen, self._waited = math.inf, 0

    def _weights(self) -> FloatArray:
        """Rows add up to 1; for the worst case, so do their losses to what is to be least."""
        plain = np.broadcast_to(self._share, self._by_answer.shape)
        return np.array([plain] if self._prior is not None else [plain, self._share * self._by_answer / self._unit])

    def task(self) -> _Task:
        """It starts from all answers alike, which has room on every side."""
        count, each = self._columns.rows, 1.0 / self._losses.shape[1]
        t = np.full(self._by_answer.shape, each)
        b, extra, price, u = [np.ones(count)], np.zeros((count, 0)), np.zeros(0), np.zeros(0)
        if self._prior is None:  # losses of a row + room - top = 0
            start = self._columns.tie(t)[count:]
            top = 2.0 * float(np.max(start))
            b.append(np.zeros(count))
            extra = _stacked(extra, np.hstack([-np.ones((count, 1)), np.eye(count)]))
            price, u = np.append(1.0, np.zeros(count)), np.append(top, top - start)
            cost = np.zeros_like(t)
        else:
            cost = self._times * self._share * self._prior * self._by_answer / self._unit
        if isinstance(self._shape, _Delta):  # excesses of a pair + room = delta
            every, pairs = self._shape.keep.size, self._shape.fold(self._shape.keep).size
            b.append(np.full(pairs, self._delta))
            extra = _stacked(extra, np.eye(pairs))
            price, u = np.append(price, np.zeros(pairs)), np.append(u, np.full(pairs, self._delta / 2.0))
            t = np.hstack([t, np.full((len(t), every), self._delta / 2.0 * each)])
            cost = np.hstack([cost, np.zeros((len(t), every))])
        return _Task(self._shape, cost, np.concatenate(b), extra, price, t, u)

    # -- what an iterate is worth

    def settled(self, at: _Iterate) -> bool:
        table = self._table(at)
        each = np.sum(self._losses * table, axis=1)
        loss = float(np.max(each)) if self._prior is None else float(self._prior @ each)
        best = self.best
        if loss < best.loss:
            best = replace(best, table=table, loss=loss)
        if at.complementarity * self._unit < loss:  # before, there is nothing to prove
            best = replace(best, bound=max(best.bound, self._bound(at)))
        self.best = best
        self._tell(best.gap)
        if best.gap < 0.9 * self._seen:
            self._seen, self._waited = best.gap, 0
        self._waited += 1
        return best.gap <= self._tolerance or (best.gap < _HOPEFUL and self._waited > _PATIENCE)

    def _table(self, at: _Iterate) -> FloatArray:
        table = at.t[:, : self._limits.size].T
        if self._mirrored:
            answers = self._losses.shape[1]
            table = np.hstack([table, table[::-1, : answers // 2][:, ::-1]])
            middle = answers // 2  # of an even number the first after the middle, which has its image already
            table[:, middle] = (table[:, middle] + table[::-1, answers - 1 - middle]) / 2.0
        out: FloatArray = table / np.sum(table, axis=1, keepdims=True)
        return out

    def _bound(self, at: _Iterate) -> float:
        """What no table within the limits has less than, by the multipliers of the iterate; -inf if they show none."""
        count, unfold = self._columns.rows, self._columns.unfold
        y, rest = unfold(at.y[:count]) * self._unit, at.y[count:]
        prior, unit = self._prior, self._times
        if prior is None:  # any prior bounds the worst case from below; the multipliers are the least favourable one
            prior, rest = np.maximum(-unfold(rest[:count]), 0.0), rest[count:]
            unit = float(np.sum(prior))
            if not unit > 0.0:
                return -math.inf
            prior = prior / unit
        cost = prior * self._by_answer
        if not isinstance(self._shape, _Delta):
            found = self._proof[0].lowered(y / unit, cost)
            return -math.inf if found is None else sum_below(found)
        price = np.maximum(-self._shape.unfold(rest), 0.0) * (self._unit / unit)
        ratios = self._shape.split(at.z)[2] * (self._unit / unit) / self._share
        columns = _Pure(self._proof[0], self._weights(), self._mirrored)
        ratios = np.minimum(ratios, price / columns.keep * (1.0 - _MARGIN))
        y = np.min(cost - columns.adjoint(ratios) - _MARGIN * (cost + columns.size_of(ratios)), axis=0)
        if self._mirrored:
            y = np.minimum(y, y[::-1])
        return sum_below(y) - self._proof[1] * float(np.sum(price)) * (1.0 + _MARGIN)


def _is_mirrored(losses: FloatArray, prior: FloatArray | None, limits: Limits) -> bool:
    """Whether q, x and n - 1 - q, n - 1 - x are alike in everything: then some best table has that symmetry."""
    n = limits.size
    last = np.searchsorted(limits.first, np.arange(n), side="right") - 1
    return (
        np.array_equal(losses, losses[::-1, ::-1])
        and (prior is None or np.array_equal(prior, prior[::-1]))
        and np.array_equal(limits.gap[1:], limits.gap[:0:-1])
        and np.array_equal(n - 1 - last[::-1], limits.first)
    )


def _stacked(above: FloatArray, below: FloatArray) -> FloatArray:
    """Block-diagonal."""
    out = np.zeros((len(above) + len(below), above.shape[1] + below.shape[1]))
    out[: len(above), : above.shape[1]] = above
    out[len(above) :, above.shape[1] :] = below
    return out


def sum_below(values: FloatArray) -> float:
    """The sum, rounded down by more than rounding."""
    return math.fsum(values) - _MARGIN * float(np.sum(np.abs(values)))


def solve(
    losses: FloatArray,
    prior: FloatArray | None,
    limits: Limits,
    *,
    delta: float = 0.0,
    proof: tuple[Limits, float] | None = None,
    tolerance: float = 3e-8,
    tell: Callable[[float], None] = lambda gap: None,
) -> Solution:
    """The table of least average loss under a prior, or of least worst loss (no prior).

    Parameters
    ----------
    losses : array, one row for each true value, one column for each answer
        Not negative, and not all zero.
    delta : float
        How much one row may exceed e^gap times a neighbour's by, added up over the answers.
    proof : (limits, delta)
        For which the bound is proven, if not the same: somewhat more generous ones.
    tell : callable
        Told the gap of the best table so far, after every iteration.
    """
    program = _Program(losses, prior, limits, delta, proof or (limits, delta), tolerance, tell)
    # where numbers give out, what was found so far is what there is
    with np.errstate(all="ignore"), contextlib.suppress(FloatingPointError, np.linalg.LinAlgError):
        _interior(program.task(), program.settled)
    return program.best


def cover(cost: FloatArray, price: float, limits: Limits, tolerance: float) -> FloatArray:
    """The y with the largest sum found such that y <= price and cost[x] @ v >= y @ v for all x and columns v.

    It bounds what any columns cost that add up to at most 1 in each row, when what is missing costs ``price`` there.
    """
    n, answers = limits.size, len(cost)
    unit = float(np.mean(cost))
    shape = _Pure(limits, np.ones((1, answers, n)), mirrored=False)
    t, u = np.full((answers, n), 0.5 / answers), np.full(n, 0.5)
    task = _Task(shape, cost / unit, np.ones(n), np.eye(n), np.full(n, price / unit), t, u)
    best = np.zeros(n)

    def settled(at: _Iterate) -> bool:
        nonlocal best
        least = float(np.sum(task.cost * at.t) + np.sum(task.price * at.u)) * unit
        if at.complementarity * unit < 0.1 * least:  # before, there is nothing to prove
            found = limits.lowered(np.minimum(at.y * unit, price), cost)
            if found is not None and np.sum(found) > np.sum(best):
                best = found
        return bool(np.sum(best) >= (1.0 - tolerance) * least)

    with np.errstate(all="ignore"), contextlib.suppress(FloatingPointError, np.linalg.LinAlgError):
        _interior(task, settled)
    return best

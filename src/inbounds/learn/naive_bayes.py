"""Gaussian naive Bayes with differential privacy: class counts, means and variances, all noisy and all in range.

Every feature is first moved to its bounds and written as x = middle + half-width * z with z in [-1, 1]. Of each class
the model needs three things, released one after the other, each using those before it:

* the number of rows,
* the sum of z, for each feature: one row moves it by at most 1,
* the sum of z² - 1/2, for each feature: one row moves it by at most 1/2. With the count and the mean this is the
  variance.

Sums are formed in whole numbers (z and z² in steps of 2**-24), so that no rounding can move them farther than that.
``docs/proofs/naive-bayes.md`` has the proofs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.exceptions import DataConversionWarning  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Integers, Interval
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.learn import rows
from inbounds.mechanism import Laplace

__all__ = ["Account", "GaussianNB", "Spending"]

EDGES = ("truncate", "clamp")
NEIGHBOURS = ("add-remove", "substitute", "features")

_WHAT = "GaussianNB"
_STEPS = 2**24  # of z and of z² in one unit
_ROWS = 2**28  # up to here sums in those steps are exact as floats
_BLOCK = 2**14
_SMALLEST_VARIANCE = 1e-100
_RELEASES = ("counts", "means", "variances")
_PUBLIC = {
    "add-remove": ("bounds",),
    "substitute": ("bounds", "number of rows"),
    "features": ("bounds", "labels of all rows"),
}
_WHY_BOUNDS = (
    "Pass (lower, upper), numbers or one per feature, known without looking at the data: "
    "noise cannot hide bounds that were read off it."
)


_WHY_LABELS = (
    "Unknown label type: labels are texts or whole numbers below 2**53, and '1.0', 1.0 and True are one label."
)


@dataclass(frozen=True)
class Spending:
    """One kind of release of a fit.

    Attributes
    ----------
    release : str
        What is released.
    mechanisms : tuple of Laplace
        The mechanism of each class, with its domain, sensitivity and scale, in the order of ``classes_``. Empty where
        nothing had to be released.
    number : int
        How many numbers are released, over all classes.
    touched : int
        How many of them one row can move, counted twice where it moves them twice as far as the sensitivity says.
    epsilon : Fraction
        What each of them spends.
    """

    release: str
    mechanisms: tuple[Laplace, ...]
    number: int
    touched: int
    epsilon: Fraction

    @property
    def total(self) -> Fraction:
        """What one row pays for all of them."""
        return self.touched * self.epsilon


@dataclass(frozen=True)
class Account:
    """Everything a fit released about its data, and what each release cost; ``print`` shows a table.

    Attributes
    ----------
    neighbours : str
        Which data sets count as neighbours.
    public : tuple of str
        What was taken as public, and is not protected.
    spendings : tuple of Spending
    """

    neighbours: str
    public: tuple[str, ...]
    spendings: tuple[Spending, ...]

    @property
    def total(self) -> Fraction:
        """The epsilon of the whole fit."""
        return sum((s.total for s in self.spendings), Fraction(0))

    def __str__(self) -> str:
        lines = [
            f"pure epsilon {float(self.total)!r} for neighbours {self.neighbours!r}; public: {', '.join(self.public)}"
        ]
        row = "{:<12} {:>8} {:>8} {:>12} {:>12} {:>12}  {}"
        lines.append(row.format("release", "numbers", "touched", "sensitivity", "epsilon each", "epsilon", "mechanism"))
        for s in self.spendings:
            first = s.mechanisms[0] if s.mechanisms else None
            lines.append(
                row.format(
                    s.release,
                    s.number,
                    s.touched,
                    "-" if first is None else f"{first.sensitivity:g}",
                    f"{float(s.epsilon):.4g}",
                    f"{float(s.total):.4g}",
                    "public"
                    if first is None
                    else {"truncate": "truncated", "clamp": "clamped"}[first.edges] + " Laplace",
                )
            )
        return "\n".join(lines)


class GaussianNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Gaussian naive Bayes with differential privacy (pure epsilon), for scikit-learn.

    Each class has a probability, and each feature of a class a normal density; features count as independent within a
    class. What ``fit`` learns, and all that is later computed from it, is epsilon-differentially private with respect
    to ``neighbours``. A feature with bounds [l, u] is written as :math:`x = (l+u)/2 + z\,(u-l)/2`; then of each class
    are released, in this order:

    ========= ==================================== =========== =============== ===================== ===================
    what      true value                           sensitivity range           Laplace noise         part of epsilon
    ========= ==================================== =========== =============== ===================== ===================
    count     n                                    1           whole, 0 to     clamped               1/9
                                                               2**28
    means     sum of z, for each feature           1           [-ñ, ñ]         clamped               6/9, split evenly
                                                                                                     over the features
    variances sum of z² - 1/2, for each feature,   1/2         [0, ñ]          truncated, or clamped 2/9, split evenly
              plus ñ/2 - ñ (mean of z)²                                        (``edges``)           over the features
    ========= ==================================== =========== =============== ===================== ===================

    ñ is the released count (1 if that is 0). Divided by ñ, the sums give a mean in [l, u] and a variance in
    [0, (u-l)²/4]. Classes share no rows, so that a row more or less costs what one class costs; replacing a row can
    change two classes, or one twice as far, and costs double. Nothing else is read from the data, except which labels
    occur if ``classes`` is not given. Proof: ``docs/proofs/naive-bayes.md``.

    Parameters
    ----------
    epsilon : float in [1e-9, 500]
        What one fit spends. Each further fit on the same people spends it again.
    bounds : (lower, upper)
        Numbers, or one per feature: the range of the features, known without looking at the data. Values outside are
        moved to the nearest end, in ``fit`` and when predicting. There is no default: bounds read off the data are a
        leak that no noise hides.
    classes : sequence of labels, or None
        The labels that can occur: texts, or whole numbers below 2**53. None takes them from ``y``, as scikit-learn
        does: **which labels occur is then published as it is**. Pass them if that is not public.
    neighbours : "add-remove", "substitute" or "features"
        Which data sets must be hard to tell apart: those that differ by one row more or less; those of the same public
        size that differ in one row; or those with the same public labels (so that the class counts are public too) that
        differ in the features of one row.
    edges : "truncate" or "clamp"
        How variances stay in range: noise conditioned on the range, or plain noise moved to its nearest end, which may
        give a variance of 0 (Holohan et al., Figure 2, compare the two).
    denoise : bool
        Read each released mean and variance as the average of the noise law around it, cut to the range, instead of
        taking it literally. For clamped noise that is the average of the true values it may have come from, all held
        equally likely beforehand. It uses public numbers only and costs no privacy. False takes the released values.
    split : (counts, means, variances), three numbers > 0
        The proportion in which the three kinds of release share epsilon. With ``neighbours="features"`` the first is
        not used.
    priors : probabilities of the classes, or None
        Public class probabilities, in the order of ``classes_``. Counts are released all the same: means need them.
    var_smoothing : float in [0, 1]
        No variance is taken to be below this part of the largest possible one, (u-l)²/4.

    Attributes
    ----------
    classes_, class_count_, class_prior_, theta_, var_, n_features_in_, feature_names_in_
        As in scikit-learn's GaussianNB. ``class_count_`` holds the released whole numbers; ``var_`` lies between
        ``var_smoothing`` times (u-l)²/4 and (u-l)²/4.
    bounds_ : (lower, upper)
        The bounds, one entry per feature.
    privacy_ : Account
        Every release with its mechanism, sensitivity and part of epsilon; the parts add up to epsilon exactly.

    Notes
    -----
    There is no ``random_state``: whoever knows the seed can subtract the noise. There is no ``partial_fit``: every call
    would spend epsilon anew, and rows seen twice would pay twice without notice. There is no ``sample_weight``: a row
    that counts more needs more noise.

    No row makes ``fit`` fail or warn. A row is left out if its label is none of the classes or a feature is no number;
    with ``neighbours="features"``, where its label is public, it stays and such a feature counts as the
    middle of its bounds. Cells are read one by one, so that the types of other rows do not matter: True, 1, 1.0 and
    "1.0" are the same number and the same label, as they are once an array has made one type of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB(epsilon=5.0, bounds=([4, 2, 1, 0], [8, 5, 7, 3]), classes=[0, 1, 2]).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    >>> model.privacy_.total
    Fraction(5, 1)
    """

    classes_: npt.NDArray[Any]
    class_count_: npt.NDArray[np.int64]
    class_prior_: FloatArray
    theta_: FloatArray
    var_: FloatArray
    bounds_: tuple[FloatArray, FloatArray]
    privacy_: Account

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        bounds: Any = None,
        classes: Any = None,
        neighbours: str = "add-remove",
        edges: str = "truncate",
        denoise: bool = True,
        split: Sequence[float] = (1, 6, 2),
        priors: Any = None,
        var_smoothing: float = 1e-4,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.neighbours = neighbours
        self.edges = edges
        self.denoise = denoise
        self.split = split
        self.priors = priors
        self.var_smoothing = var_smoothing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.poor_score = True
        return tags

    # -- learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the rows of X with labels y, spending ``epsilon``.

        Parameters
        ----------
        X : array of shape (rows, features), table, or list of rows
            A list of rows has as many features as the bounds, which must be one per feature then; a row of another
            length is left out.
        y : labels, one per row
        """
        total, parts, floor = self._check_parameters()
        ends = _check_ends(self.bounds)
        X, y = self._read(X, y, ends)
        n_rows, d = X.shape
        lower, upper = _check_bounds(ends, d)
        classes, label = _encode(self.classes, y)
        priors = _check_priors(self.priors, classes.size)
        gaps = np.isnan(X)
        if self.neighbours != "features":  # there the label is public, and its row is counted
            label[gaps.any(axis=1)] = -1
        true = _totals(np.where(gaps, lower + (upper - lower) / 2.0, X), label, classes.size, lower, upper)

        touched = 2 if self.neighbours == "substitute" else 1  # classes, of one row
        reach = 2 if self.neighbours == "features" else 1  # new features move a sum twice as far as a row less does
        each = [total * part / (touched * many) for part, many in zip(parts, (1, d, d), strict=True)]
        for_count, for_mean, for_variance = (_below(e) for e in each)

        used: tuple[list[Laplace], list[Laplace], list[Laplace]] = ([], [], [])
        counts = np.zeros(classes.size, dtype=np.int64)
        means = np.zeros((classes.size, d))
        variances = np.zeros((classes.size, d))
        for k, (n, sums, squares) in enumerate(true):
            if self.neighbours == "features":
                counts[k] = n
            else:
                most = max(n_rows, 1) if self.neighbours == "substitute" else _ROWS
                noise = Laplace.calibrate(Integers(0, most), sensitivity=1, epsilon=for_count, edges="clamp")
                counts[k] = noise.release(n, clip=True).value
                used[0].append(noise)
            size = max(int(counts[k]), 1)

            noise = Laplace.calibrate(Interval(-size, size), sensitivity=reach, epsilon=for_mean, edges="clamp")
            means[k] = self._released(noise, sums / _STEPS) / size
            used[1].append(noise)

            noise = Laplace.calibrate(Interval(0, size), sensitivity=reach / 2, epsilon=for_variance, edges=self.edges)
            # Σ(z² - 1/2) + ñ/2 - ñ mean², counted in half steps, which are whole numbers: nothing is rounded
            moved = np.rint(size * means[k] ** 2 * _STEPS).astype(np.int64)
            half_steps = 2 * squares - n * _STEPS + size * _STEPS - 2 * moved
            variances[k] = self._released(noise, half_steps / (2 * _STEPS)) / size
            used[2].append(noise)

        half = (upper - lower) / 2.0
        shown = np.maximum(counts, 1)
        self.classes_ = classes
        self.class_count_ = counts
        self.class_prior_ = shown / shown.sum() if priors is None else priors
        self.theta_ = np.clip(lower + half + half * means, lower, upper)
        self.var_ = np.clip(variances, floor, 1.0) * half**2
        self.bounds_ = (lower, upper)
        self.privacy_ = Account(
            self.neighbours,
            _PUBLIC[self.neighbours] + ("classes: read off y" if self.classes is None else "classes",),
            tuple(
                Spending(what, tuple(mechanisms), many * len(mechanisms), many * touched * bool(mechanisms), spent)
                for what, mechanisms, many, spent in zip(_RELEASES, used, (1, d, d), each, strict=True)
            ),
        )
        return self

    def _check_parameters(self) -> tuple[Fraction, list[Fraction], float]:
        epsilon = check.number(_WHAT, "epsilon", self.epsilon, at_least=1e-9, at_most=500.0)
        if self.bounds is None:
            check.refuse(_WHAT, "bounds", "given", self.bounds, _WHY_BOUNDS)
        check.choice(_WHAT, "neighbours", self.neighbours, NEIGHBOURS)
        check.choice(_WHAT, "edges", self.edges, EDGES)
        if not isinstance(self.denoise, bool | np.bool_):
            check.refuse(_WHAT, "denoise", "True or False", self.denoise, "", ParameterTypeError)
        split = check.vector(_WHAT, "split", self.split, next_step="For instance (1, 6, 2).")
        if split.size != 3 or not (split > 0.0).all():
            check.refuse(_WHAT, "split", "three positive numbers: counts, means, variances", self.split, "")
        floor = check.number(_WHAT, "var_smoothing", self.var_smoothing, at_least=0.0, at_most=1.0)
        weights = [Fraction(repr(w)) for w in split.tolist()]
        if self.neighbours == "features":
            weights[0] = Fraction(0)
        return Fraction(repr(epsilon)), [w / sum(weights) for w in weights], floor

    def _read(self, X: Any, y: Any, ends: Sequence[FloatArray]) -> tuple[FloatArray, rows.Cells]:
        """Features, NaN where there is none, and labels. What is refused here is no row's doing."""
        if y is None:
            check.refuse(_WHAT, "y", "given: it requires y to be passed, but the target y is None", y, "")
        features = rows.features(_WHAT, X, next((end.size for end in ends if end.ndim), None))
        labels, wide = rows.column(_WHAT, y)
        n_rows, d = features.shape
        if len(labels) != n_rows:
            raise ParameterError(f"{_WHAT}: X and y must have as many rows as each other; they do not.")
        if d == 0:
            raise ParameterError(f"{_WHAT}: X must have columns; it has none.")
        if n_rows > _ROWS and self.neighbours != "add-remove":  # there the number of rows is not public
            check.refuse(_WHAT, "X", f"of at most {_ROWS} rows", f"{n_rows}", "")
        if wide:
            text = "A column-vector y was passed when a 1d array was expected. Pass y.ravel()."
            warnings.warn(text, DataConversionWarning, stacklevel=3)
        # names and number of columns; of what is no table only the number is public
        validate_data(self, X if hasattr(X, "columns") else np.empty((0, d)), skip_check_array=True)
        return features, labels

    def _released(self, noise: Laplace, true: FloatArray) -> FloatArray:
        """Release the true values (the only place where sums meet the world), and read them as ``denoise`` says."""
        released: FloatArray = noise.release(true, clip=True).value
        if not self.denoise:
            return released
        around = Laplace(noise.domain, scale=noise.scale, sensitivity=noise.sensitivity).at(released)
        return np.asarray(around.mean(), dtype=np.float64)

    # -- predicting

    def _joint_log_likelihood(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        _refuse_nan(X)
        lower, upper = self.bounds_
        half = (upper - lower) / 2.0
        X = np.clip(X, lower, upper)
        with np.errstate(divide="ignore"):
            priors = np.log(self.class_prior_)  # a given prior may be 0
        columns = []
        for prior, mean, var in zip(priors, self.theta_, self.var_, strict=True):
            # in units of the half-width, and never 0: squares of distances over it stay within float64
            v = np.maximum(var / half**2, _SMALLEST_VARIANCE)
            squares = ((X - mean) / half) ** 2 / v
            columns.append(
                prior - 0.5 * np.sum(np.log(2.0 * np.pi * v) + 2.0 * np.log(half)) - 0.5 * squares.sum(axis=1)
            )
        return np.stack(columns, axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        joint = self._joint_log_likelihood(X)
        found: npt.NDArray[Any] = self.classes_[np.argmax(joint, axis=1)]
        return found

    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithms of :meth:`predict_proba`."""
        joint = self._joint_log_likelihood(X)
        top = joint.max(axis=1, keepdims=True)
        found: FloatArray = joint - top - np.log(np.sum(np.exp(joint - top), axis=1, keepdims=True))
        return found

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class for each row, columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))


def _below(x: Fraction) -> float:
    """The largest float that is not above x."""
    found = float(x)
    return found if Fraction(found) <= x else math.nextafter(found, 0.0)


def _check_ends(bounds: Any) -> list[FloatArray]:
    if isinstance(bounds, str | bytes) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        check.refuse(_WHAT, "bounds", "a pair (lower, upper)", bounds, _WHY_BOUNDS, ParameterTypeError)
    requirement = "a number or numbers, one per feature"
    return [
        check.real_array(_WHAT, f"bounds[{i}]", end, requirement=requirement, next_step=_WHY_BOUNDS)
        for i, end in enumerate(bounds)
    ]


def _check_bounds(ends: Sequence[FloatArray], features: int) -> tuple[FloatArray, FloatArray]:
    for i, end in enumerate(ends):
        if end.shape not in ((), (features,)):
            requirement = f"a number or {features} numbers, one per feature"
            check.refuse(_WHAT, f"bounds[{i}]", requirement, f"shape {end.shape}", _WHY_BOUNDS)
    lower, upper = (np.broadcast_to(end, (features,)).copy() for end in ends)
    with np.errstate(invalid="ignore", over="ignore"):
        fine = (np.abs(lower) <= check.LARGEST) & (np.abs(upper) <= check.LARGEST) & (upper - lower >= check.SMALLEST)
    if not fine.all():
        i = int(np.argmin(fine))
        check.refuse(
            _WHAT,
            f"bounds of feature {i}",
            f"finite, in order and at least {check.SMALLEST!r} apart",
            (float(lower[i]), float(upper[i])),
            _WHY_BOUNDS,
        )
    return lower, upper


def _encode(given: Any, y: rows.Cells) -> tuple[rows.Cells, npt.NDArray[np.intp]]:
    """The classes in order, and the number of each row's class, -1 where it has none."""
    keys = rows.labels(y)
    if given is None:
        labels = rows.found(y, keys)
        if not labels:
            raise ParameterError(f"{_WHAT}: y must hold labels, texts or whole numbers; it does not. {_WHY_LABELS}")
    else:
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or len(given) == 0:
            check.refuse(_WHAT, "classes", "a sequence of labels", given, "", ParameterTypeError)
        stated = rows.cells(given)
        known = [key for key in rows.labels(stated) if key is not None] if stated.ndim == 1 else []
        if len(set(known)) != len(given):
            check.refuse(_WHAT, "classes", "a sequence of labels, all different", given, _WHY_LABELS)
        labels = dict(zip(known, stated, strict=True))
    classes, place = rows.ordered(labels)
    return classes, np.array([place.get(key, -1) for key in keys], dtype=np.intp)


def _check_priors(priors: Any, count: int) -> FloatArray | None:
    if priors is None:
        return None
    values = check.vector(_WHAT, "priors", priors, next_step="Pass one probability per class, or None.")
    if values.size != count or not ((values >= 0.0).all() and abs(values.sum() - 1.0) <= 1e-6):
        check.refuse(_WHAT, "priors", f"{count} probabilities that add up to 1", priors, "One per class, or None.")
    return values


def _refuse_nan(X: FloatArray) -> None:
    if np.isnan(X).any():
        raise ParameterError(f"{_WHAT}: X must not hold NaN; it does. Fill or drop missing values first.")


def _totals(
    X: FloatArray, label: npt.NDArray[Any], classes: int, lower: FloatArray, upper: FloatArray
) -> list[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Of each class the number of rows and the sums of z and of z², in whole steps. Secret."""
    half = (upper - lower) / 2.0
    counts = [0] * classes
    sums, squares = np.zeros((2, classes, X.shape[1]), dtype=np.int64)
    for start in range(0, len(X), _BLOCK):  # in parts: the steps need room
        part, mine = X[start : start + _BLOCK], label[start : start + _BLOCK]
        z = np.clip((np.clip(part, lower, upper) - (lower + half)) / half, -1.0, 1.0)
        steps = np.rint(z * _STEPS).astype(np.int64)
        squared = (steps * steps + _STEPS // 2) // _STEPS
        for k in range(classes):
            chosen = mine == k
            counts[k] += int(chosen.sum())
            sums[k] += steps[chosen].sum(axis=0)
            squares[k] += squared[chosen].sum(axis=0)
    return [(counts[k], sums[k], squares[k]) for k in range(classes)]

"""What every mechanism promises, whatever its noise, its domain and its edges.

A subclass names the mechanism by class attributes and inherits the tests; ``test_mechanisms.py`` has one subclass for
each combination. Comparisons with the reference are exact: no tolerance on a guarantee.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from tests import reference as ref

PROBABILITIES = np.array([0.0, 1e-12, 0.001, 0.02, 0.25, 0.5, 0.61, 0.9, 0.999, 1 - 1e-9, 1.0])


class MechanismContract:
    """The tests; a subclass gives the attributes."""

    kind: ClassVar[type[ib.Laplace] | type[ib.Gaussian]]
    domain: ClassVar[Any]
    sensitivity: ClassVar[Any]
    edges: ClassVar[str]
    values: ClassVar[list[Any]]  # true values inside the domain, its finite ends among them
    target: ClassVar[dict[str, float] | None]  # None where no target can be met: the scale is then given
    scale: ClassVar[float] = 1.25
    made: ClassVar[Any]

    # -- set-up

    @pytest.fixture(autouse=True)
    def _precision(self) -> Iterator[None]:
        with mp.workdps(60):
            yield

    @pytest.fixture
    def mechanism(self) -> Any:
        """One mechanism for all tests of a class; it is frozen."""
        cls = type(self)
        if "made" not in cls.__dict__:
            cls.made = cls.make()
        return cls.made

    @classmethod
    def make(cls) -> Any:
        if cls.target is None:
            return cls.kind(cls.domain, scale=cls.scale, sensitivity=cls.sensitivity, edges=cls.edges)
        return cls.kind.calibrate(cls.domain, sensitivity=cls.sensitivity, edges=cls.edges, **cls.target)

    @property
    def family(self) -> str:
        return self.kind.__name__.lower()

    @property
    def is_box(self) -> bool:
        return isinstance(self.domain, ib.Box)

    def marginals(self, law: Any) -> list[tuple[Any, Any]]:
        """The one-dimensional laws with their domains."""
        if not self.is_box:
            return [(self.domain, law)]
        return [(self.domain.coordinate(i), m) for i, m in enumerate(law.marginals)]

    # -- answers

    def test_answers_are_in_range(self, mechanism: Any) -> None:
        for value in self.values:
            drawn = mechanism.release(np.broadcast_to(value, (300, *np.shape(value)))).value
            assert np.isfinite(drawn).all()
            if self.edges != "ignore":
                assert self.domain.contains(drawn).all()
            studied = mechanism.simulate(value, size=200, seed=5)
            assert studied.shape == (200, *np.shape(value))
            assert self.edges == "ignore" or self.domain.contains(studied).all()

    def test_extreme_quantiles_are_in_range(self, mechanism: Any) -> None:
        p = np.array([2.0**-54, 1e-300, 0.5, 1 - 2.0**-53])
        for value in self.values:
            for domain, law in self.marginals(mechanism.at(value)):
                x = law.ppf(p)
                assert np.isfinite(x).all()
                assert (np.diff(x[[1, 0, 2, 3]]) >= 0).all()
                assert self.edges == "ignore" or domain.contains(x).all()

    def test_release_keeps_shapes_and_kinds(self, mechanism: Any) -> None:
        value = self.values[0]
        whole = self.domain.lattice
        one = mechanism.release(value)
        assert isinstance(one, ib.Release)
        assert one.mechanism is mechanism
        if self.is_box:
            assert one.value.shape == (self.domain.dimension,)
            assert one.value.dtype == (np.int64 if whole else np.float64)
        else:
            assert type(one.value) is (int if whole else float)
            assert float(one) == one.value
        for shape in ((3,), (2, 2), (0,), (1, 0, 2)):
            many = mechanism.release(np.broadcast_to(value, (*shape, *np.shape(value))))
            assert many.value.shape == (*shape, *np.shape(value))
            assert many.value.dtype == (np.int64 if whole else np.float64)
        assert mechanism.release([value, value]).value.shape == (2, *np.shape(value))

    def test_draws_are_independent_and_fresh(self, mechanism: Any) -> None:

        first = mechanism.release([self.values[0]] * 200).value
        assert not np.array_equal(first, mechanism.release([self.values[0]] * 200).value)
        assert len(np.unique(first)) > 1

    def test_simulation_follows_its_seed(self, mechanism: Any) -> None:
        a, b, c = (mechanism.simulate(self.values[-1], size=40, seed=seed) for seed in (1, 1, 2))
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)

    # -- a value like any other

    def test_is_frozen(self, mechanism: Any) -> None:
        twin = copy.copy(mechanism)
        with pytest.raises(AttributeError):
            del twin.scale
        for name in ("domain", "scale", "sensitivity", "edges", "_curve", "something_new"):
            with pytest.raises(AttributeError):
                setattr(twin, name, 1.0)
        assert twin == mechanism

    def test_pickles_and_copies_are_equal(self, mechanism: Any) -> None:
        twins = [pickle.loads(pickle.dumps(mechanism, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
        twins += [copy.copy(mechanism), copy.deepcopy(mechanism)]
        for twin in twins:
            assert twin == mechanism
            assert hash(twin) == hash(mechanism)
            assert type(twin) is type(mechanism)
            assert (twin.scale, twin.sensitivity, twin.edges) == (
                mechanism.scale,
                mechanism.sensitivity,
                mechanism.edges,
            )
            if self.is_box:
                with pytest.raises(ValueError, match="read-only"):
                    twin.domain.lower[0] = -99.0
        assert len({mechanism, *twins}) == 1

    def test_equality_sees_every_part(self, mechanism: Any) -> None:
        same = {"scale": mechanism.scale, "sensitivity": mechanism.sensitivity, "edges": mechanism.edges}
        assert mechanism == self.kind(self.domain, **same)
        assert mechanism != self.kind(self.domain, **{**same, "scale": mechanism.scale * 2.0})
        other = "clamp" if self.edges == "truncate" else "truncate"
        assert mechanism != self.kind(self.domain, **{**same, "edges": other})
        family = ib.Gaussian if self.kind is ib.Laplace else ib.Laplace
        assert mechanism != family(self.domain, **same)
        assert mechanism != "a mechanism"

    def test_repr_evaluates_to_an_equal_one(self, mechanism: Any) -> None:
        text = repr(mechanism)
        assert text.startswith(f"{self.kind.__name__}({self.domain!r}, scale=")
        assert ("edges" in text) == (self.edges != "truncate")
        assert eval(text, {**vars(ib), "inf": math.inf}) == mechanism

    # -- NaN

    @pytest.mark.parametrize("name", ["scale", "sensitivity"])
    def test_nan_parameters_are_refused(self, mechanism: Any, name: str) -> None:
        given: dict[str, Any] = {"scale": 1.0, "sensitivity": mechanism.sensitivity, "edges": self.edges}
        given[name] = math.nan
        with pytest.raises(ib.InboundsError):
            self.kind(self.domain, **given)

    @pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "mu"])
    def test_nan_targets_are_refused(self, name: str) -> None:
        given = {name: math.nan} if name != "delta" else {"epsilon": 1.0, "delta": math.nan}
        with pytest.raises(ib.ParameterError):
            self.kind.calibrate(self.domain, sensitivity=self.sensitivity, edges=self.edges, **given)
        for pair in ((math.nan, 1.0), (2.0, math.nan)):
            with pytest.raises(ib.ParameterError):
                self.kind.calibrate(self.domain, sensitivity=self.sensitivity, edges=self.edges, rdp=pair)

    def test_nan_questions_are_refused(self, mechanism: Any) -> None:
        for ask in (mechanism.epsilon, mechanism.delta, mechanism.rdp):
            with pytest.raises(ib.ParameterError):
                ask(math.nan)

    def test_nan_values_are_refused_and_not_shown(self, mechanism: Any) -> None:
        bad = np.array(np.broadcast_to(self.values[0], (2, *np.shape(self.values[0]))), dtype=float)
        bad[(0,) * bad.ndim] = np.nan
        for use in (mechanism.release, mechanism.at, mechanism.simulate):
            for value in (bad[0], bad):
                with pytest.raises(ib.OutsideDomain) as caught:
                    use(value)
                assert "nan" not in str(caught.value).lower()
                assert caught.value.__cause__ is None
                assert caught.value.__context__ is None
        if self.domain.bounded and not isinstance(self.domain, ib.Spans):
            with pytest.raises(ib.OutsideDomain):
                mechanism.release(bad, clip=True)

    # -- the guarantee

    def test_a_calibrated_mechanism_meets_its_target(self, mechanism: Any) -> None:
        if self.target is None:
            return
        epsilon, delta = self.target["epsilon"], self.target.get("delta", 0.0)
        assert mechanism.delta(epsilon) <= delta
        assert mechanism.epsilon(delta) <= epsilon * (1.0 + 1e-6)
        if delta == 0.0:
            assert mechanism.epsilon() <= epsilon

    def test_the_reference_agrees_with_the_guarantee(self, mechanism: Any) -> None:
        claimed, true = self.reference_claim(mechanism)
        if true is not None:
            assert true <= mpf(claimed)

    def reference_claim(self, m: Any) -> tuple[float, Any]:
        """(what the mechanism claims, the 50-digit value), or (0, None) where the reference has no formula."""
        lattice, sensitivity = self.domain.lattice, m.sensitivity
        delta = (self.target or {}).get("delta", 0.0)
        epsilon = (self.target or {"epsilon": float(m.epsilon())})["epsilon"]
        if self.is_box:
            plain = self.edges == "ignore" or (self.edges == "clamp" and self.kind is ib.Laplace)
            if plain and self.kind is ib.Laplace and isinstance(sensitivity, ib.L1):
                return epsilon, mpf(sensitivity.value) / mpf(m.scale)
            if self.edges == "truncate" and not lattice and self.domain.bounded and isinstance(sensitivity, ib.L2):
                ends = self.domain.lower.tolist(), self.domain.upper.tolist()
                return epsilon, ref.worst_change_l2(self.family, m.scale, *ends, sensitivity.value, dps=30).loss
            return 0.0, None
        pieces = self.domain.pieces
        if self.edges == "ignore" and not lattice:
            if self.kind is ib.Laplace:
                return epsilon, mpf(sensitivity) / mpf(m.scale)
            return delta, ref.plain_hockey_stick(self.family, m.scale, sensitivity, epsilon)
        if self.edges == "clamp" and not lattice and self.domain.bounded and len(pieces) == 1:
            low, high = pieces[0]
            return epsilon, max(
                ref.clamped_loss(self.family, m.scale, low, high, a, b)
                for a, b in ((low, low + sensitivity), (low + sensitivity, low), (high, high - sensitivity))
            )
        if self.edges != "truncate":
            return 0.0, None
        if delta:
            points = {"points": 10, "digits": 3, "dps": 30}
            return delta, ref.profile(self.family, m.scale, pieces, sensitivity, epsilon, lattice=lattice, **points)
        if lattice:
            if not self.domain.bounded:
                near = [(q, q + int(sensitivity)) for q in range(4)]
                return epsilon, max(ref.pair_loss(self.family, m.scale, pieces, *pair, True) for pair in near)
            ends = int(self.domain.lower), int(self.domain.upper)
            return epsilon, ref.pure_loss_integers(self.family, m.scale, *ends, sensitivity)
        return epsilon, ref.pure_loss_spans(self.family, m.scale, pieces, sensitivity)

    def test_bounds_say_what_they_are(self, mechanism: Any) -> None:
        for bound in (mechanism.epsilon(), mechanism.delta(0.5), mechanism.rdp(2.0)):
            assert isinstance(bound, ib.Bound)
            assert bound >= 0.0
            assert isinstance(bound.exact, bool)
            assert bound.reason
        assert mechanism.delta(0.0) >= mechanism.delta(0.5) >= mechanism.delta(5.0)
        assert mechanism.rdp(1.5) <= mechanism.rdp(4.0) * (1.0 + 1e-6)
        assert mechanism.rdp(4.0) <= mechanism.epsilon()

    # -- the distribution

    def test_quantiles_invert_the_cdf(self, mechanism: Any) -> None:
        for value in self.values:
            for domain, law in self.marginals(mechanism.at(value)):
                x = law.ppf(PROBABILITIES)
                assert (np.diff(x) >= 0).all()
                reached = law.cdf(x)
                assert (reached >= PROBABILITIES * (1.0 - 1e-9) - 1e-15).all()
                before = law.cdf(x - 1.0 if domain.lattice else np.nextafter(x, -np.inf))
                assert (before <= PROBABILITIES + 1e-9).all()
                if self.edges != "clamp" and not domain.lattice:
                    assert reached == pytest.approx(PROBABILITIES, rel=1e-9, abs=1e-14)
                assert law.cdf(x) + law.sf(x) == pytest.approx(np.ones(x.size), abs=1e-12)
                assert np.isnan(law.ppf([-0.1, 1.1, math.nan])).all()

    def test_the_law_adds_up_to_one(self, mechanism: Any) -> None:
        for value in self.values[:2]:
            q = np.atleast_1d(value)
            for i, (domain, law) in enumerate(self.marginals(mechanism.at(value))):
                far = (45.0 if self.kind is ib.Laplace else 10.0) * mechanism.scale
                pieces = [(-math.inf, math.inf)] if self.edges == "ignore" else domain.pieces
                pieces = [(max(a, q[i] - far), min(b, q[i] + far)) for a, b in pieces]
                if domain.lattice:
                    points = np.concatenate([np.arange(math.ceil(a), math.floor(b) + 1) for a, b in pieces])
                    total = mp.fsum(law.pmf(points).tolist())
                else:
                    total = mp.fsum(float(mass) for _, mass in law.atoms)
                    with mp.workdps(15):
                        for a, b in pieces:
                            if a < b:
                                marks = sorted({a, b, *np.clip(q[i] + mechanism.scale * np.arange(-8, 9, 4), a, b)})
                                total += mp.quad(lambda x, law=law: mpf(float(law.pdf(float(x)))), marks, maxdegree=5)
                assert abs(total - 1) < 1e-9

    def test_the_log_density_matches_the_reference(self, mechanism: Any) -> None:
        if self.edges != "truncate":
            return
        for value in self.values[:2]:
            q = np.atleast_1d(value)
            for i, (domain, law) in enumerate(self.marginals(mechanism.at(value))):
                for p in (0.001, 0.4, 0.97):
                    x = float(law.ppf(p))
                    got = float((law.logpmf if domain.lattice else law.logpdf)(x))
                    true = ref.log_density(
                        self.family, mechanism.scale, domain.pieces, float(q[i]), x, lattice=domain.lattice
                    )
                    assert abs(mpf(got) - true) <= 1e-11 * max(1, abs(true))

    def test_at_broadcasts(self, mechanism: Any) -> None:
        values = np.array([self.values[0], self.values[-1]], dtype=float)
        x = np.array(self.values, dtype=float)
        name = "logpmf" if self.domain.lattice else "logpdf"
        if self.is_box:
            together = getattr(mechanism.at(values[:, None, :]), name)(x)
        else:
            together = getattr(mechanism.at(values[:, None]), name)(x)
        assert together.shape == (2, len(x))
        for row, value in zip(together, values, strict=True):
            single = [float(getattr(mechanism.at(value), name)(point)) for point in x]
            assert row == pytest.approx(single, rel=1e-12)
        law = mechanism.at(values)
        alone = [mechanism.at(v) for v in values]
        for quantity in ("mean", "var", "std"):
            assert getattr(law, quantity)() == pytest.approx(np.array([getattr(a, quantity)() for a in alone]))
        assert (law.var() >= 0).all()
        assert law.error().rmse == pytest.approx(np.array([a.error().rmse for a in alone]))

    def test_the_wrong_kind_of_density_is_refused(self, mechanism: Any) -> None:
        law = self.marginals(mechanism.at(self.values[0]))[0][1]
        with pytest.raises(ib.ParameterError):
            (law.logpdf if self.domain.lattice else law.logpmf)(0.0)

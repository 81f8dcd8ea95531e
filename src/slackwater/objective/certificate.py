"""Certificates: a primal value, a proven lower bound and the gap between them, computed by code that no solver shares.

Weak duality: for every alpha in the box 0 <= alpha_i <= cap C_i (and sum alpha_i y_i = 0 where the bias is free),

    D(alpha) = lambda (target sum alpha - ||w(alpha)||^2 / 2 - sum_i width alpha_i^2 / (2 C_i)) <= P* <= P(w)

for every w, with w(alpha) = sum_i alpha_i y_i x_i. Solvers hand over a dual point in the form they have; it is put into
the box and w(alpha) is summed again from the rows, so no error of a solver can make a bound that does not hold. Only
the cuts of a bundle (rule C3) are taken as they are. All sums are float64.

Where the penalty has |w| in it, ||w(alpha)||^2 / 2 gives way to its conjugate and every point to the best of its
multiples (``best_scale``); the rules then carry the suffix +l1. Where the problem is not convex nothing is proven of
its optimum: the bound is that of a convex problem above it that touches it at the model; the rule is local (``ramp``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.best_scale import Ray, best_scale
from slackwater.objective.bias import optimal_bias
from slackwater.objective.losses import slope, value
from slackwater.objective.problem import LinearProblem

_ROUNDING = 1e-13

# ---------------------------------------------------------------------------------------------- the certificate


@dataclass(frozen=True)
class Certificate:
    """A primal value and a proven lower bound of the optimum, with the rule that proved it.

    ``least`` is the smallest size that the optimum is taken to have where it may be 0 or close to it.
    """

    primal: float
    dual: float
    rule: str
    least: float = 0.0

    def __post_init__(self) -> None:
        """At the optimum rounding may put the bound above the value: both are the optimum then."""
        if self.primal < self.dual <= self.primal + _ROUNDING * max(abs(self.primal), self.least):
            object.__setattr__(self, "dual", self.primal)

    @property
    def local(self) -> bool:
        """Whether the bound is that of a convex problem which touches the true one at the model (``ramp``)."""
        return self.rule.endswith("local")

    @property
    def gap(self) -> float:
        """primal - dual: the primal value exceeds the optimum by no more."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap by the least size that the optimum can have: gap / dual; gap / -primal where that is negative.

        It bounds the excess relative to the optimum, and is infinite while not even the optimum's sign is known.
        """
        if self.gap <= 0.0:  # both values are the optimum, up to rounding
            return 0.0
        size = max(self.dual, -self.primal, self.least)
        return self.gap / size if size > 0.0 else math.inf

    def better(self, other: Certificate) -> Certificate:
        """The smaller primal value with the larger bound: they need not come from the same iterate."""
        best = self if self.dual >= other.dual else other
        return Certificate(min(self.primal, other.primal), best.dual, best.rule, best.least)

    def __str__(self) -> str:
        relative = self.relative_gap
        digits = 4 if not 0.0 < relative < 1e-3 else min(12, 1 + math.ceil(-math.log10(relative)))
        gap = f"{100.0 * relative:.2g}%" if math.isfinite(relative) else f"{self.gap:.3g}, relatively unbounded"
        kind = "local" if self.local else "proven"
        bounds = f"primal {_digits(self.primal, digits)}, {kind} lower bound {_digits(self.dual, digits)}"
        return f"{bounds}, gap {gap} (rule {self.rule})"


def _digits(number: float, count: int) -> str:
    return f"{number:#.{count}g}".rstrip(".") if number else "0"


class Evaluation(NamedTuple):
    """A certificate, the weights it holds for (a free bias put at its optimum) and the dual point of the bound."""

    certificate: Certificate
    weights: np.ndarray
    alpha: np.ndarray | None


# -------------------------------------------------------------------------------------------------- dual points


@dataclass(frozen=True, eq=False)
class BoxPoint:
    """Rule C1: alpha itself."""

    alpha: np.ndarray


@dataclass(frozen=True, eq=False)
class CountPoint:
    """Rule C2: what each example's slopes, 0 or 1 for the hinge, came to over ``epochs`` presentations of each.

    alpha_i = C_i clip(counts_i / epochs, 0, cap). The clipping is idle after whole epochs; it makes the bound valid for
    examples drawn with replacement too, where ``epochs`` is the number of draws divided by n.
    """

    counts: np.ndarray
    epochs: float

    @classmethod
    def between(cls, earlier: CountPoint, later: CountPoint) -> CountPoint:
        """The epochs after ``earlier`` alone: the first ones, far from the optimum, are forgotten."""
        return cls(later.counts - earlier.counts, later.epochs - earlier.epochs)


@dataclass(frozen=True, eq=False)
class CutPoint:
    """Rule C3: a mixture of cuts <g_j, w> + b_j of the mean loss, one g_j per line; beta >= 0, sum beta <= 1."""

    gradients: np.ndarray
    offsets: np.ndarray
    beta: np.ndarray


@dataclass(frozen=True, eq=False)
class DirectionPoint:
    """Rule C5: alpha = s p with the best feasible s, for any p >= 0."""

    p: np.ndarray


@dataclass(frozen=True, eq=False)
class GradientPoint:
    """Rule C6: alpha_i = C_i slope(m_i) at these weights; without a free bias P - D = ||gradient||^2 / (2 lambda).

    For the hinge this bound stalls short of the optimum: examples at the margin 1 need an alpha inside the box, and the
    slope is only ever 0 or 1.
    """

    weights: np.ndarray


DualPoint = BoxPoint | CountPoint | CutPoint | DirectionPoint | GradientPoint

_RULES = {BoxPoint: "C1", CountPoint: "C2", CutPoint: "C3", DirectionPoint: "C5", GradientPoint: "C6"}


# ------------------------------------------------------------------------------------------------- the two halves


@singledispatch
def certify(problem: Any, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """Certify ``weights`` by a dual point; without one by the gradient at the weights (rule C6)."""
    raise TypeError(f"no certificate is known for a {type(problem).__name__}")


@certify.register
def _certify_linear(problem: LinearProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    primal = _primal(problem, weights)
    known_scores = primal.scores if point is None else None
    point = point or GradientPoint(primal.weights)
    dual = dual_half(problem, point, known_scores)
    return Evaluation(Certificate(primal.value, dual.value, rule_of(problem, point)), primal.weights, dual.alpha)


def rule_of(problem: Any, point: DualPoint) -> str:
    """The name of the rule that a point's bound follows from."""
    balanced = problem.bias == "free" and not isinstance(point, CutPoint)
    return _RULES[type(point)] + ("+l1" if problem.penalty.absolute else "") + ("+C7" if balanced else "")


def primal_value(problem: LinearProblem, weights: np.ndarray) -> float:
    """P(w), infinite where it is not a number; a free bias is put at its optimum first."""
    return _primal(problem, weights).value


def lower_bound(problem: LinearProblem, point: DualPoint) -> float:
    """D <= P* at a dual point; minus infinity for one that is not finite."""
    return dual_half(problem, point, None).value


def epoch_bound(mass: float, squared_norm: float, epochs: float, n: int, lam: float) -> float:
    """Rule C2 from two running sums, mass M and ||S||^2: M / (n T) - ||S||^2 / (2 lambda n^2 T^2) after T epochs.

    A presentation of example i with slope a adds u_i a y_i x_i to S, where u_i is its share (1 without weights), and
    u_i (target a - width a^2 / 2) to M, which is u_i a for the hinge. Valid without clipping after whole epochs only.
    """
    presented = n * epochs
    return mass / presented - squared_norm / (2.0 * lam * presented * presented)


# ------------------------------------------------------------------------------------------------------- primal


class _Primal(NamedTuple):
    value: float
    weights: np.ndarray
    scores: np.ndarray


def _primal(problem: LinearProblem, weights: np.ndarray) -> _Primal:
    weights = _vector("weights", weights, problem.n_weights).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        if problem.bias == "free":
            weights[-1] = 0.0
        scores = problem.scores(weights)
        if not (np.isfinite(weights).all() and np.isfinite(scores).all()):
            return _Primal(math.inf, weights, scores)
        if problem.bias == "free":
            bias = optimal_bias(problem.loss, scores, problem.labels, problem.costs).chosen
            weights[-1] = bias / problem.rows.bias
            scores += bias
        losses = total_loss(problem.loss, scores, problem.labels, problem.costs)
        total = float(problem.regularisation * (problem.regulariser(weights) + losses))
        return _Primal(total, weights, scores)


@compiled
def total_loss(loss, scores, labels, costs):
    """sum_i C_i l(y_i f_i)."""
    total = 0.0
    for i in range(np.uint64(scores.size)):
        total += costs[i] * value(loss, labels[i] * scores[i])
    return total


@compiled
def _slopes(loss, scores, labels, out):
    """out_i = -l'(y_i f_i)."""
    for i in range(np.uint64(scores.size)):
        out[i] = slope(loss, labels[i] * scores[i])


# --------------------------------------------------------------------------------------------------------- dual


class Dual(NamedTuple):
    """A bound and the alpha it holds for."""

    value: float
    alpha: np.ndarray | None


_TINY = float(np.finfo(float).tiny)
_NOTHING_PROVEN = Dual(-math.inf, None)


def dual_half(problem: Any, point: DualPoint, scores: np.ndarray | None) -> Dual:
    """The bound of a dual point; ``scores`` are those of a gradient point where they are known."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if isinstance(point, CutPoint):
            dual = Dual(_cut_bound(problem, point), None)
        elif isinstance(point, DirectionPoint):
            dual = _rescaled(problem, _vector("p", point.p, problem.n_rows))
        else:
            alpha = _box_point(problem, point, scores)
            alpha = _balanced(problem, np.clip(alpha, 0.0, problem.loss.cap * problem.costs))
            if problem.penalty.absolute:
                return _scaled(problem, alpha)
            dual = Dual(_formula(problem, alpha.sum(), _quadratic(problem, alpha)), alpha)
    return dual if math.isfinite(dual.value) else _NOTHING_PROVEN


def _box_point(problem: LinearProblem, point, scores: np.ndarray | None) -> np.ndarray:
    """The alpha that a point stands for; it may still lie outside the box."""
    n = problem.n_rows
    if isinstance(point, BoxPoint):
        return _vector("alpha", point.alpha, n)
    if isinstance(point, CountPoint):
        counts = _vector("counts", point.counts, n)
        return problem.costs * (counts / point.epochs) if point.epochs > 0 else np.zeros(n)
    if scores is None:
        scores = problem.scores(_vector("weights", point.weights, problem.n_weights))
    alpha = np.empty(n)
    _slopes(problem.loss, scores, problem.labels, alpha)
    return problem.costs * alpha


def balanced(problem: Any, signed: np.ndarray) -> np.ndarray:
    """Rule C7: the heavier sign of y_i alpha_i scaled down until their sum is 0, where a free bias demands it."""
    if problem.bias != "free":
        return signed
    positive = signed > 0.0
    plus, minus = signed[positive].sum(), -signed[~positive].sum()
    if plus == minus:
        return signed
    return signed * np.where(positive, min(1.0, minus / max(plus, _TINY)), min(1.0, plus / max(minus, _TINY)))


def _balanced(problem: LinearProblem, alpha: np.ndarray) -> np.ndarray:
    return problem.labels * balanced(problem, problem.labels * alpha)


def _rescaled(problem: LinearProblem, p: np.ndarray) -> Dual:
    """Rule C5: the maximum of D(s p) over the s that keep s p in the box."""
    p = np.maximum(p, 0.0)
    p = _balanced(problem, p / max(p.max(), _TINY))
    if problem.penalty.absolute:
        return _scaled(problem, p)
    total, quadratic = p.sum(), _quadratic(problem, p)
    if not total > 0.0:
        return Dual(0.0, p) if total == 0.0 else _NOTHING_PROVEN
    s = problem.loss.cap * (problem.costs[p > 0.0] / p[p > 0.0]).min()
    if quadratic > 0.0:
        s = min(s, problem.loss.target * total / quadratic)
    return Dual(_formula(problem, s * total, s * s * quadratic), s * p)


def _scaled(problem: LinearProblem, p: np.ndarray) -> Dual:
    """The maximum of D(s p) where the penalty has a corner at w = 0."""
    loss, costs = problem.loss, problem.costs
    most = loss.cap * float((costs[p > 0.0] / p[p > 0.0]).min(initial=math.inf))
    bend = loss.width * float(p @ (p / costs)) if loss.width else 0.0
    ray = Ray(loss.target * float(p.sum()), bend, _sizes(problem, _weights_of(problem, p)), most)
    s, bound = best_scale(problem.penalty, ray)
    if not math.isfinite(bound):
        return _NOTHING_PROVEN
    return Dual(problem.regularisation * bound, np.minimum(s * p, loss.cap * costs))


def _sizes(problem: LinearProblem, v: np.ndarray) -> np.ndarray:
    """|v_j| of the weights that the penalty sees."""
    return np.abs(v[:-1] if problem.bias == "free" else v)


def _formula(problem: LinearProblem, total: float, quadratic: float) -> float:
    """D from sum alpha and alpha'(Q + diag(width / C_i)) alpha."""
    return float(problem.regularisation * (problem.loss.target * total - 0.5 * quadratic))


def _quadratic(problem: LinearProblem, alpha: np.ndarray) -> float:
    """||w(alpha)||^2 + sum_i width alpha_i^2 / C_i, with w(alpha) summed from the rows."""
    rounding_off = problem.loss.width * float(alpha @ (alpha / problem.costs)) if problem.loss.width else 0.0
    return problem.squared_norm_of_sum(alpha * problem.labels) + rounding_off


def _weights_of(problem: LinearProblem, alpha: np.ndarray) -> np.ndarray:
    """w(alpha) = sum_i alpha_i y_i x_i."""
    return problem.sum_of_rows(alpha * problem.labels)


def _cut_bound(problem: LinearProblem, point: CutPoint) -> float:
    """D(beta) = b'beta - ||sum beta_j g_j||^2 / (2 lambda)."""
    gradients, offsets = np.asarray(point.gradients, dtype=np.float64), np.asarray(point.offsets, dtype=np.float64)
    if gradients.shape != (offsets.size, problem.n_weights):
        raise ValueError(f"gradients must be {offsets.size} lines of {problem.n_weights} numbers, one line per offset")
    beta = np.maximum(_vector("beta", point.beta, offsets.size), 0.0)
    beta = beta / max(1.0, beta.sum())
    mixed = beta @ gradients
    if problem.bias == "free" and abs(mixed[-1]) > 1e-14 * (beta @ np.abs(gradients[:, -1])):
        return -math.inf  # a free bias would make the mixture of cuts as small as one likes
    if problem.penalty.absolute:
        lam = problem.regularisation
        ray = Ray(float(offsets @ beta) / lam, 0.0, _sizes(problem, mixed) / lam, 1.0 / max(beta.sum(), _TINY))
        return lam * best_scale(problem.penalty, ray)[1]
    return float(offsets @ beta - problem.squared_norm(mixed) / (2.0 * problem.regularisation))


def _vector(name: str, numbers: np.ndarray, size: int) -> np.ndarray:
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    if numbers.shape != (size,):
        raise ValueError(f"{name} must be {size} numbers, got an array of shape {numbers.shape}")
    return numbers

"""Golden vectors: small cases with exact answers, worked out by hand, that the tests hold the library to."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np


class Water(NamedTuple):
    """The level of a volume of water poured over bumps, and the weights of the wet ones."""

    responses: tuple[float, ...]
    volume: float
    level: float
    p: tuple[float, ...]


class Basins(NamedTuple):
    """Two basins, one per class, whose common level leaves the bias an interval."""

    positive: tuple[float, ...]
    negative: tuple[float, ...]
    volume: float
    level: float
    pairs: int
    p_positive: tuple[float, ...]
    p_negative: tuple[float, ...]
    bias: tuple[float, float]


class BestBias(NamedTuple):
    """All best biases for fixed scores, hinge, unit costs."""

    scores: tuple[float, ...]
    labels: tuple[int, ...]
    breakpoints: tuple[float, ...]
    low: float
    high: float
    total_hinge: float


class OneExample(NamedTuple):
    """SGD-s on the single example z = 1: a (which is M too), w and the bound D after T = 1, 2, .. epochs."""

    lam: Fraction
    optimum: Fraction
    w_star: int
    a: tuple[int, ...]
    w: tuple[Fraction, ...]
    dual: tuple[Fraction, ...]


class LineSearch(NamedTuple):
    """OCAS: the best point between w_b and w_t, as a fraction k of the way; A0 and B0 are its quadratic's."""

    lam: float
    z: tuple[float, ...]
    w_b: float
    w_t: float
    margins_t: tuple[float, ...]
    A0: float
    B0: float
    k: float
    w: float


class SmallSVM(NamedTuple):
    """A linear machine with the hinge and no bias, and everything about its optimum."""

    lam: float
    C: float
    z: tuple[tuple[float, float], ...]
    w: tuple[float, float]
    norm: float
    alpha: tuple[float, ...]
    margins: tuple[float, ...]
    mean_hinge: float
    optimum: float
    nu: float
    gamma: float


WATER = Water((-0.5, 0.1, 0.3, 0.9), 0.7, 0.15, (0.5, 0.5, 0.0, 0.0))

TWO_BASINS = Basins((-0.5, 0.1, 0.9), (0.2, 0.4), 0.7, 0.2, 1, (0.5, 0.0, 0.0), (0.5, 0.0), (0.1, 0.2))

#: With lambda = 1 and l = 5 presentations: (X, q) -> margin errors among them.
MULTIPLICITY = {
    (-2.0, 3.0): 3,
    (0.0, 3.0): 2,
    (4.0, 3.0): 1,
    (4.5, 3.0): 0,
    (-8.0, 3.0): 5,
    (1.5, 0.5): 3,
    (-1.0, 1.0): 5,
    (3.0, 1.0): 2,
}

SGD_S = OneExample(
    lam=Fraction(1, 2),
    optimum=Fraction(1, 4),
    w_star=1,
    a=(1, 1, 2, 2, 3, 3, 4, 4),
    w=tuple(Fraction(*r) for r in ((2, 1), (1, 1), (4, 3), (1, 1), (6, 5), (1, 1), (8, 7), (1, 1))),
    dual=tuple(Fraction(*r) for r in ((0, 1), (1, 4), (2, 9), (1, 4), (6, 25), (1, 4), (12, 49), (1, 4))),
)

BEST_BIAS = BestBias((0.2, -0.3, 0.5), (1, -1, -1), (0.8, -0.7, -1.5), -1.5, -0.7, 2.3)

OCAS_LINE_SEARCH = LineSearch(0.5, (1.0, -0.5), 0.0, 2.0, (2.0, -1.0), 2.0, 0.0, 0.25, 0.5)

#: The Forgetron's shrinking factor for sigma = 0.5, mu = 1 and slack 0.1.
FORGETRON_PHI = (1.0 - np.sqrt(0.7)) / 1.5

SVM = SmallSVM(
    lam=0.1,
    C=2.5,
    z=((1.0, 0.0), (0.6, 0.8), (-0.2, 0.4), (0.5, -0.5)),
    w=(1.2, 0.35),
    norm=1.25,
    alpha=(0.0, 0.75, 2.5, 2.5),
    margins=(1.2, 1.0, -0.1, 0.425),
    mean_hinge=0.41875,
    optimum=0.496875,
    nu=0.335,
    gamma=0.8,
)

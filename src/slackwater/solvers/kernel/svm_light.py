"""SVM-light: decomposition into working sets of q variables, chosen by steepest feasible direction.

Problem    max over lower <= beta <= upper (and sum beta = 0 with a free bias) of
           W(beta) = target sum |beta| - beta'K beta/2 - sum d beta^2/2,   v = its derivative (kernel_solver.py).
Update     the working set B is the direction of steepest ascent with q nonzeros (Zoutendijk): the q/2 largest v of
           those that may go up, the q/2 smallest that may go down; without a free bias the q largest violations.
           At most n_new of them may be new, the others stay from the last set, those that came latest first. The
           problem on B is solved by SMO inside it to 1e-4 of its violation; v <- v - K[:, B] (change of beta_B).
Shrinking  those leave whose multiplier has had the right sign, strictly, for h = 100 sets in a row; all come back, with
           v built anew, when a tenth is left of the violation that all rows had.
State      beta, v, the active rows, the last set, for every row the number of sets that its sign was right.
Cost       n_new kernel rows, (q + 4) n operations a set; a round is some dozens of sets on 30,000 rows.
Certificate  C1.

Joachims. Making large-scale SVM learning practical. In: Advances in Kernel Methods, MIT Press 1998.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.kernel.active_set import (
    EXACT,
    WORK,
    ActiveSetSolver,
    ActiveState,
    Part,
    eased,
    fetch,
    leave,
    part_of,
    put_back,
    settled,
)
from slackwater.solvers.kernel.kernel_solver import DualState
from slackwater.solvers.kernel.working_set import improve_pairs, improve_singles

_STEPS = 1000  # inside a set, at most, per member
_SOLVED = 1e-4  # of its violation a set is left with; a set of all variables goes to rounding error
_SETS = 10  # of a round, at most, per variable
_STRIP = 2048


class Choice(NamedTuple):
    """How working sets are chosen, and the last of them."""

    pairs: bool
    size: int
    new: int
    members: np.ndarray  # positions in the part, longest there first; -1 beyond the last
    calm: np.ndarray  # of the part's variables: sets in a row with the right sign


@dataclass
class LightState(ActiveState):
    """The point, its active rows, the last working set, and the sets that every row has been calm for."""

    members: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # ids
    calm: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class SVMLight(ActiveSetSolver):
    """Working sets of ``q`` variables, ``new`` of them new (0: all); ``ahead`` rows are computed at a time."""

    name: ClassVar[str] = "svm-light"
    paper: ClassVar[str] = "Joachims, 1998"

    q: int = 10
    new: int = 0
    h: int = 100
    shrinking: bool = True
    ahead: int = 64

    def __post_init__(self) -> None:
        if self.q < 2 or self.q % 2:
            raise ValueError(f"q must be even and at least 2, got {self.q}")
        if not (self.new == 0 or 2 <= self.new <= self.q) or self.new % 2:
            raise ValueError(f"new must be 0 or even and between 2 and q, got {self.new}")
        if self.h < 1:
            raise ValueError(f"h must be at least 1, got {self.h}")
        if self.ahead < 1:
            raise ValueError(f"ahead must be at least 1, got {self.ahead}")

    def state(self, problem: KernelProblem, point: DualState, rng: np.random.Generator) -> LightState:
        """All rows active, no working set yet."""
        return LightState.around(point, calm=np.zeros(problem.n_rows, dtype=np.int64))

    def work(self, problem: KernelProblem, state: LightState) -> None:
        """Some working sets."""
        part, pairs = part_of(problem, state), problem.bias == "free"
        choice = self._choice(problem, state, part)
        sets, steps = self._sets(problem, part, choice, eased(part, pairs))
        put_back(state, part)
        state.calm[part.ids] = choice.calm
        state.members = part.ids[choice.members[choice.members >= 0]]
        done = state.counters
        done.updates += steps
        done.inner_products += sets * choice.size * part.ids.size
        done.epochs += sets
        if self.shrinking:
            leave(problem, state, part, settled(part, pairs) & (choice.calm >= self.h))

    def review(self, problem: KernelProblem, state: LightState, certificate: Any) -> None:
        """Not there yet: every v from the rows, every row active and without a past."""
        super().review(problem, state, certificate)
        state.calm[:] = 0

    def _choice(self, problem: KernelProblem, state: LightState, part: Part) -> Choice:
        """The last set as positions in the part."""
        size = int(min(self.q, part.ids.size, problem.gram.capacity))
        new = size if self.new == 0 else min(self.new, size)
        members = np.full(size, -1, dtype=np.int64)
        last = state.members[np.isin(state.members, part.ids)]
        last = np.searchsorted(part.ids, last)[-size:]
        members[: last.size] = last
        return Choice(problem.bias == "free", size, new, members, state.calm[part.ids])

    def _sets(self, problem: KernelProblem, part: Part, choice: Choice, tolerance: float) -> tuple[int, int]:
        """Working sets until the violation is ``tolerance`` or the round's work is done; they, and their steps."""
        gram = problem.gram
        left = max(1, min(WORK // ((choice.size + 4) * max(1, part.ids.size)), _SETS * part.ids.size))
        rows, sets, steps = max(1, WORK // problem.n_rows), 0, 0
        while left > 0 and rows > 0:
            solved, stepped, missing = solve_sets(gram.kept, gram.clock, part, choice, tolerance, left)
            gram.take(solved * choice.size)
            sets, steps, left = sets + solved, steps + stepped, left - solved
            if missing.size == 0:
                break
            rows -= fetch(problem, part, missing, self.ahead)
        return int(sets), int(steps)


@compiled
def solve_sets(kept, now, part, choice, tolerance, most):
    """Some working sets: how many, the steps in them, and the set whose rows are not all in memory (or none)."""
    size, steps = choice.size, 0
    K, wanted = np.empty((size, size)), np.empty(size, dtype=np.int64)
    room, chosen = np.empty(size), np.zeros(part.beta.size, dtype=np.bool_)
    for done in range(most):
        count, highest, lowest = choose(part, choice, wanted, chosen, room)
        violation = highest - lowest if choice.pairs else max(highest, -lowest)
        if count == 0 or not violation > tolerance:
            return done, steps, wanted[:0]
        for a in range(np.uint64(count)):
            if kept.slots[part.ids[wanted[a]]] < 0:
                return done, steps, wanted[:count].copy()
        choice.members[:] = -1
        choice.members[:count] = wanted[:count]
        _note_calm(part, choice, highest, lowest)
        steps += _solve(kept, now, part, choice.pairs, wanted[:count], K[:count, :count], violation)
    return most, steps, wanted[:0]


@compiled
def choose(part, choice, wanted, chosen, room):
    """The next working set into ``wanted``: its size, the largest v that may go up, the smallest that may go down."""
    highest, lowest = -np.inf, np.inf
    for t in range(np.uint64(part.beta.size)):
        if part.beta[t] < part.upper[t]:
            highest = max(highest, part.v[t])
        if part.beta[t] > part.lower[t]:
            lowest = min(lowest, part.v[t])
    n = part.beta.size
    count = 0
    if choice.size == n:
        for t in range(n):
            wanted[t] = t
        return n, highest, lowest
    staying = min(choice.size - choice.new, np.sum(choice.members >= 0))
    last = np.sum(choice.members >= 0)
    for a in range(last - staying, last):
        wanted[count] = choice.members[a]
        count += 1
    for a in range(count):
        chosen[wanted[a]] = True
    if choice.pairs:
        count = _take_largest(part, 1, choice.new // 2, wanted, count, chosen, room)
        count = _take_largest(part, -1, choice.new - choice.new // 2, wanted, count, chosen, room)
    else:
        count = _take_largest(part, 0, choice.new, wanted, count, chosen, room)
    for a in range(count):
        chosen[wanted[a]] = False
    return count, highest, lowest


@compiled
def _take_largest(part, side, most, wanted, count, chosen, room):
    """Append the ``most`` largest v that may go up (side 1), smallest that may go down (-1), or violations (0)."""
    beta, lower, upper, v = part.beta, part.lower, part.upper, part.v
    found, least = 0, -np.inf if side else 0.0
    for t in range(np.uint64(beta.size)):
        wish = -np.inf
        if side >= 0 and beta[t] < upper[t]:
            wish = v[t]
        if side <= 0 and beta[t] > lower[t]:
            wish = max(wish, -v[t])
        if not wish > least or chosen[t]:
            continue
        place = min(found, most - 1)
        while place > 0 and room[place - 1] < wish:
            room[place], wanted[count + place] = room[place - 1], wanted[count + place - 1]
            place -= 1
        room[place], wanted[count + place] = wish, t
        found = min(found + 1, most)
        if found == most:
            least = room[most - 1]
    for a in range(count, count + found):
        chosen[wanted[a]] = True
    return count + found


@compiled
def _note_calm(part, choice, highest, lowest):
    """Count on for those at an end of their box whose multiplier has the right sign whatever the bias is."""
    beta, lower, upper, v, calm = part.beta, part.lower, part.upper, part.v, choice.calm
    if not choice.pairs:
        highest = max(highest, -lowest)
        lowest = -highest
    for t in range(np.uint64(beta.size)):
        right = (beta[t] == lower[t] and v[t] < lowest) or (beta[t] == upper[t] and v[t] > highest)
        calm[t] = calm[t] + 1 if right else 0


@compiled
def _solve(kept, now, part, pairs, members, K, violation):
    """The best of the problem on the members, and v of all follows; steps inside."""
    ids, v = part.ids, part.v
    size = np.uint64(members.size)
    for a in range(size):
        slot = kept.slots[ids[members[a]]]
        kept.used[slot] = now
        row = kept.values[slot]
        for b in range(size):
            K[a, b] = row[ids[members[b]]]
    beta, inside = part.beta[members], v[members]
    lower, upper, ridge = part.lower[members], part.upper[members], part.ridge[members]
    change = -beta
    tolerance, most = (EXACT if size == v.size else _SOLVED) * violation, _STEPS * members.size
    if pairs:
        steps = improve_pairs(K, ridge, beta, lower, upper, inside, tolerance, most)
    else:
        steps = improve_singles(K, ridge, beta, lower, upper, inside, tolerance, most)
    change += beta
    n = np.uint64(v.size)
    for start in range(np.uint64(0), n, np.uint64(_STRIP)):
        end = min(start + np.uint64(_STRIP), n)
        for a in range(size):
            length = change[a]
            if length != 0.0:
                row = kept.values[kept.slots[ids[members[a]]]]
                for t in range(start, end):
                    v[t] -= length * row[ids[t]]
    for a in range(size):
        v[members[a]] -= ridge[a] * change[a]
        part.beta[members[a]] = beta[a]
    return steps

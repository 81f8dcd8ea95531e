"""Models in whole numbers: tables of 8 or 16 bits, sums that cannot overflow, and their C.

Input      q_j = round(s x_j), with one s for all columns, from the largest |x_j|; 0 stays 0. Unsigned where no value
           is negative, which doubles the resolution. Values beyond the range are taken for its ends.
Vectors    in the same steps, so that s^2 <x, z>, s^2 ||x - z||^2 and s ||x - z||_1 are sums of whole numbers, exactly.
Kernel     2^30 K from the sum t, by 64-bit products: e^-at = 2^-u with u = t (a log2 e), 2^-u by a polynomial of its
           fraction; powers and tanh likewise. A power is taken of base / B with B no smaller than any |base|.
Coefficients  16 bits, one scale for each output; weights of linear models 8 or 16 bits, one scale for each output.
Output     the only float arithmetic: sum x scale + intercept.
Bounds     d columns add at most d (highest - lowest)^2 to a sum of squares, d highest^2 to one of products, in any
           order: that decides between 32 and 64 bits. Sums over vectors stay below 2^30 sum |coefficients| < 2^63.

``values`` computes in NumPy what the C computes, for the error to be measured where the model is exported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from slackwater.export.c99_float import Code, blocks_table, float32_table
from slackwater.export.c99_tables import Table, number, stored, with_entries
from slackwater.export.c99_text import (
    FIXED_VALUES,
    HALVES,
    LINEAR,
    QUANTISE,
    QUANTISED_DECISION,
    decision,
    filled,
    sums_over_columns,
)
from slackwater.export.plain import ExportError, Plain
from slackwater.rows import CSRRows, DenseRows, dense_block

KERNELS = ("rbf", "polynomial", "sigmoid", "laplacian")
BITS = {"int8": 8, "int16": 16}
#: 2^-f = c0 - f (c1 - f (c2 - ...)) for 0 <= f < 1, in units of 2^-30: the polynomial through seven Chebyshev points.
HALVING = (1073741823, 744260973, 257938912, 59582935, 10286296, 1369601, 117391)
_ONE = 2**30
_COEFFICIENT = 2**15 - 1
_LINES = 512  # rows measured at a time


class Steps(NamedTuple):
    """From numbers to whole numbers and back: q = round(s x) between ``least`` and ``most``."""

    per_unit: np.float32
    least: int
    most: int
    dtype: np.dtype

    @classmethod
    def over(cls, lowest: float, highest: float, bits: int) -> Steps:
        """The steps of the range between two numbers, and of 0."""
        size = max(abs(lowest), abs(highest))
        signed = lowest < 0.0
        most = 2 ** (bits - signed) - 1
        steps = np.float32(most / size) if size > 0.0 else np.float32(1.0)
        if not 0.0 < steps < np.inf:
            raise ExportError(f"values up to {size:g} cannot be put into {bits} bits")
        return cls(steps, -most if signed else 0, most, np.dtype(f"{'' if signed else 'u'}int{bits}"))

    @property
    def width(self) -> int:
        return self.most - self.least

    def of(self, values: np.ndarray) -> np.ndarray:
        """As the C does it, in float32; halves away from 0."""
        steps = np.clip(values.astype(np.float32) * self.per_unit, self.least, self.most)
        return np.trunc(steps + np.copysign(np.float32(0.5), steps)).astype(self.dtype)


class Factor(NamedTuple):
    """u = (t factor + offset) / 2^shift in units of 2^-30, for |t| <= bound without overflow."""

    factor: int
    offset: int
    shift: int

    @classmethod
    def of(cls, factor: float, offset: float, bound: int) -> Factor:
        """For u = t factor + offset."""
        most = factor * bound + abs(offset)
        power = min(57, 61 - math.ceil(math.log2(max(most, 1e-300))))
        if power < 30:
            raise ExportError(f"the kernel's argument reaches {most:.3g}, too much for whole numbers")
        return cls(round(factor * 2.0**power), round(offset * 2.0**power), power - 30)

    def apply(self, sums: np.ndarray) -> np.ndarray:
        """(t factor + offset) / 2^shift, towards 0 as in C."""
        u = sums * self.factor + self.offset
        return np.sign(u) * (np.abs(u) >> self.shift)


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A model in whole numbers of so many bits, for x in steps."""

    model: Plain
    steps: Steps
    bits: int

    @classmethod
    def of(cls, model: Plain, bits: int, span: tuple[float, float] | None, rows: Any) -> FixedPoint:
        """For rows between the ends of ``span``, or in the range of ``rows``, or in that of the vectors."""
        ends = [] if span is None else [*span]
        if not ends and rows is not None:
            ends += _ends(rows.values)
        if model.vectors is not None:
            ends += _ends(model.vectors.values)
        elif not ends:
            raise ExportError(
                "whole numbers need the range of the data, which weights do not tell: give rows or a span"
            )
        if not np.isfinite(ends).all() or (span is not None and not span[0] < span[1]):
            raise ExportError("the span of the data must be two finite numbers, the lower one first")
        return cls(model, Steps.over(min(ends), max(ends), bits), bits)

    # ------------------------------------------------------------------------------------------------ the numbers

    @property
    def name(self) -> str:
        return self.model.kernel.name

    @property
    def bound(self) -> int:
        """No sum over columns is larger in size."""
        columns, most = self.model.n_columns, self.steps.most
        if self.model.vectors is None:
            return columns * most * (2 ** (self.bits - 1) - 1)
        of_column = {"rbf": self.steps.width**2, "laplacian": self.steps.width}.get(self.name, most**2)
        return columns * of_column

    @cached_property
    def table(self) -> Any:
        """The vectors in steps of x, or the weights in steps of their own line."""
        if self.model.vectors is not None:
            return with_entries(self.model.matrix, self.steps.of)
        return np.rint(self.model.coef / self.scales[:, None]).astype(f"int{self.bits}")

    @cached_property
    def scales(self) -> np.ndarray:
        """What a step of each output's coefficients, or weights, is worth."""
        model, largest = self.model, np.zeros(self.model.n_outputs)
        np.maximum.at(largest, model.outputs(), np.abs(model.coef))
        most = 2 ** (self.bits - 1) - 1 if model.vectors is None else _COEFFICIENT
        return np.where(largest > 0.0, largest, 1.0) / most

    @cached_property
    def coef(self) -> np.ndarray:
        """The coefficients in steps of their output."""
        outputs = self.model.outputs()
        coef = np.rint(self.model.coef / self.scales[outputs]).astype(np.int16)
        totals = np.zeros(self.model.n_outputs, dtype=np.int64)
        np.add.at(totals, outputs, np.abs(coef, dtype=np.int64))
        if totals.max() >= 2**33:
            raise ExportError(f"{self.model.n_vectors} support vectors are too many for sums of 64 bits")
        return coef

    @cached_property
    def factor(self) -> Factor:
        """What makes the kernel's argument of a sum over columns."""
        kernel, steps = self.model.kernel, float(self.steps.per_unit)
        if self.name == "laplacian":
            return Factor.of(kernel.gamma / math.log(2.0) / steps, 0.0, self.bound)
        if self.name == "rbf":
            return Factor.of(kernel.gamma / math.log(2.0) / steps**2, 0.0, self.bound)
        unit = self.largest_base if self.name == "polynomial" else 0.5 * math.log(2.0)
        return Factor.of(kernel.gamma / steps**2 / unit, kernel.coef0 / unit, self.bound)

    @property
    def largest_base(self) -> float:
        """No base of a power is larger in size; 1 where all are 0."""
        kernel = self.model.kernel
        return kernel.gamma * self.bound / float(self.steps.per_unit) ** 2 + abs(kernel.coef0) or 1.0

    @cached_property
    def output_scales(self) -> np.ndarray:
        """What a unit of the last sum of each output is worth."""
        if self.model.vectors is None:
            return float32_table(self.scales / float(self.steps.per_unit))
        power = self.model.kernel.degree if self.name == "polynomial" else 0
        scales = float32_table(self.scales * self.largest_base**power / _ONE)
        if not scales.all():
            raise ExportError("the kernel's values are of too different size for whole numbers")
        return scales

    # ------------------------------------------------------------------------------------------- the same in NumPy

    def values(self, rows: DenseRows | CSRRows) -> np.ndarray:
        """The decision values that the C computes, (n, outputs)."""
        out = np.empty((rows.n_rows, self.model.n_outputs))
        for start in range(0, rows.n_rows, _LINES):
            ids = np.arange(start, min(start + _LINES, rows.n_rows))
            out[ids] = self._values(self.steps.of(dense_block(rows, ids)).astype(np.float64))
        return out

    def _values(self, x: np.ndarray) -> np.ndarray:
        sums = self._sums(x, self._wide)
        if self.model.vectors is not None:
            coef = np.zeros((self.model.n_outputs, self.model.n_vectors))
            coef[self.model.outputs(), np.arange(self.model.n_vectors)] = self.coef
            sums = self._kernel(sums.astype(np.int64)) @ coef.T
        return sums * self.output_scales + self.model.intercept.astype(np.float32)

    @cached_property
    def _wide(self) -> np.ndarray:
        table = self.table.toarray() if sp.issparse(self.table) else self.table
        return table.astype(np.float64)

    def _sums(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Sums over columns: whole numbers below 2^53, so exact."""
        if self.name == "laplacian":
            return cdist(x, z, "cityblock")
        if self.name == "rbf":
            return (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1) - 2.0 * (x @ z.T)
        return x @ z.T

    def _kernel(self, sums: np.ndarray) -> np.ndarray:
        """2^30 times kernel values."""
        argument = self.factor.apply(sums)
        if self.name == "polynomial":
            value = np.full_like(argument, _ONE)
            for _ in range(self.model.kernel.degree):
                product = value * argument
                value = np.sign(product) * (np.abs(product) >> 30)
            return value
        halved = halves(np.abs(argument))
        if self.name == "sigmoid":
            return np.sign(argument) * ((_ONE - halved) * _ONE // (_ONE + halved))
        return halved

    # --------------------------------------------------------------------------------------------------- the same in C

    def code(self) -> Code:
        """The model in C."""
        model, finish = self.model, "(float)sum * NAME_scale[c] + NAME_intercept[c]"
        table = "weights" if model.vectors is None else "vectors"
        rows = stored(self.table, table, f"the {table}, in steps")
        tables = [
            *rows.tables, Table("scale", self.output_scales, "what a step of every output is worth"),
            Table("intercept", float32_table(model.intercept), "what is added to every output"), *blocks_table(model),
        ]  # fmt: skip
        text = [self._quantise(), sums_over_columns(self.name, table, rows.sparse)]
        ram = model.n_columns * self.steps.dtype.itemsize
        if model.vectors is None:
            text.append(filled(LINEAR, name="decision_of", finish=finish))
        else:
            tables.append(
                Table("coef", np.ascontiguousarray(self.coef.T), "the coefficients of every vector, in steps")
            )
            text += [
                self._kernel_text(),
                decision(self.name, rows.sparse, model.blocks is not None, finish, "decision_of"),
            ]
            ram += 8 * model.n_outputs
        ends = self.steps.least / self.steps.per_unit, self.steps.most / self.steps.per_unit
        says = f"int{self.bits}, columns from {ends[0]:g} to {ends[1]:g} in {self.steps.width} steps"
        return Code(tables, "".join([*text, QUANTISED_DECISION]), ram, says)

    def _quantise(self) -> str:
        """The types, with the proof that sums fit into them, and the function from floats to steps."""
        steps, size = self.steps, 32 if self.bound < 2**31 else 64
        if self.bound >= 2**62:
            raise ExportError(f"{self.model.n_columns} columns are too many for sums of 64 bits")
        kinds = {name: f"{np.dtype(kind).name}_t" for name, kind in (("input", steps.dtype), ("sum", f"int{size}"))}
        total = "the sum over vectors stays below 2^30 times the sum of |coefficients|, which is below 2^33"
        return f"#define NAME_STEPS {number(float(steps.per_unit), np.float32)} /* to a unit of x */\n" + filled(
            QUANTISE, **kinds, least=steps.least, most=steps.most, total=total,
            bound=f"no sum over {self.model.n_columns} columns is larger in size than {self.bound}, in any order",
            lowest=f"{steps.least / steps.per_unit:g}", highest=f"{steps.most / steps.per_unit:g}",
        )  # fmt: skip

    def _kernel_text(self) -> str:
        """The kernel of a sum over columns."""
        text = filled(
            FIXED_VALUES.get(self.name, FIXED_VALUES["exponential"]), **self.factor._asdict(),
            degree=self.model.kernel.degree, largest=f"{self.largest_base ** self.model.kernel.degree:g}",
        )  # fmt: skip
        if self.name == "polynomial":
            return text
        horner = "".join(f"    value = {c} - (value * f >> 30);\n" for c in HALVING[-2::-1])
        return filled(HALVES, last=HALVING[-1], horner=horner) + text


def halves(u: np.ndarray) -> np.ndarray:
    """2^30 2^-(u / 2^30) for whole numbers u >= 0, as the C computes it."""
    fraction, value = u & (_ONE - 1), np.full_like(u, HALVING[-1])
    for c in HALVING[-2::-1]:
        value = c - (value * fraction >> 30)
    return np.where(u >> 30 > 30, 0, value >> np.minimum(u >> 30, 31))


def _ends(values: np.ndarray) -> list[float]:
    """The smallest and the largest of them, and 0."""
    return [float(values.min(initial=0.0)), float(values.max(initial=0.0))]

"""The kernel model: support vectors, their coefficients, and an intercept per output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from slackwater.compiled import compiled
from slackwater.models.classes import checked_classes, labels_in_order, labels_of, packed_classes, unpacked_classes
from slackwater.models.files import Parts, count, number, real, saved_as, told, whole
from slackwater.models.single_row import LinearValues, RowPredictor, count_votes
from slackwater.models.single_row_kernels import Sums, kernel_values
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import HIGHEST_DEGREE, KERNELS, Kernel, check_values
from slackwater.rows import CSRRows, DenseRows, as_matrix, as_rows
from slackwater.rows.convert import frozen, inspected
from slackwater.threads import in_parts, thread_count

_BLOCK_VALUES = 2**22  # kernel values computed at a time
_MOST_LINES = 1024


class Expansion(NamedTuple):
    """What kernel solvers return on the way: coefficients of all training rows, or a line per class, and a bias."""

    coefficients: np.ndarray
    bias: float = 0.0

    def weights(self, bias_scale: float = 0.0) -> np.ndarray:
        """As ``certify`` takes them."""
        return np.append(self.coefficients, np.full((*self.coefficients.shape[:-1], 1), self.bias), axis=-1)


@saved_as("kernel")
@dataclass(frozen=True, eq=False)
class KernelModel:
    """f_c(x) = sum_j coef_cj K(x_j, x) + intercept_c over the support vectors x_j.

    One output for two classes; one per class, one against the rest; or with ``blocks`` one per pair of classes a < b,
    in the order (0,1), (0,2), .., positive for the first, whose votes decide. Vectors then come in blocks, blocks[a] of
    class a, and line c of ``coef`` holds what a vector of class a counts against class c, or c + 1 from a on.
    ``support`` numbers the vectors among the training rows: with a precomputed kernel these are the columns that
    prediction looks at.
    """

    kernel: Kernel
    vectors: DenseRows | CSRRows
    coef: np.ndarray  # (k, m), float64; (k - 1, m) for pairs
    intercept: np.ndarray  # one per output, float64
    support: np.ndarray  # (m,), int64
    classes: np.ndarray | None = None
    blocks: np.ndarray | None = None  # (k,), int64: vectors of each class, for pairs
    shift: float = 0.0  # of a penalised bias, added to every kernel value
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        k, m = self.coef.shape
        outputs = k if self.blocks is None else k * (k + 1) // 2
        if k == 0 or self.intercept.shape != (outputs,) or self.support.shape != (m,):
            raise ValueError("coef, intercept and support of a kernel model do not fit together")
        if self.vectors.n_rows != m:
            raise ValueError(f"{m} coefficients a line need as many support vectors, got {self.vectors.n_rows}")
        if self.blocks is None:
            object.__setattr__(self, "classes", checked_classes(self.classes, k))
        elif self.blocks.shape != (k + 1,) or not shares(self.blocks, m):
            raise ValueError("the blocks of support vectors do not fit")
        else:
            object.__setattr__(self, "classes", checked_classes(self.classes, k + 1))

    @classmethod
    def from_points(cls, points: Points, coefficients: np.ndarray, bias: float | np.ndarray) -> Self:
        """From coefficients of all rows of ``points``, a line for each output; rows without one are left out."""
        coefficients = np.atleast_2d(coefficients)
        support = np.flatnonzero(coefficients.any(axis=0))
        lines = np.array(coefficients[:, support], dtype=np.float64)
        return cls(points.kernel, points.given(support), lines, np.atleast_1d(bias), support, shift=points.shift)

    @property
    def n_outputs(self) -> int:
        return self.intercept.size

    @property
    def n_support(self) -> int:
        return self.coef.shape[1]

    @property
    def n_columns(self) -> int:
        return self.vectors.n_columns

    @property
    def n_bytes(self) -> int:
        """What the numbers of the model take, in memory and in a file."""
        return sum(tensor.nbytes for tensor in self._tensors().values())

    def decision_values(self, X: Any) -> np.ndarray:
        """f(x) of every row: (n,) for one output, (n, k) for more; float64, in blocks of rows through BLAS."""
        rows = as_rows(X)
        values = np.zeros((rows.n_rows, self.n_outputs))
        if self.n_support:
            self._add_values(rows, values)
        values += self.intercept
        return values[:, 0] if self.n_outputs == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: -1.0 and 1.0, or the number of the output, where the model knows no classes."""
        return self.labels_of(self.decision_values(X))

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        """What decision values stand for; those of pairs are counted as votes."""
        if self.blocks is not None:
            values = votes(values.reshape(len(values), -1), self.blocks.size)
        return labels_of(values, self.classes)

    def compile(self, as_votes: bool = False) -> RowPredictor:
        """The predictor of one row at a time; ``as_votes`` for votes, where decision values are those of pairs."""
        if self.kernel.name in ("precomputed", "callable"):
            raise TypeError(f"a model with the kernel {self.kernel.name!r} has no predictor of single rows")
        classes = 0 if self.blocks is None else self.blocks.size
        labels, as_votes = self._labels(), as_votes and classes > 0
        places, offsets = self._places(), self.shifted_intercept()
        if self.kernel.name == "linear":
            weights = np.ascontiguousarray(self.primal_weights())
            return RowPredictor(LinearValues(weights, offsets), labels, classes, as_votes)
        sums = Sums.of(self.kernel, self.coef, places, offsets)
        return RowPredictor(kernel_values(self.kernel, self.vectors, sums), labels, classes, as_votes)

    def shifted_intercept(self) -> np.ndarray:
        """The intercepts, with what ``shift``, added to every kernel value, comes to."""
        found = self.intercept.copy()
        if self.shift:
            for start, end, *outputs in self._places():
                found[outputs] += self.shift * self.coef[:, start:end].sum(axis=1)
        return found

    def telling(self, facts: Mapping[str, Any]) -> Self:
        """The same, with these facts in ``meta``."""
        return replace(self, meta={**self.meta, **facts})

    def primal_weights(self) -> np.ndarray:
        """sum_j coef_j x_j for every output: the weights of the linear kernel."""
        vectors = as_matrix(self.vectors)
        if self.blocks is None:
            return np.asarray(self.coef @ vectors)
        of_class = [self.coef[:, part] @ vectors[part] for part in self._parts_of_classes()]
        return np.vstack([of_class[a][b - 1] + of_class[b][a] for a, b in pairs_of(self.blocks.size)])

    def parts(self) -> Parts:
        """What goes into a file."""
        if self.kernel.function is not None:
            raise TypeError("a model with a kernel function of your own cannot be saved: files hold numbers only")
        labels, classes = packed_classes(self.classes)
        kernel = {name: value for name, value in asdict(self.kernel).items() if name != "function"}
        tensors = self._tensors()
        if labels is not None:
            tensors["classes"] = labels
        shape = [self.vectors.n_rows, self.vectors.n_columns]
        facts = {"kernel": kernel, "shape": shape, "classes": classes, "shift": self.shift}
        return Parts(tensors, facts | {"meta": dict(self.meta)})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that ``parts`` was taken from."""
        tensors, facts = parts.tensors, parts.facts
        blocks = whole(tensors["blocks"]) if "blocks" in tensors else None
        kernel, vectors = _kernel(**facts["kernel"]), _vectors(tensors, facts["shape"])
        check_values(kernel, vectors)
        return cls(
            kernel, vectors, real(tensors["coef"]),
            real(tensors["intercept"]), whole(tensors["support"]),
            unpacked_classes(tensors.get("classes"), facts["classes"]), blocks,
            number(facts["shift"], "the shift of kernel values"), told(facts["meta"]),
        )  # fmt: skip

    # -------------------------------------------------------------------------------------------------- inside

    def _tensors(self) -> dict[str, np.ndarray]:
        """All numbers, without those of the classes."""
        tensors = {"coef": self.coef, "intercept": self.intercept, "support": self.support}
        if self.blocks is not None:
            tensors["blocks"] = self.blocks
        if isinstance(self.vectors, DenseRows):
            return tensors | {"vectors": self.vectors.values}
        start, end = self.vectors.indptr[0], self.vectors.indptr[-1]
        return tensors | {
            "indptr": self.vectors.indptr - start, "indices": self.vectors.indices[start:end],
            "values": self.vectors.values[start:end],
        }  # fmt: skip

    def _add_values(self, rows: DenseRows | CSRRows, out: np.ndarray) -> None:
        """The sums over the support vectors, without the intercept."""
        step = int(max(1, min(_MOST_LINES, _BLOCK_VALUES // self.n_support)))
        if self.kernel.name == "precomputed":
            if not isinstance(rows, DenseRows) or rows.n_columns <= self.support.max():
                raise ValueError("kernel='precomputed' needs kernel values with all training rows, as a dense array")
            for start in range(0, rows.n_rows, step):
                block = rows.values[start : start + step, self.support] + self.shift
                self._add_sums(block, out[start : start + step])
            return
        if rows.n_columns != self.n_columns:
            raise ValueError(f"X has {rows.n_columns} columns, but the model was fitted on {self.n_columns}")
        dtype = np.promote_types(rows.dtype, self.vectors.dtype)
        points = Points.of(self.vectors, self.kernel, dtype, self.shift)
        room = np.empty((min(step, rows.n_rows), self.n_support), dtype=points.dtype)
        for start in range(0, rows.n_rows, step):
            part = out[start : start + step]
            block = points.values(points.lines(rows, slice(start, start + step)), room[: len(part)])
            self._add_sums(block, part)

    def _add_sums(self, block: np.ndarray, out: np.ndarray) -> None:
        """Kernel values times coefficients, one product; for pairs one per class."""
        if self.blocks is None:
            out += _sums(block, self.coef)
            return
        sums = [_sums(block[:, part], self.coef[:, part]) for part in self._parts_of_classes()]
        for pair, (a, b) in enumerate(pairs_of(self.blocks.size)):
            out[:, pair] += sums[a][:, b - 1] + sums[b][:, a]

    def _places(self) -> np.ndarray:
        """A line for each group of vectors: its first, the one after its last, and the output of each line of coef."""
        if self.blocks is None:
            return np.array([[0, self.n_support, *range(self.n_outputs)]])
        number = {pair: output for output, pair in enumerate(pairs_of(self.blocks.size))}
        every = range(self.blocks.size)
        others = [[number[min(a, b), max(a, b)] for b in every if b != a] for a in every]
        parts = self._parts_of_classes()
        return np.array([[part.start, part.stop, *line] for part, line in zip(parts, others, strict=True)])

    def _labels(self) -> list[Any] | None:
        return labels_in_order(self.classes, self.n_outputs if self.blocks is None else self.blocks.size)

    def _parts_of_classes(self) -> list[slice]:
        """Where the vectors of each class are."""
        assert self.blocks is not None
        return [slice(end - size, end) for size, end in zip(self.blocks, np.cumsum(self.blocks), strict=True)]


@saved_as("kernel-regression")
@dataclass(frozen=True, eq=False)
class KernelRegressionModel(KernelModel):
    """The kernel model whose decision values are what it predicts."""

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        """The values themselves."""
        return values

    def _labels(self) -> None:
        return None


def _kernel(name: Any, gamma: Any, coef0: Any, degree: Any) -> Kernel:
    """A kernel from a file."""
    if name not in KERNELS:
        raise ValueError(f"the kernel {name!r} is not known")
    return Kernel(
        name, number(gamma, "gamma", 0.0), number(coef0, "coef0"), count(degree, "the degree", HIGHEST_DEGREE)
    )


def _sums(block: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """block times coef', float64, without a copy of the block in float64."""
    out = np.empty((len(block), len(coef)))
    work = partial(_weigh, block, coef, out)
    in_parts(work, len(block), thread_count(None), coef.size)
    return out


@compiled
def _weigh(block, coef, out, first, last):
    for i in range(np.uint64(first), np.uint64(last)):
        values = block[i]
        for c in range(np.uint64(coef.shape[0])):
            line, total = coef[c], 0.0
            for j in range(np.uint64(values.size)):
                total += values[j] * line[j]
            out[i, c] = total


def shares(counts: np.ndarray, total: int) -> bool:
    """Whether counts add up to a total; those above it would add up to anything, as numbers of 64 bits do."""
    return bool(counts.size and 0 <= counts.min() <= counts.max() <= total and counts.sum() == total)


def _vectors(tensors: Mapping[str, np.ndarray], shape: list[int]) -> DenseRows | CSRRows:
    n, d = (count(size, "a size") for size in shape)
    name = "vectors" if "vectors" in tensors else "values"
    if tensors[name].dtype not in (np.float32, np.float64):
        raise ValueError(f"the support vectors' values are of type {tensors[name].dtype}")
    if name == "vectors":
        if tensors["vectors"].shape != (n, d):
            raise ValueError(f"the support vectors have the shape {tensors['vectors'].shape}, the facts say {(n, d)}")
        return as_rows(tensors["vectors"])
    indptr, indices, values = whole(tensors["indptr"]), whole(tensors["indices"]), tensors["values"]
    if indptr.shape != (n + 1,) or indptr[0] != 0 or indptr[-1] != values.size or values.ndim != 1:
        raise ValueError("the support vectors' indptr does not fit")
    if indices.shape != values.shape or (indices.size and indices.max() >= d):
        raise ValueError("the support vectors name columns that are not there")
    indices = indices.astype(np.uint32)
    if inspected(indptr, indices, np.uint32(d)) != 0:
        raise ValueError("the support vectors' indptr decreases, or their columns do not rise")
    return CSRRows(frozen(indptr), frozen(indices), frozen(values), d, 0.0)


def pairs_of(classes: int) -> list[tuple[int, int]]:
    """(0,1), (0,2), .., (1,2), .."""
    return [(a, b) for a in range(classes) for b in range(a + 1, classes)]


def votes(values: np.ndarray, classes: int) -> np.ndarray:
    """The votes of all pairs for every row."""
    total = np.zeros((len(values), classes))
    count_votes(np.ascontiguousarray(values), total)
    return total

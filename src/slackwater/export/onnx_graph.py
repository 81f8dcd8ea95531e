"""A model as an ONNX graph of plain operators: MatMul, Add, Exp, Pow, Tanh, ArgMax; float64 or float32.

Input ``x`` (rows, columns); outputs ``decision``, as ``decision_values`` gives it, and of a classifier ``label``. The
number of rows is free. Squared distances are |x|^2 - 2 <x, z> + |z|^2 of rows around the mean of the vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.export.plain import ExportError, Plain, plain
from slackwater.models.kernel import pairs_of

KERNELS = ("rbf", "polynomial", "sigmoid")
NUMBERS = ("float64", "float32")
_OPSET, _IR = 17, 8


def onnx_bytes(model: Any, numbers: str = "float64", name: str = "slackwater") -> bytes:
    """The file's content."""
    if numbers not in NUMBERS:
        raise ExportError(f"numbers={numbers!r}: ONNX has {', '.join(NUMBERS)}")
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ExportError("ONNX needs the package onnx: pip install 'slackwater[onnx]'") from error
    flat = plain(model, KERNELS, "ONNX")
    graph = _Graph(onnx, np.dtype(numbers))
    outputs = ["decision"]
    _decisions(graph, flat)
    if flat.decide != "value":
        _labels(graph, flat)
        outputs.append("label")
    return graph.finished(flat, name, outputs)


class _Graph:
    """Nodes and constants as they come."""

    def __init__(self, onnx: Any, dtype: np.dtype) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """An initializer: its name."""
        name = f"constant_{len(self.constants)}"
        array = np.asarray(values)
        if array.dtype.kind not in "OUS":
            with np.errstate(over="ignore"):
                array = array.astype(self.dtype if dtype is None else dtype)
            if not np.isfinite(array).all():
                raise ExportError(f"a number of the model is too large for {array.dtype}")
        else:
            array = array.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """A node: the name of its result."""
        out = out or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [out], **attributes))
        return out

    def cast(self, value: str, dtype: Any) -> str:
        """To another type."""
        return self.add("Cast", value, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def finished(self, model: Plain, name: str, outputs: list[str]) -> bytes:
        """The checked model."""
        helper = self.onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        shape = ["rows"] if model.n_outputs == 1 else ["rows", model.n_outputs]
        found = {"decision": helper.make_tensor_value_info("decision", kind, shape)}
        if "label" in outputs:
            label = np.dtype(object) if model.classes.dtype.kind in "OUS" else self.label_type(model)
            found["label"] = helper.make_tensor_value_info("label", helper.np_dtype_to_tensor_dtype(label), ["rows"])
        inputs = [helper.make_tensor_value_info("x", kind, ["rows", model.n_columns])]
        graph = helper.make_graph(self.nodes, name, inputs, [found[key] for key in outputs], self.constants)
        whole = helper.make_model(graph, producer_name="slackwater", opset_imports=[helper.make_opsetid("", _OPSET)])
        whole.ir_version = _IR
        self.onnx.checker.check_model(whole)
        return whole.SerializeToString()

    @staticmethod
    def label_type(model: Plain) -> np.dtype:
        """Whole numbers as int64, others as float64."""
        return np.dtype(np.float64 if model.classes.dtype.kind == "f" else np.int64)


def _decisions(graph: _Graph, model: Plain) -> None:
    """x to ``decision``."""
    one = model.n_outputs == 1
    if model.vectors is None:
        sums = graph.add("MatMul", "x", graph.constant(model.coef.T))
    else:
        sums = graph.add("MatMul", _kernel(graph, model), graph.constant(model.by_output().T))
    values = graph.add("Add", sums, graph.constant(model.intercept), out="" if one else "decision")
    if one:
        graph.add("Reshape", values, graph.constant([-1], np.int64), out="decision")


def _kernel(graph: _Graph, model: Plain) -> str:
    """Kernel values of all rows with all vectors."""
    kernel, matrix = model.kernel, model.matrix
    vectors = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
    if kernel.name == "rbf":
        return graph.add("Exp", graph.add("Mul", _distances(graph, vectors), graph.constant(-kernel.gamma)))
    # gamma goes into the vectors: onnxruntime would make a factor after MatMul a float32.
    products = graph.add("MatMul", "x", graph.constant(kernel.gamma * vectors.T))
    base = graph.add("Add", products, graph.constant(kernel.coef0))
    if kernel.name == "sigmoid":
        return graph.add("Tanh", base)
    return graph.add("Pow", base, graph.constant(kernel.degree))


def _distances(graph: _Graph, vectors: np.ndarray) -> str:
    """Squared distances, none below 0."""
    centre = vectors.mean(axis=0).astype(graph.dtype)
    around = vectors.astype(graph.dtype).astype(np.float64) - centre
    x = graph.add("Sub", "x", graph.constant(centre))
    squares = graph.add("ReduceSumSquare", x, axes=[1], keepdims=1)
    products = graph.add("MatMul", x, graph.constant(-2.0 * around.T))
    both = graph.add("Add", squares, graph.constant((around * around).sum(axis=1)))
    return graph.add("Max", graph.add("Add", both, products), graph.constant(0.0))


def _labels(graph: _Graph, model: Plain) -> None:
    """``decision`` to ``label``."""
    if model.decide == "sign":
        place = graph.cast(graph.add("Greater", "decision", graph.constant(0.0)), np.int64)
    else:
        scores = _votes(graph, model.n_classes) if model.decide == "votes" else "decision"
        place = graph.add("ArgMax", scores, axis=1, keepdims=0)
    labels = model.classes if model.classes.dtype.kind in "OUS" else model.classes.astype(graph.label_type(model))
    graph.add("Gather", graph.constant(labels, labels.dtype), place, out="label")


def _votes(graph: _Graph, classes: int) -> str:
    """Votes of pairs, and sums of values squeezed below 1/3, as KernelModel counts them."""
    pairs = pairs_of(classes)
    against = np.zeros((len(pairs), classes))  # 1 for the first of a pair, -1 for the second
    for pair, (a, b) in enumerate(pairs):
        against[pair, a], against[pair, b] = 1.0, -1.0
    won = graph.cast(graph.add("Greater", "decision", graph.constant(0.0)), graph.dtype)
    gained = graph.add("MatMul", won, graph.constant(against))
    votes = graph.add("Add", gained, graph.constant((against < 0.0).sum(axis=0)))
    sums = graph.add("MatMul", "decision", graph.constant(against))
    below = graph.add("Mul", graph.add("Add", graph.add("Abs", sums), graph.constant(1.0)), graph.constant(3.0))
    return graph.add("Add", votes, graph.add("Div", sums, below))

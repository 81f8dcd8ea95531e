"""What can be made sparse: kernel models, our own fitted estimators, and scikit-learn's SVC and NuSVC."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slackwater.models import KernelModel, KernelRegressionModel
from slackwater.objective import BiasKind, hinge, parse_loss
from slackwater.objective.kernels import parse_kernel
from slackwater.objective.losses import Loss
from slackwater.rows import as_rows

_BIASES: dict[str, BiasKind] = {"none": "none", "penalised": "penalised", "free": "free"}
_PAIR = np.array([-1.0, 1.0])


class Dense(NamedTuple):
    """A kernel classifier and the problem that it was trained on, as far as it is known."""

    model: KernelModel
    classes: np.ndarray
    C: float
    loss: Loss
    bias: BiasKind
    class_weight: Any = None


def dense_of(model: Any) -> Dense:
    """The kernel classifier that ``model`` is, or has been fitted to be."""
    if _is_libsvm(model):
        return _of_libsvm(model)
    if hasattr(model, "fit"):
        check_is_fitted(model)
    found = getattr(model, "model_", model)
    if not isinstance(found, KernelModel) or isinstance(found, KernelRegressionModel):
        raise TypeError(
            f"only classifiers with a kernel can be made sparse: a fitted SVC, of scikit-learn too, or a KernelModel, "
            f"got {type(model).__name__}"
        )
    meta = found.meta
    bias = meta.get("intercept", "penalised" if found.shift else "free")
    loss = parse_loss(meta["loss"]) if "loss" in meta else hinge()
    classes = _PAIR if found.classes is None else found.classes
    weight = getattr(model, "class_weight", None)
    if found.classes is None and found.n_outputs > 1:
        classes = np.arange(found.n_outputs)
    return Dense(found, classes, float(meta.get("C", 1.0)), loss, _BIASES.get(bias, "free"), weight)


def _is_libsvm(model: Any) -> bool:
    """Whether it is scikit-learn's, which need not be loaded to know."""
    names = {(cls.__module__.split("._")[0], cls.__name__) for cls in type(model).__mro__}
    return bool(names & {("sklearn.svm", "SVC"), ("sklearn.svm", "NuSVC")})


def _of_libsvm(svm: Any) -> Dense:
    check_is_fitted(svm)
    support = np.asarray(svm.support_, dtype=np.int64)
    precomputed = svm.kernel == "precomputed"
    vectors = as_rows(np.zeros((support.size, 0)) if precomputed else svm.support_vectors_)
    kernel = parse_kernel(svm.kernel, vectors, getattr(svm, "_gamma", 1.0) or 1.0, svm.degree, svm.coef0)
    coef = svm.dual_coef_.toarray() if hasattr(svm.dual_coef_, "toarray") else svm.dual_coef_
    blocks = svm.n_support_.astype(np.int64) if len(svm.classes_) > 2 else None
    model = KernelModel(
        kernel, vectors, np.array(coef, dtype=np.float64), np.array(svm.intercept_, dtype=np.float64), support,
        svm.classes_, blocks, 0.0, {"loss": "hinge", "intercept": "free", "solver": "libsvm"},
    )  # fmt: skip
    return Dense(model, svm.classes_, float(svm.C) or 1.0, hinge(), "free", svm.class_weight)  # nu-SVMs have C 0

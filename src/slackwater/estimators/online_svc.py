"""OnlineSVC: kernel classifiers that learn example by example and keep a bounded number of vectors."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from slackwater.data.labels import LabelMap
from slackwater.estimators.compiling import Compiling
from slackwater.estimators.online_certificate import online_certificates
from slackwater.objective import BiasKind
from slackwater.objective.kernels import parse_kernel
from slackwater.rows import as_matrix, as_rows
from slackwater.solvers.online.learner import Arrivals, OnlineLearner
from slackwater.solvers.registry import make_solver, solver_classes
from slackwater.training.stopping import is_number


class OnlineSVC(Compiling, ClassifierMixin, BaseEstimator):
    """Kernel classification by online learners: an example comes, is scored, and is stored if the learner wants it.

    ``fit`` presents all examples ``epochs`` times, ``partial_fit`` the given ones once. More than two classes are
    learnt one against the rest, from the same kernel values.

    Parameters
    ----------
    learner : "forgetron", "rbp", "norma" or "kernel-perceptron". learner_options : its settings by name.
    budget : stored vectors at most, for each class against the rest; None for no bound. The kernel perceptron has none.
    kernel, degree, gamma, coef0 : as of ``SVC``, but for "precomputed". gamma="scale" looks at the examples of the
        first call and stays.
    fit_intercept : True or "penalised" adds 1 to the kernel, "free" is NORMA's own intercept, False goes without.
    epochs : passes of ``fit``. shuffle : whether each of them takes the examples in a random order.
    C : cost of errors in the problem that the certificate speaks of; NORMA's is 1 / (lam n).
    certify : whether to compute the certificate, for the price of about one more pass; small blocks for
        ``partial_fit`` pass several times faster without.
    random_state : seed of the orders and of what learners draw.

    Attributes
    ----------
    mistakes_ : wrong predictions of examples before they were learnt; n_seen_ : examples presented; online_error_ :
        their ratio.
    certificate_, certificates_ : what rule C5 proves of the problem on the examples of the last call. The bound holds;
        it is loose, because no online learner heads for the optimum.
    kernel_evaluations_ : kernel values computed. solver_ : the learner's name. ``model_`` can be saved.
    support_ : numbers of the stored examples: rows of ``fit``, counted on by ``partial_fit``.
    support_vectors_, dual_coef_, intercept_, n_support_, classes_ : as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slackwater import OnlineSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = OnlineSVC(budget=200, gamma=0.001, random_state=0).fit(X, y)
    >>> svm.online_error_ < 0.2
    True
    """

    def __init__(
        self,
        learner="forgetron",
        *,
        budget=1000,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        fit_intercept=False,
        learner_options=None,
        epochs=1,
        shuffle=True,
        C=1.0,
        certify=True,
        random_state=None,
    ):
        self.learner = learner
        self.budget = budget
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.learner_options = learner_options
        self.epochs = epochs
        self.shuffle = shuffle
        self.C = C
        self.certify = certify
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y):
        """Forget everything, then present rows ``X`` with labels ``y`` of any kind ``epochs`` times."""
        learner = self._learner()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", multi_output=False)
        check_classification_targets(y)
        labels, rng = LabelMap.of(y), self._generator()
        arrivals = self._begin(learner, as_rows(X), labels, rng)
        for _ in range(self.epochs):
            order = rng.permutation(labels.codes.size) if self.shuffle else np.arange(labels.codes.size)
            learner.advance(arrivals.part(order), self._state)
        return self._keep(learner, arrivals, labels)

    def partial_fit(self, X, y, classes=None):
        """Present rows ``X`` with labels ``y`` once, in their order; the first call names all ``classes``."""
        learner, first = self._learner(), not hasattr(self, "_state")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", multi_output=False, reset=first)
        check_classification_targets(y)
        labels = self._labels(y, classes, first)
        rows = as_rows(X)
        arrivals = self._begin(learner, rows, labels, self._generator()) if first else self._arrivals(rows, labels)
        learner.advance(arrivals, self._state)
        return self._keep(learner, arrivals, labels)

    def decision_function(self, X):
        """f(x): (n,) for two classes, (n, classes) for more."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return self.model_.decision_values(X)

    def predict(self, X):
        """The class of every row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return self.model_.predict(X)

    @property
    def support_vectors_(self):
        """The stored examples."""
        check_is_fitted(self)
        return as_matrix(self._expansion.vectors)

    @property
    def online_error_(self):
        """The share of examples that were predicted wrongly before they were learnt."""
        check_is_fitted(self)
        return self.mistakes_ / self.n_seen_

    # ------------------------------------------------------------------------------------------- the parts of fit

    def _learner(self) -> OnlineLearner:
        able = solver_classes("online")
        if self.learner not in able:
            raise ValueError(f"learner={self.learner!r} is not known; the online learners are {', '.join(able)}")
        for name, least in (("epochs", 1), ("C", 0)):
            number = getattr(self, name)
            if not is_number(number) or not least <= number < math.inf or number == 0:
                raise ValueError(f"{name} must be a positive number, got {number!r}")
        if self.epochs != int(self.epochs):
            raise ValueError(f"epochs must be a whole number, got {self.epochs!r}")
        settings = dict(self.learner_options or {})
        if "budget" in inspect.signature(able[self.learner]).parameters:
            settings.setdefault("budget", self.budget)
        learner = make_solver(self.learner, **settings)
        if not isinstance(learner, OnlineLearner):
            raise TypeError(f"{self.learner!r} calls itself online, but is no OnlineLearner")
        return learner

    def _bias(self) -> BiasKind:
        kinds: dict[Any, BiasKind] = {True: "penalised", "penalised": "penalised", "free": "free", False: "none"}
        if self.fit_intercept not in kinds:
            raise ValueError(f"fit_intercept={self.fit_intercept!r} is not known; it is True, 'free' or False")
        return kinds[self.fit_intercept]

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _labels(self, y: Any, classes: Any, first: bool) -> LabelMap:
        if not first:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes={classes!r} is not the same as on the first call: {self.classes_!r}")
            known = LabelMap(self.classes_, np.empty(0, dtype=np.int64))
        elif classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        else:
            known = LabelMap.of(classes)
        return LabelMap(known.classes, known.encode(y))

    def _begin(self, learner: OnlineLearner, rows: Any, labels: LabelMap, rng: np.random.Generator) -> Arrivals:
        """The first arrivals, by which the kernel is settled, and nothing learnt."""
        kernel = parse_kernel(self.kernel, rows, self.gamma, self.degree, self.coef0)
        self.classes_, self.solver_, self._next = labels.classes, learner.name, 0
        self._settled = (kernel, self._bias())
        arrivals = self._arrivals(rows, labels)
        learner.check(arrivals)
        self._state = learner.start(arrivals, rng)
        return arrivals

    def _arrivals(self, rows: Any, labels: LabelMap) -> Arrivals:
        kernel, bias = self._settled
        outputs = [1] if labels.n_classes == 2 else range(labels.n_classes)
        signs = np.stack([labels.signs(k) for k in outputs])
        numbers = np.arange(self._next, self._next + rows.n_rows)
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        meta = {"solver": self.solver_, "loss": "hinge", "intercept": bias, "feature_names": names}
        return Arrivals(kernel, rows, signs, numbers, bias, labels.classes, meta)

    def _keep(self, learner: OnlineLearner, arrivals: Arrivals, labels: LabelMap) -> OnlineSVC:
        state = self._state
        self.model_ = learner.model(arrivals, state)
        self.mistakes_, self.n_seen_, self._next = state.mistakes, state.seen, int(arrivals.numbers[-1]) + 1
        self.kernel_evaluations_ = state.counters.kernel_evaluations
        model = self._expansion
        self.support_, self.dual_coef_, self.intercept_ = model.support, model.coef, model.intercept
        self.n_support_ = self._supporting(model)
        self.__dict__.pop("certificate_", None)
        self.__dict__.pop("certificates_", None)
        if self.certify:
            C = learner.cost(arrivals.rows.n_rows) or self.C
            self.certificates_ = online_certificates(model, arrivals, C)
            self.certificate_ = max(self.certificates_, key=lambda c: c.relative_gap)
            self.model_ = self.model_.telling(self._told())
        return self

    def _told(self) -> dict[str, Any]:
        """What a saved model tells of its making besides."""
        sentence = f"{self.mistakes_} mistakes in {self.n_seen_} examples"
        return {
            "certificates": [{"primal": c.primal, "dual": c.dual, "rule": c.rule} for c in self.certificates_],
            "statuses": [{"code": "online", "sentence": sentence} for _ in self.certificates_],
        }

    @property
    def _expansion(self) -> Any:
        """The vectors and their coefficients; of a vote those of the average."""
        return getattr(self.model_, "expansion", self.model_)

    def _supporting(self, model: Any) -> np.ndarray:
        """Stored examples of each class."""
        of_class = [model.coef[0] < 0.0, model.coef[0] > 0.0] if len(self.classes_) == 2 else list(model.coef > 0.0)
        return np.array([np.count_nonzero(mine) for mine in of_class], dtype=np.int32)

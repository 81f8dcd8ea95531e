"""Teachers on small tables, and what a small predictor is worth by definition, for the tests of sparsifiers."""

import numpy as np

from kernel_runs import clouds, problem_of
from slackwater.objective import hinge
from slackwater.solvers.kernel.blocked_smo import BlockedSMO
from slackwater.sparsify.contract import Teacher
from slackwater.training import Limits, run


def teacher_of(n=60, bias="free", kernel=None, *, table=None, loss=None, seed=5, **options) -> Teacher:
    """Trained to the limit on two clouds."""
    problem = problem_of(table or clouds(n, seed=seed), loss or hinge(), bias, kernel, **options)
    return Teacher(run(problem, BlockedSMO(), Limits(tol=1e-10), rng=0).model, problem)


def untrained(n=60, bias="free", kernel=None, **options) -> Teacher:
    """A problem alone, for methods that look at nothing else."""
    return Teacher(None, problem_of(clouds(n), hinge(), bias, kernel, **options))


def smalls(method, teacher, most=None, seed=0) -> list:
    """All predictors of a sequence."""
    return list(method.sequence(teacher, most or teacher.problem.n_rows, np.random.default_rng(seed)))

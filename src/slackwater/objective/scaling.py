"""Conversions between the parameters under which the same machine is published.

The library's own: cost C per example and lambda = 1 / (n C), P(w) = lambda ||w||^2 / 2 + mean loss. The
slack-constrained form has nu instead,

    max over ||w|| <= 1, xi >= 0, sum xi <= n nu   of   min_i (y_i <w, x_i> + xi_i),

with optimal value gamma. Exchange rules between the two hold without a bias and with a free one.
"""

from __future__ import annotations

# ------------------------------------------------------------------------------------------------- C and lambda


def lambda_of_cost(C: float, n: int) -> float:
    """lambda = 1 / (n C)."""
    return 1.0 / (n * C)


def cost_of_lambda(lam: float, n: int) -> float:
    """C = 1 / (lambda n)."""
    return 1.0 / (lam * n)


# ----------------------------------------------------------------------------------- the slack-constrained form


def nu_of_optimum(mean_hinge: float, norm: float) -> float:
    """The nu whose slack-constrained form has the optimum w* of P, up to its length ``norm`` = ||w*||."""
    return mean_hinge / norm


def gamma_of_optimum(norm: float) -> float:
    """gamma* = 1 / ||w*||, the value of the slack-constrained form at that nu."""
    return 1.0 / norm


def lambda_of_simplex(gamma: float, s: float, q: float, n: int) -> float:
    """lambda of an optimal pair (gamma, p): s = ||sum p_i y_i x_i|| and q = max p_i."""
    return gamma * s / (n * q)


def weights_per_direction(gamma: float, s: float) -> float:
    """w* = this number times sum p_i y_i x_i, and alpha* = this number times p."""
    return 1.0 / (gamma * s)


def simplex_bound(s: float, q: float, n: int, nu: float) -> float:
    """U(p) = ||sum p_i y_i x_i|| + n nu max p_i >= gamma* for every p of the simplex (rule C4).

    With a free bias p must also satisfy sum p_i y_i = 0.
    """
    return s + n * nu * q


# ---------------------------------------------------------------------------------------------- other programs


def perf_of_cost(C: float, n: int) -> float:
    """C_perf = n C = 1 / lambda of the one-slack form ||w||^2 / 2 + C_perf xi, xi the mean loss (SVM-perf)."""
    return n * C


def cost_of_perf(C_perf: float, n: int) -> float:
    """C = C_perf / n."""
    return C_perf / n


def cvm_of_cost(C: float) -> float:
    """C_cvm = 2 C = 2 / (lambda n) of core vector machines, with C the cost of the squared hinge."""
    return 2.0 * C


def cost_of_cvm(C_cvm: float) -> float:
    """C = C_cvm / 2."""
    return C_cvm / 2.0


def larank_of_cost(C: float) -> float:
    """C_larank = C / 2: with two classes LaRank's machine has one weight vector per class, each half of ours."""
    return C / 2.0


def cost_of_larank(C_larank: float) -> float:
    """C = 2 C_larank."""
    return 2.0 * C_larank


def gamma_of_sigma2(sigma2: float) -> float:
    """gamma of exp(-gamma ||x - x'||^2) for exp(-||x - x'||^2 / (2 sigma^2))."""
    return 1.0 / (2.0 * sigma2)


def sigma2_of_gamma(gamma: float) -> float:
    """sigma^2 = 1 / (2 gamma)."""
    return 1.0 / (2.0 * gamma)

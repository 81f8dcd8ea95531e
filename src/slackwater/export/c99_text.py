"""The text of exported headers in C99, with ``$holes``; NAME_ is the prefix of a model.

NAME_input is what a column of x is, NAME_sum what a sum over columns is, NAME_total what a sum over vectors is.
"""

from __future__ import annotations

from string import Template
from typing import Any

#: Of a = x_j and b = z_j: what a column adds; what it adds beyond x's own share, where only the entries of z that are
#: not 0 are gone through; and that share.
TERMS = {
    "linear": ("a * b", "a * b", ""),
    "polynomial": ("a * b", "a * b", ""),
    "sigmoid": ("a * b", "a * b", ""),
    "rbf": ("(a - b) * (a - b)", "b * (b - 2 * a)", "a * a"),
    "laplacian": ("a < b ? b - a : a - b", "(a < b ? b - a : a - b) - (a < 0 ? -a : a)", "a < 0 ? -a : a"),
    "chi2": (
        "a + b > 0 ? (a - b) * (a - b) / (a + b) : 0",
        "(a + b > 0 ? (a - b) * (a - b) / (a + b) : 0) - a",
        "a",
    ),
}


def filled(text: str, **holes: Any) -> str:
    """The text with its holes filled."""
    return Template(text).substitute(holes)


def sums_over_columns(kernel: str, table: str, sparse: bool) -> str:
    """NAME_line: the sum over the columns of x and a line of the table."""
    term, share = TERMS[kernel][int(sparse)], TERMS[kernel][2] if sparse else ""
    if not sparse:
        return filled(_DENSE_LINE, table=table, term=term)
    if not share:
        return filled(_SPARSE_LINE, table=table, term=term, start="0", parameter="")
    shared = filled(_SHARE, share=share)
    return shared + filled(_SPARSE_LINE, table=table, term=term, start="alone", parameter=", NAME_sum alone")


def decision(kernel: str, sparse: bool, pairs: bool, finish: str, name: str) -> str:
    """The function of decision values, of a kernel with vectors."""
    alone = bool(sparse and TERMS[kernel][2])
    return filled(
        _PAIRS if pairs else _OUTPUTS, name=name, finish=finish,
        alone="    const NAME_sum alone = NAME_alone(x);\n" if alone else "", argument=", alone" if alone else "",
    )  # fmt: skip


_SHARE = """\
/* What x adds to every sum over columns by itself. */
static inline NAME_sum NAME_alone(const NAME_input *x)
{
    NAME_sum sum = 0;
    uint32_t j;
    for (j = 0; j < NAME_COLUMNS; j++) {
        const NAME_sum a = (NAME_sum)x[j];
        sum += $share;
    }
    return sum;
}

"""

_DENSE_LINE = """\
/* The sum over the columns of x and line i. */
static inline NAME_sum NAME_line(const NAME_input *x, uint32_t i)
{
    NAME_sum sum = 0;
    uint32_t j;
    for (j = 0; j < NAME_COLUMNS; j++) {
        const NAME_sum a = (NAME_sum)x[j], b = (NAME_sum)NAME_$table[(size_t)i * NAME_COLUMNS + j];
        sum += $term;
    }
    return sum;
}

"""

_SPARSE_LINE = """\
/* The sum over the columns of x and line i. */
static inline NAME_sum NAME_line(const NAME_input *x, uint32_t i$parameter)
{
    NAME_sum sum = $start;
    uint32_t p;
    for (p = NAME_${table}_starts[i]; p < NAME_${table}_starts[i + 1]; p++) {
        const NAME_sum a = (NAME_sum)x[NAME_${table}_columns[p]], b = (NAME_sum)NAME_$table[p];
        sum += $term;
    }
    return sum;
}

"""

LINEAR = """\
static inline void NAME_$name(const NAME_input *x, float *out)
{
    uint32_t c;
    for (c = 0; c < NAME_OUTPUTS; c++) {
        const NAME_sum sum = NAME_line(x, c);
        out[c] = $finish;
    }
}

"""

_OUTPUTS = """\
static inline void NAME_$name(const NAME_input *x, float *out)
{
    NAME_total sums[NAME_OUTPUTS] = {0};
    uint32_t c, i;
$alone    for (i = 0; i < NAME_VECTORS; i++) {
        const NAME_total value = NAME_kernel(NAME_line(x, i$argument));
        for (c = 0; c < NAME_OUTPUTS; c++)
            sums[c] += (NAME_total)NAME_coef[(size_t)i * NAME_OUTPUTS + c] * value;
    }
    for (c = 0; c < NAME_OUTPUTS; c++) {
        const NAME_total sum = sums[c];
        out[c] = $finish;
    }
}

"""

_PAIRS = """\
/* The place of a pair of classes a < b among (0,1), (0,2), .., (1,2), .. */
static inline uint32_t NAME_pair(uint32_t a, uint32_t b)
{
    return a * (2 * NAME_CLASSES - a - 1) / 2 + b - a - 1;
}

static inline void NAME_$name(const NAME_input *x, float *out)
{
    NAME_total sums[NAME_OUTPUTS] = {0};
    uint32_t a, b, c, i = 0, end = 0;
$alone    for (a = 0; a < NAME_CLASSES; a++)
        for (end += NAME_blocks[a]; i < end; i++) {
            const NAME_total value = NAME_kernel(NAME_line(x, i$argument));
            for (c = 0; c + 1 < NAME_CLASSES; c++) {
                b = c < a ? c : c + 1;
                sums[b < a ? NAME_pair(b, a) : NAME_pair(a, b)] +=
                    (NAME_total)NAME_coef[(size_t)i * (NAME_CLASSES - 1) + c] * value;
            }
        }
    for (c = 0; c < NAME_OUTPUTS; c++) {
        const NAME_total sum = sums[c];
        out[c] = $finish;
    }
}

"""

# ------------------------------------------------------------------------------------------- from values to classes

CLASS_OF = {
    "sign": """\
/* The number of the class that decision values stand for. */
static inline int NAME_class_of(const float *values)
{
    return values[0] > 0;
}

""",
    "largest": """\
/* The number of the class that decision values stand for: the first of the largest. */
static inline int NAME_class_of(const float *values)
{
    int c, best = 0;
    for (c = 1; c < NAME_CLASSES; c++)
        if (values[c] > values[best])
            best = c;
    return best;
}

""",
    "votes": """\
/* The number of the class that decision values stand for: most votes of pairs, then the largest sum of values. */
static inline int NAME_class_of(const float *values)
{
    float votes[NAME_CLASSES] = {0}, sums[NAME_CLASSES] = {0};
    int a, b, best = 0, pair = 0;
    for (a = 0; a < NAME_CLASSES; a++)
        for (b = a + 1; b < NAME_CLASSES; b++, pair++) {
            votes[values[pair] > 0 ? a : b] += 1;
            sums[a] += values[pair];
            sums[b] -= values[pair];
        }
    for (a = 0; a < NAME_CLASSES; a++) {
        votes[a] += sums[a] / (3 * ((sums[a] < 0 ? -sums[a] : sums[a]) + 1));
        if (votes[a] > votes[best])
            best = a;
    }
    return best;
}

""",
}

PREDICT = """\
/* The number of the class of x; NAME_classes holds what it is called. */
static inline int NAME_predict(const float *x)
{
    float values[NAME_OUTPUTS];
    NAME_decision(x, values);
    return NAME_class_of(values);
}

"""

PREDICT_VALUE = """\
/* The value that the model predicts for x. */
static inline float NAME_predict(const float *x)
{
    float value[1];
    NAME_decision(x, value);
    return value[0];
}

"""

# ------------------------------------------------------------------------------------------------------- float32

REAL = """\
/* The type of sums. Where there is no unit for double, -DNAME_real=float is faster and less exact. */
#ifndef NAME_real
#define NAME_real double
#endif
typedef float NAME_input;
typedef NAME_real NAME_sum;
typedef NAME_real NAME_total;

"""

EXP = """\
/* exp(-t) for t >= 0: 2^-n exp(r) with |r| <= ln(2) / 2, where the terms left out are below 7e-15. */
static inline NAME_real NAME_exp_minus(NAME_real t)
{
    NAME_real r, value = 1, half = (NAME_real)0.5;
    uint32_t n;
    if (!(t < 87))
        return 0;
    if (t < 0)
        t = 0;
    n = (uint32_t)(t * (NAME_real)1.4426950408889634 + (NAME_real)0.5);
    r = (NAME_real)n * (NAME_real)0.6931471805599453 - t;
$horner    for (; n; n >>= 1, half *= half)
        if (n & 1)
            value *= half;
    return value;
}

"""
EXP = filled(EXP, horner="".join(f"    value = 1 + r * (NAME_real){1 / k!r} * value;\n" for k in range(11, 0, -1)))

KERNEL_VALUES = {
    "exponential": """\
static inline NAME_real NAME_kernel(NAME_real sum)
{
    return NAME_exp_minus((NAME_real)$gamma * sum);
}

""",
    "polynomial": """\
static inline NAME_real NAME_kernel(NAME_real sum)
{
    const NAME_real base = (NAME_real)$gamma * sum + (NAME_real)$coef0;
    NAME_real value = 1;
    int k;
    for (k = 0; k < $degree; k++)
        value *= base;
    return value;
}

""",
    "sigmoid": """\
static inline NAME_real NAME_kernel(NAME_real sum)
{
    const NAME_real t = (NAME_real)$gamma * sum + (NAME_real)$coef0;
    const NAME_real e = NAME_exp_minus(2 * (t < 0 ? -t : t));
    const NAME_real value = (1 - e) / (1 + e);
    return t < 0 ? -value : value;
}

""",
}

# --------------------------------------------------------------------------------------------------- fixed point

QUANTISE = """\
typedef $input NAME_input; /* a column of x, times NAME_STEPS */
typedef $sum NAME_sum; /* $bound */
typedef int64_t NAME_total; /* $total */

/* From a row to what the tables are made of; values beyond $lowest and $highest are taken for those. */
static inline void NAME_quantise(const float *x, NAME_input *q)
{
    uint32_t j;
    for (j = 0; j < NAME_COLUMNS; j++) {
        float steps = x[j] * NAME_STEPS;
        if (!(steps > ${least}.0f))
            steps = ${least}.0f;
        if (steps > ${most}.0f)
            steps = ${most}.0f;
        q[j] = (NAME_input)(steps < 0 ? steps - 0.5f : steps + 0.5f);
    }
}

"""

QUANTISED_DECISION = """\
static inline void NAME_decision(const float *x, float *out)
{
    NAME_input q[NAME_COLUMNS];
    NAME_quantise(x, q);
    NAME_decision_of(q, out);
}

"""

HALVES = """\
/* 2^30 2^-(u / 2^30), by a polynomial that errs by less than 2e-9; all products stay below 2^61. */
static inline int64_t NAME_halved(uint64_t u)
{
    const uint64_t f = u & 0x3fffffff;
    uint64_t value = $last;
    if (u >> 30 > 30)
        return 0;
$horner    return (int64_t)(value >> (u >> 30));
}

"""

FIXED_VALUES = {
    "exponential": """\
/* 2^30 times the kernel's value; the product stays below 2^62. */
static inline int64_t NAME_kernel(NAME_sum sum)
{
    return NAME_halved((uint64_t)sum * UINT64_C($factor) >> $shift);
}

""",
    "polynomial": """\
/* 2^30 times the kernel's value over $largest, which it never exceeds; all products stay below 2^62. */
static inline int64_t NAME_kernel(NAME_sum sum)
{
    const int64_t base = ((int64_t)sum * INT64_C($factor) + INT64_C($offset)) / (INT64_C(1) << $shift);
    int64_t value = INT64_C(1) << 30;
    int k;
    for (k = 0; k < $degree; k++)
        value = value * base / (INT64_C(1) << 30);
    return value;
}

""",
    "sigmoid": """\
/* 2^30 times the kernel's value; all products stay below 2^62. */
static inline int64_t NAME_kernel(NAME_sum sum)
{
    const int64_t t = (int64_t)sum * INT64_C($factor) + INT64_C($offset);
    const int64_t one = INT64_C(1) << 30, e = NAME_halved((uint64_t)(t < 0 ? -t : t) >> $shift);
    const int64_t value = (one - e) * one / (one + e);
    return t < 0 ? -value : value;
}

""",
}

"""Exported headers, compiled and run: the decision values and classes that the C gives."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow")

MAIN = """
#include <stdio.h>
#include "m.h"

int main(void)
{
    static float x[m_COLUMNS];
    float out[m_OUTPUTS], answer;
    while (fread(x, sizeof x, 1, stdin) == 1) {
        m_decision(x, out);
        answer = (float)m_predict(x);
        fwrite(out, sizeof out, 1, stdout);
        fwrite(&answer, sizeof answer, 1, stdout);
    }
    return 0;
}
"""


class Answers(NamedTuple):
    """What the C gives for every row."""

    values: np.ndarray  # (n, outputs)
    labels: np.ndarray  # the class's number, or the value that is predicted


def compiler(name: str = "gcc") -> str:
    """The path of a compiler; the test skips where there is none."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def built(folder: Path, header: str, cc: str = "gcc", flags: tuple[str, ...] = ("-std=c99", "-O2")) -> Path:
    """The program that reads rows of floats and writes answers, from a header with the prefix m_."""
    source = folder / ("main.c" if cc == "gcc" else "main.cpp")
    (folder / "m.h").write_text(header)
    source.write_text(MAIN)
    program = folder / "program"
    done = subprocess.run(
        [compiler(cc), *flags, *STRICT, str(source), "-o", str(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


def answers(program: Path, X: np.ndarray) -> Answers:
    """What it gives for the rows."""
    rows = np.ascontiguousarray(X, dtype=np.float32)
    done = subprocess.run([str(program)], input=rows.tobytes(), capture_output=True, check=True)
    out = np.frombuffer(done.stdout, dtype=np.float32).reshape(len(rows), -1)
    return Answers(out[:, :-1], out[:, -1])


def run_c(folder: Path, header: str, X: np.ndarray, cc: str = "gcc", flags=("-std=c99", "-O2")) -> Answers:
    """Compile and run."""
    return answers(built(folder, header, cc, flags), X)


def bytes_of_tables(folder: Path, program: Path) -> int:
    """The bytes of the constant tables in a program, as the linker placed them."""
    listing = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True).stdout
    return sum(int(size, 16) for size in re.findall(r"^\w+ (\w+) [rR] m_\w+$", listing, re.MULTILINE))

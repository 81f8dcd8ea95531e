"""Twins of the solvers: plain NumPy, one screen each, written to be obviously right and never to be fast.

Arrays are X (n, d), y in {-1, +1}, costs C_i; a bias is a constant column of X. A loss is its three numbers
(target, width, cap). The twins share no code with the package.
"""

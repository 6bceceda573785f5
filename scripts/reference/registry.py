"""How the scripts beside this one list their functions, and the numbers they take them at."""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass
class Entry:
    name: str
    f: Callable
    inputs: tuple
    # There is forward mode only, or reverse mode only.
    forward: bool
    reverse: bool
    # The derivative is a convention, or has no value. It is taken operation by operation: compiled as one, some
    # products of zero and infinity are zero. There are no second derivatives.
    kink: bool
    # A pole, where forward and reverse mode multiply other things with infinity.
    modes_differ: bool


class Functions:
    """A decorator that lists a function with its arguments: the name is that of the function."""

    def __init__(self):
        self.entries = []

    def __call__(self, *inputs, forward=False, reverse=False, kink=False, modes_differ=False):
        def enlist(f):
            self.entries.append(Entry(f.__name__, f, inputs, forward, reverse, kink, modes_differ))
            return f

        return enlist


def v(*numbers):
    """A vector, or a matrix of lists."""
    return np.array(numbers, dtype=np.float64)


def n(number):
    """A number."""
    return np.array(number, dtype=np.float64)


def ints(*numbers):
    return np.array(numbers, dtype=np.int64)


def normal(seed, *shape):
    """Normally distributed numbers with three digits, which are easy to read."""
    return np.round(np.random.default_rng(seed).normal(size=shape), 3)


def uniform(seed, *shape, low=0.0, high=1.0):
    return np.round(np.random.default_rng(seed).uniform(low, high, size=shape), 3)

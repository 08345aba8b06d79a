"""Random numbers of a row that depend on nothing but its key: on no other row, order or batch.

A key is a number of 64 bits. With the number of a draw it gives a stream, and with the code of a
column the numbers of that column in this draw. Each step is the mixing function of splitmix64
(Steele, Lea & Flood 2014): where one bit of its input differs, each bit of its output differs with
probability 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from skyfill.network._array import Rng
from skyfill.network.cells import Cells
from skyfill.network.mixture.compiled import leaf

Words = NDArray[np.uint64]
_STEP, _ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
_SIGN, _INFINITY = np.uint64(1 << 63), np.uint64(0x7FF0000000000000)
_PRIME = np.uint64(0x100000001B3)  # of the hash FNV-1a


class Keys(NamedTuple):
    """What the random numbers of some draws of a table follow from."""

    rows: Words  # (n,)
    columns: Words  # (p + 1,): the last one stands for the choice of a component
    first: int  # number of the first draw
    n_draws: int


@leaf
def mix(z):  # type: ignore[no-untyped-def]
    """Mix the bits of a word."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@leaf
def number(key, draw, code):  # type: ignore[no-untyped-def]
    """Give a number between 0 and 1: that of a column in a draw of a row."""
    return _between(mix(_stream(key, draw) ^ code))


@leaf
def begin(states, a, key, draw, code):  # type: ignore[no-untyped-def]
    """Begin the a-th of several streams of numbers: that of a column in a draw of a row."""
    states[a] = _stream(key, draw) ^ code


@leaf
def uniform(states, a):  # type: ignore[no-untyped-def]
    """Give the next number between 0 and 1 of the a-th of several streams."""
    states[a] += _STEP
    return _between(mix(states[a]))


@leaf
def _between(word):  # type: ignore[no-untyped-def]
    """Turn a word into a number above 0 and, whatever is rounded, below 1."""
    return min((float(word >> np.uint64(11)) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)


@leaf
def _stream(key, draw):  # type: ignore[no-untyped-def]
    return mix(key + _STEP * np.uint64(draw + 1))


def code_of(name: str) -> int:
    """Give a column the same word in every model."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def codes_of(names: Sequence[str]) -> Words:
    """Return the codes of columns, and one for the choice of a component."""
    return np.array([*map(code_of, names), 0], np.uint64)


def keys_of_rows(cells: Cells, rng: Rng) -> Words:
    """Return the keys that rows have, or else random ones."""
    if cells.keys is not None:
        return cells.keys
    return np.random.default_rng(rng).integers(2**63, size=len(cells), dtype=np.uint64)


def keyed(cells: Cells, rng: Rng) -> Cells:
    """Give rows without keys those that follow from a seed and from what is known of them."""
    return cells if cells.keys is not None else cells.with_keys(keys_of_cells(cells, rng))


def keys_of_cells(cells: Cells, rng: Rng) -> Words:
    """Give each row a key that follows from a seed and from what is known of it.

    Equal rows have equal keys. Zeros are equal whatever their sign, and so are all NaN.

    Parameters
    ----------
    cells : Cells
    rng : int, numpy.random.Generator or None
        The seed; a generator gives one number.

    Examples
    --------
    >>> one, other, same = keys_of_cells(Cells([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]), 0)
    >>> bool(one == same), bool(one == other)
    (True, False)
    """
    keys = np.empty(len(cells), np.uint64)
    nothing = np.empty((0, cells.values.shape[1]))
    beside = (nothing if a is None else a for a in (cells.lower, cells.upper, cells.errors))
    _hash_rows(_seed(rng), tuple(map(_words, (cells.values, *beside))), keys)
    return keys


def numbered(keys: Words, first: int) -> Words:
    """Give equal rows keys of their own, by their numbers; `first` is that of the first row."""
    keys = keys.copy()
    _add_numbers(np.uint64(first), keys)
    return keys


def keys_of_texts(starts: NDArray[np.int64], text: NDArray[np.uint8], rng: Rng) -> Words:
    """Give each text a key that follows from a seed and from its bytes.

    The i-th text is ``text[starts[i] : starts[i + 1]]``.
    """
    keys = np.empty(len(starts) - 1, np.uint64)
    _hash_texts(_seed(rng), starts, text, keys)
    return keys


def _seed(rng: Rng) -> np.uint64:
    return np.random.default_rng(rng).integers(2**63, dtype=np.uint64)


def _words(table: NDArray[np.float64]) -> Words:
    """View numbers as words, read-only, so that kernels are compiled for one type."""
    words = np.ascontiguousarray(table).view(np.uint64)
    words.flags.writeable = False
    return words


@njit(cache=True, nogil=True)
def _hash_rows(seed, tables, out):  # type: ignore[no-untyped-def]
    for r in range(out.size):
        key, place = mix(seed), np.uint64(0)
        for table in tables:
            for j in range(table.shape[1]):
                place += _ONE
                if table.shape[0] == 0:
                    continue
                word = table[r, j]
                size = word & ~_SIGN
                if size <= _INFINITY:  # a NaN says nothing
                    key = mix(key ^ mix((word if size else size) + _STEP * place))
        out[r] = key


@njit(cache=True, nogil=True)
def _add_numbers(first, keys):  # type: ignore[no-untyped-def]
    for r in range(keys.size):
        keys[r] = mix(keys[r] ^ mix(first + np.uint64(r)))


@njit(cache=True, nogil=True)
def _hash_texts(seed, starts, text, out):  # type: ignore[no-untyped-def]
    for r in range(out.size):
        key = mix(seed)
        for i in range(starts[r], starts[r + 1]):
            key = (key ^ np.uint64(text[i])) * _PRIME
        out[r] = mix(key)

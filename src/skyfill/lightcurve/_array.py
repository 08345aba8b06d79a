"""Aliases of the array types that the kernels of this room take and give."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
ComplexArray = NDArray[np.complex64]

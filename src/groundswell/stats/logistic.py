"""Logistic models by maximum likelihood, many data sets of one design at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

RIDGE = 0.01
"""Every parameter is drawn towards 0 as by a normal prior with a standard deviation of 10. On the scale of log odds
that is too little to matter, and enough that what never or always happened has a finite strength."""
LOOSE = 0.01
"""So much of the ridge is left where it is tried what it holds ..."""
HELD = 0.5
"""... and what moves by more than this then is held by the ridge and not by data. One with a single event to the other
side moves by a tenth or two, one that runs away by two or more, however many rows there are."""
STEPS = 60
CLOSE = 1e-8
HALVINGS = 12
LONGEST = 4.0
ROOM = 4_000_000
"""Data sets are fitted together as long as their matrices have no more entries than that."""


class Design(NamedTuple):
    """The few parameters that each row of a model has, with their factors; and how many parameters there are."""

    columns: Ints
    factors: Floats
    size: int

    def seen(self, n: Ints) -> Design:
        """The design without rows of which there are none: they can tell nothing."""
        return self._replace(factors=self.factors * (n > 0)[:, None])

    def without(self, column: int) -> Design:
        """The design with one parameter that no row has."""
        return self._replace(factors=self.factors * (self.columns != column))

    def tells(self, sums: Floats) -> Bools:
        """Whether the rows can tell weighted sums of parameters, one row of weights for each."""
        import numpy as np

        told: Bools = np.abs(sums @ _hidden(_matrices(self)[0])).max(axis=1, initial=0.0) < CLOSE
        return told


class Fitted(NamedTuple):
    """The parameters of the data (one column), what they are with next to no ridge, and those of draws of the data."""

    found: Floats
    loose: Floats
    drawn: Floats
    design: Design

    def figures(self, sums: Floats) -> Figures:
        """Weighted sums of parameters, one row of weights for each."""
        import numpy as np

        told = self.design.tells(sums)
        moves = (sums @ (self.loose - self.found))[:, 0]
        if len(moves) > 1:  # those that are measured from the mean of all move with one that runs away
            moves = moves - np.median(moves)
        return Figures((sums @ self.found)[:, 0], sums @ self.drawn, told, told & (np.abs(moves) > HELD))


class Figures(NamedTuple):
    """Values, their draws, whether the rows can tell each, and whether each would run away but for the ridge."""

    values: Floats
    drawn: Floats
    told: Bools
    held: Bools


def fitted(design: Design, passed: Floats, drawn: Floats, n: Floats, penalty: Floats) -> Fitted:
    """The model of rows of which so many of n passed, and of draws of them (a column each)."""
    import numpy as np

    rows, squares = _matrices(design)
    found = _climb(rows, squares, passed[:, None], n[:, None], penalty, np.zeros((design.size, 1)))
    loosened = penalty - (1 - LOOSE) * RIDGE * np.eye(design.size)
    loose = _climb(rows, squares, passed[:, None], n[:, None], loosened, found)
    at_once = max(1, ROOM // design.size**2)
    again = [
        _climb(rows, squares, part, n[:, None], penalty, np.repeat(found, part.shape[1], axis=1))
        for part in (drawn[:, i : i + at_once] for i in range(0, drawn.shape[1], at_once))
    ]
    return Fitted(found, loose, np.concatenate(again, axis=1), design)


def _climb(rows: Any, squares: Any, passed: Floats, n: Floats, penalty: Floats, found: Floats) -> Floats:
    """Newton's method on the penalised likelihood, which is concave; a step that does not climb is halved."""
    import numpy as np

    def height(at: Floats) -> Floats:
        logits = rows @ at
        likelihood = (passed * logits - n * np.logaddexp(0, logits)).sum(axis=0)
        reached: Floats = likelihood - (at * (penalty @ at)).sum(axis=0) / 2
        return reached

    for _ in range(STEPS):
        share = _share(rows @ found)
        slope = rows.T @ (passed - n * share) - penalty @ found
        step = np.linalg.solve(_bend(squares, share, n, penalty), slope.T[:, :, None])[:, :, 0].T
        longest = np.abs(step).max(axis=0, initial=0.0)
        if longest.max(initial=0.0) < CLOSE:
            break
        found = _stepped(found, step * np.minimum(1, LONGEST / np.maximum(longest, CLOSE)), height)
    return found


def _stepped(found: Floats, step: Floats, height: Callable[[Floats], Floats]) -> Floats:
    import numpy as np

    before = height(found)
    for _ in range(HALVINGS):
        fell = height(found + step) < before - CLOSE * (1 + np.abs(before))
        if not fell.any():
            break
        step = np.where(fell, step / 2, step)
    return found + step


def _share(logits: Floats) -> Floats:
    import numpy as np

    share: Floats = (1 + np.tanh(logits / 2)) / 2
    return share


def _bend(squares: Any, share: Floats, n: Floats, penalty: Floats) -> Floats:
    """The penalised information, a matrix for each data set."""
    size = len(penalty)
    information: Floats = (squares @ (n * share * (1 - share))).T.reshape(-1, size, size)
    return information + penalty


def _hidden(rows: Any) -> Floats:
    """The directions in which parameters can go without any row noticing, a column each."""
    import numpy as np

    lengths, directions = np.linalg.eigh((rows.T @ rows).toarray())
    nowhere: Floats = directions[:, lengths < CLOSE * max(1.0, lengths.max())]
    return nowhere


def _matrices(design: Design) -> tuple[Any, Any]:
    """The design as a sparse matrix, and the one that makes all products of two columns, summed over rows."""
    import numpy as np
    from scipy import sparse  # type: ignore[import-untyped]

    columns, factors, size = design
    count, each = columns.shape
    index = np.repeat(np.arange(count), each)
    rows = sparse.csr_array((factors.ravel(), (index, columns.ravel())), shape=(count, size))
    places = columns[:, :, None] * size + columns[:, None, :]
    products = factors[:, :, None] * factors[:, None, :]
    index = np.repeat(np.arange(count), each * each)
    squares = sparse.csr_array((products.ravel(), (places.ravel(), index)), shape=(size * size, count))
    return rows, squares

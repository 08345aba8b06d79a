"""Where to put the nodes of a network on paper, and the drawing of it as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from skyfill.network._array import Array

# The paper, in its own units; the SVG scales to whatever room there is.
WIDTH, HEIGHT, MARGIN = 960.0, 600.0, 24.0
NODE_HEIGHT, LETTER_WIDTH, NODE_PADDING = 30.0, 8.2, 24.0
STEPS, APART_STEPS = 300, 80
# Okabe & Ito (2008), distinct for all kinds of color vision; pale, so that black letters show.
FILLS = ("#8ec5e8", "#f5cd75", "#7fd1b5", "#e6b7d1", "#efac80", "#f2ea8e", "#c9c9c9", "#7fb0d0")
NEAR_SIDES = 1.15

Arcs = Mapping[tuple[str, str], float]


def node_widths(names: Sequence[str]) -> Array:
    """Width of each node's box: its name and some air."""
    return np.array([LETTER_WIDTH * len(name) + NODE_PADDING for name in names])


def place_nodes(names: Sequence[str], arcs: Arcs) -> Array:
    """Place nodes so that arcs are short and boxes do not overlap; the same input, the same place.

    Parameters
    ----------
    names : sequence of str
    arcs : mapping of (parent, child) to strength

    Returns
    -------
    array of shape (p, 2)
        Centers, inside a paper of WIDTH by HEIGHT.

    Examples
    --------
    >>> places = place_nodes(["V", "I"], {("V", "I"): 1.0})
    >>> bool(np.ptp(places[:, 0]) > 30)
    True
    """
    p = len(names)
    turn = 2 * np.pi * np.arange(p) / max(p, 1)
    at = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    pull = np.zeros((p, p))
    index = {name: j for j, name in enumerate(names)}
    for (parent, child), strength in arcs.items():
        pull[index[parent], index[child]] = pull[index[child], index[parent]] = strength
    if pull.any():
        pull /= pull.max()
    for step in range(STEPS):
        at = at + _forces(at, pull, room=1.6 / np.sqrt(max(p, 1))) * 0.1 * (1 - step / STEPS)
    return _apart(_spread(at, names), node_widths(names))


def _forces(at: Array, pull: Array, room: float) -> Array:
    """Fruchterman & Reingold (1991): all repel one another, arcs attract; a step of length one."""
    between = at[:, None] - at[None]
    distance = np.sqrt((between**2).sum(axis=2)) + 1e-9
    push = room**2 / distance**2 - pull * distance / room
    force = (between * push[..., None]).sum(axis=1) - 0.3 * at
    length = np.sqrt((force**2).sum(axis=1, keepdims=True)) + 1e-9
    return np.asarray(force / length * np.minimum(length, 1.0))


def _spread(at: Array, names: Sequence[str]) -> Array:
    """Stretch places over the paper."""
    if len(at) < 2:
        return np.full(at.shape, (WIDTH / 2, HEIGHT / 2))
    edge = np.array([node_widths(names).max() / 2, NODE_HEIGHT / 2]) + MARGIN
    low, reach = at.min(axis=0), np.ptp(at, axis=0)
    share = np.where(reach > 1e-6, (at - low) / np.maximum(reach, 1e-6), 0.5)
    return np.asarray(edge + share * (np.array([WIDTH, HEIGHT]) - 2 * edge))


def _apart(at: Array, widths: Array) -> Array:
    """Push overlapping boxes apart along the shorter way, inside the paper."""
    at = at.copy()
    need_x = (widths[:, None] + widths[None]) / 2 + 14
    need_y = NODE_HEIGHT + 18
    half = np.stack([widths / 2, np.full(len(at), NODE_HEIGHT / 2)], axis=1) + MARGIN / 2
    for _ in range(APART_STEPS):
        for i in range(len(at)):
            for j in range(i):
                gap = at[i] - at[j]
                over_x, over_y = need_x[i, j] - abs(gap[0]), need_y - abs(gap[1])
                if over_x > 0 and over_y > 0:
                    axis, over = (0, over_x) if over_x < over_y else (1, over_y)
                    shift = np.copysign(over / 2, gap[axis] or 1.0)
                    at[i, axis] += shift
                    at[j, axis] -= shift
        at = np.clip(at, half, np.array([WIDTH, HEIGHT]) - half)
    return at


def draw_svg(
    names: Sequence[str], arcs: Arcs, groups: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Draw a network: boxes with names, colored by group, and arrows as wide as arcs are strong.

    Parameters
    ----------
    names : sequence of str
    arcs : mapping of (parent, child) to strength
        Any positive numbers; the strongest arc is the widest.
    groups : mapping of str to sequences of str, optional
        Which nodes belong together, such as the bands of one survey.

    Examples
    --------
    >>> draw_svg(["V", "I"], {("V", "I"): 1.0})[:4]
    '<svg'
    """
    at, widths = place_nodes(names, arcs), node_widths(names)
    index = {name: j for j, name in enumerate(names)}
    color = {n: FILLS[g % len(FILLS)] for g, of in enumerate((groups or {}).values()) for n in of}
    most = max(arcs.values(), default=1.0) or 1.0
    lines = []
    for (parent, child), strength in sorted(arcs.items(), key=lambda arc: arc[1]):
        i, j = index[parent], index[child]
        lines.append(_arrow(at[i], at[j], float(widths[j]), share=strength / most))
    boxes = [
        _box(name, at[j], float(widths[j]), fill=color.get(name, FILLS[0]))
        for j, name in enumerate(names)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img"'
        f' aria-label="network of {len(names)} features and {len(arcs)} arcs"'
        ' style="max-width:60em;background:#fff" font-family="sans-serif" font-size="14">'
        + "".join(lines + boxes)
        + "</svg>"
    )


def _arrow(start: Array, end: Array, width: float, *, share: float) -> str:
    """Draw a line that ends at the child's box, with a head."""
    step = start - end
    # Where the line crosses the box: the nearer of its two sides.
    sides = np.array([width, NODE_HEIGHT]) / 2
    reach = NEAR_SIDES * min(
        (s / abs(d) for s, d in zip(sides, step, strict=True) if abs(d) > 1e-9), default=0.0
    )
    tip = end + step * min(reach, 0.9)
    along = step / (np.hypot(*step) + 1e-9)
    across = np.array([-along[1], along[0]])
    size = 6 + 5 * share
    head = [tip, tip + size * (along + 0.45 * across), tip + size * (along - 0.45 * across)]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
    neck = tip + size * along
    return (
        f'<g opacity="{0.3 + 0.6 * share:.2f}"><line x1="{start[0]:.1f}" y1="{start[1]:.1f}" '
        f'x2="{neck[0]:.1f}" y2="{neck[1]:.1f}" stroke="#444" stroke-width="{1 + 4 * share:.1f}"/>'
        f'<polygon points="{corners}" fill="#444"/></g>'
    )


def _box(name: str, at: Array, width: float, *, fill: str) -> str:
    return (
        f'<rect x="{at[0] - width / 2:.1f}" y="{at[1] - NODE_HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{NODE_HEIGHT:.0f}" rx="15" fill="{fill}" stroke="#222"/>'
        f'<text x="{at[0]:.1f}" y="{at[1] + 5:.1f}" text-anchor="middle">{escape(name)}</text>'
    )

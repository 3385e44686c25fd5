"""Figures that are not of an experiment: the margins of an exploration, and the noise of the local model.

The first is after Simonsohn, Simmons and Nelson, Specification curve analysis, Nature Human Behaviour 4, 2020. The
noise is figure 2 of Neera et al. 2020: what Laplace and bounded Laplace add to the same ratings.
"""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.papers.record import Explored
from dpmf_cli.papers.verdicts import judged, limit_of, prior_of
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace
from dpmf_cli.report.figures.style import COLOURS, GREY, file_of, new_figure

_WIDTH, _ROW, _FAR = 10.0, 0.24, 100.0


def specification_bytes(explored: Explored, form: str) -> bytes:
    """Draws margins as PNG, SVG or PDF.

    Each row is an inequality, under each reading of its sentence. Its margins are in units of the limit from which a
    setting decides: right of 1 it holds, left of −1 it fails. A small dot is a setting. The large dot is the shipped
    setting, or the best setting for each ε if the paper chose parameters for each ε.
    """
    return file_of(lambda: _draw(explored), form)


def _draw(explored: Explored) -> Figure:
    height = _ROW * len(explored.atoms) + 1.1
    figure = new_figure(_WIDTH, height)
    axes = figure.add_axes((0.56, 0.6 / height, 0.42, 1 - 1.1 / height))
    words = {
        (claim, each.text): each.word
        for claim in dict.fromkeys(atom.claim for atom in explored.atoms)
        for each in judged(explored, claim)
    }
    colours = {"holds": COLOURS[2], "fails": COLOURS[3], "depends": COLOURS[1]}
    names = []
    for at, atom in enumerate(explored.atoms):
        table = np.array([each.margins[at] for each in explored.tried], float)
        with np.errstate(invalid="ignore"):
            limits = limit_of(table[:, 1:], atom.tolerance, explored.partition, prior_of(atom.shipped))
            dots = _scaled(table[:, 0] / np.maximum(limits, 1e-12))
        axes.plot(dots, np.full(len(dots), -at), ".", color=GREY, markersize=3, alpha=0.5)
        middle = float(np.mean(np.array(atom.chosen, float))) if atom.chosen else table[0, 0]
        word = words[atom.claim, atom.text]
        place = _scaled(np.array([middle / max(float(np.nanmedian(limits)), 1e-12)]))
        axes.plot(place, [-at], "o", color=colours.get(word, GREY), markersize=6)
        names.append(f"{atom.text}{f' ({atom.reading})' if atom.reading else ''}: {word}")
    axes.axvspan(-1, 1, color=GREY, alpha=0.15, linewidth=0)
    axes.axvline(0, color=GREY, linewidth=0.6)
    axes.set_yticks(-np.arange(len(names)), names, fontsize=7)
    axes.set_ylim(-len(names) + 0.5, 0.5)
    axes.set_xlim(-_scaled(np.array([_FAR]))[0] - 0.2, _scaled(np.array([_FAR]))[0] + 0.2)
    ticks = np.array([-_FAR, -10, -1, 0, 1, 10, _FAR])
    axes.set_xticks(_scaled(ticks), [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("fails   ←   margin, in units of what decides   →   holds", fontsize=8)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(f"{explored.title}: {len(explored.tried)} settings", loc="right", fontsize=9)
    return figure


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the places of margins: linear up to 1, then logarithmic up to `_FAR`."""
    size = np.minimum(np.abs(values), _FAR)
    return np.asarray(np.sign(values) * np.where(size <= 1, size, 1 + np.log10(np.maximum(size, 1))))


EPSILONS = (0.1, 1.0)
SAMPLES = 100_000


def noise_samples(
    ratings: Ratings, epsilon: float, *, seed: int, samples: int = SAMPLES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (samples,) Laplace(1/ε) and (samples,) r* − r of bounded Laplace, on [0, 1], for random ratings.

    Both mechanisms invert their CDF at the same uniforms.
    """
    rng = named_generator(seed, "noise histograms", repr(epsilon))
    drawn = ratings.values[rng.integers(len(ratings), size=samples)].astype(np.float64)
    values = (drawn - ratings.scale.minimum) / ratings.scale.width
    uniforms = np.maximum(rng.random((samples, 1)), 2.0**-54)
    bounded = BoundedLaplace().decoded(values, uniforms, np.array([epsilon]))[:, 0] - values
    centred = uniforms[:, 0] - 0.5
    return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / epsilon, bounded


def noise_figure(ratings: Ratings, title: str, form: str = "png", *, seed: int = 2020) -> bytes:
    """Draws the four histograms as PNG, SVG or PDF; equal arguments give equal bytes."""

    def draw() -> Figure:
        figure = new_figure(7.0, 4.6)
        figure.set_layout_engine("constrained")
        for row, epsilon in zip(figure.subplots(len(EPSILONS), 2), EPSILONS, strict=True):
            both = noise_samples(ratings, epsilon, seed=seed)
            names = ("Laplace", "bounded Laplace")
            for panel, name, noise, colour in zip(row, names, both, COLOURS[:2], strict=True):
                panel.hist(noise, bins=80, density=True, color=colour)
                panel.set_title(f"{name}, ε = {epsilon:g}", loc="left", fontsize=9)
                panel.set_xlabel(f"noise on [0, 1]; mean {noise.mean():.3f}, deviation {noise.std():.3f}")
                panel.spines[["top", "right"]].set_visible(False)
            row[0].set_ylabel("density")
        figure.suptitle(f"{title}: {SAMPLES:,} draws each", fontsize=10, x=0.01, ha="left")
        return figure

    return file_of(draw, form)

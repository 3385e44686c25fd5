"""Figure 2 of Neera et al. 2020: the noise that Laplace and bounded Laplace add to the same ratings."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace
from dpmf_cli.report.figures.style import COLOURS, file_of, new_figure

EPSILONS = (0.1, 1.0)
SAMPLES = 100_000


def noise_samples(
    ratings: Ratings, epsilon: float, *, seed: int, samples: int = SAMPLES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(samples,) Laplace(1/ε) and (samples,) r* − r of bounded Laplace, on [0, 1], for random ratings, by the inverse
    CDF at the same uniforms."""
    rng = named_generator(seed, "noise histograms", repr(epsilon))
    drawn = ratings.values[rng.integers(len(ratings), size=samples)].astype(np.float64)
    values = (drawn - ratings.scale.minimum) / ratings.scale.width
    uniforms = np.maximum(rng.random((samples, 1)), 2.0**-54)
    bounded = BoundedLaplace().decoded(values, uniforms, np.array([epsilon]))[:, 0] - values
    centred = uniforms[:, 0] - 0.5
    return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / epsilon, bounded


def noise_figure(ratings: Ratings, title: str, form: str = "png", *, seed: int = 2020) -> bytes:
    """The four histograms as PNG, SVG or PDF; equal arguments give equal bytes."""

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

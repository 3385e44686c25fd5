"""No algorithm draws noise except through its curator, or other randomness except from its streams."""

import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpmf_cli import algorithms
from dpmf_cli.algorithms.plugins import HIDDEN, OF_MECHANISMS, SEALED, past_the_seam
from dpmf_cli.core.streams import UNIFORM_LAWS, Streams, UnaccountedNoiseError
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import NoisyKernel, Release, noisy_kernel
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.privacy.curators import curator_of

PACKAGE = Path(algorithms.__file__).parent
STREAMS = Streams(1, "data", "algorithm", 0, 0)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_algorithm_draws_past_the_seam(path: Path) -> None:
    assert not list(past_the_seam(path.read_text()))


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "import numpy.random",
        "from numpy.random import default_rng",
        "from numpy import random",
        "from scipy import stats",
        "import numpy as np\ny = np.random.normal()",
        "import numpy\nrng = numpy.random.default_rng(3)",
        "import numpy as N\nN.random.normal()",
        "import numpy as np\nrng = np.random.Generator(bits)",
        "import scipy\nscipy.stats.norm.rvs()",
        "from numpy.random.mtrand import RandomState",
        "self.curator.noise('step')",
        "draw = curator.noise",
        *(f"{owner}.{attribute}('step')" for owner in ("streams", "curator") for attribute in OF_MECHANISMS),
        *(f"from dpmf_cli.privacy import {name}" for name in SEALED),
        *(f"release.{attribute}" for attribute in HIDDEN),
    ],
)
def test_what_draws_past_the_seam_is_found_in_its_line(code: str) -> None:
    (found, *_) = past_the_seam(code)
    assert found[0] == code.count("\n") + 1


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\ndef f(ε: float, rng: np.random.Generator): ...",
        "streams.generator('order').permutation(3)",
        "laplace('step')",
        "self._noise",
    ],
)
def test_what_stays_before_the_seam_is_not_found(code: str) -> None:
    assert not list(past_the_seam(code))


def test_a_generator_of_an_algorithm_refuses_the_laws_of_noise() -> None:
    rng = STREAMS.generator("order")
    laws = {name for name in dir(np.random.Generator) if not name.startswith("_")} - {"bit_generator"}
    for law in laws - set(UNIFORM_LAWS):
        with pytest.raises(UnaccountedNoiseError, match=f"`{law}` draws noise that no ledger knows of"):
            getattr(rng, law)()
    assert {"laplace", "normal", "standard_normal", "gumbel", "exponential", "gamma"} <= laws - set(
        UNIFORM_LAWS
    )


def test_a_quiet_generator_draws_what_numpys_own_does_and_so_does_a_copy() -> None:
    quiet, loud = STREAMS.generator("order"), np.random.Generator(STREAMS._bits("order"))
    there = pickle.loads(pickle.dumps(quiet))
    drawn = loud.random(5)
    assert np.array_equal(quiet.random(5), drawn)
    assert np.array_equal(there.random(5), drawn)
    with pytest.raises(UnaccountedNoiseError):
        there.laplace()


def test_start_values_are_normal_and_of_no_law_that_only_noise_has() -> None:
    start = STREAMS.start("factors")
    assert np.array_equal(start.normal(size=3), np.random.Generator(STREAMS._bits("factors")).normal(size=3))
    for law in ("laplace", "gumbel", "standard_exponential", "standard_gamma"):
        with pytest.raises(UnaccountedNoiseError):
            getattr(start, law)()


def test_a_release_is_made_by_a_mechanism_alone() -> None:
    entry = Ledger([1.0]).spend("s", "m", Sensitivity(1, 1, Neighbours.BOUNDED, ""), np.ones(1))
    with pytest.raises(TypeError, match=r"only a mechanism of .* can make a release"):
        Release(entry, 0, 0, LaneNoise(np.zeros(1), np.ones(1)), None, object())


def test_a_kernel_that_adds_noise_needs_a_reference_and_a_release() -> None:
    entry = Ledger([1.0]).spend("s", "m", Sensitivity(1, 1, Neighbours.BOUNDED, ""), np.ones(1))
    release = curator_of(Ledger([1.0])).release(entry, LaneNoise(np.zeros(1), np.ones(1)))
    with pytest.raises(TypeError, match="has no noise for the models"):
        release.inside(
            noisy_kernel(print)(print), SimpleNamespace(groups=[SimpleNamespace(part=slice(1, 2))])
        )
    with pytest.raises(TypeError, match="has no Python reference"):
        release.inside(print, ())  # type: ignore[arg-type]

    def run(group: object, noise: LaneNoise) -> None: ...

    kernel = noisy_kernel(run)(run)
    assert isinstance(kernel, NoisyKernel)
    with pytest.raises(TypeError, match=r"run adds noise: run it by `Release\.inside`"):
        kernel(None)

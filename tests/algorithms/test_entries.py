"""What is true of the entries of every method: its key, its variants, and parameters that only one mode uses."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.audit.entries import registered
from dpmf_cli.privacy.neighbours import Mode

IN_BOTH_MODES = {
    key: {neighbours for neighbours, mode in entry.variants if (neighbours, Mode.PUBLISHED) in entry.variants}
    for key, entry in PRIVATE.items()
}
ONLY = [
    (key, mode, field)
    for key, entry in PRIVATE.items()
    for mode in Mode
    for field in entry.only.get(mode, ())
]


def changed(default: Any) -> Iterator[Any]:
    """Yields values near a default, of which one is valid at least."""
    if isinstance(default, BaseModel):
        values = default.model_dump()
        numbers = [key for key, value in values.items() if isinstance(value, float)]
        yield {**values, **dict(zip(numbers, reversed([values[key] for key in numbers]), strict=True))}
        yield {**values, **{key: values[key] / 2 for key in numbers}}
    elif isinstance(default, Enum):
        yield from (each.value for each in type(default) if each is not default)
    else:
        number = 2 if default is None else default
        yield from {number / 4, number / 2, number * 2, number + 0.5, number + 1} - {default}


@pytest.mark.parametrize(("key", "mode", "field"), ONLY)
def test_a_parameter_of_one_mode_is_refused_in_the_other_but_for_its_default(
    key: str, mode: Mode, field: str
) -> None:
    (neighbours, *_), entry = sorted(IN_BOTH_MODES[key]), PRIVATE[key]
    other = Mode.CORRECTED if mode is Mode.PUBLISHED else Mode.PUBLISHED
    given = {"algorithm": key, "neighbours": neighbours}
    default, made = entry.model_fields[field].default, []
    named = get_args(entry.model_fields[field].annotation)
    for value in named if default in named else changed(default):
        with suppress(ValidationError):
            made.append(entry.model_validate({**given, "mode": mode, field: value}))
    allowed = [each for each in made if getattr(each, field) != default]
    assert allowed
    for each in allowed:
        with pytest.raises(ValidationError, match=f"{other} mode of {key} would ignore it.*`mode: {mode}`"):
            entry.model_validate({**given, "mode": other, field: getattr(each, field)})
    entry.model_validate({**given, "mode": other, field: default})
    assert entry.model_validate(allowed[0].model_dump()) == allowed[0]


@pytest.mark.parametrize("key", PRIVATE)
def test_an_audit_of_all_has_every_variant_with_its_small_parameters(key: str) -> None:
    found = Counter((each.neighbours, each.mode) for each in registered(key))
    assert found.keys() == PRIVATE[key].variants.keys()
    for each in registered(key):
        for field, value in PRIVATE[key].small_in(each.mode).items():
            assert getattr(each, field) == value or field in each.ignored


def test_an_audit_of_all_tries_every_choice() -> None:
    found = [each.name for each in registered()]
    assert {
        "mm_svd, laplace, refitted, user, published",
        "mm_svd, gaussian, unbounded, corrected",
        "dpsgd_pnbm, samples of 0.3, bounded, published",
        "dpsgd_pnbm, laplace, samples of 0.3, user, corrected",
        "local_mf, blp, local, corrected",
        "dp_sgd, averaged, samples of 1, user, corrected",
        "personalized, of dp_pmf, bounded, published",
        "personalized, of pals, unbounded, corrected",
    } <= {*found}
    assert not any(name.startswith("dpsgd_pnbm, laplace") and name.endswith("published") for name in found)
    assert len(found) == 187


def test_how_many_parameters_only_one_mode_uses() -> None:
    """As published, and corrected. A parameter that is forgotten here would be ignored without a word."""
    assert {
        key: tuple(len(of.only.get(mode, ())) for mode in Mode) for key, of in PRIVATE.items() if of.only
    } == {
        "dp_pmf": (11, 7),
        "dpps_mf": (5, 8),
        "dpps_pnbm": (0, 4),
        "dpsgd_pnbm": (2, 5),
        "dpals": (0, 2),
        "dpam": (0, 1),
        "hua_mf": (3, 3),
    }


@pytest.mark.parametrize("key", ["dpps_mf", "dpps_pnbm", "dpsgd_pnbm"])
def test_a_method_that_does_not_charge_for_averages_claims_no_delta(key: str) -> None:
    """As published. Then θ is ε, and no δ is among what names a result."""
    published, corrected = (PRIVATE[key].model_validate({"algorithm": key, "mode": mode}) for mode in Mode)
    assert (published.spends_delta, corrected.spends_delta) == (0.0, 1e-6)
    assert published.epsilon_of(0.7) == published.theta_of(0.7) == 0.7 != corrected.epsilon_of(0.7)
    assert "delta" not in published.parameters()

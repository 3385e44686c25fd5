"""The key of machine code contains everything that the code depends on."""

from typing import Any

import llvmlite
import numba
import numpy as np
import pytest
from numba import float64
from numba.core import config

from dpmf_cli.compiled import entries
from dpmf_cli.compiled.decorator import compiled
from tests.compiled import made

TARGET = ("x86_64-unknown-linux-gnu", "skylake", "+avx2")
KIND = (float64[::1], float64[::1])


@pytest.fixture(autouse=True)
def forgotten() -> None:
    entries._depends.cache_clear()
    entries._versions.cache_clear()


def key(dispatcher: Any = None, kinds: Any = KIND, target: tuple[str, ...] = TARGET) -> bytes:
    return entries.as_bytes(entries.key_of(dispatcher or made.fresh(), kinds, target))


def test_a_key_is_the_same_for_another_dispatcher_of_the_same_function() -> None:
    assert key() == key()
    assert b"\n" not in key()


def test_signature_processor_and_options_are_in_the_key() -> None:
    keys = [
        key(),
        key(kinds=(float64[::1], float64[:])),
        key(target=("x86_64-unknown-linux-gnu", "znver3", "+avx2")),
        key(target=("x86_64-unknown-linux-gnu", "skylake", "-avx2")),
        key(compiled(error_model="numpy")(made.doubled)),
    ]
    assert len(set(keys)) == len(keys)


def test_a_constant_that_is_compiled_into_a_function_that_is_called_is_in_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = key()
    monkeypatch.setattr(made, "STEP", np.float64(0.25))
    entries._depends.cache_clear()
    assert key() != before


def test_the_sources_of_all_that_is_called_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmf_cli.kernels import sgd, survivors

    depends = set(entries._depends(survivors._descend_survivors))
    modules = {"kernels.survivors", "kernels.sgd", "kernels.lanes", "kernels.releasing", "privacy.noise"}
    assert {f"dpmf_cli.{module}" for module in modules} <= depends
    assert "dpmf_cli.kernels.plain_lanes" not in depends, "its plain functions are not compiled"
    assert "dpmf_cli.privacy.noise:_GOLDEN" in depends
    before = key(sgd._descend_perturbed)
    monkeypatch.setattr(
        entries, "note_source", lambda module: "changed" if module == "dpmf_cli.kernels.lanes" else "same"
    )
    entries._depends.cache_clear()
    assert key(sgd._descend_perturbed) != before


@pytest.mark.parametrize("package", [numba, np, llvmlite])
def test_versions_are_in_the_key(monkeypatch: pytest.MonkeyPatch, package: Any) -> None:
    before = key()
    monkeypatch.setattr(package, "__version__", "99")
    entries._versions.cache_clear()
    assert key() != before


def test_numbas_settings_are_in_the_key_but_for_those_that_change_no_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = key()
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 77)
    assert key() == before
    monkeypatch.setattr(config, "LOOP_VECTORIZE", 0)
    assert key() != before


def test_a_source_is_that_which_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file is edited while a run compiles, the machine code of the old text is not stored under the new
    text's name."""
    before = entries.note_source(made.__name__)
    monkeypatch.setattr(made.__spec__.loader, "get_data", lambda path: b"edited", raising=False)
    assert entries.note_source(made.__name__) == before

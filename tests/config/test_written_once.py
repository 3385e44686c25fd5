"""Entries that are written once and stand for several, and parameters that algorithms share."""

import re
from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from tests.configs import load

HEAD = "dataset: ml-100k\nepsilons: [1]\n"


def names(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    return [(entry.name, entry.neighbours, entry.mode) for entry in load(tmp_path, HEAD + text).algorithms]


def test_a_list_of_modes_is_a_curve_of_each(tmp_path: Path) -> None:
    assert names(tmp_path, "algorithms: [{algorithm: pge, mode: [corrected, published]}, isgd]\n") == [
        ("PGE, corrected", "bounded", "corrected"),
        ("PGE, published", "bounded", "published"),
        ("ISGD", "bounded", "published"),
    ]


def test_lists_of_the_experiment_are_those_of_its_entries(tmp_path: Path) -> None:
    text = "mode: [published, corrected]\nalgorithms: [pge, {algorithm: isgd, mode: corrected}]\nbaselines: [ga]\n"
    assert names(tmp_path, text) == [
        ("PGE, published", "bounded", "published"),
        ("PGE, corrected", "bounded", "corrected"),
        ("ISGD", "bounded", "corrected"),
    ]
    config = load(tmp_path, HEAD + text)
    assert (config.mode, [entry.name for entry in config.baselines]) == ("published", ["GA"])


def test_two_lists_are_every_combination_named_by_both(tmp_path: Path) -> None:
    lists = "mode: [published, corrected], neighbours: [unbounded, bounded]"
    assert names(tmp_path, f"algorithms: [{{algorithm: pge, label: mine, {lists}}}]\n") == [
        ("mine, unbounded, published", "unbounded", "published"),
        ("mine, unbounded, corrected", "unbounded", "corrected"),
        ("mine, bounded, published", "bounded", "published"),
        ("mine, bounded, corrected", "bounded", "corrected"),
    ]


def test_a_list_of_one_names_nothing(tmp_path: Path) -> None:
    text = "neighbours: [unbounded]\nalgorithms: [{algorithm: pge, mode: [published, corrected]}]\n"
    assert [name for name, *_ in names(tmp_path, text)] == ["PGE, published", "PGE, corrected"]


def test_what_a_name_depends_on_stays_in_it(tmp_path: Path) -> None:
    text = "mode: [published, corrected]\nalgorithms: [{algorithm: personalized, base: {algorithm: isgd}}]\n"
    assert [name for name, *_ in names(tmp_path, text)] == [
        "ISGD, personalised, published",
        "ISGD, personalised, corrected",
    ]


def test_each_of_a_list_is_swept_as_a_line_of_its_own(tmp_path: Path) -> None:
    text = "algorithms: [{algorithm: isgd, mode: [published, corrected], sweep: {epochs: [1, 2]}}]\n"
    entries = load(tmp_path, HEAD + text).algorithms
    assert [(entry.name, entry.line) for entry in entries] == [
        ("ISGD, published, epochs 1", "ISGD, published"),
        ("ISGD, published, epochs 2", "ISGD, published"),
        ("ISGD, corrected, epochs 1", "ISGD, corrected"),
        ("ISGD, corrected, epochs 2", "ISGD, corrected"),
    ]


def test_parameters_are_those_of_all_entries_of_an_algorithm(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        HEAD + "algorithms: [isgd, {algorithm: isgd, label: mine, factors: 4}, psgd]\nbaselines: [als]\n"
        "effects: {beta_m: 3}\nparameters: {isgd: {factors: 2, effects: {beta_m: 8}}, als: {factors: 6}, pals: {factors: 9}}\n",
    )
    assert [entry.factors for entry in (*config.algorithms, *config.baselines)] == [2, 4, 5, 6]  # type: ignore[attr-defined]
    assert [entry.effects.beta_m for entry in config.algorithms] == [8, 8, 3]


def test_parameters_do_not_reach_into_a_base(tmp_path: Path) -> None:
    text = (
        "algorithms: [{algorithm: personalized, base: {algorithm: isgd}}]\nparameters: {isgd: {factors: 2}}\n"
    )
    (entry,) = load(
        tmp_path, HEAD + text.replace("factors: 2", "factors: 2}, personalized: {moderate: 0.1")
    ).algorithms
    assert (entry.base.factors, entry.moderate) == (5, 0.1)  # type: ignore[attr-defined]


MODES = "mode: [published, corrected]\n"
MISTAKES = {
    "what an algorithm does not offer": (MODES + "algorithms: [pge, {algorithm: psgd, neighbours: unbounded}]\n", r"x\.yaml:4:19: algorithms\[1\]: psgd does not support neighbours unbounded in corrected mode; it supports bounded"),
    "a mode that is none": ("mode: [published, correct]\nalgorithms: [pge]\n", r"x\.yaml:3:19: mode\[1\]: input should be 'published' or 'corrected', not \"correct\"$"),
    "an entry's mode that is none": (MODES + "algorithms: [pge, {algorithm: isgd, mode: [correct, published]}]\n", r"x\.yaml:4:44: algorithms\[1\]\.mode\[0\]: .*not \"correct\"$"),
    "no mode": ("mode: []\nalgorithms: [pge]\n", r"x\.yaml:3:7: mode: a list holds one or more values, each once$"),
    "one mode twice": ("algorithms: [{algorithm: pge, mode: [published, published]}]\n", r"x\.yaml:3:37: algorithms\[0\]\.mode: a list holds one or more values, each once$"),
    "numbers": ("algorithms: [{algorithm: pge, neighbours: [1]}]\n", r"x\.yaml:3:43: algorithms\[0\]\.neighbours: a list holds one or more"),
    "a baseline's": ("baselines: [{algorithm: ga, mode: [published]}]\nalgorithms: [pge]\n", r"x\.yaml:3:29: baselines\[0\]\.mode: unknown key"),
    "a label that is none": (MODES + "algorithms: [{algorithm: pge, label: [1]}]\n", r"x\.yaml:4:38: algorithms\[0\]\.label: .*string"),
    "an entry after one of two": (MODES + "algorithms: [pge, {algorithm: isgd, epochs: 0}, pals]\n", r"x\.yaml:4:45: algorithms\[1\]\.epochs: .*not 0"),
    "a value in parameters": (MODES + "algorithms: [pge, isgd]\nparameters: {isgd: {epochs: 0}}\n", r"x\.yaml:5:29: parameters\.isgd\.epochs: .*not 0$"),
    "a swept value beside one in parameters": ("algorithms: [pge, {algorithm: isgd, sweep: {epochs: [1, 0]}}]\nparameters: {isgd: {epochs: 3}}\n", r"x\.yaml:3:53: algorithms\[1\]\.sweep\.epochs: .*not 0$"),
    "an algorithm that is no word": ("algorithms: [{algorithm: [isgd]}]\nparameters: {isgd: {epochs: 3}}\n", r"x\.yaml:3:26: algorithms\[0\]\.algorithm: unknown algorithm"),
    "a key in parameters": ("algorithms: [pge, {algorithm: isgd, epochs: 2}]\nparameters: {isgd: {epoch: 3}}\n", r'x\.yaml:4:21: parameters\.isgd\.epoch: unknown key; did you mean "epochs"\?$'),
    "within a mapping in parameters": ("algorithms: [isgd]\nparameters: {isgd: {effects: {beta: 3}}}\n", r"x\.yaml:4:31: parameters\.isgd\.effects\.beta: unknown key"),
    "a base in parameters": ("algorithms: [personalized]\nparameters: {personalized: {base: {algorithm: pknn}}}\n", r'x\.yaml:4:47: parameters\.personalized\.base\.algorithm: "pknn" cannot be the base here'),
    "parameters of nobody": ("algorithms: [pge]\nparameters: {isdg: {epochs: 3}}\n", r'x\.yaml:4:20: parameters\.isdg: unknown algorithm "isdg"; did you mean "isgd"\?'),
    "parameters with an algorithm": ("algorithms: [isgd]\nparameters: {isgd: {algorithm: pge}}\n", r"x\.yaml:4:32: parameters\.isgd\.algorithm: the key above already names the algorithm; remove `algorithm`$"),
    "parameters of no mapping": ("algorithms: [isgd]\nparameters: {isgd: 3}\n", r"x\.yaml:4:20: parameters\.isgd: .*dictionary, not 3"),
    "parameters that are no mapping": ("algorithms: [isgd]\nparameters: [isgd]\n", r"x\.yaml:4:13: parameters: .*dictionary"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_has_one_clear_message(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DpmfError) as caught:
        load(tmp_path, HEAD + text)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert str(caught.value).count("\n") == 0

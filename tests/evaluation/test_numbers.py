"""Numbers as text: rounded, signed, and durations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf_cli.evaluation.numbers import duration, signed, significant


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.18, "0.180"),
        (2, "2.00"),
        (12.5, "12.5"),
        (60, "60.0"),
        (9.996, "10.0"),
        (999.7, "1000"),
        (1234.5, "1230"),
        (0.000123, "0.000123"),
        (0.0000123, "1.23e-05"),
        (1.234e9, "1.23e+09"),
        (0, "0"),
    ],
)
def test_three_significant_figures(value: float, text: str) -> None:
    assert significant(value) == text


@given(st.floats(1e-12, 1e12))
def test_significant_figures_are_within_half_a_unit_of_the_last(value: float) -> None:
    assert float(significant(value)) == pytest.approx(value, rel=0.0051)


def test_a_difference_has_its_sign_and_a_true_minus() -> None:
    assert [signed(value, digits) for value, digits in ((0.00124, 4), (-1.25, 3), (0, 1))] == [
        "+0.0012",
        "−1.250",
        "+0.0",
    ]


def test_a_span_of_time_is_in_the_unit_that_suits_it() -> None:
    assert [duration(each) for each in (0, 99, 100, 5999, 9000)] == [
        "0 s",
        "99 s",
        "2 min",
        "100 min",
        "2.5 h",
    ]

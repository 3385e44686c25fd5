"""Formats numbers for tables, sentences and captions of figures."""


def significant(value: float, figures: int = 3) -> str:
    """Formats a finite number to `figures` significant figures: 0.180, 2.00, 12.5, 1230; very small: 1.20e-05."""
    rounded = float(f"{value:.{figures - 1}e}")
    if rounded == 0:
        return "0"
    exponent = int(f"{rounded:e}".rpartition("e")[2])
    if not -4 <= exponent <= 6:
        return f"{value:.{figures - 1}e}"
    return f"{rounded:.{max(0, figures - 1 - exponent)}f}"


def signed(value: float, digits: int) -> str:
    """Formats a difference with its sign and `digits` decimals, with a typographic minus: +0.0012, −1.5."""
    return f"{value:+.{digits}f}".replace("-", "−")


def duration(seconds: float) -> str:
    """Formats a duration: `0 s`, `45 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

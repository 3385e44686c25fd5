"""Numbers as a reader sees them, in tables, sentences and below figures."""


def significant(value: float, figures: int = 3) -> str:
    """A finite number to so many significant figures: 0.180, 2.00, 12.5, 1230; the very small as 1.20e-05."""
    rounded = float(f"{value:.{figures - 1}e}")
    if rounded == 0:
        return "0"
    exponent = int(f"{rounded:e}".rpartition("e")[2])
    if not -4 <= exponent <= 6:
        return f"{value:.{figures - 1}e}"
    return f"{rounded:.{max(0, figures - 1 - exponent)}f}"


def signed(value: float, digits: int) -> str:
    """A difference with its sign and so many decimals, a minus as in print: +0.0012, −1.5."""
    return f"{value:+.{digits}f}".replace("-", "−")


def duration(seconds: float) -> str:
    """`0 s`, `45 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

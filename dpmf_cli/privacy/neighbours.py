"""What two adjacent data sets may differ in: the relation that an ε is a statement about."""

from enum import StrEnum


class Neighbours(StrEnum):
    """Friedman et al. 2016, section 3.2, after Kifer and Machanavajjhala 2011.

    `BOUNDED`: the same (user, item) pairs; the value of one rating differs. Who rated what is public.
    `UNBOUNDED`: one rating is present in one data set and absent from the other.
    """

    BOUNDED = "bounded"
    UNBOUNDED = "unbounded"


class Mode(StrEnum):
    """`PUBLISHED`: what the paper ran, errors included. `CORRECTED`: calibrated so that ε is provable."""

    PUBLISHED = "published"
    CORRECTED = "corrected"

"""What two adjacent data sets may differ in: the relation that an ε is a statement about."""

from enum import StrEnum


class Neighbours(StrEnum):
    """The kinds of Friedman et al. 2016, section 3.2, after Kifer and Machanavajjhala 2011, and whole users.

    `BOUNDED`: the same (user, item) pairs; the value of one rating differs. Who rated what is public.
    `UNBOUNDED`: one rating is present in one data set and absent from the other.
    `USER`: one user, with all ratings, is present in one and absent from the other. McSherry and Mironov 2009, 4.5.
    """

    BOUNDED = "bounded"
    UNBOUNDED = "unbounded"
    USER = "user"


class Mode(StrEnum):
    """`PUBLISHED`: what the paper ran, errors included. `CORRECTED`: calibrated so that ε is provable."""

    PUBLISHED = "published"
    CORRECTED = "corrected"

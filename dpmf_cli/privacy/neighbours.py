"""What two adjacent data sets may differ in: the relation that an ε is a statement about."""

from enum import StrEnum


class Neighbours(StrEnum):
    """The kinds of Friedman et al. 2016, section 3.2, after Kifer and Machanavajjhala 2011, whole users, and the
    local model.

    `BOUNDED`: the same (user, item) pairs; the value of one rating differs. Who rated what is public.
    `UNBOUNDED`: one rating is present in one data set and absent from the other.
    `USER`: one user, with all ratings, is present in one and absent from the other. McSherry and Mironov 2009, 4.5.
    `LOCAL`: as bounded, but it is the *aggregator* that must not tell: each value is perturbed before it leaves its
    user. Who rated what is public. Neera et al. 2020, section 3.
    """

    BOUNDED = "bounded"
    UNBOUNDED = "unbounded"
    USER = "user"
    LOCAL = "local"


HIDE_IDS = (Neighbours.UNBOUNDED, Neighbours.USER)
"""Those of which one may have a user or an item that the other has not."""


RECORDS_APART = {Neighbours.UNBOUNDED: 1, Neighbours.BOUNDED: 2}
"""How many ratings come or go from one neighbour to the other: of another value, the old one goes and the new one
comes."""


class Mode(StrEnum):
    """`PUBLISHED`: what the paper ran, errors included. `CORRECTED`: calibrated so that ε is provable."""

    PUBLISHED = "published"
    CORRECTED = "corrected"

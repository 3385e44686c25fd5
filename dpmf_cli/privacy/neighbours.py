"""Neighbours: the relations between two data sets that an ε can be about."""

from enum import StrEnum


class Neighbours(StrEnum):
    """The relations: two of Friedman et al. 2016, section 3.2, after Kifer and Machanavajjhala 2011, and two more.

    `BOUNDED`: the (user, item) pairs are the same; the value of one rating differs. Who rated what is public.
    `UNBOUNDED`: one rating is present in one data set and absent from the other data set.
    `USER`: one user, with all ratings, is present in one data set and absent from the other. McSherry and Mironov
    2009, section 4.5.
    `LOCAL`: as bounded, but the *aggregator* too must not tell the neighbours apart: each value is perturbed before
    it leaves its user. Who rated what is public. Neera et al. 2020, section 3.
    """

    BOUNDED = "bounded"
    UNBOUNDED = "unbounded"
    USER = "user"
    LOCAL = "local"


HIDE_IDS = (Neighbours.UNBOUNDED, Neighbours.USER)
"""The relations under which one neighbour may have a user or an item that the other neighbour lacks."""


RECORDS_APART = {Neighbours.UNBOUNDED: 1, Neighbours.BOUNDED: 2}
"""The number of ratings that are removed or added between two neighbours.

To change a value is to remove the old rating and to add the new one."""


class Mode(StrEnum):
    """`PUBLISHED`: the method as the paper ran it, errors included. `CORRECTED`: calibrated so that ε is provable."""

    PUBLISHED = "published"
    CORRECTED = "corrected"

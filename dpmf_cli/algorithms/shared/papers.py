"""Where a method comes from, as the combined table cites it."""

from enum import StrEnum


class Paper(StrEnum):
    """One of the five papers, by its first author, another paper of the field, or this project.

    `DPMF`: what a paper invites without having it, and what its own methods have to beat. `PLUGIN`: from outside,
    where it names no paper itself.
    """

    FRIEDMAN = "Friedman 2016"
    MCSHERRY = "McSherry 2009"
    NEERA = "Neera 2020"
    WANG = "Wang 2017"
    ZHANG = "Zhang 2018"
    CHIEN = "Chien 2021"
    JAIN = "Jain 2018"
    HUA = "Hua 2015"
    MUGDHO = "Mugdho 2023"
    LIU = "Liu 2015"
    DPMF = "dpmf"
    PLUGIN = "plugin"

"""The papers that methods come from, as the combined table cites them."""

from enum import StrEnum


class Paper(StrEnum):
    """The paper of a method, by its first author.

    `DPMF`: this project, for methods that a paper suggests without having them, and for methods that the papers'
    own have to beat. `PLUGIN`: a plugin that names no paper.
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

"""Our aims in speed, which `make bench` prints beside its measurements."""

LIU_2015 = 8.5e6 * 1024
"""Coordinate updates in a second on one PC: 8.5 million ratings a second with models of 1024 factors (Liu, Wang
and Smola 2015, abstract)."""

UPDATES = {20: 1e10}
"""Coordinate updates a second of ISGD on one thread, by d."""

TIMES_AS_FAST: dict[tuple[str, str], dict[int | None, float]] = {
    ("dpmf ISGD", "Cornac `MF`"): {5: 13.0, 20: 7.0, 64: 4.5},
    ("dpmf PSGD", "Cornac `MF`"): {5: 8.0, 20: 5.0, 64: 3.0},
    ("dpmf PALS", "cmfrec ALS by Cholesky"): {5: 23.0, 20: 11.0, 64: 9.0},
    ("dpmf PMF, 1 model", "Cornac `PMF`, linear"): {5: 6.0, 20: 6.0, 64: 6.0},
    ("dpmf MM kNN", "LensKit `ItemKNNScorer`"): {None: 10.0},
}
"""The aim for how many times as fast as a peer ours should be, by CPU time for a model, by d where it applies."""

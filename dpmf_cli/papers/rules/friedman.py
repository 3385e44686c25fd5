"""Claims of Friedman, Berkovsky and Kaafar (2016)."""

from dpmf_cli.papers.rules import friedman_figures as figures
from dpmf_cli.papers.rules import friedman_tables as tables
from dpmf_cli.papers.rules.base import Rule, Theorem

RULES: dict[str, Rule] = {
    "input-perturbation-best": tables.input_perturbation_best,
    "larger-data-crosses-earlier": tables.larger_data,
    "netflix-does-not-cross-earlier": tables.larger_netflix_does_not,
    "split-helps-slightly": figures.split_of_pals,
    "ia-before-ge": tables.items_before_effects,
    "bounded-crossings-order": tables.bounded_order,
    "norm-bounds-cross-earlier": figures.norm_bounds_cross_earlier,
    "preprocessing-helps": figures.preprocessing,
    "preprocessing-outweighs": figures.preprocessing_outweighs_the_choice,
    "q-max-moves-ge": figures.norm_bounds,
    "unbounded-order": tables.unbounded_order,
    "unbounded-costs-more": tables.unbounded_costs_more,
    "bounded-better-at-any-epsilon": tables.bounded_better_at_any,
    "simple-wins-at-low-epsilon": figures.simple_first,
    "neighbours-resilient": figures.neighbours_resilient,
    "netflix-neighbours-first": figures.neighbours_then_effects,
    "density-matters-more": tables.density_matters_more,
    "best-pair": figures.best_pair,
    "stable-after": figures.stable_after,
    "theorem-3": Theorem("isgd, bounded, published"),
    "theorem-4": Theorem("psgd, bounded, published"),
    "theorem-6": Theorem("pals, bounded, corrected"),
    "algorithm-6": Theorem("pals, bounded, published"),
    "algorithm-5": Theorem("psgd, unbounded, published"),
    "unbounded-averages": Theorem("pge, unbounded, published"),
    "unbounded-als": Theorem("pals, unbounded, published"),
}

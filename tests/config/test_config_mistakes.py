"""For each mistake in a config, one message that names the place, the mistake and the fix."""

import os
import re
from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import config_of, load_config
from tests.configs import GOOD, GROWTH, NETFLIX, THETAS, TWINS, load

PERSONAL = "  - {algorithm: personalized, base: %s}\n"
TIMELESS = "{kind: csv, name: shop, path: a.csv, columns: {user: a, item: b, rating: c}, scale: {minimum: 1, maximum: 5}}"


BUDGET = "    budget: {global_averages: 0.02, item_averages: 0.14, user_averages: 0.14, factorization: %s}\n"

BAD = {
    "unknown key": (GOOD + "    factor: 3\n", r'x\.yaml:7:5: algorithms\[1\]\.factor: unknown key; did you mean "factors"\?'),
    "unknown key at the top": (GOOD + "epsilon: 3\n", r'x\.yaml:7:1: epsilon: unknown key; did you mean "epsilons"\?'),
    "duplicate key": (GOOD + "dataset: ml-1m\n", r'x\.yaml:7:1: duplicate key "dataset"; keep one'),
    "duplicate nested key": (GOOD + "    factors: 4\n", r'x\.yaml:7:5: duplicate key "factors"'),
    "unknown algorithm": (GOOD.replace("pge", "pgee"), r'x\.yaml:4:16: algorithms\[0\]\.algorithm: unknown algorithm "pgee"; did you mean "pge"\?'),
    "no algorithm": (GOOD.replace("algorithm: pge", "factors: 1"), r"x\.yaml:4:5: algorithms\[0\]: name an `algorithm`; known: pge, isgd, psgd"),
    "a baseline as algorithm": (GOOD.replace("pge", "als"), r'x\.yaml:4:16: .*unknown algorithm "als"'),
    "crossings with what is no baseline": (GOOD + "crossings: [ia, pcc]\n", r"x\.yaml:7:17: crossings\[1\]: pcc is not among the baselines; add it there"),
    "crossings twice": (GOOD + "crossings: [ia, ia]\n", r"x\.yaml:7:17: crossings\[1\]: ia stands there twice; keep one"),
    "unknown baseline": (GOOD + "baselines: [ia, gee]\n", r'x\.yaml:7:17: baselines\[1\]: unknown algorithm "gee"; did you mean "ge"\?'),
    "an unknown data set, to the letter": (GOOD.replace("ml-100k", "ml-100"), r'^[^\n]*x\.yaml:1:10: dataset: no data set "ml-100" in the catalog; did you mean "ml-100k"\?$'),
    "yes for a number": (GOOD + "folds: yes\n", r"x\.yaml:7:8: folds: true \(YAML also reads yes and on as true\) is neither a number nor a word; give a number, or put the word in quotes$"),
    "no for a column": (GOOD.replace("ml-100k", TIMELESS.replace("user: a", "user: no")), r"x\.yaml:1:\d+: dataset\.columns\.user: false \(YAML also reads no and off as false\) is neither a number"),
    "yes in a grid": (GOOD.replace("[0.1, 1, 10]", "{first: 1, last: 2, count: yes}"), r"x\.yaml:2:\d+: epsilons\.count: true \(YAML also reads yes"),
    "a grid that descends": (GOOD.replace("[0.1, 1, 10]", "{first: 10, last: 1, count: 4}"), r"x\.yaml:2:11: epsilons: `first` \(10\) is not below `last` \(1\); swap them"),
    "a scale upside down": (GOOD.replace("ml-100k", TIMELESS.replace("minimum: 1", "minimum: 7")), r"x\.yaml:1:\d+: dataset\.scale: minimum 7 is not below maximum 5; swap them"),
    "a step that does not fit": (GOOD.replace("ml-100k", TIMELESS.replace("maximum: 5", "maximum: 5, step: 0.7")), r"x\.yaml:1:\d+: dataset\.scale: no whole number of steps of 0\.7 fits between 1 and 5; give .*0\.5 for halves.*`step: 0`"),
    "missing key": (GOOD.replace("dataset: ml-100k\n", ""), r'x\.yaml:1:1: the key "dataset" is missing'),
    "no algorithms": ("dataset: ml-100k\nepsilons: [1]\nalgorithms: []\n", r"x\.yaml:3:13: algorithms: .*at least 1"),
    "epsilon zero": (GOOD.replace("0.1", "0"), r"x\.yaml:2:12: epsilons\[0\]: input should be greater than 0, not 0"),
    "epsilon tiny": (GOOD.replace("0.1", "1e-9"), r"x\.yaml:2:12: epsilons\[0\]: an ε or θ below 1e-6 leaves nothing but noise"),
    "epsilon nan": (GOOD.replace("0.1", ".nan"), r"x\.yaml:2:12: epsilons\[0\]: .*finite number"),
    "epsilon infinite": (GOOD.replace("0.1", ".inf"), r"x\.yaml:2:12: epsilons\[0\]:"),
    "epsilon a word": (GOOD.replace("0.1", "low"), r'x\.yaml:2:12: epsilons\[0\]: .*valid number.*, not "low"'),
    "grid not ascending": (GOOD.replace("0.1, 1", "1, 0.1"), r"x\.yaml:2:11: epsilons: .*ascend"),
    "grid repeats": (GOOD.replace("0.1, 1", "1, 1"), r"x\.yaml:2:11: epsilons: .*repetition"),
    "grid key": (GOOD.replace("[0.1, 1, 10]", "{first: 1, last: 2, cout: 3}"), r'x\.yaml:2:.*unknown key; did you mean "count"'),
    "effects of a method without averages": (
        GOOD.replace("algorithm: pge", "algorithm: own_regression\n    mode: corrected\n    effects: {beta_m: 3}"),
        r"x\.yaml:6:14: algorithms\[0\]\.effects: own_regression makes no averages of that kind, and has no use for `effects`; remove it",
    ),
    "budget sum": (GOOD + BUDGET % 0.6, r"x\.yaml:7:13: algorithms\[1\]\.budget: the fractions sum to 0\.9, not 1"),
    "budget negative": (GOOD + BUDGET % -0.1, r"x\.yaml:7:\d+: algorithms\[1\]\.budget\.factorization: .*greater than 0, not -0\.1"),
    "budget of noise alone": (
        GOOD + "    budget: {global_averages: 0.5, item_averages: 0.25, user_averages: 0.25, factorization: 1.0e-300}\n",
        r"x\.yaml:7:13: algorithms\[1\]\.budget: factorization gets less than 1e-6 of ε, which leaves nothing but noise",
    ),
    "a level of noise alone": (
        GOOD + "  - {algorithm: personalized, base: pge, epsilon_conservative: 1.0e-300}\n",
        r"x\.yaml:7:\d+: algorithms\[2\]\.epsilon_conservative: an ε or θ below 1e-6 leaves nothing but noise",
    ),
    "budget key of another method": (GOOD.replace("pge\n", "pge\n" + BUDGET % 0.7), r"x\.yaml:5:\d+: algorithms\[0\]\.budget\.factorization: unknown key"),
    "one fold": (GOOD + "folds: 1\n", r"x\.yaml:7:8: folds: one fold leaves nothing to train on; give 2 or more"),
    "no grid": (GOOD.replace("epsilons: [0.1, 1, 10]\n", ""), r"x\.yaml:1:1: the grid is missing; give `epsilons` or `thetas`"),
    "two grids": (GOOD + "thetas: [1]\n", r"x\.yaml:7:9: thetas: give `epsilons` or `thetas`, not both"),
    "theta not ascending": (THETAS.replace("0.1, 1", "1, 0.1"), r"x\.yaml:2:9: thetas: the θ grid must ascend"),
    "a seed that is another word": (GOOD + "seed: secrt\n", r'x\.yaml:7:7: seed: a seed is a whole number from 0 to .*, or the word `secret`, not "secrt"$'),
    "a seed below zero": (GOOD + "seed: -1\n", r"x\.yaml:7:7: seed: a seed is a whole number from 0 .*, not -1$"),
    "delta zero": (GOOD + "delta: 0\n", r"x\.yaml:7:8: delta: .*greater than or equal to .*, not 0"),
    "delta no small chance": (GOOD + "delta: 0.1\n", r"x\.yaml:7:8: delta: .*less than or equal to 0\.01, not 0\.1"),
    "a reference of other data": (GOOD + "references: [cinematch]\n", r"x\.yaml:7:14: references\[0\]: cinematch is an error on Netflix ratings, no reference for ml-100k; remove it"),
    "a reference of made-up Netflix": (GOOD.replace("ml-100k", "synthetic-netflix") + "references: [cinematch]\n", r"x\.yaml:7:14: references\[0\]: .*for synthetic-netflix"),
    "a reference of ML-10M": (GOOD + "references: [chien2021]\n", r"x\.yaml:7:14: references\[0\]: chien2021 is an error on ML-10M ratings, no reference for ml-100k; remove it"),
    "a reference twice": (GOOD.replace("ml-100k", "netflix") + "references: [cinematch, cinematch]\n", r"x\.yaml:7:25: references\[1\]: cinematch stands there twice"),
    "an unknown reference": (GOOD.replace("ml-100k", "netflix") + "references: [cinemtch]\n", r"x\.yaml:7:14: references\[0\]: .*'cinematch' or 'chien2021', not \"cinemtch\""),
    "growth without twins": (GOOD + GROWTH, r"x\.yaml:7:9: growth: growth measures the loss against the twin without noise; set `twins: true`"),
    "growth that shrinks": (GOOD + TWINS + GROWTH.replace("0.5, 1", "1, 0.5"), r"x\.yaml:8:9: growth: the portions must ascend"),
    "growth from nothing": (GOOD + TWINS + GROWTH.replace("0.5, 1", "0, 1"), r"x\.yaml:8:21: growth\.portions\[0\]: .*greater than 0, not 0"),
    "growth without an order": (GOOD + TWINS + "growth: {portions: [1]}\n", r'x\.yaml:8:9: growth: the key "order" is missing'),
    "growth in no time": (GOOD.replace("ml-100k", "synthetic-ml-100k") + TWINS + GROWTH, r"x\.yaml:8:37: growth\.order: synthetic-ml-100k has no time stamps; use `order: random`"),
    "growth without a column": (GOOD.replace("ml-100k", TIMELESS) + TWINS + GROWTH, r"x\.yaml:8:37: growth\.order: shop has no time stamps"),
    "the latest of no time": (GOOD.replace("ml-100k", "netflix-sample") + "test: recent\n", r"x\.yaml:7:7: test: netflix-sample has no time stamps, so no most recent ratings; use `test: folds`"),
    "the latest without a column": (GOOD.replace("ml-100k", TIMELESS) + "test: recent\n", r"x\.yaml:7:7: test: shop has no .*; name their column in `columns: \{timestamp: …\}`, or use `test: folds`"),
    "the latest in one fold": (GOOD + "test: recent\nfolds: 1\n", r"x\.yaml:8:8: folds: one fold leaves nothing"),
    "a test set of other data": (GOOD + "test: probe\n", r"x\.yaml:7:7: test: the probe set belongs to the data set netflix only; use `test: folds`"),
    "a test set of a sample": (GOOD.replace("ml-100k", "netflix-sample") + "test: judging\n", r"x\.yaml:7:7: test: the judging set belongs to the data set netflix only"),
    "a test set of a random sample": (GOOD.replace("ml-100k", "{kind: catalog, name: netflix, sample: {users: 9}}") + "test: probe\n", r"x\.yaml:7:7: test: the probe set belongs to all ratings, not to a sample"),
    "a sample that is too large": (GOOD.replace("ml-100k", "{kind: catalog, name: ml-100k, sample: {users: 944}}"), r"x\.yaml:1:10: dataset: .*ml-100k has 943 users, too few for a sample of 944"),
    "an unknown test set": (GOOD + "test: prob\n", r"x\.yaml:7:7: test: .*'probe'.*, not \"prob\""),
    "a test set and folds": (NETFLIX + "test: probe\nfolds: 10\n", r"x\.yaml:8:8: folds: the probe set is predicted instead of folds; remove `folds`"),
    "a test set and folds held out": (NETFLIX + "test: probe\nheld_out: 2\n", r"x\.yaml:8:11: held_out: only 1 fold can be held out"),
    "a test set that does not grow": (NETFLIX + TWINS + "test: probe\n" + GROWTH, r"x\.yaml:9:9: growth: the probe set does not grow"),
    "a fraction of a run": (GOOD + "runs: 1.5\n", r"x\.yaml:7:7: runs: .*integer.*, not 1\.5"),
    "unknown neighbours": (GOOD + "neighbours: boundet\n", r'x\.yaml:7:13: neighbours: .*\'bounded\'.*, not "boundet"'),
    "two curves of one name": (GOOD + "  - algorithm: isgd\n", r'x\.yaml:7:5: algorithms\[2\]: two curves are named "ISGD"; give one of them another `label`'),
    "a name of the store's own": (GOOD + "name: tasks\n", r"x\.yaml:7:7: name: results/tasks is where"),
    "a name of the report": (GOOD + "name: report.html\n", r"name: results/report\.html is the page of all results; choose"),
    "a label in two lines": (GOOD + '    label: "a\\nb"\n', r"x\.yaml:7:12: algorithms\[1\]\.label: a label must be one line of visible characters, not \"a\\nb\""),
    "a label with an escape": (GOOD + '    label: "a\\x9bb"\n', r"x\.yaml:7:12: algorithms\[1\]\.label: .* visible characters, not \"a\\u009bb\""),
    "a label without width": (GOOD + '    label: "a\\u200bb"\n', r"x\.yaml:7:12: algorithms\[1\]\.label: .* visible characters, not \"a\\u200bb\""),
    "a key with an escape": (GOOD + '    "\\e[5m": 1\n', r"x\.yaml:7:5: algorithms\[1\]\.\\u001b\[5m: unknown key"),
    "a sweep of no list": (GOOD + "    sweep: {factors: 3}\n", r"x\.yaml:7:\d+: algorithms\[1\]\.sweep\.factors: .*list"),
    "a sweep of nothing": (GOOD + "    sweep: {factors: []}\n", r"x\.yaml:5:5: algorithms\[1\]: a sweep is one parameter and a list"),
    "a sweep of an unknown part": (GOOD + "    sweep: {effects.beta_x: [1]}\n", r'x\.yaml:7:13: algorithms\[1\]\.sweep\.effects\.beta_x: unknown key; did you mean "beta_u"'),
    "a swept part out of bounds": (GOOD + "    sweep: {effects.beta_u: [-1]}\n", r"x\.yaml:7:29: algorithms\[1\]\.sweep\.effects\.beta_u: .*equal to 0, not -1$"),
    "a swept part beside one in error": (GOOD + "    effects: {beta_m: -2}\n    sweep: {effects.beta_u: [1]}\n", r"x\.yaml:7:23: algorithms\[1\]\.effects\.beta_m: .*equal to 0, not -2$"),
    "a swept fraction above 1": (GOOD + "    sweep: {budget.item_averages: [0.5, 1.5]}\n", r"x\.yaml:7:35: algorithms\[1\]\.sweep\.budget\.item_averages: .*less than 1, not 1\.5$"),
    "a sweep of no number": (GOOD + "    sweep: {order: [shuffled]}\n", r"x\.yaml:5:5: algorithms\[1\]: order is not a numeric parameter"),
    "a fold too many": (GOOD + "held_out: 11\n", r"x\.yaml:7:11: held_out: only 10 folds can be held out"),
    "no regularization where noise is scaled by it": (GOOD.replace("isgd", "pals") + "    regularization: 0\n", r"x\.yaml:7:21: algorithms\[1\]\.regularization: .*equal to 0.000001"),
    "a name that is a path": (GOOD + "name: ../../etc\n", r"x\.yaml:7:7: name: .*; use letters, digits"),
    "not yaml": (GOOD + "  - [1, 2\n", r"x\.yaml:\d+:\d+: not valid YAML"),
    "a tab": ("dataset:\tml-100k\n\tx: 1\n", r"x\.yaml:1:9: not valid YAML: found character '\\t'"),
    "python tag": (GOOD + "seed: !!python/object/apply:os.system ['true']\n", r"x\.yaml:7:7: not valid YAML"),
    "a list": ("- 1\n", r"x\.yaml:1:1: a config is a mapping"),
    "empty": ("", r"x\.yaml:1:1: the file is empty"),
    "a key that is no word": (GOOD + "1: 2\n", r"x\.yaml:7:1: key 1 is not a word"),
    "nested deep": ("a: " + "[" * 100_000, r"x\.yaml:1:1: not valid YAML: maximum recursion"),
    "too many bytes": ("#" * (1 << 20), r"x\.yaml:1:1: more than 256 KiB, too large"),
    "a number of hex digits": (GOOD + f"seed: 0x{'f' * 9000}\n", r"x\.yaml:7:7: the number is too large"),
    "a number of digits": (GOOD + f"seed: {'9' * 9000}\n", r"x\.yaml:1:1: not valid YAML: Exceeds the limit"),
    "half a character": (GOOD + 'name: "\\ud800"\n', r"x\.yaml:7:7: the text holds a character that no file"),
    "an escaped NUL": (GOOD + 'name: "a\\0"\n', r"x\.yaml:7:7: the text holds a character that no file"),
    "a NUL": (GOOD + "name: \0\n", r"x\.yaml:7:7: not valid YAML: special characters"),
    "a long text": (GOOD + f"name: {'a' * 5000}\n", r'x\.yaml:7:7: name: .* at most 80 characters, not "a{99}…$'),
    "an absolute name": (GOOD + "name: /etc/x\n", r"x\.yaml:7:7: name: .*; use letters, digits"),
    "a name with an end": (GOOD + 'name: "x\\n"\n', r"x\.yaml:7:7: name: .*; use letters, digits"),
    "a swept path": (GOOD + "  - {algorithm: isgd, label: x, swept: ../../x}\n", r"\.\./\.\./x is not a numeric parameter and cannot be swept"),
    "a swept class": (GOOD + "  - {algorithm: isgd, label: x, swept: __class__}\n", r"__class__ is not a numeric parameter and cannot be swept"),
    "too many tasks": (GOOD + "folds: 1000\nruns: 10000\n", r"x\.yaml:7:8: folds: 20,003,000 tasks, more than 1,000,000"),
    "endless alias": ("a: &a [*a]\n", r"x\.yaml:\d+:\d+: too large or nested too deep"),
    "many aliases": ("a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d]\n", r"x\.yaml:.*too large"),
    "csv key": (GOOD.replace("ml-100k", "{kind: csv, name: a, path: b, colums: {}}"), r'x\.yaml:1:\d+: dataset\.colums: unknown key; did you mean "columns"'),
    "a base that cannot be": (GOOD + PERSONAL % "pknn", r'x\.yaml:7:37: algorithms\[2\]\.base: "pknn" cannot be the base here; it is one of dp_pmf, isgd, pals, psgd, pbgd, pge \(pknn puts .* clean ratings'),
    "what the other mode has": (GOOD + "  - {algorithm: dp_pmf, factors: 3, passes: 2}\n", r"x\.yaml:7:45: algorithms\[2\]\.passes: published mode of dp_pmf would ignore it; remove it, or set `mode: corrected`$"),
    "what nobody uses": (GOOD + "  - {algorithm: psgd, factors: 3, user_share: 0.7}\n", r"x\.yaml:7:47: algorithms\[2\]\.user_share: psgd with neighbours bounded has no use for it; remove it$"),
    "an effect that nobody uses": (GOOD + "  - {algorithm: pge, neighbours: unbounded, effects: {noise_on_unrated: true}}\n", r"x\.yaml:7:\d+: algorithms\[2\]\.effects\.noise_on_unrated: pge with neighbours unbounded has no use for it; remove it$"),
    "what a base's other mode has": (GOOD + PERSONAL % "{algorithm: dp_pmf, momentum: 0.5}, mode: corrected", r"x\.yaml:7:67: algorithms\[2\]\.base\.momentum: corrected mode of dp_pmf would ignore it; remove it, or set `mode: published`$"),
    "a column that is not there": (GOOD + "  - {algorithm: personalized, specification: column, threshold: 2, base: isgd}\n", r"x\.yaml:7:46: algorithms\[2\]\.specification: ml-100k has no column of ε; name it in `columns: \{epsilon: …\}` of a CSV data set, or use `specification: fractions`"),
    "a baseline's column": (GOOD.replace("ml-100k", TIMELESS) + "baselines: [ga, {algorithm: sampled, specification: column, base: als}]\n", r"x\.yaml:7:\d+: baselines\[1\]\.specification: shop has no column of ε"),
    "a sweep of another shape": (GOOD + "  - {algorithm: isgd, label: a, sweep: [3]}\n", r"x\.yaml:7:\d+: algorithms\[2\]\.sweep: "),
    "a sweep of two": (GOOD + "  - {algorithm: isgd, label: a, sweep: {factors: [3], epochs: [2]}}\n", r"a list of values: \{factors: \[3, 5\]\}$"),
    "a base that is none": (GOOD + PERSONAL % "{algorithm: isdg}", r'x\.yaml:7:49: algorithms\[2\]\.base\.algorithm: "isdg" cannot be the base here; it is one of dp_pmf, isgd'),
    "a base without a name": (GOOD + PERSONAL % "{factors: 3}", r"x\.yaml:7:37: algorithms\[2\]\.base: name the base's `algorithm`; it is one of dp_pmf, isgd"),
    "a base of a baseline": (GOOD + "baselines: [{algorithm: sampled, base: isgd}]\n", r'x\.yaml:7:40: baselines\[0\]\.base: "isgd" cannot be the base here; it is one of pmf, als$'),
    "a key of a base": (GOOD + PERSONAL % "{algorithm: isgd, factor: 3}", r'x\.yaml:7:55: algorithms\[2\]\.base\.factor: unknown key; did you mean "factors"'),
    "a twin of what is personalised": (GOOD + PERSONAL % "isgd" + TWINS, r"x\.yaml:7:5: algorithms\[2\]: a personalised algorithm has no twin.*remove `twins`"),
    "dataset kind": (GOOD.replace("ml-100k", "{kind: parquet}"), r'x\.yaml:1:17: dataset\.kind: unknown kind "parquet"; `kind: csv` is .* Parquet too'),
    "no dataset kind": (GOOD.replace("ml-100k", "{path: a.csv}"), r"x\.yaml:1:10: dataset: name the `kind`; `kind: csv` is a file of your own"),
    "no path": (GOOD.replace("ml-100k", TIMELESS.replace("path: a.csv, ", "")), r'x\.yaml:1:10: dataset: the key "path" is missing; name a file .*: `path: ratings\.csv`$'),
    "a path of a folder": (GOOD.replace("ml-100k", TIMELESS.replace("a.csv", ".")), r"x\.yaml:1:40: dataset\.path: this names a folder; name the file of ratings in it$"),
    "a path in the web": (GOOD.replace("ml-100k", TIMELESS.replace("a.csv", "https://a.org/a.csv")), r"x\.yaml:1:40: dataset\.path: a URL is not read; download the file"),
    "a separator in words": (GOOD.replace("ml-100k", TIMELESS.replace("scale", "separator: tab, scale")), r'x\.yaml:1:\d+: dataset\.separator: cannot be "tab"; write .* `separator: "\\t"` for a tab$'),
    "a scale as a list": (GOOD.replace("ml-100k", TIMELESS.replace("{minimum: 1, maximum: 5}", "[1, 5]")), r"x\.yaml:1:\d+: dataset\.scale: cannot be \[1, 5\]; write `scale: \{minimum: 1, maximum: 5, step: 1\}`$"),
    "a grid of one number": (GOOD.replace("[0.1, 1, 10]", "1"), r"x\.yaml:2:11: epsilons: cannot be 1; write a list: `epsilons: \[0\.3, 1, 3\]`$"),
    "a dataset's name with dots": (GOOD.replace("ml-100k", TIMELESS.replace("shop", "../shop")), r'x\.yaml:1:28: dataset\.name: cannot be "\.\./shop"; use letters, digits'),
    "an algorithm as a key": (GOOD + "  - pge: {beta: 1}\n", r"x\.yaml:7:5: algorithms\[2\]: name an `algorithm`, as in `- \{algorithm: pge, …\}`"),
    "algorithms as a mapping": ("dataset: ml-100k\nepsilons: [1]\nalgorithms: {pge: {}}\n", r'x\.yaml:3:13: algorithms: cannot be \{"pge": \{\}\}; write a list: `algorithms: \[pge, '),
    "neighbours in the words of advise": (GOOD + "neighbours: value\n", r'x\.yaml:7:13: neighbours: .*, not "value"; `bounded` hides the value of a rating, `unbounded` that it exists, `user` a whole user'),
    "an option of advise": (GOOD + "protects: value\n", r"x\.yaml:7:1: protects: unknown key; a config says it by `neighbours`: `bounded` hides the value of a rating"),
    "a seed of an entry": (GOOD + "    seed: 1\n", r"x\.yaml:7:5: algorithms\[1\]\.seed: unknown key; a config has one `seed`, at its top"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_each_mistake_has_one_clear_message(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DpmfError) as caught:
        load(tmp_path, text)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_a_variant_that_a_method_does_not_offer_names_those_it_does(tmp_path: Path) -> None:
    with pytest.raises(DpmfError) as caught:
        load(
            tmp_path,
            GOOD
            + "  - {algorithm: psgd}\n  - {algorithm: pals_objective}\nneighbours: unbounded\nmode: corrected\n",
        )
    first, second = str(caught.value).splitlines()
    refusal = (
        "does not support neighbours unbounded in corrected mode; it supports bounded (corrected), bounded"
    )
    assert f"x.yaml:7:5: algorithms[2]: psgd {refusal} (published), unbounded (published)" in first
    assert f"x.yaml:8:5: algorithms[3]: pals_objective {refusal} (published)" in second


def test_several_mistakes_are_all_told(tmp_path: Path) -> None:
    with pytest.raises(DpmfError) as caught:
        load(tmp_path, GOOD.replace("0.1", "-1") + "folds: 0\n")
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["folds", "epsilons[0]"]


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(DpmfError, match="no such file"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DpmfError, match=r"x\.yaml:1:1: is not UTF-8 text; save the file as UTF-8"):
        load_config(tmp_path / "x.yaml")
    os.mkfifo(tmp_path / "fifo.yaml")
    with pytest.raises(DpmfError, match=r"fifo\.yaml: cannot be read: not a file; name a config$"):
        load_config(tmp_path / "fifo.yaml")


def test_effects_that_all_inherit_are_no_mistake_of_a_method_without_averages(tmp_path: Path) -> None:
    entry = "algorithm: own_regression\n    mode: corrected"
    (tmp_path / "x.yaml").write_text(GOOD.replace("algorithm: pge", entry) + "effects: {beta_m: 3}\n")
    config = load_config(tmp_path / "x.yaml")
    assert config_of(config.resolved()) == config
    assert config.algorithms[0].effects.beta_m == 3  # as stored results are named

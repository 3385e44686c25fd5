"""The known flaws of the five papers, and how an audit shows each of them."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.audit.entries import registered
from dpmf_cli.audit.job import CLAIMED, Audited, Found, Job, Settings
from dpmf_cli.audit.judge import AMPLIFIED, AT_ITS_LIMIT, TOGETHER, Flaw
from dpmf_cli.audit.pairs import Pair, contrary_to_all


@dataclass(frozen=True)
class KnownFlaw:
    """One flaw of a paper.

    what    what the paper does, and why that is wrong
    entry   the label of the entry that shows the flaw, one of `entries.registered`
    flaw    the flaw that a replay finds; None if corrected mode pays for it, and the replay shows how much of that is
            used
    step    the beginning of the name of the step that has the flaw; "" for any step
    said    the beginning of the finding's remark; "" for any remark
    pair    one more pair to replay, if small pairs do not show the flaw
    """

    paper: Paper
    what: str
    entry: str
    flaw: Flaw | None
    step: str = ""
    said: str = ""
    pair: Callable[[], Pair] | None = None

    def shown_by(self, audits: Sequence[Audited]) -> Found | None:
        """Returns the worst finding that shows the flaw; None if there is none."""
        if self.flaw is None:
            return next(self._paid(audits), None)
        found = [
            each
            for audited in audits
            if audited.label == self.entry
            for each in audited.found
            if each.flaw == self.flaw and each.step.startswith(self.step) and each.said.startswith(self.said)
        ]
        return max(found, key=lambda each: -1.0 if each.size != each.size else each.size, default=None)

    def _paid(self, audits: Sequence[Audited]) -> Iterator[Found]:
        for audited in audits:
            for step in audited.steps:
                if (
                    audited.label == self.entry
                    and step.step.startswith(self.step)
                    and step.of_sensitivity > 0
                ):
                    yield Found(
                        PAID, step.step, step.of_sensitivity, audited.pairs, "", math.nan, "", CLAIMED
                    )


PAID = "moves; size is in units of what corrected mode pays for this"
"""The remark on a move that a publication forgets, and that corrected mode pays for."""

BY_ACCOUNTANT = "by the accountant"

KNOWN = (
    KnownFlaw(
        Paper.FRIEDMAN,
        "Unbounded averages: sums of raw ratings get noise for r_max − r_min; a rating of r_max moves them by r_max.",
        "pge, unbounded, published",
        Flaw.CLAIM,
        "item sums",
    ),
    KnownFlaw(
        Paper.FRIEDMAN,
        "Algorithm 5: a pass over all ratings gets noise for what one update moves.",
        "psgd, unbounded, published",
        Flaw.CLAIM,
        "item factors",
    ),
    KnownFlaw(
        Paper.FRIEDMAN,
        "Algorithm 6, bounded: p_max and q_max are exchanged.",
        "pals, bounded, published",
        Flaw.CLAIM,
        "user factors",
    ),
    KnownFlaw(
        Paper.FRIEDMAN,
        "Algorithm 6, unbounded: the scale of a row's noise follows its private number of ratings.",
        "pals, unbounded, published",
        Flaw.AFTER,
    ),
    KnownFlaw(
        Paper.MCSHERRY,
        "Theorem 5: α = r_max − r_min forgets that the averages of two items differ.",
        "mm_knn, laplace, unbounded, published",
        Flaw.CLAIM,
        "covariance",
        pair=contrary_to_all,
    ),
    KnownFlaw(
        Paper.MCSHERRY,
        "Theorem 3 is used for any ε; the bound behind it holds for ε ≤ 1.",
        "mm_averages, gaussian, unbounded, published",
        Flaw.CLAIM,
        "",
        BY_ACCOUNTANT,
    ),
    KnownFlaw(
        Paper.ZHANG,
        "Algorithm 2: U is fitted to the ratings without noise, and V follows from it.",
        "dp_pmf, unbounded, published",
        Flaw.AFTER,
    ),
    KnownFlaw(
        Paper.ZHANG,
        "Algorithm 2, line 17: noise is drawn anew for every step, and charged once.",
        "dp_pmf, unbounded, published",
        Flaw.CLAIM,
        "objective",
        TOGETHER,
    ),
    KnownFlaw(
        Paper.ZHANG,
        "Theorem 4: the density of V changes by a determinant too, and this is not charged.",
        "dp_pmf, unbounded, corrected",
        None,
        "determinants",
    ),
    KnownFlaw(
        Paper.ZHANG,
        "Theorem 4: the gradient of one rating moves by more than r_max.",
        "dp_pmf, bounded, published",
        Flaw.CLAIM,
        "objective",
    ),
    KnownFlaw(
        Paper.WANG,
        "Theorem 1: a sample of a fraction γ is charged γ·ε; it costs ln(1 + γ(e^ε − 1)).",
        "dpsgd_pnbm, samples of 0.3, bounded, published",
        Flaw.CLAIM,
        "gradient",
        AMPLIFIED,
    ),
    KnownFlaw(
        Paper.WANG,
        "Section 3: noise is for one coordinate of one rating's gradient; a rating moves many.",
        "dpsgd_pnbm, bounded, published",
        Flaw.CLAIM,
        "gradient",
    ),
    KnownFlaw(
        Paper.WANG,
        "Section 4: noise of temperature ρ is charged as if ρ were 1, and as if the chain were at its limit.",
        "dpps_mf, gaussian, user, published",
        Flaw.CLAIM,
        "factors",
        AT_ITS_LIMIT,
    ),
    KnownFlaw(
        Paper.WANG,
        "Sections 3 and 4: item averages are released without noise, and not charged for.",
        "dpps_mf, gaussian, user, published",
        Flaw.CLAIM,
        "all steps",
    ),
    KnownFlaw(
        Paper.NEERA,
        "PG-MF is compared at ε per rating, but each rating enters all n reports of its user.",
        "pg_mf, local, published",
        Flaw.CLAIM,
        "gradients",
        TOGETHER,
    ),
)


def jobs_of(entries: Collection[str], settings: Settings) -> list[Job]:
    """Returns jobs for registered algorithms, given their labels, with the pairs that show their known flaws."""
    found = []
    for algorithm in registered():
        if algorithm.name in entries:
            made = [flaw.pair for flaw in KNOWN if flaw.entry == algorithm.name and flaw.pair]
            found.append(
                Job(algorithm, settings, own=tuple(pair() for pair in made for _ in settings.epsilons))
            )
    return found

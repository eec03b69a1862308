"""Where the numbers of a pair become a label: the judge card's thresholds and its fitted combiner.

A small judge is sure of things that its premise hardly speaks of, and doubts what stands there word for word; a
logistic of its two probabilities and of the shared words orders claims better than P(entailment) alone. The weights are
the card's, fitted on labelled claims. Knows no pair's meaning and no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from claimscore.jobs.config import Combiner, Config

NEAREST = 1e-6
"""A probability counts as no nearer to 0 or 1: its log odds must be finite."""
MOST_NAMES = 3
"""More missing names than this say no more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Thresholds:
    """The card's thresholds, unless `[verdicts]` says otherwise."""

    entailment: float
    contradiction: float
    combiner: Combiner | None = None
    """Of the judge card; None: P(entailment) is compared with `entailment`."""
    least: float = 0.0
    """The lowest P(entailment) that a combiner may count as entailed: no rival values were tried below it."""

    @classmethod
    def of(cls, config: Config) -> Thresholds:
        """The thresholds in force."""
        card, own = config.card, config.verdicts
        return cls(
            entailment=card.entailment if own.entailment is None else own.entailment,
            contradiction=card.contradiction if own.contradiction is None else own.contradiction,
            combiner=card.combiner,
            least=config.evidence.rivals_above if card.combiner and config.evidence.rivals_above < 1 else 0.0,
        )

    def support(self, n_missing_names: pl.Expr | None = None) -> pl.Expr:
        """What is compared with `entailment`, of the columns of records.SCORES; null without probabilities.

        Args:
            n_missing_names: names of the claim that the premise lacks; null and None: none.
        """
        weights = self.combiner
        if weights is None:
            return pl.col("p_entailment")
        logit = (
            weights.intercept
            + weights.entailment * log_odds(pl.col("p_entailment"))
            + weights.contradiction * log_odds(pl.col("p_contradiction"))
            + weights.overlap * pl.col("overlap").fill_null(0.0)
            + weights.names
            * (pl.lit(0) if n_missing_names is None else n_missing_names.fill_null(0).clip(0, MOST_NAMES))
        )
        return (1 / (1 + (-logit).exp())).cast(pl.Float32)

    def may_entail(self) -> pl.Expr:
        """Whether a pair can be entailed, whatever the texts say; false without probabilities."""
        least = self.entailment if self.combiner is None else self.least
        return (pl.col("p_entailment") >= least).fill_null(value=False)

    def contradicts(self) -> pl.Expr:
        """Whether the judge says that the premise contradicts the claim; false without probabilities."""
        return (pl.col("p_contradiction") >= self.contradiction).fill_null(value=False)

    def needs_names(self) -> pl.Expr:
        """Whether missing names could decide anything of a pair: that it contradicts, or what a combiner makes of it."""
        weighs = self.combiner is not None and self.combiner.names != 0
        return self.contradicts() | (self.may_entail() & pl.lit(weighs))

    def entails(self, n_missing_names: pl.Expr | None = None) -> pl.Expr:
        """Whether a pair is entailed; false without probabilities."""
        support = self.support(n_missing_names)
        is_enough = (support.is_finite() & (support >= self.entailment)).fill_null(value=False)
        return is_enough & self.may_entail()


def log_odds(p: pl.Expr) -> pl.Expr:
    """log(p / (1 - p)), with p held NEAREST from 0 and 1."""
    p = p.cast(pl.Float64).clip(NEAREST, 1 - NEAREST)
    return (p / (1 - p)).log()

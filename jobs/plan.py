"""What each table of a shard would be made from now, and so what is stale and why.

Fingerprints chain: the parts of a table hold the fingerprint of the table before it. A judge change therefore makes
scores and what follows stale, a threshold only verdicts and what follows, and nothing else is ever looked at: not
times, hosts or worker counts. The module loads no model; weights are hashed, not read into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from claimscore.jobs.checkpoint import model_fingerprint
from claimscore.jobs.config import Config, fingerprint
from claimscore.jobs.layout import TableFile, series_name
from claimscore.jobs.records import Shard
from claimscore.jobs.settings import THRESHOLDS, THRESHOLDS_SHOWN, settings_of
from claimscore.jobs.store import Store, fingerprint_of

# Raised by hand when the code of a stage changes what it gives; the number is a part of the fingerprint.
STAGE_VERSIONS = {
    "quarantine": "1",
    "claims": "7",
    "scores": "9",
    "sample_scores": "5",
    "referee": "5",
    "verdicts": "12",
    "answers": "6",
    "metrics": "1",
}
TABLES = ("quarantine", "claims", "scores", "sample_scores", "verdicts", "answers")
"""Tables of a shard, in the order in which they are made; with a referee, its own comes before the verdicts."""
REFEREE = "referee"
NEED_MODELS = frozenset({"claims", "scores", "sample_scores", REFEREE})
"""Tables that ask a model; the others are made of them by rules."""
READ_BY: Mapping[str, tuple[str, ...]] = {
    "scores": ("claims",),
    "sample_scores": ("claims", "scores"),
    "referee": ("claims", "scores"),
    "verdicts": ("claims", "scores", "sample_scores", "referee"),
    "answers": ("verdicts", "referee"),
}
"""Table -> the tables whose content it was made from; fingerprints say how they were made, not what came of it."""

Repeats = Mapping[int, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Weights:
    """Fingerprints of the models' files; `none` where no model is configured."""

    decomposer: str
    checker: str
    judge: str
    generator: str
    referee: str = "none"

    @classmethod
    def of(cls, config: Config) -> Weights:
        """Hash the files of every model of a deployment.

        Raises:
            ModelError: a model is missing or has no safetensors weights.
        """
        return cls(
            decomposer=model_fingerprint(config.decompose.model),
            checker=model_fingerprint(config.checker_card.model),
            judge=model_fingerprint(config.card.model),
            generator=model_fingerprint(config.samples.model) if config.samples.model else "none",
            referee=model_fingerprint(config.referee_card.model) if config.referee_card else "none",
        )


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard of one day, and the parts that each of its tables would be made from now."""

    date: str
    shard: Shard
    repeats: Repeats
    series: str
    generator: str
    parts: Mapping[str, Mapping[str, str]]
    stores_text: bool = True
    """False: tables hold no texts, so that none can be made from one that was read back."""
    referee: str = ""
    """What the referee's replies depend on beside their prompts."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of this shard, in the order in which they are made."""
        at = TABLES.index("verdicts")
        return (*TABLES[:at], REFEREE, *TABLES[at:]) if REFEREE in self.parts else TABLES

    def read_by(self, table: str) -> tuple[str, ...]:
        """The tables whose content this one is made from."""
        return tuple(name for name in READ_BY.get(table, ()) if name in self.parts)

    def file(self, table: str) -> TableFile:
        """Where a table of this shard lies; the sample scores are the second file of `scores`."""
        if table == "sample_scores":
            return TableFile("scores", self.date, f"{self.shard.shard_id}-samples", self.series)
        series = None if table in {"quarantine", "claims"} else self.series
        return TableFile(table, self.date, self.shard.shard_id, series)

    def stale(self, store: Store) -> dict[str, str]:
        """Tables that must be made, in order, with the reason in words.

        What follows a table that is made again is made again too, even where its own file is whole: an LLM may
        not give the same claims twice, and scores of other claims must not pass for fresh.
        """
        reasons: dict[str, str] = {}
        contents: dict[str, str] = {}
        remade = ""
        for table in self.tables:
            read = {name: contents[name] for name in self.read_by(table)}
            why = store.why_stale(self.file(table), self.parts[table], read) or (
                remade and f"{remade} made again"
            )
            if why:
                reasons[table] = why.replace(THRESHOLDS, THRESHOLDS_SHOWN)
                remade = remade or ("" if table == "quarantine" else table)
            contents[table] = store.content(self.file(table))
        if not self.stores_text and reasons:
            reasons = {table: reasons.get(table, "its texts are not stored") for table in self.tables}
        return reasons


def shard_tasks(
    config: Config, weights: Weights, date: str, shards: list[Shard], repeats: Mapping[str, Repeats]
) -> Iterator[ShardTask]:
    """The tasks of one day's shards, in order."""
    series = series_of(config, weights)
    generator, referee = generator_of(config, weights), referee_of(config, weights)
    of = _fingerprints(config)
    for shard in shards:
        condemned = repeats.get(shard.shard_id, {})
        parts = table_parts(config, weights, shard.shard_id, condemned, generator, of)
        yield ShardTask(
            date,
            shard,
            condemned,
            series,
            generator,
            parts,
            stores_text=config.privacy.store_text,
            referee=referee,
        )


def series_of(config: Config, weights: Weights) -> str:
    """The judge's series: its name and the fingerprint of what gives the probabilities."""
    return series_name(config.card.name, fingerprint_of(_judge_parts(_fingerprints(config), weights)))


def generator_of(config: Config, weights: Weights) -> str:
    """What samples depend on beside the content of the answer: the generator's settings and weights."""
    return fingerprint_of(
        {"samples config": fingerprint(config.samples), "generator weights": weights.generator}
    )


def referee_of(config: Config, weights: Weights) -> str:
    """What a referee's reply depends on beside its prompt: prompt frame, weights, number format; "" without a referee."""
    card = config.referee_card
    if card is None:
        return ""
    settings = {"referee card": fingerprint(card), "dtype": config.referee.dtype}
    return fingerprint_of(settings | {"referee weights": weights.referee})


def table_parts(
    config: Config,
    weights: Weights,
    shard_id: str,
    repeats: Repeats,
    generator: str,
    of: Mapping[str, str] | None = None,
) -> dict[str, dict[str, str]]:
    """Table -> what it is made from, in words for people; the chain of a shard's fingerprints.

    `of`: the fingerprints of the config's sections, which are the same for all shards; None: taken here.
    """
    of = of or _fingerprints(config)
    repeated = fingerprint(
        {str(row): reason for row, (reason, _) in sorted(repeats.items())}
    )  # the detail names paths
    parts: dict[str, dict[str, str]] = {}
    parts["quarantine"] = {
        "log content": shard_id,
        "repeated rows": repeated,
        "[read]": of["[read]"],
    }
    if (
        not config.privacy.store_text
    ):  # no part at all otherwise: what was made before there was a choice stays fresh
        parts["quarantine"]["[privacy]"] = fingerprint(config.privacy)
    parts["claims"] = {
        "log": fingerprint_of(parts["quarantine"]),
        "[segment]": of["[segment]"],
        "[citations]": of["[citations]"],
        "[decompose]": of["[decompose]"],
        "checker card": of["checker card"],
        "decomposer weights": weights.decomposer,
        "checker weights": weights.checker,
    }
    parts["scores"] = {
        "claims": _chained(parts, "claims"),
        "[evidence]": of["[evidence]"],
        **_judge_parts(of, weights),
    }
    parts["sample_scores"] = {
        "scores": _chained(parts, "scores"),
        "[triage]": of["[triage]"],
        "generator": generator,
    }
    parts["verdicts"] = {
        "scores": _chained(parts, "sample_scores"),
        "[verdicts]": of["[verdicts]"],
        THRESHOLDS: of[THRESHOLDS],
    }
    if config.referee_card is not None:  # no part at all otherwise: without a referee nothing is made again
        parts[REFEREE] = {
            "scores": _chained(parts, "scores"),
            "[triage]": of["[triage]"],
            "[referee]": of["[referee]"],
            "referee card and weights": referee_of(config, weights),
            "combiner of the judge card": fingerprint(config.card.combiner),
        }
        if config.referee.grade_answers:
            parts[REFEREE]["grade prompt of the referee card"] = fingerprint(config.referee_card.grade_prompt)
        parts["verdicts"][REFEREE] = _chained(parts, REFEREE)
    parts["answers"] = {"verdicts": _chained(parts, "verdicts"), "[policy]": fingerprint(config.policy)}
    return {table: made_from | {"stage version": STAGE_VERSIONS[table]} for table, made_from in parts.items()}


def metrics_parts(config: Config, store: Store, tasks: list[ShardTask]) -> dict[str, str]:
    """What the metrics of a day are made from: the answers of all its shards, in any order."""
    answers = sorted(store.content(task.file("answers")) for task in tasks)
    return {
        "answers": fingerprint(answers),
        "[metrics]": fingerprint(config.metrics),
        "stage version": STAGE_VERSIONS["metrics"],
    }


def _fingerprints(config: Config) -> dict[str, str]:
    """Part of a manifest -> the fingerprint of the section that it is."""
    return {name: fingerprint(section) for name, section in settings_of(config).items()}


def _chained(parts: Mapping[str, Mapping[str, str]], table: str) -> str:
    return fingerprint_of({**parts[table], "stage version": STAGE_VERSIONS[table]})


def _judge_parts(of: Mapping[str, str], weights: Weights) -> dict[str, str]:
    return {"judge weights": weights.judge, "judge card": of["judge card"], "[judge]": of["[judge]"]}

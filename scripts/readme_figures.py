"""Put the figures of benchmarks/results/ into the README, between its markers; no figure there is typed.

`python scripts/readme_figures.py` rewrites the blocks `<!-- figures:NAME:begin -->` ... `<!-- figures:NAME:end -->` from
the newest result of each name. Longer than other files: a function a block.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def newest(name: str) -> dict[str, Any]:
    """The newest result called `name`; file names begin with the date."""
    found = sorted(RESULTS.glob(f"*_{name}.json"))
    if not found:
        sys.exit(f"readme_figures: {RESULTS}: no result named {name!r}; record it with scripts/record_run.py")
    result: dict[str, Any] = json.loads(found[-1].read_text())
    return result


def demo() -> str:
    """Recall and precision of the demo by type, and the sweep over thresholds."""
    result = newest("demo")
    gold = result["gold"]
    everything = gold["parts"]["all"]
    lines = [
        "| planted hallucinations | found | of | recall | 95% interval |",
        "|---|---|---|---|---|",
        *(_row(kind, rate) for kind, rate in everything["by_type"].items()),
        _row("**all**", everything["recall"]),
        "",
        (
            f"Precision of the flags: {_rate(everything['precision'])}. On English answers alone: recall "
            f"{_rate(gold['parts']['english']['recall'])}, precision {_rate(gold['parts']['english']['precision'])}."
        ),
        "",
        f"At other thresholds than the demo's {result['thresholds']['entailment']}: "
        + "; ".join(
            f"{point['threshold']}: {point['recall']['value']:.2f} / {point['precision']['value']:.2f}"
            for point in gold["sweep"]
        )
        + " (recall / precision). The threshold was fitted on other claims (below), the rules around it with these answers in sight: expect a little less on yours.",
        "",
        (
            f"{_total(result, 'n_rows')} rows of {len(result['days'])} days, {_total(result, 'n_claims')} claims, "
            f"{_made(result, 'n_pairs')} pairs: {result['wall_s']:.0f} s on {result['machine']['cpus']} cores without a GPU."
        ),
        _setup(),
    ]
    return "\n".join(lines)


def _setup() -> str:
    """Time and memory of the README's first command in a fresh clone."""
    steps = newest("demo-setup")["steps"]
    total_s = sum(steps[name]["wall_s"] for name in ("setup", "models", "demo"))
    peak = max(step["peak_pss_mib"] for step in steps.values())
    return (
        f"`scripts/demo` in a fresh clone: {total_s / 60:.1f} minutes, {steps['setup']['wall_s']:.0f} s of it set-up; peak memory "
        f"{peak / 1024:.1f} GiB; a second call {steps['again']['wall_s']:.0f} s."
    )


def real() -> str:
    """Two runs over real logs: both models on 200 answers, stubs on all."""
    run, stub = newest("rag-logs-200"), newest("rag-logs-stub")
    (day,) = run["days"]
    claims = day["counts"]["claims"]
    asked = max(1, claims["n_asked"])
    verdicts = _shares(day["counts"]["verdicts"], "verdict_")
    states = _shares(day["counts"]["answers"], "state_")
    seconds = day["seconds"]
    note = f" ({run['note']})" if "note" in run else ""
    return "\n".join(
        [
            f"- {day['n_rows']} answers, both demo models, {run['machine']['cpus']} cores: {day['wall_s']:.0f} s{note}; "
            f"{day['n_claims']:,} claims, {day['n_made_of']['n_pairs']:,} pairs of {_mean_tokens(day)} tokens. Shard seconds: "
            + ", ".join(f"{table} {s:.0f}" for table, s in seconds.items() if s >= 1)
            + ".",
            (
                f"  States: {states}. Claims: {verdicts}. {claims['n_atomic'] / claims['n_sentences']:.1%} of the sentences "
                f"skipped the LLM as atomic; {claims['n_fallback'] / asked:.1%} of those asked fell back to the sentence."
            ),
            (
                f"- {stub['n_rows']:,} answers, stub models, one process: {stub['wall_s']:.0f} s, "
                f"{1000 * stub['wall_s'] / stub['n_rows']:.1f} ms an answer, peak {stub['peak_mib']:.0f} MiB; "
                f"a second run that finds all fresh: {stub['fresh_s']:.2f} s."
            ),
        ]
    )


def speed() -> str:
    """The judge against its baselines on a CPU, and what the job itself costs; from the newest results."""
    lines = [
        "| judge on a CPU | dtype | pairs/s | share of the bare products' speed | ours is faster by | decisions that differ from fp32 |",
        "|---|---|---|---|---|---|",
    ]
    results = [found for name in NLI_RESULTS for found in [_newest_or_none(name)] if found]
    for result in results:
        lines += [_nli_row(name, row, result["dtype"]) for name, row in result["rows"].items()]
    if results:
        first = results[0]
        lines += [
            "",
            (
                f"{first['model']}, `{first['mix']}` lengths ({first['mean_tokens']:.0f} tokens a pair), {first['threads']} threads, "
                f"{first['machine']['processor']}; no GPU was measured."
            ),
        ]
    job, growth, scaling = (_newest_or_none(name) for name in ("job-drawn", "job-growth", "scaling"))
    if job:
        cost = job["cpu_ms_an_answer"]
        stages = ", ".join(f"{stage} {ms:.1f}" for stage, ms in cost["stages"].items() if ms >= 0.05)
        lines.append(
            f"The job without models (5 chunks of 100 words, 5 claims): {cost['total']:.1f} ms of CPU an answer ({stages})."
        )
    if growth:
        of = growth["growth"]
        lines.append(f"Memory grew by {of['growth_mib']:.0f} MiB over {of['over_answers']:,} answers.")
    if scaling:
        lines.append(
            f"Stub judges of {scaling['set_pairs_per_s']:,.0f} pairs/s each: Ray alone carries the pairs of {scaling['scales_to']} of them "
            f"at an efficiency of 0.95 on {scaling['machine']['cpus']} cores."
        )
        if job:
            cpu_s_a_pair = job["cpu_ms_an_answer"]["total"] / 1000 * job["n_rows"] / job["n_pairs"]
            lines[-1] += (
                f" To make the pairs of one takes the job {scaling['set_pairs_per_s'] * cpu_s_a_pair:.1f} cores."
            )
    return "\n".join(lines)


NLI_RESULTS = (
    "nli-demo-judge-rag-bfloat16",
    "nli-demo-judge-rag-float32",
    "nli-demo-judge-rag-cross-encoder",
)


def _nli_row(name: str, row: dict[str, Any], dtype: str) -> str:
    answers = row["answers"]
    return (
        f"| {name} | {dtype} | {row['pairs_per_s']:.1f} | {row['share_of_floor']:.2f} | {row['ours_is_faster_by']:.2f} "
        f"| {answers['n_flips']} of {answers['of']} |"
    )


def _newest_or_none(name: str) -> dict[str, Any] | None:
    return newest(name) if any(RESULTS.glob(f"*_{name}.json")) else None


def quality() -> str:
    """The demo judge on human labels, beside plain baselines on the same judge; from the newest result."""
    result = newest("quality")
    dev, probes, flips = result["dev"], result["probes"]["all"], result["flips_of_dev"]
    lines = [
        "| method, same judge | balanced accuracy, threshold fitted | AUROC, 95% interval | tokens a claim |",
        "|---|---|---|---|",
    ]
    for name, row in dev["methods"].items():
        low, high = row["auroc_95"]
        lines.append(
            f"| {name} | {row['ba_fitted']:.3f} | {row['auroc']:.3f}, {low:.2f} to {high:.2f} | {row['tokens']:,.0f} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            (
                f"{dev['n_reported']} human-labelled claims that no threshold was fitted on, macro over "
                f"sources, demo judge in {result['judge']['dtype']}. Own probes: {probes['right']:.0%} of {probes['n']} right. One fact changed in a "
                f"supported claim: {flips['all']['caught']:.0%} caught, beside {flips['false_alarms']:.0%} false alarms on the unchanged."
            ),
            _mixed_up(result),
            _calibrated(),
            _decomposed(),
            _steps(),
        ]
    )


def _mixed_up(result: dict[str, Any]) -> str:
    """Claims about one of two like things, those that no rule was made with."""
    like, plain = (result["mixups"][f"{kind}, unseen"] for kind in ("like", "plain"))
    return (
        f"Where several like things are described, of {like['n_false']} claims that give one of them what is another's {like['false_supported']} "
        f"are supported, of {like['n_true']} true ones {like['true_supported']}; of ordinary claims {plain['false_supported']} of {plain['n_false']} and "
        f"{plain['true_supported']} of {plain['n_true']} (invented, and unseen when the rules were made)."
    )


def _decomposed() -> str:
    """The demo decomposer beside claims that people wrote of the same sentences."""
    result = newest("decompose")
    human, checked = result["results"]["human claims"], result["results"]["demo adapter, checked"]
    return (
        f"Claims of {result['n_sentences']} sentences after the checks, beside those that people wrote: {checked['number_coverage']:.1%} of the numbers and "
        f"{checked['name_coverage']:.1%} of the names kept (people {human['number_coverage']:.1%}, {human['name_coverage']:.1%}), {1 - checked['focus'][0]:.1%} "
        f"not entailed by sentence and context as this judge, which is also the checker, sees it (people {1 - human['focus'][0]:.1%}); {checked['fallback_share']:.0%} of "
        "the sentences fell back to the sentence itself."
    )


def _steps() -> str:
    """What each choice of evidence, score and rule gives and costs: the ablation, folded away."""
    result = newest("quality")
    lines = [
        "<details><summary>What each step gives and costs</summary>",
        "",
        "| premises: score | balanced accuracy | AUROC | tokens a claim |",
        "|---|---|---|---|",
        *(
            f"| {name} | {row['ba_fitted']:.3f} | {row['auroc']:.3f} | {row['tokens']:,.0f} |"
            for name, row in result["ablation"].items()
            if name.startswith(STEPS)
        ),
        "",
        (
            "e, c: P(entailment), P(contradiction); veto: a pair whose premise lacks a value of the claim counts as no support; combiner: "
            "fitted on the other half (all five: with missing values and names)."
        ),
        "",
        "</details>",
    ]
    return "\n".join(lines)


STEPS = ("whole context", "400-token chunks", "job", "combiner, job")
"""Lines of the ablation that the README shows; the others are premises that the job does not build, and no better."""


def _calibrated() -> str:
    """What `claimscore calibrate` says of the demo judge on the same sources."""
    result = newest("calibration")
    figures = result["figures"]["fitted"]
    accuracy, kappa = figures["balanced_accuracy"], figures["kappa"]
    sources = {name: part["balanced_accuracy"]["value"] for name, part in result["by_source"].items()}
    known = sorted((value, name) for name, value in sources.items() if value is not None)
    (worst, hardest), (best, easiest) = known[0], known[-1]
    return (
        f"Calibrated (`claimscore calibrate`, {result['n_used']:,} claims of {result['n_sources']} sources): threshold "
        f"{result['entailment']['threshold']:.2f}, and on the half that it was not fitted on balanced accuracy {accuracy['value']:.2f} "
        f"({accuracy['low']:.2f} to {accuracy['high']:.2f}), kappa against people {kappa['value']:.2f}; by source from {worst:.2f} "
        f"({hardest}) to {best:.2f} ({easiest})."
    )


def fleet() -> str:
    """Nights of a million answers and more, simulated; how far the model was from real runs; a large day, run."""
    night, check, large = newest("fleet"), newest("fleet-check"), newest("million")
    assumed = night["assumed"]
    lines = [
        "| answers a night | GPUs | hours | GPU hours | bottleneck | a lost node of 8 costs |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['answers']:,.0f} | {row['gpus']:,} | {row['hours']:,.1f} | {row['gpu_hours']:,.0f} | {row['bottleneck']} "
            f"| {row['lost_node_minutes']:,.0f} minutes |"
            for row in night["rows"]
        ),
        "",
        (
            f"Simulated. CPU, prompts, pairs, tokens and bytes an answer are measured; **no GPU was**: {assumed['gpu']['llm_prompts_per_s']:,} "
            f"prompts/s of the LLM and {assumed['gpu']['judge_tokens_per_s']:,} tokens/s of the judge on one GPU are assumptions, and stand with the "
            f"others in benchmarks/fleet.toml. The LLM takes {night['rows'][0]['llm_share_of_gpu']:.0%} of the GPU's time."
        ),
        "The model against runs on real Ray nodes with models that sleep: "
        + "; ".join(
            f"{_nodes(run['nodes'])} {run['predicted_s']:.0f} s predicted, {run['measured_s']:.0f} s measured ({run['off']:+.0%})"
            for run in check["runs"]
        )
        + ".",
        _large_day(large),
    ]
    return "\n".join(lines)


def _nodes(n: int) -> str:
    return f"{n} node{'s' if n > 1 else ''}"


def _large_day(large: dict[str, Any]) -> str:
    files = sum(kept["files"] for kept in large["disk"].values())
    mib = sum(kept["mib"] for kept in large["disk"].values())
    phases = large["phases"]
    copied = (
        f" ({large['n_answers_made']:,} made, the tables of the others copies of theirs)"
        if large["n_answers_copied"]
        else ", every one made"
    )
    stages = ", ".join(
        f"{stage} {s:,.0f}" for stage, s in large.get("of_run_cpu_s", {}).items() if s >= 3
    )  # an earlier result has the stages' time on the clock alone
    return (
        f"A day of {large['n_answers']:,} short answers on stub models{copied}: {phases['run']['wall_s']:,.0f} s in one process"
        f"{f' (CPU by stage: {stages} s)' if stages else ''}, {large['cpu_ms_an_answer_made']:.1f} ms of CPU an answer without the stubs, "
        f"{large['memory'][0]['rss_mib']:,.0f} MiB after {large['memory'][0]['answers']:,} answers and {large['memory'][-1]['rss_mib']:,.0f} after the last, at the peak "
        f"(the metrics of the whole day) {max(phase['peak_mib'] for phase in phases.values()):,.0f} MiB, {files:,.0f} files of {mib:,.0f} MiB in all; to plan it {phases['plan']['cpu_s']:.1f} s of CPU, "
        f"to find on the next run that nothing is to be done {phases['plan again']['cpu_s'] + phases['run again']['cpu_s']:.1f} s "
        f"({large['resume_s']:.0f} s on the clock)."
    )


def chaos() -> str:
    """What the kills of the newest campaign came to."""
    result = newest("chaos")
    counts = result["counts"]
    on_ray = ", ".join(
        f"{n} of a {what.removeprefix('kills of a ')}"
        for what, n in counts.items()
        if what.startswith("kills of a ")
    )
    return (
        f"The last campaign (seed {result['seed']}, {result['wall_s'] / 60:.0f} minutes): {counts['random kills']:,} kills of whole runs at random moments, "
        f"one at each of the {counts['kinds of boundary killed at']} kinds of boundary (of {counts['kinds of boundary']}), and on two Ray nodes kills {on_ray}; "
        f"{counts['kills that left a half-written file in tmp']} left a half-written file. {counts['outputs that held'] + counts['outputs on Ray that held']:,} "
        f"outputs compared with an unbroken run's, {counts['tables compared']:,} tables and {counts['rows compared']:,} rows: "
        f"**{result['lost, doubled or differing rows']} lost, doubled or differing rows**."
    )


def hostile() -> str:
    """What the corpus of bad input holds, counted in the corpus itself: the tests hold each of its outcomes."""
    sys.path.insert(0, str(ROOT / "tests" / "hostile"))
    import injections
    import make_cases
    import type_cases

    cases = make_cases.all_cases()
    rows = [row for case in cases for row in case.rows]
    n_out = sum(row.startswith("!") for row in rows)
    return (
        f"The corpus of bad input: {len(cases)} files with {len(rows):,} rows, and every type in every column ({len(type_cases.grid())} pairs), each with the outcome "
        f"that was written for it by hand: {len(rows) - n_out:,} rows are answers in a named state, {n_out} are quarantined with the reason, {sum(bool(case.error) for case in cases)} files are "
        f"refused by name. {len(injections.ALL)} texts that speak to a model in {len(injections.PLACES)} places make no claim supported that is not so without them. The tests fail on any "
        "other outcome, on a crash, and where the row beside a hostile one has another verdict than alone."
    )


def audit() -> str:
    """What scripts/audit found where it was recorded last."""
    result = newest("audit")
    others = "; ".join(name.rpartition(" ")[0] for name in result["not_permissive"])
    told = result["advisories"]
    asked = (
        f"{told['source']} was asked, {len(told['found'])} advisories"
        if told["asked"]
        else "advisories: not asked, for pip-audit was not there"
    )
    return (
        f"`scripts/audit`: {result['n_packages']} packages (extras {', '.join(result['extras'])}), {len(result['outside'])} outside the list of what is "
        f"accepted. Not permissive, or without a stated licence, each accepted for a reason that stands in scripts/audit.toml: {others}. "
        f"On that machine {asked}."
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "demo": demo,
    "real": real,
    "speed": speed,
    "quality": quality,
    "fleet": fleet,
    "chaos": chaos,
    "hostile": hostile,
    "audit": audit,
}


def fill(text: str) -> str:
    """`text` with every block written anew."""
    for name, make in BLOCKS.items():
        begin, end = f"<!-- figures:{name}:begin -->", f"<!-- figures:{name}:end -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        block = f"{begin}\n{make()}\n{end}"
        text = pattern.sub(lambda _, block=block: block, text)
    return text


def _row(name: str, rate: dict[str, Any]) -> str:
    return f"| {name} | {rate['hits']} | {rate['n']} | {rate['value']:.3f} | {rate['low']:.2f} to {rate['high']:.2f} |"


def _rate(rate: dict[str, Any]) -> str:
    return f"{rate['value']:.3f} ({rate['hits']} of {rate['n']})"


def _total(result: dict[str, Any], key: str) -> str:
    return f"{sum(day[key] for day in result['days']):,}"


def _made(result: dict[str, Any], unit: str) -> str:
    return f"{sum(day['n_made_of'][unit] for day in result['days']):,}"


def _mean_tokens(day: dict[str, Any]) -> int:
    return round(day["n_made_of"]["n_tokens"] / max(1, day["n_made_of"]["n_pairs"]))


def _shares(counts: dict[str, int], prefix: str) -> str:
    mine = {name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix)}
    return ", ".join(f"{name} {n / sum(mine.values()):.1%}" for name, n in mine.items())


def main() -> None:
    """Rewrite README.md."""
    path = ROOT / "README.md"
    path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Who may import whom: the layout of jobs/ held by a table, so that stages stay apart and start-up stays cheap."""

import ast
import graphlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

PROVIDED_BY = importlib.metadata.packages_distributions()

# Everyone may import these; they import each other only in this order.
BASE = ("uri", "errors", "records", "config", "frames")

IMPORTERS = tuple(
    f"import_{tool}" for tool in ("langfuse", "langsmith", "mlflow", "otlp", "phoenix", "trulens")
)

# A file of jobs/ -> the files of jobs/ that it may import beside BASE. A new file needs a line here.
MAY_IMPORT = {
    "errors": (),
    "records": (),
    "config": (),
    "config_file": (),
    "frames": (),
    # The log: a stage, and the parts that only it is made of.
    "uri": (),
    "read": ("columns", "logfile", "rows", "shards"),
    "rows": ("columns", "logfile"),
    "logfile": ("columns", "literals", "lookalikes"),
    "lookalikes": (),
    "columns": ("literals",),
    "literals": (),
    # A span export of a tracing tool: one file a tool, and what they share.
    "imports": (
        *IMPORTERS,
        *("import_counts", "import_files", "import_log", "import_repeats", "import_spans", "import_traces"),
        *("literals", "logfile", "lookalikes", "rows"),
    ),
    "import_files": ("import_spans", "logfile"),
    "import_counts": ("import_spans",),
    "import_repeats": ("import_counts", "import_spans"),
    "import_spans": (),
    "import_values": ("literals",),
    "import_texts": ("import_values",),
    "import_documents": (
        *("columns", "import_spans", "import_texts", "import_values", "literals", "logfile"),
    ),
    "import_citations": ("import_spans", "import_values", "provider"),
    "import_content": ("import_citations", "import_documents", "import_spans", "import_texts"),
    "import_evidence": ("import_spans",),
    "import_traces": ("import_citations", "import_evidence", "import_spans"),
    "import_envelope": ("import_values",),
    "import_log": ("logfile", "output"),
    **dict.fromkeys(
        IMPORTERS,
        (
            *("import_citations", "import_content", "import_documents", "import_envelope", "import_phoenix"),
            "import_spans",
            *("import_texts", "import_values", "literals"),
        ),
    ),
    # Sentences and citations.
    "segment": ("blocks", "bounds", "inline", "leads", "leaning", "phrases"),
    "leaning": (),
    "leads": ("cues", "phrases"),
    "citations": ("inline", "marks", "provider", "quotes", "windows"),
    "marks": (),
    "blocks": (),
    "bounds": (),
    "inline": (),
    "phrases": ("bounds",),
    "provider": (),
    "quotes": (),
    # Claims.
    "decompose": ("cues", "facts", "origin"),
    "duplicates": ("cues", "decompose", "facts", "spelled", "values"),
    "origin": ("cues", "facts"),
    "facts": ("cues", "hidden", "letters"),
    "letters": (),
    "hidden": (),
    "cues": (),
    "llm": ("replies",),
    "replies": (),
    # Pairs and their scores.
    "evidence": ("overlaps", "pairs", "premises", "windows"),
    "premises": ("covers", "flat", "overlaps", "pairs", "windows"),
    "covers": ("overlaps", "windows"),
    "overlaps": ("flat", "windows"),
    "pairs": ("flat", "windows"),
    "windows": (),
    "judge": ("batch", "checkpoint", "encoder", "flat", "lanes", "tokenizer"),
    "flat": (),
    "lanes": (),
    "tokenizer": ("checkpoint", "hidden"),
    "encoder": ("checkpoint",),
    "checkpoint": (),
    "batch": (),
    # Rules.
    "triage": ("draws",),
    "draws": (),
    "consistency": ("prompt_texts",),
    "prompt_texts": (),
    "rivals": ("dates", "pairs", "quantities", "units", "values", "windows"),
    "refusals": ("abstentions", "phrases", "rules", "windows"),
    "abstentions": ("phrases",),
    "rewording": ("dates", "pairs", "quantities", "values", "windows"),
    "injections": ("hidden",),
    "idioms": ("quantities", "remembered", "spelled"),
    "rules": ("idioms", "injections", "names", "quantities", "values"),
    "subjects": ("names",),
    "names": ("dates", "remembered"),
    "remembered": (),
    "values": ("arithmetic", "dates", "hidden", "neighbours", "quantities", "remembered", "units"),
    "arithmetic": ("flat", "neighbours", "quantities", "units"),
    "neighbours": ("flat", "multiples", "quantities", "units"),
    "multiples": ("units",),
    "quantities": ("dates", "digits", "letters", "multiples", "remembered", "spelled", "units"),
    "digits": (),
    "spelled": (),
    "dates": (),
    "units": (),
    "referee": ("draws", "prompt_texts", "quotes"),
    "asking": (),
    "rubric": ("prompt_texts", "quotes", "referee"),
    "grades": ("asking", "prompt_texts", "rubric", "rules"),
    "referee_rules": (),
    "referee_words": (),
    "escalation": ("asking", "prompt_texts", "referee", "rules", "signals", "thresholds"),
    "thresholds": (),
    "combining": ("thresholds", "trust"),
    "pair_rules": ("thresholds",),
    "verdicts": ("pair_rules", "referee_rules"),
    "counting": (),
    "answers": ("counting",),
    "metrics": (),
    "compare": (),
    # Files.
    "store": ("layout", "output"),
    "layout": (),
    "outputs": ("layout",),
    "output": ("wholefile",),
    "shards": (),
    # What joins the stages: one page, the files around it, a day, a cluster.
    "pipeline": (
        *(
            "answers",
            "citations",
            "consistency",
            "decompose",
            "duplicates",
            "escalation",
            "evidence",
            "grades",
            "pair_rules",
            "pairs",
            "referee_rules",
            "refusals",
        ),
        *(
            "rewording",
            "rivals",
            "rules",
            "segment",
            "signals",
            "thresholds",
            "triage",
            "verdicts",
            "windows",
        ),
    ),
    "signals": ("citations", "evidence", "rules", "subjects", "triage", "windows"),
    "settings": ("store", "thresholds"),
    "plan": ("checkpoint", "layout", "settings", "store"),
    "privacy": (),
    "shard_run": ("pipeline", "plan", "privacy", "read", "shard_samples", "store"),
    "shard_samples": ("consistency", "pipeline", "plan", "store"),
    "nightly": ("layout", "metrics", "pipeline", "plan", "read", "shard_run", "shards", "store"),
    "estimate": (
        *("config_file", "nightly", "plan", "read", "recipes", "report_words", "segment", "store", "windows"),
    ),
    "cluster": ("actors", "nightly", "pipeline", "plan", "shard_run", "store"),
    "actors": ("judge", "llm", "pairs"),
    # The command line.
    "options": (),
    "progress": (),
    "reports": (
        "compare",
        "metrics",
        "outputs",
        "progress",
        "recipes",
        "referee_words",
        "report_words",
        "store",
    ),
    "show": ("outputs", "progress", "referee_words", "report_words", "reports", "settings", "store"),
    "inprocess": ("nightly", "pipeline", "plan", "shard_run", "store"),
    "operate": (
        *(
            "config_file",
            "cluster",
            "estimate",
            "inprocess",
            "nightly",
            "plan",
            "progress",
            "settings",
            "store",
        ),
    ),
    # The morning report: figures, words, forms, files.
    "trend": (),
    "concentration": (),
    "flagged": ("counting",),
    "report": ("concentration", "counting", "flagged", "report_words", "trend"),
    "report_words": (),
    "report_charts": (),
    "report_html": ("concentration", "flagged", "report_charts", "report_words", "trend"),
    "report_text": ("report_words",),
    "report_files": (
        "wholefile",
        "metrics",
        "outputs",
        "report",
        "recipes",
        "report_html",
        "report_text",
        "reports",
        "store",
        "trend",
    ),
    "gate": ("metrics",),
    "cli_joins": ("import_counts", "import_documents", "import_spans", "imports", "options"),
    "cli": (
        "config_file",
        "cli_export",
        "cli_golden",
        "cli_joins",
        "cli_trust",
        "estimate",
        "gate",
        "gate_files",
        "operate",
        "options",
        "report_files",
        "reports",
        "show",
    ),
    # Telling others: other tools, and whoever is on duty.
    "exports": ("counting",),
    "sending": (),
    "wholefile": (),
    "published": ("output", "sending"),
    "export_csv": ("exports", "hidden"),
    "export_events": (),
    "export_langfuse": ("exports", "published", "sending"),
    "export_langsmith": ("published", "sending"),
    "export_mlflow": ("exports", "published", "sending"),
    "export_otlp": ("published", "sending"),
    "export_phoenix": ("published", "sending"),
    "export_day": ("export_events", "layout", "outputs", "read", "reports", "settings", "shards", "store"),
    "export_files": (
        *(
            "export_csv",
            "export_day",
            "export_events",
            "export_langfuse",
            "export_langsmith",
            "export_mlflow",
        ),
        *("export_otlp", "export_phoenix", "exports", "published", "report_words", "sending"),
        *("store", "wholefile"),
    ),
    "recipes": ("layout", "plan", "settings", "store", "trend"),
    "alerts": ("trend",),
    "alert_files": (
        *(
            "alerts",
            "gate_files",
            "outputs",
            "progress",
            "recipes",
            "report_words",
            "reports",
            "sending",
            "store",
            "trend",
        ),
    ),
    "cli_export": (
        "config_file",
        "alert_files",
        "alerts",
        "export_files",
        "options",
        "report_files",
        "wholefile",
    ),
    # Trust in the judge.
    "trust": ("metrics",),
    "calibrate": ("trust",),
    "contradictions": ("calibrate", "trust"),
    "calibration_scores": ("pair_rules", "pipeline", "signals", "thresholds", "trust"),
    "calibration": (
        *(
            "calibrate",
            "calibration_scores",
            "combining",
            "contradictions",
            "pipeline",
            "thresholds",
            "trust",
        ),
    ),
    "calibration_files": ("config_file", "wholefile", "read", "shards"),
    "calibration_run": (
        *(
            "actors",
            "calibrate",
            "calibration",
            "calibration_files",
            "calibration_scores",
            "judge",
            "label_sheet",
        ),
        "pipeline",
    ),
    "calibration_text": ("progress",),
    "labelling": ("trust",),
    "label_sheet": ("wholefile", "calibration_files"),
    "label_run": (
        "wholefile",
        *(
            "calibration_files",
            "counting",
            "label_sheet",
            "labelling",
            "outputs",
            "progress",
            "read",
            "report_words",
            "reports",
        ),
        *("shards", "store", "thresholds", "trust"),
    ),
    "canary": ("rules", "thresholds", "windows"),
    "canary_run": (
        *("actors", "canary", "checkpoint", "judge", "layout", "pipeline", "plan", "progress", "store"),
        *("thresholds", "windows"),
    ),
    "doctor": ("config_file", "doctor_checks", "progress"),
    "doctor_checks": ("checkpoint", "logfile", "output", "read", "shards", "tokenizer"),
    "cli_trust": (
        "config_file",
        "calibration_run",
        "calibration_text",
        "canary_run",
        "doctor",
        "label_run",
        "options",
    ),
    "gate_files": (
        "wholefile",
        "gate",
        "golden",
        "outputs",
        "recipes",
        "layout",
        "progress",
        "referee_words",
        "report_words",
        "reports",
        "settings",
        "store",
    ),
    # Golden sets: a log apart, its rates, a night replayed, and how each looks.
    "apart": ("operate", "store"),
    "golden": ("gate", "metrics"),
    "evaluate": ("apart", "golden", "layout", "logrows", "read", "recipes", "settings", "shards", "store"),
    "logrows": ("read", "shards"),
    "replay": ("consistency", "prompt_texts"),
    "replay_sides": ("gate", "metrics"),
    "replay_run": (
        *(
            "apart",
            "checkpoint",
            "cluster",
            "gate_files",
            "logrows",
            "output",
            "replay",
            "replay_sides",
            "store",
        ),
    ),
    "promote": ("flagged",),
    "promote_files": ("wholefile", "logrows", "outputs", "promote", "reports", "store"),
    "sheets": ("wholefile", "progress", "report_files", "report_text", "report_words"),
    "golden_words": ("gate_files", "golden", "report_words", "sheets"),
    "cli_golden": (
        *(
            "config_file",
            "evaluate",
            "gate",
            "golden_words",
            "options",
            "promote_files",
            "replay_run",
            "report_files",
            "sheets",
        ),
    ),
}

# No table may let one of these import another.
STAGES = {
    *("read", "imports", "segment", "citations", "decompose", "llm", "evidence", "judge", "triage"),
    *("consistency", "rules", "referee", "verdicts", "answers", "metrics", "compare", "store"),
}

# A package that is slow to import, or that a test must be able to do without -> the only files that import it.
OWNERS = {
    "ray": {"cluster"},
    "click": {"cli", "cli_export", "cli_golden", "cli_joins", "cli_trust", "options"},
    "vllm": {"llm"},
    "torch": {"checkpoint", "encoder", "judge", "lanes"},
    "safetensors": {"checkpoint"},
    "tokenizers": {"tokenizer"},
    "huggingface_hub": {"checkpoint"},
    "markdown_it": {"blocks"},
    "sentencex": {"bounds"},
    "icu4py": {"bounds"},
    "httpx": {"sending"},
    "jinja2": {"report_html", "sheets"},
    "pygal": {"report_charts"},
    "transformers": set(),  # a second way to run a model, and a minute of imports: tests compare with it, we do not use it
    "triton": set(),  # kernels/ only
}

HEAVY = ("torch", "ray", "vllm", "transformers")


class Import(NamedTuple):
    """One imported module, dotted, and whether it is imported when the file is."""

    module: str
    at_start: bool


def imports_of(file):
    """Every import of a source file, those inside functions too."""
    found = []

    def visit(node, at_start):
        for child in ast.iter_child_nodes(node):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            )
            if isinstance(child, ast.Import):
                found.extend(Import(alias.name, at_start) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, (
                    f"{file.name}:{child.lineno}: a relative import; write claimscore.jobs"
                )
                is_package = child.module in ("claimscore.jobs", "claimscore.kernels", "claimscore")
                names = [f".{alias.name}" for alias in child.names] if is_package else [""]
                found.extend(Import(child.module + name, at_start) for name in names)
            visit(child, at_start and not inside)

    visit(ast.parse(file.read_text(encoding="utf-8")), at_start=True)
    return found


FILES = {file.stem: file for file in sorted((ROOT / "jobs").glob("*.py"))}
IMPORTS = {name: imports_of(file) for name, file in FILES.items()}


def ours(name):
    """The files of jobs/ that a file of jobs/ imports."""
    return {i.module.split(".")[2] for i in IMPORTS[name] if i.module.startswith("claimscore.jobs.")}


def foreign(name, *, at_start=None):
    """The top-level third-party packages that a file of jobs/ imports."""
    return {
        i.module.split(".")[0]
        for i in IMPORTS[name]
        if (at_start is None or i.at_start == at_start)
        and i.module.split(".")[0] not in {*sys.stdlib_module_names, "claimscore"}
    }


@pytest.mark.parametrize("name", FILES)
def test_a_file_imports_what_the_table_lets_it(name):
    """A file of jobs/ stands in the table and imports nothing of ours beside its line, not even inside a function."""
    base = BASE[: BASE.index(name)] if name in BASE else BASE

    assert ours(name) <= {*MAY_IMPORT.get(name, ()), *base}, (
        f"{name}.py: the table has {MAY_IMPORT.get(name)}"
    )
    assert name in MAY_IMPORT


@pytest.mark.parametrize("name", sorted(STAGES & FILES.keys()))
def test_stages_do_not_import_one_another(name):
    """A stage knows the tables and not who makes them."""
    assert ours(name) & STAGES == set()


def test_nothing_imports_in_a_circle():
    """The files have an order in which each comes after what it imports."""
    order = list(graphlib.TopologicalSorter({name: ours(name) for name in FILES}).static_order())

    assert set(FILES) <= set(order)


@pytest.mark.parametrize("package", OWNERS)
def test_a_package_is_imported_by_its_owners_only(package):
    """One file imports ray, one vllm; click is for the commands."""
    assert {name for name in FILES if package in foreign(name)} <= OWNERS[package]


@pytest.mark.parametrize("name", FILES)
def test_a_file_imports_vllm_only_when_it_is_called(name):
    """Importing a module never starts vllm: it takes seconds and every GPU it sees."""
    assert "vllm" not in foreign(name, at_start=True)


@pytest.mark.skipif("cli" not in FILES, reason="there is no cli.py")
def test_the_command_line_starts_with_click_alone():
    """`claimscore --help` imports click, config and errors; the rest waits inside the commands."""
    at_start = {
        i.module
        for name in FILES
        if name.startswith("cli")
        for i in IMPORTS[name]
        if i.at_start and i.module.split(".")[0] not in sys.stdlib_module_names
    }

    light = {
        "config",
        "config_file",
        "errors",
        "options",
        *(name for name in FILES if name.startswith("cli_")),
    }
    assert at_start <= {"click", *(f"claimscore.jobs.{name}" for name in light)}


@pytest.mark.parametrize("name", FILES)
def test_no_file_imports_by_a_string(name):
    """An import that the table cannot see would make it worthless."""
    calls = [node.func for node in ast.walk(ast.parse(FILES[name].read_text())) if isinstance(node, ast.Call)]
    builtins = {call.id for call in calls if isinstance(call, ast.Name)}
    methods = {call.attr for call in calls if isinstance(call, ast.Attribute)}  # polars has a list.eval

    assert builtins & {"import_module", "__import__", "exec", "eval"} == set()
    assert "import_module" not in methods


@pytest.mark.parametrize("file", sorted((ROOT / "kernels").glob("*.py")), ids=lambda file: file.stem)
def test_kernels_know_no_jobs(file):
    """A kernel is tensors in, tensors out."""
    assert [i.module for i in imports_of(file) if i.module.startswith("claimscore.jobs")] == []


@pytest.mark.parametrize("name", FILES)
def test_what_is_imported_at_start_is_a_dependency(name):
    """A package that a file needs to be imported is installed with us, not only on a developer's machine."""
    declared = {re.split(r"[<>=\[ ;]", item)[0].lower() for item in PYPROJECT["project"]["dependencies"]}

    undeclared = {
        package
        for package in foreign(name, at_start=True)
        if declared.isdisjoint(dist.lower().replace("_", "-") for dist in PROVIDED_BY.get(package, ()))
    }
    assert undeclared == set()


def loaded_by(modules):
    """The heavy packages that a fresh interpreter holds after importing these modules of ours."""
    code = f"import sys, {', '.join(f'claimscore.jobs.{name}' for name in modules)}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/")
    return set(HEAVY) & set(out.stdout.split())


@pytest.mark.parametrize("name", [name for name in ("config", "records", "llm", "cli") if name in FILES])
def test_importing_a_light_module_loads_nothing_heavy(name):
    """Reading a config, a schema, a help text or the promises of vllm costs no torch, ray or vllm."""
    assert loaded_by([name]) == set()


def test_importing_every_other_file_loads_nothing_heavy():
    """Only the judge's files need torch and only the cluster's ray; the stages and the page run without."""
    needs_heavy = {"encoder", "judge", "cluster"}

    assert loaded_by(sorted(FILES.keys() - needs_heavy)) == set()


def test_the_packages_are_the_folders():
    """A folder that `packages` leaves out is silently missing from the wheel."""
    folders = {
        file.parent.relative_to(ROOT) for top in ("jobs", "kernels") for file in (ROOT / top).rglob("*.py")
    }
    setuptools = PYPROJECT["tool"]["setuptools"]

    assert {".".join(("claimscore", *folder.parts)) for folder in folders} == set(setuptools["packages"])
    assert {f"claimscore.{folder.parts[0]}": folder.parts[0] for folder in folders} == setuptools[
        "package-dir"
    ]


@pytest.mark.parametrize("folder", ["jobs", "kernels", "tests", "."])
def test_no_folder_is_a_regular_package(folder):
    """An __init__.py would make the folder shadow the installed package `kernels`, or the tests' names collide."""
    assert not (ROOT / folder / "__init__.py").exists()

"""A deployment's TOML file, its preset and its cards, read into the sections of `config.py`.

One file that never inherits from another: default < file < `--set section.key=value`, and no environment variable changes
a result. Presets and cards are read here too, so that their content, not their path, is what the fingerprint of a
section covers. The module knows what types the keys have, and nothing of what they mean.
"""

from __future__ import annotations

import dataclasses
import difflib
import glob
import math
import os
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from claimscore.jobs.config import Config, JudgeCard, PolicyConfig, Preset, RefereeCard
from claimscore.jobs.errors import ConfigError, reason_of
from claimscore.jobs.uri import shown

_SECTIONS = {name: kind for name, kind in typing.get_type_hints(Config).items() if name != "path"}
_Card = typing.TypeVar("_Card", JudgeCard, RefereeCard)
_NOT_IN_FILE = {"judge_card", "checker_card", "referee_card", "mapped"}


def load_config(path: str | Path, overrides: Iterable[str] = (), *, judge: str | None = None) -> Config:
    """Read a deployment's TOML, its preset and its judge cards.

    Args:
        path: the TOML file.
        overrides: `section.key=value` strings, the value in TOML syntax (or a bare string).
        judge: a judge card file that takes the place of `[judge] card`, relative to the working folder.

    Raises:
        ConfigError: an unreadable file, an unknown or missing key, a value of the wrong type or range.
    """
    path = Path(path)
    data = _read_toml(path, "a deployment's TOML")
    for override in overrides:
        _apply_override(data, override)
    if judge is not None:
        _put(data, "judge", "card", str(Path(judge).resolve()))
    unknown = [name for name in data if name not in _SECTIONS]
    if unknown:
        raise ConfigError(f"{path}: no section [{unknown[0]}]{_nearest(unknown[0], _SECTIONS)}")
    _add_policy(path, data)
    sections = {name: _section(path, name, kind, data.get(name, {})) for name, kind in _SECTIONS.items()}
    return _resolve(Config(path=str(path), **sections))


def _add_policy(path: Path, data: dict[str, Any]) -> None:
    """The keys of the policy preset, under those of the file itself."""
    own = data.get("policy")
    preset = own.get("preset") if isinstance(own, dict) else None
    if isinstance(own, dict) and isinstance(preset, str) and preset:
        file = path.absolute().parent / preset
        named = _read_toml(file, "a policy")
        _section(file, "", PolicyConfig, named)  # its mistakes are told with its own name
        data["policy"] = named | own


def load_card(path: str | Path) -> JudgeCard:
    """Read one judge card; a relative `model` is taken from the card's folder where that folder exists.

    Raises:
        ConfigError: as `load_config`.
    """
    return _card(Path(path), JudgeCard, "a judge card")


def load_referee_card(path: str | Path) -> RefereeCard:
    """Read one referee card; `model` as in `load_card`.

    Raises:
        ConfigError: as `load_config`.
    """
    card = _card(Path(path), RefereeCard, "a referee card")
    if card.form != "span":
        raise ConfigError(
            f"{path}: form = {card.form!r}, expected 'span': a model that quotes no span cannot be checked, and what it says "
            "is not used; take another referee card"
        )
    return card


def _card(path: Path, kind: type[_Card], what: str) -> _Card:
    card = _section(path, "", kind, _read_toml(path, what))
    assert isinstance(card, kind)
    return dataclasses.replace(card, model=_relative(path, card.model, must_exist=True))


def as_toml_like(config: Config) -> dict[str, dict[str, Any]]:
    """The effective config as plain dicts, section by section, without credentials; what `run.json` and `plan` show."""
    out: dict[str, dict[str, Any]] = {}
    for name in _SECTIONS:
        section = getattr(config, name)
        out[name] = {
            f.name: _plain(getattr(section, f.name))
            for f in dataclasses.fields(section)
            if f.name not in _NOT_IN_FILE
        }
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _read_toml(path: Path, what: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        name = f"{glob.escape(path.stem)}.toml"
        alike = [*path.parent.glob(name), *sorted(path.parent.glob(f"*/{name}"))]
        meant = f"; did you mean {alike[0].relative_to(path.parent)}?" if alike else ""
        raise ConfigError(f"{path}: no such file; give the path of {what}{meant}") from None
    except tomllib.TOMLDecodeError as err:
        raise ConfigError(f"{path}: not TOML: {err}") from err
    except (OSError, ValueError) as err:  # ValueError: not UTF-8, or a path with a NUL
        raise ConfigError(f"{path}: cannot be read: {reason_of(err)}; expected a UTF-8 TOML file") from err


def _apply_override(data: dict[str, Any], override: str) -> None:
    key, found, value = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (found and dot and section and name) or "\n" in override:
        raise ConfigError(f"--set {override!r}: expected section.key=value, as in judge.budget_tokens=32768")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()  # a bare word is a string: --set judge.dtype=bfloat16
    _put(data, section, name, parsed)


def _put(data: dict[str, Any], section: str, name: str, value: Any) -> None:
    """Set one key; what is not a table stays as it is, for `_section` to refuse."""
    table = data.setdefault(section, {})
    if isinstance(table, dict):
        table[name] = value


def _section(path: Path, name: str, kind: type, raw: Any) -> Any:
    where = f"{path}: [{name}]" if name else f"{path}:"
    if not isinstance(raw, dict):
        raise ConfigError(f"{where} is {raw!r}, expected a table of keys")
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind) if f.name not in _NOT_IN_FILE}
    for key in raw:
        if key not in fields:
            raise ConfigError(f"{where} has no key {key!r}{_nearest(key, fields)}")
    missing = [
        f.name
        for f in fields.values()
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in raw
    ]
    if missing:
        raise ConfigError(f"{where} needs the key {missing[0]!r}; add it")
    values = {key: _typed(f"{where} {key}", hints[key], value) for key, value in raw.items()}
    try:
        return kind(**values)
    except ConfigError as err:
        raise ConfigError(f"{path}: {err}") from None


def _typed(where: str, hint: Any, value: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        hint = next(arg for arg in args if arg is not types.NoneType)
        return _typed(where, hint, value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _section(Path(where), "", hint, value)
    if origin is tuple:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list):
            return tuple(_typed(where, args[0], item) for item in value)
    elif origin is Mapping:
        if isinstance(value, dict):
            return {str(key): _typed(f"{where}.{key}", args[1], item) for key, item in value.items()}
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):  # no bound refuses nan, and neither nan nor inf is JSON
            return float(value)
        raise ConfigError(f"{where} = {value!r}, expected a finite number")
    elif type(value) is hint and not (isinstance(value, str) and "\0" in value):
        return value
    expected = "a list" if origin is tuple else "a table" if origin is Mapping else hint.__name__
    raise ConfigError(f"{where} = {value!r}, expected {expected}")


def _resolve(config: Config) -> Config:
    """Paths relative to the file, the preset's columns under the file's own, and the two judge cards."""
    base = Path(config.path).absolute()  # workers have working folders of their own
    for section, name in (
        ("read", "logs"),
        ("decompose", "model"),
        ("decompose", "checker"),
        ("judge", "card"),
    ):
        if not getattr(getattr(config, section), name).strip():
            raise ConfigError(f"{config.path}: [{section}] {name} is empty, expected a place; fill it in")
    read = config.read
    columns = dict(read.columns)
    if read.preset:
        path = base.parent / read.preset
        preset = _section(path, "", Preset, _read_toml(path, "a preset, relative to this config"))
        columns = dict(preset.columns) | columns
    decompose, samples, referee = config.decompose, config.samples, config.referee
    card = load_card(base.parent / config.judge.card)
    _check_threshold(config, card)
    fits = min(
        config.evidence.max_pair_tokens, card.max_pair_tokens
    )  # no longer pair than the judge was trained on
    return dataclasses.replace(
        config,
        evidence=dataclasses.replace(config.evidence, max_pair_tokens=fits),
        read=dataclasses.replace(
            read, logs=_relative(base, read.logs), columns=columns, mapped=tuple(read.columns)
        ),
        decompose=dataclasses.replace(
            decompose,
            model=_relative(base, decompose.model, must_exist=True),
            checker_card=load_card(base.parent / decompose.checker),
        ),
        judge=dataclasses.replace(config.judge, judge_card=card),
        samples=dataclasses.replace(samples, model=_relative(base, samples.model, must_exist=True)),
        referee=dataclasses.replace(
            referee, referee_card=load_referee_card(base.parent / referee.card) if referee.card else None
        ),
        store=dataclasses.replace(config.store, out=_relative(base, config.store.out)),
    )


def _check_threshold(config: Config, card: JudgeCard) -> None:
    """The entailment threshold lies where joining and rivals expect it; what a combiner gives is no P(entailment)."""
    if card.combiner:
        return
    threshold = card.entailment if config.verdicts.entailment is None else config.verdicts.entailment
    if threshold > config.evidence.carried_at:
        raise ConfigError(
            f"{config.path}: the entailment threshold {threshold} is above [evidence] carried_at = "
            f"{config.evidence.carried_at}: a premise between them would neither support nor be followed by other covers; "
            "raise carried_at"
        )
    if threshold < config.evidence.rivals_above < 1:
        raise ConfigError(
            f"{config.path}: the entailment threshold {threshold} is below [evidence] rivals_above = "
            f"{config.evidence.rivals_above}: a claim between them would be supported untested; lower rivals_above"
        )


def _relative(base: Path, value: str, *, must_exist: bool = False) -> str:
    """`value` from the folder of `base`; a URL stays, and so does a hub id (no such folder, `must_exist`)."""
    if not value or "://" in value:
        return value
    path = base.parent / Path(value).expanduser()
    looks_local = value.startswith((".", "/", "~"))
    return os.path.normpath(path) if not must_exist or looks_local or path.exists() else value


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known))}"

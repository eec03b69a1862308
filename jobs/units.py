"""Units, currencies and scale words as tables: what a number in a text may be followed or preceded by.

Factors lead to one base unit a dimension (m, kg, s, ...), so that 2.4 m equals 240 cm and 5 g is not 5 mg.
`system` parts measures that are converted with rounding (miles and km) from those that are converted
exactly (m and km). Own tables instead of a library: a library that guesses units in prose reads `in` as
inches and `2.15pm` as picometres. The module knows nothing of claims, premises or languages but English,
and of symbols only those that people write in prose.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Unit(NamedTuple):
    """How a written number becomes a value in the base unit of its dimension."""

    dimension: str
    """`mass`, `%`, `money:INR`; empty for a bare number, `noun` for a number of things."""
    factor: float = 1.0
    offset: float = 0.0
    """Added after the factor; only temperatures have one."""
    system: str = ""
    per: str = ""
    """The per-unit that the symbol itself carries (mph: hour)."""


BARE: Final = Unit("")
NOUN: Final = Unit("noun")
PERCENT: Final = Unit("%")

_METRIC, _IMPERIAL, _CALENDAR = "metric", "imperial", "calendar"
_YEAR_S = 365.25 * 86_400

# dimension, system, then `factor: names`; names of one or two letters are case-sensitive symbols.
_TABLE: Final[tuple[tuple[str, str, dict[float, str]], ...]] = (
    ("length", _METRIC, {1e-9: "nm|nanometre|nanometer", 1e-6: "µm|micron|micrometre|micrometer"}),
    ("length", _METRIC, {1e-3: "mm|millimetre|millimeter", 1e-2: "cm|centimetre|centimeter"}),
    ("length", _METRIC, {1.0: "m|metre|meter", 1e3: "km|kilometre|kilometer|kms"}),
    ("length", _IMPERIAL, {0.0254: "inch|inche", 0.3048: "ft|foot|feet", 0.9144: "yd|yard"}),
    ("length", _IMPERIAL, {1609.344: "mi|mile", 1852.0: "nautical mile"}),
    ("mass", _METRIC, {1e-9: "µg|mcg|ug|microgram", 1e-6: "mg|milligram", 1e-3: "g|gm|gram|gramme"}),
    ("mass", _METRIC, {1.0: "kg|kilo|kilogram|kilogramme|kgs", 1e3: "t|tonne|metric ton"}),
    ("mass", _IMPERIAL, {0.0283495: "oz|ounce", 0.453592: "lb|pound|lbs", 6.35029: "stone", 907.185: "ton"}),
    ("volume", _METRIC, {1e-9: "µl|µL|microlitre|microliter", 1e-6: "ml|mL|cc|millilitre|milliliter"}),
    ("volume", _METRIC, {1e-6: "cubic centimetre|cubic centimeter", 1e-5: "cl|cL|centilitre|centiliter", 1e-4: "dl|dL|decilitre|deciliter"}),
    ("volume", _METRIC, {1e-3: "l|L|litre|liter|ltr", 1.0: "m3|m³|cubic metre|cubic meter", 1e9: "km3|km³"}),
    ("volume", _IMPERIAL, {2.95735e-5: "fl oz|fluid ounce", 2.36588e-4: "cup", 4.73176e-4: "pint|pt"}),
    ("volume", _IMPERIAL, {9.46353e-4: "quart", 3.78541e-3: "gal|gallon", 0.158987: "barrel|bbl"}),
    ("area", _METRIC, {1.0: "m2|m²|sqm|sq m|square metre|square meter", 1e4: "ha|hectare"}),
    ("area", _METRIC, {1e6: "km2|km²|sq km|square kilometre|square kilometer|square km"}),
    ("area", _IMPERIAL, {0.092903: "sqft|sq ft|square foot|square feet", 4046.86: "acre"}),
    ("area", _IMPERIAL, {2.58999e6: "sq mi|square mile"}),
    ("time", "clock", {1e-3: "ms|millisecond", 1.0: "s|sec|second", 60.0: "min|minute|mins"}),
    ("time", "clock", {3600.0: "h|hr|hour|hrs", 86_400.0: "day", 604_800.0: "wk|week|wks"}),
    ("time", _CALENDAR, {_YEAR_S / 12: "month|mo|mos|mth", _YEAR_S: "year|yr|yrs", _YEAR_S * 10: "decade", _YEAR_S * 100: "century|centuries"}),
    ("%", "", {1.0: "%|percent|per cent|pct"}),
    ("points", "", {1.0: "percentage point|percent point|pp|ppt", 0.01: "bp|bps|basis point"}),
    ("temperature", _METRIC, {1.0: "°C|° C|C|celsius|degrees celsius|centigrade|degree celsius"}),
    ("bytes", "", {1e3: "KB|kB|kilobyte", 1e6: "MB|megabyte", 1e9: "GB|gigabyte", 1e12: "TB|terabyte", 1.0: "byte"}),
    ("frequency", "", {1.0: "Hz|hertz", 1e3: "kHz|kilohertz", 1e6: "MHz|megahertz", 1e9: "GHz|gigahertz"}),
    ("power", "", {1e-3: "mW", 1.0: "W|watt", 1e3: "kW|kilowatt", 1e6: "MW|megawatt", 1e9: "GW|gigawatt"}),
    ("energy", "", {1.0: "J|joule", 1e3: "kJ|kilojoule", 4184.0: "kcal|kilocalorie", 3.6e6: "kWh|kilowatt hour"}),
    ("energy", "", {3.6e9: "MWh|megawatt hour", 3.6e12: "GWh|gigawatt hour", 3.6e15: "TWh|terawatt hour"}),
    ("voltage", "", {1e-3: "mV", 1.0: "V|volt", 1e3: "kV|kilovolt"}),
    ("current", "", {1e-3: "mA", 1.0: "A|amp|ampere"}),
    ("charge", "", {1e-3: "mAh|milliamp hour|milliampere hour", 1.0: "Ah|amp hour|ampere hour"}),
    ("pressure", "", {1.0: "Pa|pascal", 100.0: "hPa|mbar|millibar|hectopascal", 1e3: "kPa|kilopascal", 1e5: "bar", 1e6: "MPa|megapascal"}),
    ("pressure", "", {6894.76: "psi"}),
)  # fmt: skip


def _units() -> dict[str, Unit]:
    out = {}
    for dimension, system, names in _TABLE:
        for factor, aliases in names.items():
            for alias in aliases.split("|"):
                out[alias] = Unit(dimension, factor, system=system)
                if len(alias) > 2 and alias[-1] != "s":
                    out[alias + "s"] = out[alias]
    fahrenheit = Unit("temperature", 5 / 9, -160 / 9, _IMPERIAL)
    out |= dict.fromkeys(("°F", "° F", "F", "fahrenheit", "degrees fahrenheit"), fahrenheit)
    kmh = Unit("length", 1e3, system=_METRIC, per="hour")
    out |= dict.fromkeys(("km/h", "kph", "kmph", "km/hr"), kmh)
    out |= {"mph": Unit("length", 1609.344, system=_IMPERIAL, per="hour"), "m/s": Unit("length", per="s")}
    return out


_CODES = {
    "INR": "₹|Rs|Rs.|INR|rupee|rupees|rs", "USD": "$|US$|USD|dollar|dollars|usd", "EUR": "€|EUR|euro|euros|eur",
    "GBP": "£|GBP|sterling|gbp", "JPY": "¥|JPY|yen", "CNY": "RMB|CNY|yuan|renminbi", "CHF": "CHF|francs", "KRW": "₩|KRW|won",
    "CAD": "C$|CAD", "AUD": "A$|AUD",
}  # fmt: skip
CURRENCIES: Final = {
    name: Unit(f"money:{code}") for code, names in _CODES.items() for name in names.split("|")
}

UNITS: Final = _units() | {
    name: unit for name, unit in CURRENCIES.items() if len(name) > 2 or not name.isascii()
}

PER: Final = {
    "day": "day", "daily": "day", "night": "day", "nightly": "day", "week": "week", "weekly": "week",
    "month": "month", "monthly": "month", "quarter": "quarter", "quarterly": "quarter", "year": "year",
    "yearly": "year", "annum": "year", "annual": "year", "annually": "year", "hour": "hour", "hourly": "hour",
    "minute": "minute", "second": "s", "yr": "year", "h": "hour", "hr": "hour", "s": "s", "min": "minute",
}  # fmt: skip

SCALES: Final = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "hundred": 1e2, "dozen": 12.0,
    "lakh": 1e5, "lakhs": 1e5, "lac": 1e5, "lacs": 1e5, "crore": 1e7, "crores": 1e7, "cr": 1e7,
    "k": 1e3, "mn": 1e6, "mln": 1e6, "bn": 1e9, "bln": 1e9, "tn": 1e12, "b": 1e9, "m": 1e6,
    "万": 1e4, "萬": 1e4, "億": 1e8, "亿": 1e8,
}  # fmt: skip
ATTACHED_ONLY: Final = frozenset({"k", "b", "m"})
"""Scales that are one letter: `5k`, `$5 m`; `5 m` alone is a length."""

"""One value in many notations, and others that are nearly it: numbers, money, measures, dates, times, shares.

A value is drawn once; `same` writes it in another notation, `near` gives a different value that could be mistaken for
it. Everything is drawn from the given generator.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from dataclasses import dataclass

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_ON_MONTH = re.compile(rf"\bon ((?:{'|'.join(MONTHS)}) \d{{4}})\b")
_SCALES = ((10_000_000, "crore"), (1_000_000, "million"), (100_000, "lakh"), (1_000, "thousand"))
_CURRENCIES = (
    ("$", "dollars", "USD"), ("€", "euros", "EUR"), ("£", "pounds", "GBP"), ("₹", "rupees", "Rs"), ("¥", "yen", "JPY"),
)  # fmt: skip
_MEASURES = (
    ("m", "metres", 100, "cm", "centimetres"), ("km", "kilometres", 1000, "m", "metres"),
    ("kg", "kilograms", 1000, "g", "grams"), ("g", "grams", 1000, "mg", "milligrams"),
    ("l", "litres", 1000, "ml", "millilitres"), ("t", "tonnes", 1000, "kg", "kilograms"),
    ("cm", "centimetres", 10, "mm", "millimetres"), ("GB", "gigabytes", 1000, "MB", "megabytes"),
    ("TB", "terabytes", 1000, "GB", "gigabytes"), ("kW", "kilowatts", 1000, "W", "watts"),
    ("MW", "megawatts", 1000, "kW", "kilowatts"), ("h", "hours", 60, "min", "minutes"),
    ("min", "minutes", 60, "s", "seconds"), ("days", "days", 24, "h", "hours"), ("weeks", "weeks", 7, "days", "days"),
    ("years", "years", 12, "months", "months"), ("ft", "feet", 12, "in", "inches"), ("GHz", "gigahertz", 1000, "MHz", "megahertz"),
)  # fmt: skip
_STRAY_UNITS = {
    "m": "feet", "km": "miles", "kg": "pounds", "l": "gallons", "g": "ounces", "cm": "inches", "h": "days",
    "days": "weeks", "weeks": "months", "years": "decades", "min": "hours", "GB": "TB", "t": "kg", "kW": "MW",
}  # fmt: skip
_SHARES = (
    (25, "a quarter"), (50, "half"), (75, "three quarters"), (20, "one fifth"), (10, "one tenth"), (40, "two fifths"),
    (80, "four fifths"), (60, "three fifths"), (30, "three tenths"), (5, "one in twenty"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A value as text, the same in other notations, and others in its notation that are not it."""

    text: str
    same: tuple[str, ...]
    near: tuple[str, ...]

    def other(self, rng: random.Random) -> str:
        """Another notation of the same value, or this one."""
        return rng.choice(self.same or (self.text,))

    def wrong(self, rng: random.Random) -> str:
        """A different value."""
        return rng.choice(self.near)


def spelled(n: int) -> str:
    """A whole number below a million in words."""
    if n < 20:
        return _ONES[n]
    if n < 100:
        return _TENS[n // 10] + (f"-{_ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{_ONES[n // 100]} hundred" + (f" and {spelled(n % 100)}" if n % 100 else "")
    link = " and " if 0 < n % 1000 < 100 else " "
    return f"{spelled(n // 1000)} thousand" + (f"{link}{spelled(n % 1000)}" if n % 1000 else "")


def indian(n: int) -> str:
    """Grouped as in India: the last three digits, then pairs."""
    head, tail = str(n)[:-3], str(n)[-3:]
    pairs = []
    while head:
        pairs.append(head[-2:])
        head = head[:-2]
    return ",".join([*reversed(pairs), tail])


def notations(n: int) -> list[str]:
    """Ways to write a whole number."""
    out = [str(n)] if n < 10_000 else []
    if n >= 1000:
        out.append(f"{n:,}")
    if n <= 100 or (n % 100 == 0 and n < 100_000):
        out.append(spelled(n))
    if n >= 100_000 and n % 1000 == 0:
        out.append(indian(n))
    for scale, name in _SCALES:
        if scale <= n < 1000 * scale and n % (scale // 100) == 0:
            out.append(f"{n / scale:.2f}".rstrip("0").rstrip(".") + f" {name}")
    return out


def count(rng: random.Random, low: int, high: int) -> Value:
    """A whole number; large ones are round as often as not."""
    n = rng.randint(low, high)
    if n >= 2000 and rng.random() < 0.6:
        digits = 10 ** (len(str(n)) - rng.choice([1, 2]))
        n = max(digits, n // digits * digits)
    ways = notations(n)
    text = rng.choice(ways)
    wrong = [n + d for d in (1, -1, 2, 5, -3, 10) if n + d > 0] + [n * 10, n * 100, n + n // 2 + 1]
    if n >= 10:
        digits = list(str(n))
        k = rng.randrange(len(digits) - 1)
        digits[k], digits[k + 1] = digits[k + 1], digits[k]
        wrong += [n // 10, int("".join(digits))]
    near = [rng.choice(notations(w) or [f"{w:,}"]) for w in wrong if w not in {n, 0}]
    return Value(text, tuple(w for w in ways if w != text), tuple(near))


def large(rng: random.Random) -> Value:
    """A round number of a lakh or more, in Western and Indian notation."""
    n = rng.randint(1, 99) * rng.choice([10_000, 50_000, 100_000, 1_000_000, 10_000_000, 500_000])
    n = max(n, 100_000)
    ways = [w for w in [f"{n:,}", *notations(n)] if w]
    text = rng.choice(ways)
    near = [rng.choice([f"{w:,}", *notations(w)]) for w in (n * 10, n * 100, n // 10, n + n // 2, n * 1000)]
    return Value(text, tuple(w for w in ways if w != text), tuple(near))


def money(rng: random.Random, low: int = 2, high: int = 900) -> Value:
    """A price; what is not it differs in amount or in currency."""
    sign, word, code = rng.choice(_CURRENCIES)
    n = rng.randint(low, high)
    if n > 2000:
        n = n // 100 * 100

    def ways(amount: int, names: tuple[str, str, str]) -> list[str]:
        a, b, c = names
        return [f"{a}{amount:,}", f"{amount:,} {b}", f"{c} {amount:,}", f"{amount} {b}"]

    own = ways(n, (sign, word, code))
    text = rng.choice(own)
    wrong = [rng.choice(ways(w, (sign, word, code))) for w in (n + 1, n + 5, n * 10, n + n // 3 + 1, n * 2)]
    wrong.append(rng.choice(ways(n, rng.choice([c for c in _CURRENCIES if c[2] != code]))))
    return Value(text, tuple(w for w in own if w != text), tuple(wrong))


def measure(rng: random.Random, units: tuple[str, ...] = ()) -> Value:
    """A measure; the same in a smaller unit, and others of a wrong number, unit or power of ten."""
    fitting = [m for m in _MEASURES if not units or m[0] in units]
    short, name, factor, small, small_name = rng.choice(fitting)
    n = rng.randint(2, 60)
    own = [f"{n} {short}", f"{n} {name}"]
    same = [f"{n * factor:,} {small}", f"{n * factor} {small_name}", f"{n * factor:,} {small_name}"]
    if rng.random() < 0.35 and factor in {10, 100, 1000}:
        part = rng.choice([0.5, 1.5, 2.5, 0.2, 1.2, 0.75, 3.4, 0.8])
        own = [f"{part} {short}", f"{part} {name}"]
        smaller = round(part * factor)
        same = [f"{smaller:,} {small}", f"{smaller:,} {small_name}"]
        near = [
            f"{smaller * 10:,} {small}",
            f"{part * 2:g} {short}",
            f"{round(smaller / 10):,} {small_name}",
            f"{part} {small}",
        ]
    else:
        near = [
            f"{n * factor * 10:,} {small}",
            f"{n + 3} {short}",
            f"{n * 10} {name}",
            f"{n} {small_name}",
            f"{(n + 2) * factor:,} {small}",
        ]
        near += [f"{n} {_STRAY_UNITS[short]}"] if short in _STRAY_UNITS else []
    text = rng.choice(own)
    same += [w for w in own if w != text]
    return Value(text, tuple(same), tuple(near))


def percent(rng: random.Random) -> Value:
    """A share; as a fraction where it has a name."""
    if rng.random() < 0.4:
        n, name = rng.choice(_SHARES)
        own = [f"{n}%", f"{n} percent", f"{n} per cent", name]
    else:
        n = rng.randint(2, 97)
        own = [f"{n}%", f"{n} percent", f"{n} per cent"]
    text = rng.choice(own)
    near = [f"{w}%" for w in (n + 1, n + 10, abs(n - 2) or 9, n * 10, max(1, n // 2 - 1)) if w != n]
    near += [name for share, name in _SHARES if share != n][:2]
    return Value(text, tuple(w for w in own if w != text), tuple(near))


def date(rng: random.Random, first: int = 1890, last: int = 2026) -> Value:
    """A day; the same in other forms or less exactly, and other days, months and years."""
    day = dt.date(rng.randint(first, last), rng.randint(1, 12), rng.randint(1, 28))
    own, less = _day_forms(day), [f"{MONTHS[day.month - 1]} {day.year}"]
    text = rng.choice(own)
    others = [
        day.replace(year=day.year + rng.choice([-10, -2, -1, 1, 2, 10])),
        day.replace(month=(day.month + rng.randint(0, 9)) % 12 + 1 if day.month < 12 else 5),
        day.replace(day=day.day % 28 + 1),
    ]
    near = [rng.choice(_day_forms(other)) for other in others if other != day]
    wrong_month = MONTHS[(day.month + rng.randint(1, 8)) % 12]
    near.append(
        f"{wrong_month} {day.year}"
        if wrong_month != MONTHS[day.month - 1]
        else f"{MONTHS[day.month - 1]} {day.year + 3}"
    )
    return Value(text, tuple(w for w in own if w != text) + tuple(less), tuple(near))


def year(rng: random.Random, first: int = 1710, last: int = 2024) -> Value:
    """A year; its decade and century hold it too."""
    n = rng.randint(first, last)
    century = (n - 1) // 100 + 1
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(century % 10, "th") if century not in {11, 12, 13} else "th"
    same = (f"the {n // 10 * 10}s", f"the {century}{suffix} century")
    near = (
        str(n + rng.choice([-1, 1, 10, -10, 3])),
        str(n + rng.choice([-100, 40, -30])),
        f"the {n // 10 * 10 + 20}s",
    )
    return Value(str(n), same, near)


def clock(rng: random.Random) -> Value:
    """A time of day on the 24-hour clock and with am or pm."""
    hour, minute = rng.randint(6, 22), rng.choice([0, 0, 15, 30, 45])
    own = _clock_forms(hour, minute)
    text = rng.choice(own)
    near = [
        rng.choice(_clock_forms(h, m))
        for h, m in (((hour + 1) % 24, minute), ((hour + 12) % 24, minute), (hour, (minute + 30) % 60))
    ]
    return Value(text, tuple(w for w in own if w != text), tuple(near))


def capital(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[0].upper() + text[1:]


def on_month(sentence: str) -> str:
    """`on May 1988` as people say it: in May 1988."""
    return _ON_MONTH.sub(r"in \1", sentence)


def _day_forms(day: dt.date) -> list[str]:
    month = MONTHS[day.month - 1]
    nth = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th") if day.day not in {11, 12, 13} else "th"
    return [
        f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", day.isoformat(),
        f"{month} {day.day}{nth}, {day.year}", f"the {day.day}{nth} of {month} {day.year}", f"{day.day} {month[:3]} {day.year}",
    ]  # fmt: skip


def _clock_forms(hour: int, minute: int) -> list[str]:
    half, twelve = ("am" if hour < 12 else "pm"), (hour - 1) % 12 + 1
    out = [f"{hour:02d}:{minute:02d}", f"{twelve}:{minute:02d} {half}"]
    return [*out, f"{twelve} {half}"] if minute == 0 else out

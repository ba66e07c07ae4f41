#!/usr/bin/env python3
"""Recomputes every figure of `figures.toml` from the saved runs and compares it with the pages.

    python3 docs/figures.py                    differences, and figures older than what they measure
    python3 docs/figures.py --list             every figure with what was computed
    python3 docs/figures.py --with README.md=FILE     FILE in the place of a page or of docs/figures.toml

Exit code 1: a figure differs from its runs, a page lacks it, or README prints one without an entry.
Needs Python 3.11, and nothing else.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs/figures"))
sys.dont_write_bytecode = True

from runs import NUMBER, UNITS, Runs, number_of  # noqa: E402

README = "README.md"
# A figure may be off by half of its last digit, and by what the arithmetic of floats adds.
TOLERANCE = 1.0001
UNIT = r"(?<=[\d\]] )(ns|µs|ms|s|KiB|MiB|%)(?!\w)"
MAX_WORDS, MAX_FIGURES, MAX_LINES = 900, 60, 120


def page_path(name, data):
    """README, the README of the runs' folder as `data`, or a page of the book by its name."""
    return {"README": README, "data": f"{data}/{README}"}.get(name, f"docs/src/{name}.md")


def printed_numbers(text, unit):
    """The numbers of a figure's text: value, half of the last digit, and the units of a ratio and an amount."""
    units = {found.start() - 1: found[1] for found in re.finditer(UNIT, text)}
    share = "%" if "%" in units.values() else None
    unit = unit or next((found for found in units.values() if found != "%"), None)
    own = lambda found, other: units.get(found.end(), other)
    return [(*number_of(found[0]), own(found, share), own(found, unit)) for found in re.finditer(NUMBER, text)]


def compute(runs, calls):
    """The numbers of several calls, one after the other, each with whether it is a ratio or has a unit."""
    found = []
    for call in calls if isinstance(calls, list) else [calls]:
        call, _, places = call.partition(" | ")
        name, *words = call.split()
        has_unit = name in ("time", "cost", "line", "shifted", "contender", "published") or words[-1] == "cpu"
        is_ratio = name in ("turns", "pooled", "storm", "storm_median", "compared", "faster")
        kind = "ratio" if is_ratio else "amount" if has_unit else "plain"
        values = [(value, kind) for value in getattr(runs, name)(*words)]
        found += [values[int(place)] for place in places.split()] if places else values
    return found


def in_unit(value, kind, share, unit):
    """A computed number as a page prints it."""
    if kind == "ratio":
        return (value - 1) * 100 if share == "%" else value
    return value / UNITS.get(unit, 1.0) if kind == "amount" else value


def difference(text, computed, unit):
    """What printed numbers and computed ones differ in; None if in nothing."""
    printed = printed_numbers(text, unit)
    if len(printed) != len(computed):
        return f"{len(printed)} numbers are printed, {len(computed)} computed"
    values = [in_unit(*number, *units) for number, (_, _, *units) in zip(computed, printed)]
    if all(abs(number - value) <= half * TOLERANCE for (number, half, *_), value in zip(printed, values)):
        return None
    return f"computed {', '.join(f'{value:,.4g}' for value in values)}"


def prose(text):
    """A page without code, targets of links and addresses: what may hold figures."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"`[^`]*`", "", text)
    return re.sub(r"\]\([^)]*\)|https?://\S+", "]", text)


def without(text, entries):
    """A text without these words, the longest first."""
    for entry in sorted(entries, key=len, reverse=True):
        text = text.replace(entry, " ")
    return text


def check_readme(text, declared, plain):
    """README is short, and each number has an entry or is declared to be no measurement."""
    body = " ".join(prose(text).replace("**", "").split())
    left = NUMBER.findall(without(body, [*declared, *plain]))
    found = [f"{README}: {number} is in no entry" for number in left]
    found += [f"{README}: {words!r} is declared in [plain] and not there" for words in plain if words not in body]
    figures = len(NUMBER.findall(body))
    counts = [(len(text.split()), MAX_WORDS, "words"), (figures, MAX_FIGURES, "figures")]
    counts.append((len(text.splitlines()), MAX_LINES, "lines"))
    return found + [f"{README}: {count} {what}, at most {most}" for count, most, what in counts if count > most]


def age(source, paths):
    """Says what of the measured paths has changed since the build; None if nothing."""
    try:
        words = ["git", "log", "--format=%h %cs", f"{source['commit']}..HEAD", "--", *paths]
        log = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "its build is not in this history"
    changes = log.stdout.splitlines()
    return f"{len(changes)} commits to what it measures since, the last {changes[0]}" if changes else None


def check_runs(name, source, figures, read, is_listing):
    """Checks the figures of one file of runs: errors, and the words that README prints."""
    path = ROOT / "data/results" / source["file"]
    runs, errors, readme = Runs(path), [], []
    if source["commit"] not in (path.parent / "README.md").read_text(encoding="utf-8"):
        errors.append(f"{name}: {source['commit']} is not in {path.parent.name}/README.md")
    for key, figure in figures.items():
        try:
            computed = compute(runs, figure["from"])
        except (KeyError, ValueError, IndexError) as error:
            errors.append(f"{name}.{key}: cannot be computed: {error!r}")
            continue
        for page, text in figure.items():
            if page in ("from", "unit"):
                continue
            file, unit = page_path(page, path.parent.relative_to(ROOT)), figure.get("unit")
            where = f"{file}: {text!r} ({name}.{key})"
            if text not in read(file):
                errors.append(f"{where} is not there: changed, or gone and to be removed from docs/figures.toml")
            wrong = difference(text, computed, unit)
            errors += [f"{where}: {wrong}"] if wrong else []
            readme += [text] if file == README else []
            if is_listing:
                values = ", ".join(f"{value:,.4g}" for value, _ in computed)
                print(f"{file}\t{name}.{key}\t{text}\t{values}\t{source['commit']}")
    return errors, readme


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print every figure")
    help_of_with = "read FILE in the place of another"
    parser.add_argument("--with", dest="instead", action="append", default=[], metavar="PATH=FILE", help=help_of_with)
    asked = parser.parse_args()
    instead = dict(words.split("=", 1) for words in asked.instead)
    raw = lambda name: Path(instead.get(name, ROOT / name)).read_text(encoding="utf-8")
    # Bold says that a difference is shown; it is no part of a figure.
    read = cache(lambda name: " ".join(raw(name).replace("**", "").split()))
    book = tomllib.loads(raw("docs/figures.toml"))
    errors, notes, readme, count = [], [], [], 0
    for name, source in book["runs"].items():
        figures = book["figures"][name]
        wrong, words = check_runs(name, source, figures, read, asked.list)
        errors, readme, count = errors + wrong, readme + words, count + len(figures)
        if is_older := age(source, book["paths"][source["of"]]):
            which = f"{name}, {len(figures)} figures ({source['commit']}, {source['date']})"
            notes.append(f"older than what it measures: {which}: {is_older}")
    errors += check_readme(raw(README), readme, book["plain"]["README"])
    print("\n".join(notes + errors))
    print(f"{count} figures, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())

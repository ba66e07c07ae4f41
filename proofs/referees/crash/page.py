#!/usr/bin/env python3
"""Writes docs/src/crash-table.md, its chart and data/results/studies/crash-table.md from crash-table.csv and says.csv.

page.py                  writes all three
page.py --check          exits with 1 if a file differs from what it would write
page.py --compare NEW    prints the cells of another run that differ from crash-table.csv
"""

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[2] / "docs/src"
DATA = HERE.parents[2] / "data/results/studies"
COLUMNS = {
    "push": ["sender killed"],
    "pop": ["receiver killed"],
    "create": ["killed in create"],
    "attach": ["sender killed in attach", "receiver killed in attach"],
    "detach": ["sender killed in detach", "receiver killed in detach"],
    "pause": ["sender paused", "receiver paused"],
    "hostile word": ["hostile word"],
}
KINDS = ["lost", "doubled", "stuck", "leaked"]
# Our queue with other sizes of messages, and inline: a sentence and no rows.
SIZES = re.compile(r"bulkhead-(inline-)?(\d+)")


def read(path=HERE / "crash-table.csv"):
    rows, counts, runs = {}, defaultdict(int), defaultdict(dict)
    for line in csv.DictReader(open(path, encoding="utf-8")):
        name = line["transport"]
        if name.startswith("control"):
            continue
        rows[name] = line
        if line["experiment"] == "run":
            runs[name][line["fact"]] = line["value"]
        elif line["fact"].startswith(("= ", "points skipped", "the transport has no")):
            counts[name, line["experiment"], line["fact"].removeprefix("= ")] += int(line["value"])
    return rows, counts, runs


def span(values, unit):
    """Returns the range of some numbers, or the number if they are equal."""
    values = sorted(values, key=float)
    return f"{values[0]}{unit}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}{unit}"


def conditions(rows, runs):
    """Returns the sentences about machine, date, load and duration, from what the runs recorded."""
    sentences, groups = [], defaultdict(list)
    for name in rows:
        groups[runs[name].get("machine")].append(name)
    for machine, names in groups.items():
        if machine is None:
            sentences.append(f"{len(names)} of {len(rows)} rows were measured before runs recorded their machine and load.")
            continue
        facts = {fact: {runs[name][fact] for name in names} for fact in runs[names[0]]}
        dates = sorted(facts["date"])
        day = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        load = span(facts["load average at the start"], "")
        many = f"{len(names)} rows" if len(names) > 1 else "1 row"
        took = span(facts["seconds"], " s") + (" each" if len(names) > 1 else "")
        sentences.append(f"{many} measured on {machine} ({day}); load average at the start {load}; {took}.")
    return "\n" + " ".join(sentences) + "\n"


def total(counts, name, column, fact):
    return sum(counts[name, experiment, fact] for experiment in COLUMNS[column])


def cell(counts, name, column):
    trials = total(counts, name, column, "trials")
    none = [e.split()[0] for e in COLUMNS[column] if counts[name, e, "the transport has no such successor"]]
    note = f"no successor of the {' or '.join(none)}" if none else ""
    if not trials:
        return note or "–"
    found = [f"{count} {kind}" for kind in KINDS if (count := total(counts, name, column, kind))]
    if over := total(counts, name, column, "starts over"):
        found.append(f"{over} over")
    return (f"{', '.join(found)} of {trials}" if found else f"0/{trials}") + (f"; {note}" if note else "")


INTRODUCTION = """# The crash table

**In short.** Transports between processes were killed in push, pop, create, attach and detach, paused, and had a word of their memory
overwritten. [The queue of this project](queue.md) lost, doubled and leaked nothing, and nothing hung, in any trial. Most others fail in at
least one column.

![Share of trials with a loss, a double, a stuck process or a leak, for each transport and experiment](images/crash-table.svg)
"""

MEANING = """
A cell counts the trials in which something went wrong, of all trials; 0/63: in none of 63. {sizes}

- *lost*: a message that its sender had sent, or sent later, reached no receiver. The message in flight at the kill is not judged.
- *doubled*: a message arrived more than once.
- *stuck*: a process that was not killed hung for a second, crashed or could not go on; or a message came that nobody sent, or torn; or no
  successor could begin.
- *leaked*: something was left in `/dev/shm` after all processes had ended and the documented clean-up was done.
- *no successor*: after one end is killed between two messages, no other end of its kind can attach.
- *over*: the documentation has no successor, and both ends begin with a new transport; or a receiver reported the damaged word.

## Which points

Push and pop are interrupted at every instruction, or at 180 at equal distances. Create, attach and detach are interrupted after each
change of shared memory and around each system call (at most 30 of each), and at 15 instructions between. Hostile words are the first 64 of
each mapping and 150 others. Rows with fewer trials are samples: their trials hang, or their runtime is slow. `proofs/referees/crash/README.md`
has the commands, and rings with planted faults that the trials have to find. What each transport's authors write, and what a caller has to do
after a crash, is in `data/results/studies/crash-table.md`.
"""

AUTHORS = """# What the authors write, and what is the caller's part

The transports of the [crash table](../../../docs/src/crash-table.md). Each is used as its documentation has it. `–`: no sentence about crashes was found in the
README, the documentation or the issues. Written by `proofs/referees/crash/page.py`.

| transport | library | its authors | the caller's part |
|---|---|---|---|
"""

LIMITS = """
## What the table does not show

- One machine, one kernel, one version of each. A sample of instructions can miss a window of a few instructions in long functions that
  change no shared memory and make no system call; other processes cannot see such a window.
- Only files count as leaked. A hostile word cannot be written into the kernel's own transports.
- The media driver of `aeron-ipc` is killed in no trial.
- Not in the table: nexus-shm (not in a registry), and tachyon-ipc, whose both ends start again after a crash.
"""


def table(rows, counts):
    lines = ["| transport | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    for name, row in rows.items():
        lines.append(f"| `{name}` {row['version']} | " + " | ".join(cell(counts, name, column) for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def listed(names):
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def other_sizes(rows, counts):
    """Returns the sentence about our queue with other sizes of messages, and inline."""
    sizes = {"": [], "inline-": []}
    for name in rows:
        inline, bytes_ = SIZES.fullmatch(name).groups()
        sizes[inline or ""].append(f"{int(bytes_):,}")
    trials, *found = (sum(total(counts, name, column, fact) for name in rows for column in COLUMNS) for fact in ["trials", *KINDS])
    outcome = ", ".join(f"{count} {kind}" for kind, count in zip(KINDS, found) if count) or "0"
    return f"Queues of {listed(sizes[''])} bytes,\nand of {listed(sizes['inline-'])} inline (C++): {outcome} of {trials:,}."


def notes(rows):
    lines = []
    for line in csv.DictReader((HERE / "says.csv").open()):
        if line["transport"] not in rows:
            continue
        quote = f"“{line['quote']}”" if line["quote"] else "–"
        link = f" ([source]({line['link']}))" if line["link"] else ""
        row = rows[line["transport"]]
        library = f"{row['library']} {row['version']}, {row['kind']} ({row['language']})"
        lines.append(f"| `{line['transport']}` | {library} | {quote}{link} | {line['caller']} |")
    return "\n".join(lines) + "\n"


def waiting(rows):
    """Returns the sentence about transports that can be tested and have no row yet."""
    names = [f"`{line['transport']}`" for line in csv.DictReader((HERE / "says.csv").open()) if line["transport"] not in rows]
    return f"- Entered, and not measured in this run: {', '.join(names)}.\n" if names else ""


def skipped(rows, counts):
    names = [name for name in rows if any(counts[name, e, "points skipped after many hangs"] for c in COLUMNS.values() for e in c)]
    return f"\nEnded after 60 answers that did not come in at least one experiment, whose trials are a sample of its points: {', '.join(f'`{name}`' for name in names)}.\n" if names else ""


def page(rows, sizes, counts, runs):
    languages = sorted({row["language"] for row in rows.values()})
    libraries = len({row["library"] for row in rows.values()})
    size = f"\n{len(rows)} rows of {libraries} libraries in {len(languages)} languages ({', '.join(languages)}).\n\n"
    parts = [INTRODUCTION, size, table(rows, counts), conditions(rows, runs), MEANING.format(sizes=other_sizes(sizes, counts)), skipped(rows, counts), LIMITS, waiting(rows)]
    return "".join(parts)


STYLE = """svg { font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
.paper { fill: #fff; } text { fill: #1b1b1b; } .dim { fill: #5a5a5a; } .heading { font-size: 18px; font-weight: 600; }
.ours { font-weight: 600; } .grid { stroke: #e4e4e4; } .none { fill: none; stroke: #9a9a9a; }
.lost { fill: #a8437f; } .doubled { fill: #3a5fa8; } .stuck { fill: #c0392b; } .leaked { fill: #8a6d00; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #16181b; } text { fill: #e8e8e8; } .dim { fill: #a6a6a6; } .grid { stroke: #34373c; }
  .lost { fill: #e39bc5; } .doubled { fill: #8fb0f0; } .stuck { fill: #ff8a7a; } .leaked { fill: #e0c040; }
}
"""
LEFT, TOP, WIDTH, HEIGHT, BAR = 170, 92, 118, 34, 6


def chart(rows, counts):
    width, height = LEFT + WIDTH * len(COLUMNS) + 20, TOP + HEIGHT * len(rows) + 20
    title = "What a kill, a pause or a hostile word leaves"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="title desc"><title id="title">{title}</title><desc id="desc">For each transport and experiment four bars: '
        f"the share of trials with a loss, a double, a stuck process, a leak. A ring is none.</desc><style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/><text x="20" y="28" class="heading">{title}</text>',
    ]
    for at, kind in enumerate(KINDS):
        x = LEFT + at * 110
        out.append(f'<rect class="{kind}" x="{x}" y="42" width="12" height="{BAR}"/><text x="{x + 18}" y="50">{kind}</text>')
    out.append(f'<text x="{LEFT + 440}" y="50" class="dim">share of trials, bar by bar; a ring: none; empty: not tried</text>')
    for at, column in enumerate(COLUMNS):
        out.append(f'<text x="{LEFT + at * WIDTH}" y="{TOP - 12}">{column}</text>')
    for row, name in enumerate(rows):
        y = TOP + row * HEIGHT
        is_ours = ' class="ours"' if name.startswith("bulkhead") else ""
        out.append(f'<line class="grid" x1="20" x2="{width - 20}" y1="{y}" y2="{y}"/>')
        out.append(f'<text x="20" y="{y + 21}"{is_ours}>{escape(name)}</text>')
        for at, column in enumerate(COLUMNS):
            x, trials = LEFT + at * WIDTH, total(counts, name, column, "trials")
            if not trials:
                continue
            shares = [total(counts, name, column, kind) / trials for kind in KINDS]
            if not any(shares):
                out.append(f'<circle class="none" cx="{x + 6}" cy="{y + 17}" r="4"/>')
            for bar, (kind, share) in enumerate(zip(KINDS, shares)):
                if share:
                    length = max(2, round(share * (WIDTH - 14), 1))
                    out.append(f'<rect class="{kind}" x="{x}" y="{y + 4 + bar * 7}" width="{length}" height="{BAR}"/>')
    return "\n".join(out) + "\n</svg>\n"


def compare(path):
    """Prints the cells of another run with other outcomes, whatever the numbers of trials."""
    (rows, counts, _), (others, new, _) = read(), read(path)
    common = [name for name in rows if name in others]

    def outcomes(counts, name, column):
        trials = total(counts, name, column, "trials")
        found = (total(counts, name, column, kind) for kind in [*KINDS, "starts over"])
        return ["all" if count and count == trials else count for count in found]

    differ = [(name, column) for name in common for column in COLUMNS if outcomes(counts, name, column) != outcomes(new, name, column)]
    for name, column in differ:
        print(f"{name}, {column}: {cell(new, name, column)}; in crash-table.csv {cell(counts, name, column)}")
    missing = [name for name in rows if name not in others]
    print(f"{len(common)} of {len(rows)} rows: {len(common) * len(COLUMNS) - len(differ)} cells with the same outcomes, {len(differ)} with others")
    if missing:
        print(f"not in {path}: {', '.join(missing)}")


def main():
    if sys.argv[1:2] == ["--compare"]:
        if len(sys.argv) != 3:
            sys.exit(__doc__)
        return compare(sys.argv[2])
    rows, counts, runs = read()
    sizes = {name: rows.pop(name) for name in list(rows) if SIZES.fullmatch(name)}
    authors = AUTHORS + notes(rows)
    files = {
        DOCS / "crash-table.md": page(rows, sizes, counts, runs),
        DOCS / "images/crash-table.svg": chart(rows, counts),
        DATA / "crash-table.md": authors,
    }
    differs = False
    for path, text in files.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.relative_to(DOCS.parent.parent)} is not what page.py writes", file=sys.stderr)
            differs = True
    sys.exit(differs)


main()

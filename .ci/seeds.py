#!/usr/bin/env python3
"""The figures of the five documents that bulkhead started from, next to ours.

  .ci/seeds.py run FOLDER [NAME ...]   measure, and save JSON in FOLDER
  .ci/seeds.py page                    write data/results/studies/seeds.md and the totals of docs/src/seeds.md
  .ci/seeds.py check                   fail if these are old, or if a planted change is not found

docs/seeds.tsv has a row a figure: its document, its kind, their figure, and where ours is in the
saved results. Kinds:

  pair   their program and ours ran in turn on one machine: `ours : theirs`, lists with a value a
         round. The verdict is the ratio of each round, median and quartiles.
  aa     their program twice, in turn: must come out equal, or cannot tell
  shape  both figures, and what each is against another row (`base`); no verdict
  std    a shape of the standard library on both sides: what differs is the machine
  cores  a pair that needs a core for each of 14 threads: no verdict from fewer rounds than others
  fact   an option, a table, a setting: no figure

`run` needs a machine that does nothing else. `dispatch` needs THEIRS and FIFTH
(proofs/referees/dispatch-bench), `java` a JDK. LAUNCHER, if set, names a program built elsewhere.
"""

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Columns of the shapes, each with the folder of its results.
MACHINES = [
    ("2 cores", "data/results/2026-11-27-epyc-2core-seeds"),
    ("16 cores", "data/results/2026-11-27-xeon-16core-seeds"),
]
# Results of both programs in turn.
PAIRS = "data/results/2026-11-30-epyc-2core-seeds"
# A median ratio nearer to 1 than this is called equal.
EQUAL = 0.05
# Fewer rounds than this decide nothing.
ROUNDS = 5
DOCUMENTS = [
    ("000, 001", "Four queues in an order-dispatch pipeline, and the article about it"),
    ("002", "A matching engine in seven phases"),
    ("003", "Queues and waiting, in Java, 2011"),
    ("004", "One writer and twelve readers over mmap-sync"),
]
# Verdicts in the order of the total.
VERDICTS = ["ahead", "behind", "equal", "cannot tell", "not measured", "shape only", "reference", "other machine"]
# Where programs were when the results were saved, and where they are.
MOVED = [
    ("bash referees/", "bash proofs/referees/"),
    ("-p bulkhead-exchange --bench published", "-p benches --bench published-exchange"),
    ("-p bulkhead-journal --bench published", "-p benches --bench published-journal"),
]


# Rows and saved results.


def find(value, path):
    """Returns the value at a path such as `rows[name=x][wait=busy].ours`; None if it is not there."""
    for name, filters in re.findall(r"([^.\[\]]+)((?:\[[^\]]*\])*)", path):
        value = value[int(name)] if isinstance(value, list) else value.get(name)
        if value is None:
            return None
        if filters:
            wanted = [text.split("=", 1) for text in re.findall(r"\[([^\]]*)\]", filters)]
            found = [one for one in value if all(str(one[key]) == text for key, text in wanted)]
            assert len(found) < 2, f"{path} names more than one"
            if not found:
                return None
            value = found[0]
    return value


def number(document, expression):
    """Computes paths and numbers joined by ` / `, ` * ` and ` - `, from left to right."""
    if expression.startswith("littles:"):
        points = find(document, expression.removeprefix("littles:"))
        runs = [run for point in points for run in point["open_orders"]]
        return max(abs(run["measured"] - run["littles_law"]) / run["littles_law"] for run in runs)
    total, operator = None, None
    for token in re.split(r" ([/*-]) (?![^\[]*\])", expression):
        if token in ("/", "*", "-"):
            operator = token
            continue
        value = float(token) if re.fullmatch(r"[0-9.]+", token) else find(document, token)
        if value is None:
            return None
        if operator is None:
            total = value
        elif operator == "/":
            total = total / value if value else None
        else:
            total = total * value if operator == "*" else total - value
        if total is None:
            return None
    return total


class Results:
    """A folder of results: its machine, files, and the seconds, build and words of each command."""

    def __init__(self, folder):
        self.folder, self.files, self.commands, self.machine = folder, {}, {}, ""
        listed = ROOT / folder / "commands.tsv"
        if not listed.exists():
            return
        self.machine, *lines = listed.read_text().splitlines()
        for line in lines:
            name, seconds, commit, words = line.split("\t")
            for old, new in MOVED:
                words = words.replace(old, new)
            self.commands[name] = (words, seconds, commit)
            saved = ROOT / folder / f"{name}.json"
            if saved.exists():
                self.files[name] = json.loads(saved.read_text())

    def number(self, row):
        document = self.files.get(row["file"])
        return number(document, row["ours"]) if document is not None and row["ours"] else None


def read_rows():
    head, *lines = (ROOT / "docs/seeds.tsv").read_text().splitlines()
    rows = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    names = Counter((row["document"], row["kind"], row["row"]) for row in rows)
    assert max(names.values()) == 1, names.most_common(1)
    return rows


# Text.


def figure(value, unit):
    """Returns a figure with its unit, three digits of it: `2.77 µs`."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{value * 100:,.0f} %" if value >= 10 else f"{value * 100:.1f} %"
    if unit == "×":
        return f"{value:.2f} ×"
    steps = {
        "ns": [("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
        "/s": [("/s", 1), ("k/s", 1e3), ("M/s", 1e6)],
        "B": [("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)],
        "count": [("", 1)],
    }[unit]
    name, size = next((step for step in reversed(steps) if abs(value) >= step[1]), steps[0])
    value /= size
    if unit == "count" and value == int(value):
        return f"{int(value):,}"
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {name}".strip()


def ratio_text(value):
    if value is None:
        return "–"
    if value >= 10:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    if 0 < value < 0.001:
        return "below 0.001"
    return f"{value:.2f}" if value >= 0.095 or value == 0 else f"{value:.2g}"


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive")


def verdict(ratios, unit):
    """Returns what ours is against theirs. `ratios` has ours divided by theirs, a value a round."""
    if len(ratios) < ROUNDS:
        return "not measured"
    low, middle, high = quartiles([1 / one for one in ratios] if unit == "/s" else ratios)
    if high < 1 and middle < 1 - EQUAL:
        return "ahead"
    if low > 1 and middle > 1 + EQUAL:
        return "behind"
    return "equal" if 1 - EQUAL <= low and high <= 1 + EQUAL else "cannot tell"


def of_rounds(row, results):
    """Returns ours and theirs of a pair, a list of rounds each; empty if they were not run."""
    document = next((of.files[row["file"]] for of in results if row["file"] in of.files), None)
    if document is None:
        return [], []
    ours, theirs = (find(document, path) or [] for path in row["ours"].split(" : "))
    both = [(one, other) for one, other in zip(ours, theirs) if one and other] if len(ours) == len(theirs) else []
    return [one for one, _ in both], [other for _, other in both]


# The page.


def pair_row(row, results):
    ours, theirs = of_rounds(row, results)
    ratios = [one / other for one, other in zip(ours, theirs)]
    said = verdict(ratios, row["unit"])
    if row["kind"] == "cores" and said == "not measured":
        said = "other machine"
    counted = "reference" if row["kind"] == "aa" else said
    cells = ["–", "–", "–", "0"]
    if ratios:
        middles = [figure(statistics.median(values), row["unit"]) for values in (theirs, ours)]
        text = ratio_text(ratios[0])
        if len(ratios) > 1:
            low, middle, high = map(ratio_text, quartiles(ratios))
            text = f"{middle} [{low}–{high}]"
        cells = [*middles, text, str(len(ratios))]
    shown = f"reference: {said}" if row["kind"] == "aa" else said
    return [row["row"], figure(float(row["theirs"]), row["unit"]), *cells, shown], counted


def theirs_of(row):
    """Returns the document's figure; None where it has words."""
    try:
        return float(row["theirs"])
    except ValueError:
        return None


def shape_row(row, by_name, results):
    counted = "reference" if row["kind"] == "std" else "shape only"
    bases = [by_name[name] for name in row["base"].split("; ") if name]
    cells = [row["row"]]
    for place in range(-1, len(results)):
        value_of = theirs_of if place < 0 else results[place].number
        value = value_of(row)
        cells.append(row["theirs"] if place < 0 and value is None else figure(value, row["unit"]))
        known = [(value, value_of(base)) for base in bases]
        cells.append("; ".join(ratio_text(one / other if one is not None and other else None) for one, other in known))
    cells += ["; ".join(base["row"] for base in bases), counted, row["remark"]]
    return cells, counted


def table(head, rows):
    def line(cells):
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    right = ("theirs", "ours", "ratio", "÷", "rounds")
    align = "|".join("---:" if name.startswith(right) and name != "÷ what" else "---" for name in head)
    return line(head) + f"|{align}|\n" + "".join(line(row) for row in rows)


def picture(peaks):
    """Draws run times as histograms of twenty classes from the fastest to the slowest of all runs."""
    low, high = min(map(min, peaks.values())), max(map(max, peaks.values()))
    lines = []
    for name, runs in peaks.items():
        counts = Counter(min(int((run - low) / max(high - low, 1) * 20), 19) for run in runs)
        most = max(counts.values())
        bars = "".join(" ▁▂▃▄▅▆▇█"[-(-counts[place] * 8 // most)] for place in range(20))
        lines.append(f"{name:<28}|{bars}| {len(runs)} runs, {min(runs) / 1e6:.1f} to {max(runs) / 1e6:.1f} ms")
    return "```text\n" + "\n".join(lines) + "\n```\n"


def make(rows, results, pairs):
    """Returns the page of rows, and the total: a table, and the rows that are behind."""
    page = [
        "# The seeds' rows\n\n"
        "Each figure of the five documents, made by `.ci/seeds.py page` from `docs/seeds.tsv` and saved results. "
        "[The seeds, like for like](seeds.md) says how to read them.\n\n"
    ]
    for label, of in [*((name, of) for (name, _), of in zip(MACHINES, results)), ("in turn", pairs)]:
        page.append(f"- {label}: {of.machine or 'not measured yet'}; `{of.folder}`\n")
    totals, behind = {}, []
    for document, title in DOCUMENTS:
        mine = [row for row in rows if row["document"] == document]
        by_name = {row["row"]: row for row in mine if row["kind"] in ("shape", "std")}
        counts = totals[document] = Counter()
        page.append(f"\n## {document}: {title}\n")
        made = [pair_row(row, [pairs, *results]) for row in mine if row["kind"] in ("pair", "aa", "cores")]
        counts.update(counted for _, counted in made)
        behind += [f"{document}: {cells[0]}, {cells[4]}" for cells, counted in made if counted == "behind"]
        if made:
            head = ["on one machine, in turn", "theirs, their machine", "theirs here", "ours here"]
            head += ["ratio: ours ÷ theirs [quartiles]", "rounds", "verdict"]
            page.append("\n" + table(head, [cells for cells, _ in made]))
        peaks = document == "003" and pairs.files.get("java", {}).get("peaks")
        if peaks:
            page.append("\nTimes of runs, slow producer, fast consumer, not busy:\n\n" + picture(peaks))
        made = [shape_row(row, by_name, results) for row in mine if row["kind"] in ("shape", "std")]
        counts.update(counted for _, counted in made)
        head = ["shapes, without a verdict", "theirs", "÷"]
        for name, _ in MACHINES:
            head += [f"ours, {name}", "÷"]
        page.append("\n" + table([*head, "÷ what", "kind", "remark"], [cells for cells, _ in made]))
        facts = [[row["row"], row["theirs"], row["ours"].removeprefix("=")] for row in mine if row["kind"] == "fact"]
        page.append("\n" + table(["options, settings and tables", "in the document", "here"], facts))
        counts["options"] = len(facts)
        files = {row["file"] for row in mine if row["file"]}
        commands = []
        for name in sorted(files):
            for of in [*results, pairs]:
                if name in of.commands:
                    words, seconds, commit = of.commands[name]
                    commands.append([name, of.machine.split(",")[1].strip(), f"`{words}`", f"{seconds} s", commit])
        page.append("\n" + table(["file", "cores", "command", "took", "build"], commands))
    head = ["document", *VERDICTS, "options"]
    lines = [[name, *(str(counts[what]) for what in head[1:])] for name, counts in totals.items()]
    every = sum(totals.values(), Counter())
    lines.append(["**all**", *(f"**{every[what]}**" for what in head[1:])])
    decided = sum(every[what] for what in VERDICTS[:4])
    figures = sum(every[what] for what in VERDICTS)
    fine = every["ahead"] + every["equal"]
    total = f"{table(head, lines)}\nOf {figures} figures, {decided} were measured in turn on one machine; {fine} match or beat theirs."
    if behind:
        total += " Behind, with the ratio of ours to theirs:\n\n" + "".join(f"- {line}\n" for line in behind)
    else:
        total += " None of those is behind.\n" if decided else "\n"
    return "".join(page), total


def with_total(text, total):
    begin, end = "<!-- total: .ci/seeds.py page -->\n", "<!-- end of the total -->\n"
    before, rest = text.split(begin)
    return before + begin + "\n" + total + "\n" + end + rest.split(end)[1]


def pages(rows):
    results, pairs = [Results(folder) for _, folder in MACHINES], Results(PAIRS)
    made, total = make(rows, results, pairs)
    front = ROOT / "docs/src/seeds.md"
    rows_page = ROOT / "data/results/studies/seeds.md"
    # Its links are written for a page of the book.
    made = re.sub(r"\]\(([a-z-]+\.md)", r"](../../../docs/src/\1", made)
    return {rows_page: made, front: with_total(front.read_text(), total)}


def check():
    rows = read_rows()
    for path, wanted in pages(rows).items():
        if not path.exists() or path.read_text() != wanted:
            sys.exit(f"{path.relative_to(ROOT)} is not that of docs/seeds.tsv and the saved results: .ci/seeds.py page")
    # Planted changes: a figure of theirs, and verdicts from made-up rounds.
    planted = [{**row, "theirs": "1"} if row["row"] == "cancel_all/100" else row for row in rows]
    assert pages(planted) != pages(rows), "a changed figure does not change the page"
    for ratios, unit, wanted in [
        ([0.8, 0.82, 0.85, 0.9, 0.91], "ns", "ahead"),
        ([0.8, 0.82, 0.85, 0.9, 0.91], "/s", "behind"),
        ([0.98, 0.99, 1.0, 1.01, 1.02], "ns", "equal"),
        ([0.5, 0.6, 0.9, 1.5, 2.0], "ns", "cannot tell"),
        ([0.5, 0.5, 0.5], "ns", "not measured"),
    ]:
        assert verdict(ratios, unit) == wanted, (ratios, unit, wanted)


# Measuring.

TECHNIQUES = "std-mpsc,crossbeam-channel,crossbeam-array-queue,array-queue-mux,spsc-mux"


def output(command, **settings):
    """Runs a command from the root of the tree; returns what it prints."""
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, **pipes).stdout.decode()


def quick(name, usual):
    """A count that the environment makes smaller, to try a command."""
    return int(os.environ.get(name, usual))


def run_dispatch(runs):
    """Their program, and their program with our ring, in turn; with a core for each thread ours, too."""
    settings = {"ROUNDS": quick("ROUNDS", 5), "WINDOW_MS": quick("WINDOW_MS", 200), "BUDGET": 600}
    if os.cpu_count() < 14:
        settings |= {"WORKS": "0 500 1000 1500", "OURS": ""}
    command = ["bash", "proofs/referees/dispatch-bench/run.sh"]
    output(command, **settings, OUT=runs / "dispatch", LAUNCHER=Path(launcher()).resolve())
    words = [f"{name}={shlex.quote(str(value))}" for name, value in settings.items()]
    return (runs / "dispatch/dispatch-bench.json").read_text(), " ".join(["THEIRS=… FIFTH=…", *words, *command])


def run_mmap_sync(_):
    words = ["seed", str(quick("ROUNDS", 7)), str(quick("WINDOW_MS", 2000))]
    command = "cargo run --release --locked -q --manifest-path proofs/referees/queues/Cargo.toml --bin".split()
    printed = output([*command, *words])
    return printed[printed.index("{") :], " ".join([*command, *words])


def run_java(runs):
    """The queues of document 003 under the JDK of today, and ours, a cell at a time, in turn."""
    rounds, fast, slow = quick("ROUNDS", 5), 100_000, quick("SLOW_EVENTS", 200)
    subprocess.run(["javac", "-d", runs / "java", ROOT / "proofs/referees/java-queues/Queues.java"], check=True)
    ours_of = {"array": "array-queue", "linked": "linked"}

    def theirs(queue, producer, consumer, wait, events, count, warm_up):
        words = [queue, producer, consumer, wait, *map(str, (events, count, warm_up))]
        return [int(line) for line in output(["java", "-cp", runs / "java", "Queues", *words]).split()]

    def ours(queue, producer, consumer, wait, events, count):
        way = {"busy": "busy", "poll": "park"}[wait]
        words = f"lab --isolation thread --slow sleep:1ms --jitter 0 --slack 50us --wait {way} --capacity 1000"
        words += f" --technique {ours_of[queue]} --producer {producer} --consumer {consumer} --events {events} --runs 1"
        taken = []
        for _ in range(count):
            saved = json.loads(output([launcher(), *words.split(), "--json", "--out", runs / "lab"]))
            taken.append(saved["figures"][0]["run_mean_ns"])
        return taken

    speeds = ("fast", "slow")
    cells = [(q, p, c, w) for p in speeds for c in speeds for w in ("poll", "busy") for q in ours_of]
    rows = [{"queue": q, "producer": p, "consumer": c, "wait": w, "theirs": [], "ours": []} for q, p, c, w in cells]
    for turn in range(rounds):
        for row, cell in zip(rows, cells):
            is_fast = cell[1:3] == ("fast", "fast")
            row["events"] = events = fast if is_fast else slow
            for name in ("theirs", "ours") if turn % 2 else ("ours", "theirs"):
                warm_up = 3 if is_fast else 1
                [taken] = theirs(*cell, events, 1, warm_up) if name == "theirs" else ours(*cell, events, 1)
                row[name].append(taken / events)
    count, peaks = quick("PEAK_RUNS", 15), {}
    for queue in ours_of:
        peaks[f"{queue}, java.util.concurrent"] = theirs(queue, "slow", "fast", "poll", 100, count, 1)
        peaks[f"{queue}, ours"] = ours(queue, "slow", "fast", "poll", 100, count)
    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr.decode().splitlines()[0]
    saved = {"schema": "bulkhead.seed-java/1", "java": java, "rows": rows, "peaks": peaks}
    return json.dumps(saved, indent=1), ".ci/seeds.py run FOLDER java"


def launcher():
    return os.environ.get("LAUNCHER", str(ROOT / "target/release/launcher"))


def commands(out, runs):
    """The commands by name: words, or a function that measures."""
    wide = os.cpu_count() >= 14
    load = "--threading dedicated --orders 400k" if wide else "--strategies 1 --venues 1 --orders 50k"
    sweep = f"sweep --preset seed {load} --window 1s --isolation thread"
    small = "--strategies 2 --venues 2 --orders 20k --window 1s"
    of_launcher = {
        "sweep": f"{sweep} --technique {TECHNIQUES} --repeats 3",
        "pin": f"{sweep} --technique spsc-mux --work 0ns --pin on,off --repeats 4",
        "board": "board --preset seed",
        "board-disk": "board --mode stress --readers 4 --duration 2s --board-folder /dev/shm,/var/tmp",
        "run": f"run --technique spsc-mux {small}",
        "credentials": f"run --technique spsc-mux --credentials 2 {small}",
        "spacing": "inspect data/coinbase-2016-03-12/flow.csv --spacing",
        "lab": "lab --seed-table",
    }
    named = {name: [launcher(), *words.split(), "--json"] for name, words in of_launcher.items()}
    for name in set(named) - {"spacing"}:
        named[name] += ["--out", str(runs / "runs")]
    bench, benches = "cargo bench -q -p benches --bench", ("published-exchange", "published-journal")
    named |= {
        "dispatch-16" if wide else "dispatch": run_dispatch,
        "mmap-sync": run_mmap_sync,
        "java": run_java,
        **{name: f"{bench} {name} -- --json {out}/{name}.json".split() for name in benches},
        "back-test": "cargo run -q --release -p bulkhead-exchange --example back_test -- --json".split(),
    }
    return named


def save(out, name, command, runs):
    """Runs a command and saves its JSON. Returns its line of commands.tsv."""
    began, saved = time.monotonic(), out / f"{name}.json"
    if callable(command):
        text, words = command(runs)
        saved.write_text(text)
    else:
        text, words = output(command), " ".join(command).split(" --out ")[0]
        words = words.replace(launcher(), "launcher").replace(str(saved), "FILE")
        if "FILE" not in words:
            saved.write_text(text)
    seconds = round(time.monotonic() - began)
    print(f"{name}: {seconds} s", file=sys.stderr)
    commit = os.environ.get("COMMIT") or output(["git", "rev-parse", "--short=8", "HEAD"]).strip()
    return "\t".join([name, str(seconds), commit, words])


def measure(folder, wanted):
    out = Path(folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    listed = out / "commands.tsv"
    models = re.findall(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    model = models[0] if models else "CPU not named"
    kernel = ".".join(os.uname().release.split(".")[:2])
    machine = f"{model}, {os.cpu_count()} virtual cores, Linux {kernel}, {time.strftime('%F')}"
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary)
        named = commands(out, runs)
        if unknown := set(wanted) - set(named):
            sys.exit(f"{' '.join(sorted(unknown))}: not one of {' '.join(named)}")
        for name in wanted or named:
            try:
                line = save(out, name, named[name], runs)
            except (OSError, subprocess.CalledProcessError) as error:
                failed.append(name)
                print(f"{name}: FAILED, {error}", file=sys.stderr)
                continue
            lines = listed.read_text().splitlines()[1:] if listed.exists() else []
            lines = [other for other in lines if not other.startswith(name + "\t")]
            listed.write_text("\n".join([machine, *lines, line]) + "\n")
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


def main():
    match sys.argv[1:]:
        case ["run", folder, *wanted]:
            measure(folder, wanted)
        case ["page"]:
            for path, text in pages(read_rows()).items():
                path.write_text(text)
        case ["check"]:
            check()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

//! `docs/src/seeds.md`: the figures of the five documents that bulkhead started from, next to ours.
//!
//! The page is made of `docs/seeds.tsv`, a row an item with their figure and where ours is, and of
//! saved results. `BULKHEAD_GOLDEN=1 cargo test -p checks seeds` writes it; without,
//! the test compares.

use checks::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The machines, each with the folder that its results are in, the usual one first.
const MACHINES: [(&str, &str); 2] = [
    ("2 cores", "data/results/2026-11-27-epyc-2core-seeds"),
    ("16 cores", "data/results/2026-11-27-xeon-16core-seeds"),
];
/// A ratio nearer to 1 than this is called equal.
const EQUAL: f64 = 0.05;

/// One item of a document.
#[derive(Debug)]
struct Item {
    seed: String,
    name: String,
    /// Their figure; after `@` where in the file it is, if both were measured together.
    theirs: String,
    unit: String,
    /// File of a results folder that has ours, and the name of the command that made it.
    file: String,
    /// Where in the file; after `=` what is there instead of a figure; `*` for all rows of a file
    /// that has their figures, too.
    ours: String,
    /// `cores` if it needs more cores than two, `std` if it is the standard library's on both
    /// sides.
    needs: String,
    remark: String,
}

fn items(text: &str) -> Vec<Item> {
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    let item = |line: &str| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [seed, name, theirs, unit, file, ours, needs, remark] =
            cells.try_into().unwrap_or_else(|cells| panic!("eight cells, not {cells:?}"));
        Item { seed, name, theirs, unit, file, ours, needs, remark }
    };
    lines.map(item).collect()
}

/// Finds a value: `rows[name=cancel_all/100].ours`. A name in brackets chooses from a list the
/// objects whose field has that value; a path may use several.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let Some(rest) = path.strip_prefix('[') else {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return Some(value);
        }
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let inner = match path[..end].parse::<usize>() {
            Ok(index) if value.is_array() => value.get(index),
            _ => value.get(&path[..end]),
        };
        return find(inner?, &path[end..]);
    };
    let (filters, rest) = filters(rest);
    let is_wanted = |one: &&Value| {
        filters.iter().all(|(key, wanted)| match &one[*key] {
            Value::String(text) => text == wanted,
            other => other.as_u64().is_some_and(|number| wanted.parse() == Ok(number)),
        })
    };
    let mut found = value.as_array()?.iter().filter(is_wanted);
    let first = found.next()?;
    assert!(found.next().is_none(), "{path} names more than one");
    find(first, rest)
}

/// Splits `a=1][b=2].rest` into its filters and the rest.
fn filters(path: &str) -> (Vec<(&str, &str)>, &str) {
    let (mut found, mut path) = (Vec::new(), path);
    loop {
        let (filter, rest) = path.split_once(']').expect("a bracket is closed");
        found.push(filter.split_once('=').expect("a filter has a value"));
        match rest.strip_prefix('[') {
            Some(next) => path = next,
            None => return (found, rest),
        }
    }
}

/// Returns a figure with its unit, three digits of it: `2.77 µs`.
fn figure(value: f64, unit: &str) -> String {
    let scaled = |units: &[(&str, f64)]| {
        let (name, size) = units.iter().rfind(|(_, size)| value.abs() >= *size).unwrap_or(&units[0]);
        let value = value / size;
        let digits = match value.abs() {
            value if value >= 100.0 || value == value.trunc() => 0,
            value if value >= 10.0 => 1,
            _ => 2,
        };
        format!("{value:.digits$} {name}").trim_end().to_owned()
    };
    match unit {
        "ns" => scaled(&[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]),
        "µs" => scaled(&[("µs", 1.0), ("ms", 1e3), ("s", 1e6)]),
        "/s" => scaled(&[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6)]),
        "share" => format!("{:.1} %", value * 100.0),
        "" => scaled(&[("", 1.0), ("k", 1e3), ("M", 1e6)]),
        other => format!("{} {other}", scaled(&[("", 1.0), ("k", 1e3), ("M", 1e6)])),
    }
}

/// Returns what a figure of ours is against theirs. Rates are better if higher.
fn verdict(theirs: f64, ours: f64, unit: &str) -> &'static str {
    let ratio = if ["/s", "M/s", "×"].contains(&unit) { theirs / ours } else { ours / theirs };
    match ratio {
        ratio if ratio < 1.0 - EQUAL => "ahead",
        ratio if ratio > 1.0 + EQUAL => "behind",
        _ => "equal",
    }
}

/// A folder of results: its files, and the command, the seconds and the commit of each.
struct Results {
    machine: String,
    files: BTreeMap<String, Value>,
    commands: BTreeMap<String, [String; 3]>,
}

impl Results {
    /// Reads a folder. Nothing is there if it has no list of commands.
    fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("commands.tsv")).unwrap_or_default();
        let mut lines = text.lines();
        let machine = lines.next().unwrap_or_default().to_owned();
        let (mut files, mut commands) = (BTreeMap::new(), BTreeMap::new());
        for line in lines {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let [name, seconds, commit, command] = cells.try_into().expect("four cells a command");
            if let Ok(text) = fs::read_to_string(folder.join(format!("{name}.json"))) {
                files.insert(name.clone(), serde_json::from_str(&text).expect("results are JSON"));
            }
            commands.insert(name, [command, seconds, commit]);
        }
        Self { machine, files, commands }
    }

    /// Returns a figure of an item, if its command was run here.
    fn figure(&self, item: &Item, path: &str) -> Option<f64> {
        let file = self.files.get(&item.file)?;
        let found = find(file, path);
        found.unwrap_or_else(|| panic!("{}: {path} is not in {}", item.name, item.file)).as_f64()
    }
}

/// Returns an item for each row of a file that has their figures.
fn expanded(item: &Item, results: &[Results]) -> Vec<Item> {
    let known = results.iter().find_map(|of| of.files.get(&item.file));
    let rows = known.and_then(|file| file["rows"].as_array()).expect("a file of rows was saved");
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let item = |row: &Value| Item {
        seed: item.seed.clone(),
        name: text(row, "name"),
        theirs: row["theirs"].as_f64().map_or_else(|| "–".into(), |theirs| theirs.to_string()),
        unit: text(row, "unit"),
        file: item.file.clone(),
        ours: format!("rows[name={}].ours", text(row, "name")),
        needs: text(row, "verdict"),
        remark: text(row, "remark"),
    };
    rows.iter().map(item).collect()
}

/// The five documents: name, what it is, its machine.
const SEEDS: [(&str, &str, &str); 5] = [
    (
        "000 and 001",
        "Four queues in an order-dispatch pipeline, and the article about it",
        "AWS c7g.4xlarge, 16 cores, Graviton3",
    ),
    ("002", "A matching engine in seven phases", "a PC with Windows 11; its CPU is not named"),
    ("003", "Queues and waiting, in Java, 2011", "not named"),
    (
        "004",
        "One writer and twelve readers over mmap-sync",
        "AWS EC2 c6in.8xlarge, Intel Xeon 8375C, 16 cores",
    ),
    ("all", "Options, tables and charts", "–"),
];

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Writes the page.
fn page(items: &[Item], results: &[Results], head: &str) -> String {
    let mut page = head.to_owned();
    for (seed, title, machine) in SEEDS {
        let of_seed = || items.iter().filter(|item| item.seed == seed);
        if of_seed().next().is_none() {
            continue;
        }
        let _ = write!(page, "\n## {seed}: {title}\n\n");
        if seed == "all" {
            page.push_str("| document | what it has | ours | command |\n|---|---|---|---|\n");
        } else {
            let _ = writeln!(page, "Their machine: {machine}.\n");
            page.push_str("| | theirs | ours, 2 cores | ours, 16 cores | verdict | command | remark |\n");
            page.push_str("|---|---:|---:|---:|---|---|---|\n");
        }
        for item in of_seed() {
            if item.ours == "*" {
                page.extend(expanded(item, results).iter().map(|item| row(item, results)));
            } else {
                page.push_str(&row(item, results));
            }
        }
        let used: BTreeSet<&str> = of_seed().map(|item| item.file.as_str()).collect();
        page.push_str("\n| command | | 2 cores | 16 cores |\n|---|---|---|---|\n");
        for name in used {
            let known: Vec<_> = results.iter().map(|of| of.commands.get(name)).collect();
            let command = known.iter().flatten().next().unwrap_or_else(|| panic!("{name} was run nowhere"));
            let ran = |run: &Option<&[String; 3]>| {
                run.map_or_else(|| "not run".into(), |[_, seconds, commit]| format!("{seconds} s, {commit}"))
            };
            let _ = writeln!(
                page,
                "| {name} | `{}` | {} | {} |",
                cell(&command[0]),
                ran(&known[0]),
                ran(&known[1])
            );
        }
    }
    page
}

/// Writes an item as a row of its table.
fn row(item: &Item, results: &[Results]) -> String {
    let name = cell(&item.name);
    if item.seed == "all" {
        return format!(
            "| {} | {name} | {} | {} |\n",
            item.theirs,
            cell(item.ours.trim_start_matches('=')),
            item.file
        );
    }
    if let Some(text) = item.ours.strip_prefix('=') {
        return format!(
            "| {name} | {} | {} | | | {} | {} |\n",
            item.theirs,
            cell(text),
            item.file,
            item.remark
        );
    }
    let ours: Vec<Option<f64>> = results.iter().map(|of| of.figure(item, &item.ours)).collect();
    let theirs: Option<f64> = match item.theirs.strip_prefix('@') {
        Some(path) => results.iter().find_map(|of| of.figure(item, path)),
        None => item.theirs.parse().ok(),
    };
    let figures = ours
        .iter()
        .zip(["not run", "not run on 16 cores"])
        .map(|(ours, missing)| ours.map_or_else(|| missing.to_owned(), |value| figure(value, &item.unit)));
    let figures: Vec<String> = figures.collect();
    // What needs many cores is judged by the machine that has them.
    let judged = if item.needs == "cores" { ours[1] } else { ours[0].or(ours[1]) };
    let verdict = match (theirs, judged) {
        (Some(theirs), Some(ours)) => verdict(theirs, ours, &item.unit),
        (None, _) => "",
        _ if item.needs == "std" => "reference",
        (Some(_), None) => "other machine",
    };
    let theirs = theirs.map_or_else(|| item.theirs.clone(), |value| figure(value, &item.unit));
    format!(
        "| {name} | {theirs} | {} | {verdict} | {} | {} |\n",
        figures.join(" | "),
        item.file,
        cell(&item.remark)
    )
}

fn made() -> String {
    let text =
        |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let results = MACHINES.map(|(_, folder)| Results::read(&root().join(folder)));
    let machines = MACHINES.iter().zip(&results).map(|((name, folder), of)| {
        let machine = if of.machine.is_empty() { "not run yet" } else { &of.machine };
        format!("- {name}: {machine}; `{folder}`\n")
    });
    let head = text("docs/seeds.md").replace("MACHINES\n", &machines.collect::<String>());
    page(&items(&text("docs/seeds.tsv")), &results, &head)
}

#[test]
fn seeds_page_is_that_of_the_saved_results() {
    let (path, made) = (root().join("docs/src/seeds.md"), made());
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        fs::write(&path, &made).expect("the page can be written");
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == made,
        "docs/src/seeds.md differs from docs/seeds.tsv and the saved results; BULKHEAD_GOLDEN=1 writes it"
    );
}

#[test]
fn every_seed_has_its_items() {
    let text = fs::read_to_string(root().join("docs/seeds.tsv")).expect("the items");
    let items = items(&text);
    for (seed, ..) in SEEDS {
        assert!(items.iter().any(|item| item.seed == seed), "{seed}");
    }
    for item in &items {
        assert!(SEEDS.iter().any(|(seed, ..)| *seed == item.seed), "{item:?}");
        assert!(!item.file.is_empty() && !item.ours.is_empty(), "no command or no answer: {item:?}");
    }
}

#[test]
fn changed_figure_changes_the_page() {
    let item = |unit: &str| Item {
        seed: "002".into(),
        name: "cancel_all/100".into(),
        theirs: "2050".into(),
        unit: unit.into(),
        file: "published".into(),
        ours: "rows[name=cancel_all/100].ours".into(),
        needs: String::new(),
        remark: String::new(),
    };
    let results = |ours: f64| {
        let rows = serde_json::json!({ "rows": [{ "name": "x", "ours": 1.0 }, { "name": "cancel_all/100", "ours": ours }] });
        let commands = [("published".into(), ["cargo bench".into(), "9".into(), "abc".into()])];
        let full = Results {
            machine: "M".into(),
            files: [("published".into(), rows)].into(),
            commands: commands.into(),
        };
        [full, Results { machine: String::new(), files: BTreeMap::new(), commands: BTreeMap::new() }]
    };
    let rows = [2_770.0, 2_060.0, 1_000.0].map(|ours| row(&item("ns"), &results(ours)));
    for (row, wanted) in rows.iter().zip([
        "2.77 µs | not run on 16 cores | behind",
        "2.06 µs | not run on 16 cores | equal",
        "1 µs | not run on 16 cores | ahead",
    ]) {
        assert!(row.contains(wanted), "{row}");
    }
    assert!(row(&item("/s"), &results(1_000.0)).contains("behind"));
}

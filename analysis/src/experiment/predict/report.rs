//! The report of a prediction: the answer, one table, the error, and the measured cells.

use super::{CoreEach, MeasuredCell, PredictedCell, Prediction, PredictionErrors};
use crate::chart::xy_plot::{self, PlotSeries};
use crate::experiment::{
    ALL, Experiment, ExperimentReport, FILES, PAGE, ReportSection, TERMINAL, machine_facts,
};
use crate::stats::Spread;
use maud::Markup;
use record::numbers::{duration, percent, plain, signed};
use record::units::human_bytes;
use statistics::{CorePrediction, SharedCoreModel};
use verdict::chart::axis;
use verdict::table::Grid;
use verdict::table::grid::GridRow;

/// Text in place of a latency that is not predicted.
const BEYOND_RANGE: &str = "beyond its range";

/// Logarithm of the factor from which on a calibration is called noisy.
const NOISY: f64 = 0.4;

/// Returns the report of a prediction (`launcher predict`).
pub(super) fn report(experiment: &Experiment, found: &Prediction) -> ExperimentReport {
    let subject = found.asked.map_or_else(|| "a grid of cells".into(), |asked| asked.name());
    ExperimentReport {
        name: "predict",
        heading: format!("Prediction: {subject}"),
        title: super::KIND.title.into(),
        subject,
        origin: format!("started {}, bulkhead {}", experiment.started, experiment.version),
        answer: answer(found),
        fitness: found.fitness(experiment),
        facts: machine_facts(&experiment.machine),
        notes: notes(experiment, found),
        sections: vec![
            ReportSection::new("prediction", "The prediction")
                .charts(charts(found))
                .tables(ALL, found.predicted.map(|levels| prediction(found, &levels)))
                .tables(ALL, found.core_each.map(|each| way(found, &each))),
            ReportSection::new("held-out", "Predicted before it was measured")
                .tables(TERMINAL, found.asked.and(found.held_out.first()).map(|one| checked(found, one)))
                .tables(if found.asked.is_some() { FILES | PAGE } else { ALL }, [held_out(found)]),
            ReportSection::new("fitted", "What the model is fitted to").tables(FILES | PAGE, [fitted(found)]),
        ],
        ..ExperimentReport::default()
    }
}

/// Returns the result in a sentence or two.
fn answer(found: &Prediction) -> String {
    if let (Some(asked), Some(each)) = (found.asked, &found.core_each) {
        let [thread, process] = each.p50_ns.map(|ns| duration(ns as u64));
        return format!(
            "{} that spin, a core each: a {} is predicted to add nothing at p50 (it is equivalent within 5 % on 16 cores). The sum of an order's way is {}; \
             measured: {thread} as threads, {process}, so it is off by {} and {}.",
            asked.name(),
            level_name(found),
            duration(each.sum_ns as u64),
            percent(Some(each.errors()[0])),
            percent(Some(each.errors()[1])),
        );
    }
    let errors = errors(&found.errors);
    let (Some(asked), Some([thread, process])) = (found.asked, found.predicted) else {
        let model = if found.model.is_some() { "" } else { "no model yet: too few runs count" };
        return [model.to_owned(), errors].join("").trim().to_owned();
    };
    let level = level_name(found);
    let cpu = percent(Some(process.cpu_ns / thread.cpu_ns - 1.0));
    let latency = match (thread.p50_ns, process.p50_ns) {
        (Some(thread), Some(process)) => {
            let share = percent(Some(process / thread - 1.0));
            format!("adds {} to a p50 of {} ({share})", signed(process - thread), duration(thread as u64))
        }
        _ => "is beyond the formula's range, so no latency is predicted".into(),
    };
    let first = |count: Option<u32>| {
        count.map_or_else(
            || "for no number of strategies up to 256".into(),
            |count| format!("from {count} strategies on"),
        )
    };
    let behind = found.ceilings.filter(|[_, own]| own.is_reached && own.per_s < asked.rate_per_s);
    let behind = behind.map_or_else(String::new, |[_, own]| {
        format!(" They cannot carry it as {level}: at most {}.", own.name())
    });
    format!(
        "{}: each as a {level} {latency} and takes {cpu} more CPU time.{behind} 5 % more than a thread at this rate: CPU time {}, p50 {}. {errors}",
        asked.name(),
        first(found.five_percent_cpu),
        first(found.five_percent_p50),
    )
}

fn level_name(found: &Prediction) -> String {
    found.level.map_or_else(|| "process".to_owned(), |level| level.to_string())
}

/// Describes the errors: `Predicted before it was measured: p50 off by 4%, …`.
fn errors(errors: &PredictionErrors) -> String {
    if errors.cells == 0 {
        return "Not checked: no cell was measured after its prediction.".into();
    }
    let added_ns = errors.added_p50_ns.map_or_else(String::new, |ns| format!(" ({})", duration(ns as u64)));
    let beyond = match errors.beyond_range {
        0 => String::new(),
        count => format!("; {count} beyond the formula's range, without a predicted latency"),
    };
    let of = match errors.cells {
        1 => "the cell that was measured afterwards".into(),
        cells => format!("the median of {cells} cells that were left out of the fit"),
    };
    format!(
        "Error in {of}: p50 {}, CPU time {}; of what a process adds: p50 {}{added_ns}, CPU time {}{beyond}.",
        percent(errors.p50),
        percent(errors.cpu),
        percent(errors.added_p50),
        percent(errors.added_cpu),
    )
}

fn notes(experiment: &Experiment, found: &Prediction) -> Vec<String> {
    let mut notes = experiment.notes.clone();
    if let Some(model) = &found.model {
        let SharedCoreModel { body_ns, wake_ns, idle_ns, switch_ns, batching_ns, .. } = *model;
        let [body, wake, idle, switch, batching] =
            [body_ns, wake_ns, idle_ns, switch_ns, batching_ns].map(|ns| duration(ns as u64));
        notes.push(format!(
            "a thread's CPU of an order: {body} + s × {wake} + {idle} × idle share; a process: + s × {switch} × (1 − 1/N); wake-ups s = \
             2 / (1 + {batching} × R/N); fitted to {} cells",
            model.cells
        ));
        if let Some(error) = model.p50_error.filter(|error| *error > NOISY) {
            notes.push(format!(
                "the calibration is noisy: p50 of its own cells is off by a factor of {}; calibrate on a calmer machine (--recalibrate)",
                plain(error.exp())
            ));
        }
    }
    if let Some(price) = found.switch.first() {
        notes.push(format!("a switch to another process, measured alone: {}", price.describe()));
    }
    if let Some(times) = &found.wake {
        notes.push(format!("an idle core runs what wakes it after {}", times.describe()));
    }
    if let Some(folder) = &found.calibration {
        notes.push(format!("fitted to the runs in {folder}, of this machine and build"));
    }
    let aa = found.held_out.iter().filter_map(|one| one.measured.aa_ratio);
    if let Some(aa) = Spread::from_values(aa.map(|ratio| (ratio - 1.0).abs())) {
        notes.push(format!("A/A: p50 of two groups of threads differs by {}", percent(Some(aa.median))));
    }
    notes
}

fn prediction(found: &Prediction, levels: &[CorePrediction; 2]) -> Grid {
    let [thread, process] = levels;
    let strategies = found.asked.map_or(0, |asked| asked.strategies);
    let memory = found.memory_bytes.map(|bytes| human_bytes((bytes * f64::from(strategies)) as u64));
    let ceilings = found.ceilings.map(|ceilings| ceilings.map(|one| one.name()));
    let row = |name: &str, at: usize, memory: String| {
        let one = &levels[at];
        let interval = one.p50_interval_ns.map_or_else(String::new, |[low, high]| {
            format!(" [{}, {}]", duration(low as u64), duration(high as u64))
        });
        let p50 = one.p50_ns.map_or_else(|| BEYOND_RANGE.into(), |ns| duration(ns as u64) + &interval);
        let ceiling = ceilings.as_ref().map_or_else(|| "–".into(), |ceilings| ceilings[at].clone());
        [name.into(), p50, duration(one.cpu_ns as u64), percent(Some(one.utilization)), ceiling, memory]
    };
    let added_p50 = process.p50_ns.zip(thread.p50_ns).map_or_else(
        || "–".into(),
        |(process, thread)| {
            let reach = found.model.and_then(|model| model.added_error_ns).map(|error| 1.96 * error);
            let [low, high] = [-1.0, 1.0].map(|sign| process - thread + sign * reach.unwrap_or(0.0));
            let interval =
                reach.map_or_else(String::new, |_| format!(" [{}, {}]", signed(low), signed(high)));
            signed(process - thread) + &interval
        },
    );
    let difference = [
        "difference".into(),
        added_p50,
        signed(process.cpu_ns - thread.cpu_ns),
        format!("{:+.0} points", 100.0 * (process.utilization - thread.utilization)),
        found.ceilings.filter(|both| both.iter().all(|one| one.is_reached)).map_or_else(
            || "–".into(),
            |[thread, process]| format!("{:+.0}%", 100.0 * (process.per_s / thread.per_s - 1.0)),
        ),
        memory.clone().map_or_else(|| "–".into(), |memory| format!("+{memory}")),
    ];
    let rows = [
        row("thread", 0, "–".into()),
        row(&level_name(found), 1, memory.unwrap_or_else(|| "–".into())),
        difference,
    ];
    let head = ["each as a", "p50", "CPU/order", "of cores", "ceiling", "memory"];
    Grid::new(
        "prediction",
        "predicted, with 95 % intervals; the ceiling is measured",
        1,
        head,
        rows.map(|cells| GridRow::plain(cells.into())),
    )
}

/// Returns the sum for a core each, with what was measured.
fn way(found: &Prediction, each: &CoreEach) -> Grid {
    let [thread, process] = each.p50_ns;
    let [sum, line, stamps] =
        [each.sum_ns, each.path.line_ns, each.path.stamps_ns].map(|ns| duration(ns as u64));
    let row = |name: &str, measured: f64| {
        let cells = [name, &sum, &duration(measured as u64), &line, &stamps];
        GridRow::plain(cells.map(str::to_owned).into())
    };
    let difference = ["difference", "0 ns", &signed(process - thread), "", ""].map(str::to_owned);
    let rows = [row("thread", thread), row(&level_name(found), process), GridRow::plain(difference.into())];
    let head = ["each as a", "p50 predicted", "p50 measured", "a line's round trip", "stamps"];
    Grid::new("way", "rt_venue with a core each: line, stamps and 60 ns in the engine", 1, head, rows)
}

/// Returns what was predicted and measured of one cell, with its error.
fn checked(found: &Prediction, one: &PredictedCell) -> Grid {
    let whole = |ns: f64| duration(ns as u64);
    let error = |predicted: f64, measured: f64| format!("{:+.0}%", 100.0 * (predicted / measured - 1.0));
    let cells = |name: &str, p50: (Option<f64>, f64), cpu: (f64, f64), format: fn(f64) -> String| {
        let predicted = p50.0.map_or_else(|| BEYOND_RANGE.into(), format);
        let p50_error = p50.0.map_or_else(|| "–".into(), |predicted| error(predicted, p50.1));
        let cpu_cells = [format(cpu.0), format(cpu.1), error(cpu.0, cpu.1)];
        let all = [vec![name.to_owned(), predicted, format(p50.1), p50_error], cpu_cells.to_vec()].concat();
        GridRow::plain(all)
    };
    let (predicted, measured) = (one.predicted, one.measured.cell);
    let row = |name: &str, at: usize| {
        let p50 = (predicted[at].p50_ns, measured.p50_ns[at]);
        cells(name, p50, (predicted[at].cpu_ns, measured.cpu_ns[at]), whole)
    };
    let [thread, process] = predicted;
    let added_p50 = thread.p50_ns.zip(process.p50_ns).map(|(thread, process)| process - thread);
    let added = |[thread, process]: [f64; 2]| process - thread;
    let cpu = (process.cpu_ns - thread.cpu_ns, added(measured.cpu_ns));
    let difference = cells("difference", (added_p50, added(measured.p50_ns)), cpu, signed);
    let head = ["each as a", "p50 predicted", "measured", "error", "CPU predicted", "measured", "error"];
    let title = format!("predicted first, then measured: {}", cell_name(&one.measured));
    let grid =
        Grid::new("checked", title, 1, head, [row("thread", 0), row(&level_name(found), 1), difference]);
    match one.measured.ratio {
        Some(_) => grid.note(format!("ratio of p50 by turns, measured: {}", ratio(&one.measured))),
        None => grid,
    }
}

/// Returns the cells that were predicted first, with what was measured.
fn held_out(found: &Prediction) -> Grid {
    let p50 = |of: Option<f64>| of.map_or_else(|| BEYOND_RANGE.into(), |ns| duration(ns as u64));
    let both_p50 = |one: &PredictedCell| match one.predicted.map(|level| level.p50_ns) {
        [None, None] => BEYOND_RANGE.into(),
        levels => levels.map(p50).join(" → "),
    };
    let pair = |values: [f64; 2], format: fn(f64) -> String| values.map(format).join(" → ");
    let whole = |ns: f64| duration(ns as u64);
    Grid::from_rows(
        "held_out",
        format!("predicted first, measured afterwards: thread → {}", level_name(found)),
        1,
        &[
            ("strategies on cores, rate", &|one: &PredictedCell| cell_name(&one.measured)),
            ("p50 predicted", &both_p50),
            ("p50 measured", &|one| pair(one.measured.cell.p50_ns, whole)),
            ("CPU predicted", &|one| pair(one.predicted.map(|level| level.cpu_ns), whole)),
            ("CPU measured", &|one| pair(one.measured.cell.cpu_ns, whole)),
            ("p50 ratio, by turns", &|one| ratio(&one.measured)),
        ],
        &found.held_out,
    )
}

fn cell_name(cell: &MeasuredCell) -> String {
    format!("{} on {}, {}/s", cell.strategies, cell.cores, plain(cell.rate_per_s))
}

/// The level against the threads in turns of the same run: `1.08 [1.02–1.15]`.
fn ratio(cell: &MeasuredCell) -> String {
    cell.ratio.map_or_else(|| "–".into(), |[value, low, high]| format!("{value:.2} [{low:.2}–{high:.2}]"))
}

fn fitted(found: &Prediction) -> Grid {
    let pair = |values: [f64; 2]| values.map(|ns| duration(ns as u64)).join(" → ");
    Grid::from_rows(
        "fitted",
        format!("measured: thread → {}", level_name(found)),
        1,
        &[
            ("strategies on cores, rate", &|cell: &MeasuredCell| cell_name(cell)),
            ("part", &|cell| cell.part.name().to_owned()),
            ("p50", &|cell| pair(cell.cell.p50_ns)),
            ("CPU an order", &|cell| pair(cell.cell.cpu_ns)),
            ("wake-ups an order", &|cell| cell.cell.switches.map(plain).join(" → ")),
            ("p50 ratio, by turns", &|cell| ratio(cell)),
            ("counts", &|cell| if cell.is_usable { "yes" } else { "no" }.into()),
        ],
        &found.fitted,
    )
}

/// Draws what a process adds to p50 and to CPU time against the number of strategies on the core:
/// the model as lines, the measured cells as points.
fn charts(found: &Prediction) -> Vec<Markup> {
    let Some(model) = found.model else { return Vec::new() };
    let held_out = found.held_out.iter().map(|one| &one.measured);
    let measured: Vec<&MeasuredCell> =
        found.fitted.iter().chain(held_out).filter(|cell| cell.is_usable).collect();
    let rate_per_s = match found.asked {
        Some(asked) => asked.rate_per_s / f64::from(asked.cores.max(1)),
        None => middle_rate(&measured),
    };
    let exactly = |value: f64| Spread { median: value, low: value, high: value };
    let draw = |id,
                title: &str,
                of_model: &dyn Fn([CorePrediction; 2]) -> Option<f64>,
                of_cell: fn(&MeasuredCell) -> f64| {
        let line = (1..=32).filter_map(|strategies| {
            let strategies = f64::from(strategies);
            Some((strategies, exactly(of_model(model.predict(strategies, rate_per_s, 0.0))?)))
        });
        let mut points: Vec<(f64, Spread)> =
            measured.iter().map(|cell| (cell.cell.strategies, exactly(of_cell(cell)))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let name = format!("predicted at {} orders/s", plain(rate_per_s));
        let series = [
            PlotSeries { name, class: "model", points: line.collect() },
            PlotSeries { name: "measured, at all rates".into(), class: "c1", points },
        ];
        xy_plot::draw(id, title, ("strategies on a core", axis::NUMBER), ("added", axis::DURATION), &series)
    };
    let added = |[thread, process]: [f64; 2]| process - thread;
    let latency = draw(
        "added-p50",
        &format!("What a {} adds to p50", level_name(found)),
        &|[thread, process]| Some(added([thread.p50_ns?, process.p50_ns?])),
        |cell| cell.cell.p50_ns[1] - cell.cell.p50_ns[0],
    );
    let cpu = draw(
        "added-cpu",
        &format!("What a {} adds to the CPU time of an order", level_name(found)),
        &|levels| Some(added(levels.map(|level| level.cpu_ns))),
        |cell| cell.cell.cpu_ns[1] - cell.cell.cpu_ns[0],
    );
    latency.into_iter().chain(cpu).collect()
}

/// Returns the median rate of cells.
fn middle_rate(cells: &[&MeasuredCell]) -> f64 {
    let rates = cells.iter().map(|cell| cell.cell.rate_per_s);
    Spread::from_values(rates).map_or(1.0, |spread| spread.median)
}

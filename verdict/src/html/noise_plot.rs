//! Draws the machine's noise, as jHiccup and cyclictest do: for each thread a strip over time with
//! the longest gap of each moment, and the kernel's own account of the cores.

use super::page::table;
use super::timeline_plot::{TIME, time_axis};
use crate::chart::plot::{DataSeries, Plot, PlotAxis, SeriesKind, Unit};
use crate::report::units::{count, counted, duration, duration_or_dash, plural, short};
use crate::table::{Column, Grid};
use maud::{Markup, html};
use merge::tail::{MachineNoise, NoiseSlice, ThreadNoise};
use record::kernel::{CoreAccount, KernelAccount};
use record::numbers::percent;

/// The maximum number of threads that are drawn: those with most time in gaps.
const MAX_STRIPS: usize = 12;
/// Gaps are recorded from here on.
const MIN_NS: f64 = 3_000.0;

/// Draws the machine's noise (times in which threads did not run); `None` if there are neither gaps
/// nor kernel statistics of the cores.
pub fn draw(noise: &MachineNoise, kernel: Option<&KernelAccount>, notes: &[String]) -> Option<Markup> {
    let some = noise.threads.iter().any(|thread| !thread.slices.is_empty());
    (some || kernel.is_some()).then(|| {
        html! {
            @if some {
                @for strip in strips(noise) { (strip.figure()) }
            } @else {
                p class="none" { "No thread was away from its duty cycles for longer than " (duration(MIN_NS as u64)) "." }
            }
            (table(&threads(noise)))
            @for note in notes { p class="note" { (note) } }
            @if let Some(kernel) = kernel { (table(&account(kernel))) }
        }
    })
}

fn name(thread: &ThreadNoise) -> String {
    thread.core.map_or_else(|| thread.thread.clone(), |core| format!("{} · core {core}", thread.thread))
}

/// Returns a plot for each thread that had gaps, with one vertical axis.
fn strips(noise: &MachineNoise) -> Vec<Plot> {
    let mut most: Vec<&ThreadNoise> =
        noise.threads.iter().filter(|thread| !thread.slices.is_empty()).collect();
    most.sort_by_key(|thread| std::cmp::Reverse(thread.gaps_ns));
    most.truncate(MAX_STRIPS);
    // In the order of the plan.
    most.sort_by_key(|thread| noise.threads.iter().position(|other| std::ptr::eq(other, *thread)));
    let longest = most.iter().filter_map(|thread| longest(thread)).max().unwrap_or(0);
    let range = [MIN_NS, (longest as f64).max(MIN_NS * 10.0)];
    most.iter().enumerate().map(|(number, thread)| strip(noise, number, thread, range)).collect()
}

fn longest(thread: &ThreadNoise) -> Option<u64> {
    thread.slices.iter().map(|slice| slice.longest_ns).max()
}

fn strip(noise: &MachineNoise, number: usize, thread: &ThreadNoise, range: [f64; 2]) -> Plot {
    let series = |name: &str, class: &str, of: fn(&NoiseSlice) -> u64| {
        let disturbed: Vec<&NoiseSlice> = thread.slices.iter().filter(|slice| of(slice) > 0).collect();
        let begin = |slice: &&NoiseSlice| slice.slice.saturating_mul(noise.slice_ns) as f64;
        DataSeries {
            kind: SeriesKind::Bars,
            width: noise.slice_ns as f64,
            x: disturbed.iter().map(begin).collect(),
            y: disturbed.iter().map(|slice| of(slice) as f64).collect(),
            ..DataSeries::with_class(name, class)
        }
    };
    let gaps = format!(
        "{} {}, {} together",
        short(thread.gaps),
        plural("gap", thread.gaps),
        duration(thread.gaps_ns)
    );
    Plot {
        id: format!("noise-{number}"),
        title: format!("{}: {gaps}", name(thread)),
        description: format!(
            "Gaps of {}: {gaps}, the longest {}.",
            name(thread),
            duration(longest(thread).unwrap_or(0))
        ),
        height: 120,
        x: PlotAxis { title: String::new(), ..time_axis(noise.slice_ns.saturating_mul(noise.slices)) },
        y: PlotAxis { is_log: true, range: Some(range), ..PlotAxis::new("", Unit::Duration) },
        series: vec![
            series("longest gap", "c7", |slice| slice.longest_ns),
            series("the kernel took the core away", "c2", |slice| slice.preempted_ns),
        ],
        group: TIME,
        ..Plot::default()
    }
}

fn threads(noise: &MachineNoise) -> Grid {
    let columns: [Column<'_, ThreadNoise>; 8] = [
        ("thread", &|of| of.thread.clone()),
        ("core", &|of| of.core.map_or_else(|| "–".into(), |core| core.to_string())),
        ("gaps", &|of| count(of.gaps)),
        ("together", &|of| duration(of.gaps_ns)),
        ("preempted", &|of| count(of.preempted)),
        ("together", &|of| duration(of.preempted_ns)),
        ("asleep", &|of| count(of.sleeps)),
        ("together", &|of| duration(of.sleeps_ns)),
    ];
    let has_slept = noise.threads.iter().any(|thread| thread.sleeps > 0);
    let columns = if has_slept { &columns[..] } else { &columns[..6] };
    let grid = Grid::from_rows("noise", "", 1, columns, &noise.threads);
    match has_slept {
        false => grid,
        true => grid.note(
            "asleep: times in which the thread had given its core away by its idle strategy, and had work when it came back: its own \
             doing, no gaps, and not in the picture",
        ),
    }
}

fn account(kernel: &KernelAccount) -> Grid {
    let top = |of: &CoreAccount| {
        let named = of.top_interrupts.iter().map(|(name, times)| format!("{name} {}", count(*times)));
        named.collect::<Vec<_>>().join(", ")
    };
    let mut grid = Grid::from_rows(
        "kernel",
        "What the kernel says of the same cores",
        1,
        &[
            ("core", &|of: &CoreAccount| of.core.to_string()),
            ("steal", &|of| duration_or_dash(of.steal_ns)),
            ("interrupts", &|of| of.interrupts.map_or_else(|| "–".into(), count)),
            ("in interrupts", &|of| duration_or_dash(of.irq_ns)),
            ("in soft interrupts", &|of| duration_or_dash(of.softirq_ns)),
            ("waited for the core", &|of| duration_or_dash(of.run_delay_ns)),
            ("the most frequent", &top),
        ],
        &kernel.cores,
    );
    grid.notes.extend(kernel.throttled.map(|throttled| {
        let (times, together) = (counted(throttled.times, "time"), duration(throttled.ns));
        format!("the cgroup was out of CPU time {times}, {together} together")
    }));
    grid.notes.extend(kernel.launcher.map(|launcher| {
        let (times, span) = (counted(launcher.times, "time"), duration(launcher.ns));
        let share = percent(launcher.share());
        format!(
            "the launcher woke up {times} in the {span} in which orders were sent, and took {share} of a core"
        )
    }));
    if !kernel.absent.is_empty() {
        grid.notes.push(format!("this kernel does not report: {}", kernel.absent.join("; ")));
    }
    grid.note(
        "times of /proc/stat are counted in hundredths of a second; every process on the core is in them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_drawn_and_sleeps_counted_for_any_file() {
        let slice = |slice, longest_ns, preempted_ns| NoiseSlice { slice, gaps: 1, longest_ns, preempted_ns };
        let mut thread = ThreadNoise {
            thread: "engine".into(),
            core: Some(1),
            gaps: 3,
            slices: vec![slice(0, 5_000, 0), slice(7, 4_000_000, 4_000_000), slice(u64::MAX, u64::MAX, 1)],
            ..ThreadNoise::default()
        };
        let cores = vec![CoreAccount { core: 1, ..CoreAccount::default() }];
        let kernel = KernelAccount { cores, ..KernelAccount::default() };
        let drawn = |threads| {
            let noise = MachineNoise { slice_ns: 1_000_000, slices: 100, threads };
            let drawn = draw(&noise, Some(&kernel), &["a note".into()]).unwrap().into_string();
            assert!(drawn.contains("\"x\":[7000000,1.8446744073709552e+19],\"y\":[4000000,1]"), "{drawn}");
            assert!(drawn.contains("engine · core 1") && drawn.contains("a note"), "{drawn}");
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            drawn
        };
        assert!(!drawn(vec![thread.clone(), ThreadNoise::default()]).contains("asleep"), "nobody slept");
        (thread.sleeps, thread.sleeps_ns) = (77, 1 << 40);
        let drawn = drawn(vec![thread]);
        assert!(drawn.contains("asleep") && drawn.contains(">77<"), "{drawn}");
        assert!(draw(&MachineNoise::default(), None, &[]).is_none());
    }
}

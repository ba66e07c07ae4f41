//! Draws the machine's noise, as jHiccup and cyclictest do: for each thread a strip over time with
//! the longest gap of each moment, and the kernel's own account of the cores.

use super::axis;
use super::page::table;
use super::scale::Scale;
use super::svg::{Frame, WIDTH, coordinate, line, text};
use crate::kernel::{CoreAccount, KernelAccount};
use crate::report::units::{count, counted, duration, duration_or_dash, plural, short};
use crate::table::{Column, Grid};
use crate::tail::{MachineNoise, ThreadNoise};
use maud::{Markup, html};

const STRIP: f64 = 64.0;
/// The maximum number of threads that are drawn: those with most time in gaps.
const MAX_STRIPS: usize = 12;
/// Gaps are recorded from here on.
const MIN_NS: f64 = 3_000.0;

/// Draws the machine's noise; `None` without gaps and kernel accounts.
pub fn draw(noise: &MachineNoise, kernel: Option<&KernelAccount>, notes: &[String]) -> Option<Markup> {
    let some = noise.threads.iter().any(|thread| !thread.slices.is_empty());
    (some || kernel.is_some()).then(|| {
        html! {
            @if some {
                p class="legend" {
                    span class="key" { span class="swatch c2" {} "the kernel took the core away" } " "
                    span class="key" { span class="swatch c7" {} "other gaps: hypervisor, interrupt, own work" }
                }
                figure { (strips(noise)) }
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

fn strips(noise: &MachineNoise) -> Markup {
    let mut most: Vec<&ThreadNoise> =
        noise.threads.iter().filter(|thread| !thread.slices.is_empty()).collect();
    most.sort_by_key(|thread| std::cmp::Reverse(thread.gaps_ns));
    most.truncate(MAX_STRIPS);
    // In the order of the plan.
    most.sort_by_key(|thread| noise.threads.iter().position(|other| std::ptr::eq(other, *thread)));
    let height = most.len() as f64 * STRIP + 62.0;
    let frame = Frame { height, left: 76.0, right: WIDTH - 190.0, top: 10.0, bottom: height - 52.0 };
    let seconds = noise.slice_ns.saturating_mul(noise.slices) as f64 / 1e9;
    let x = Scale::linear_exact(0.0, seconds.max(1e-9), frame.x_range());
    let longest =
        most.iter().flat_map(|thread| &thread.slices).map(|slice| slice.longest_ns).max().unwrap_or(0);
    let values = (MIN_NS, (longest as f64).max(MIN_NS * 10.0));
    let content = html! {
        (axis::bottom(&frame, &x, "time from the start of the schedule (s)", &axis::number))
        @for (number, thread) in most.iter().enumerate() {
            @let (top, bottom) = (frame.top + number as f64 * STRIP + 6.0, frame.top + (number + 1) as f64 * STRIP);
            @let y = Scale::log(values.0, values.1, (bottom, top));
            @for tick in y.labeled_ticks() {
                (line((frame.left, y.at(tick)), (frame.right, y.at(tick)), "grid minor"))
            }
            (line((frame.left, bottom), (frame.right, bottom), "base"))
            (text(frame.left - 8.0, bottom, "end", "tick", &axis::duration(y.domain().0)))
            (text(frame.left - 8.0, top + 8.0, "end", "tick", &axis::duration(y.domain().1)))
            (text(frame.right + 12.0, f64::midpoint(top, bottom), "start", "label", &name(thread)))
            (text(frame.right + 12.0, f64::midpoint(top, bottom) + 16.0, "start", "tick",
                &format!("{} {}, {}", short(thread.gaps), plural("gap", thread.gaps), duration(thread.gaps_ns))))
            @for slice in &thread.slices {
                @let left = x.at((slice.slice.saturating_mul(noise.slice_ns)) as f64 / 1e9);
                @let width = (x.at(noise.slice_ns as f64 / 1e9) - frame.left).max(1.2);
                @for (class, ns) in [("c7", slice.longest_ns), ("c2", slice.preempted_ns)] {
                    @if ns > 0 {
                        @let high = y.at((ns as f64).max(y.domain().0));
                        rect x=(coordinate(left)) y=(coordinate(high)) width=(coordinate(width)) height=(coordinate((bottom - high).max(1.0))) class={ "fill " (class) }
                            data-gap-ns=(ns) {}
                    }
                }
            }
        }
    };
    let said: Vec<String> = most
        .iter()
        .map(|thread| {
            let longest = thread.slices.iter().map(|slice| slice.longest_ns).max().unwrap_or(0);
            format!(
                "{}: {}, {} together, the longest {}",
                name(thread),
                counted(thread.gaps, "gap"),
                duration(thread.gaps_ns),
                duration(longest)
            )
        })
        .collect();
    frame.drawing(
        "noise",
        "The machine's noise: gaps of each thread over time (logarithmic)",
        &format!("{}.", said.join("; ")),
        &content,
    )
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
            ("in them", &|of| duration_or_dash(of.irq_ns)),
            ("soft", &|of| duration_or_dash(of.softirq_ns)),
            ("waited for it", &|of| duration_or_dash(of.run_delay_ns)),
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
        format!("the launcher woke up {times} in the {span} in which orders were sent")
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
    use crate::tail::NoiseSlice;

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
            assert_eq!(drawn.matches("data-gap-ns").count(), 5, "{drawn}");
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

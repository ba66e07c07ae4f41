//! Formats a snapshot as terminal lines: what fits into width and height, the most important first.

use super::model::{RingRow, RoleRow, Snapshot, StrategyRow};
use super::stages::StageRow;
use super::styled_line::{Style, StyledLine};
use analysis::numbers::{duration, duration_or_dash, percent, short};

/// The narrowest terminal, in columns, whose whole width the display uses.
pub const NARROW: usize = 60;
/// From this width on stages and rings are side by side, and roles show all columns.
const WIDE: usize = 80;
/// The share of a ring's slots above which its line is marked.
const ALMOST_FULL: f64 = 7.0 / 8.0;
/// Column of the rings in the wide layout.
const RINGS_AT: usize = 47;

/// The prompt and the messages that `launcher watch` shows in addition to the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptView {
    /// The selected strategy; `None` without keys.
    pub selected: Option<u16>,
    /// Result of the last command, or the text being typed.
    pub message: String,
}

/// Truncates a text to `width`, with `…` at the end if it is cut.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Formats two texts at the left and right edges.
fn edges(left: &str, right: &str, width: usize) -> String {
    let right = cut(right, width);
    let room = width.saturating_sub(right.chars().count() + 1);
    format!("{:<room$} {right}", cut(left, room))
}

/// A section: a heading and its rows.
#[derive(Default)]
struct Section {
    head: String,
    rows: Vec<(String, Style)>,
    /// Index of the row that must be visible.
    wanted: usize,
}

impl Section {
    /// Returns at most `max` lines; the last one counts the omitted ones.
    fn lines(self, most: usize) -> Vec<StyledLine> {
        let mut lines = vec![StyledLine::styled(self.head, Style::Dim)];
        let room = most.saturating_sub(1);
        let all = self.rows.len();
        let fits = if all > room { room.saturating_sub(1) } else { all };
        let first = (self.wanted + 1).saturating_sub(fits).min(all - fits);
        lines.extend(
            self.rows.into_iter().skip(first).take(fits).map(|(text, style)| StyledLine::styled(text, style)),
        );
        if fits < all && room > 0 {
            lines.push(StyledLine::styled(format!("… {} more", all - fits), Style::Dim));
        }
        lines.truncate(most);
        lines
    }

    fn height(&self) -> usize {
        if self.rows.is_empty() { 0 } else { 1 + self.rows.len() }
    }
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".into(), |rate| short(rate.round() as u64))
}

fn optional(number: Option<u64>) -> String {
    number.map_or_else(|| "–".into(), short)
}

fn roles(snapshot: &Snapshot, width: usize) -> Section {
    let is_wide = width >= WIDE;
    let columns = |role: &str, rest: [String; 9]| {
        let [state, core, cpu, rate, open, full, gap, beat, switches] = rest;
        let role = cut(role, 12);
        if is_wide {
            format!(
                "{role:<12} {state:<8} {core:>4} {cpu:>4} {rate:>6} {open:>6} {full:>6} {gap:>8} {beat:>8} {switches:>7}"
            )
        } else {
            format!("{role:<12} {state:<8} {core:>4} {rate:>6} {open:>6} {full:>6} {beat:>8}")
        }
    };
    let head = ["state", "core", "cpu", "rate/s", "open", "full", "gap", "beat", "switch"].map(String::from);
    let row = |line: &RoleRow| {
        let is_bad = matches!(line.state, "failed" | "gone" | "stopped" | "unreadable");
        let core = line.core.map_or_else(|| "–".into(), |core| core.to_string());
        let cpu = line.cpu.map_or_else(|| "–".into(), |cpu| format!("{:.0}%", cpu * 100.0));
        let switches = line.voluntary_switches.zip(line.involuntary_switches);
        let switches = switches.map(|(own, forced)| own.saturating_add(forced));
        let text = columns(
            &line.role,
            [
                cut(line.state, 8),
                core,
                cpu,
                rate(line.rate),
                optional(line.in_flight),
                short(line.full),
                duration(line.longest_gap_ns),
                duration_or_dash(line.heartbeat_age_ns),
                optional(switches),
            ],
        );
        (text, if is_bad { Style::Bad } else { Style::Plain })
    };
    Section { head: columns("role", head), rows: snapshot.roles.iter().map(row).collect(), wanted: 0 }
}

fn strategies(snapshot: &Snapshot, shown: &PromptView, width: usize) -> Section {
    // Half of what a wide terminal has more.
    let of_switch = if width >= WIDE { 26 + (width - WIDE) / 2 } else { 16 };
    let row = |line: &StrategyRow| {
        let lives = if line.is_fenced { "dead".into() } else { line.incarnation.to_string() };
        let what = match (&line.quarantined, line.killed.first()) {
            (Some(why), _) => why.clone(),
            (None, Some(by)) => format!("killed: {by}"),
            (None, None) => "–".into(),
        };
        let is_selected = shown.selected == Some(line.strategy);
        let mark = if is_selected { ">" } else { "" };
        let text = format!(
            "{:<13} {lives:>4} {:>9}  {:<of_switch$} {}",
            format!("{mark}strategy-{}", line.strategy),
            short(line.incidents),
            cut(&what, of_switch),
            positions(line),
        );
        let is_bad = line.is_fenced || line.quarantined.is_some() || !line.killed.is_empty();
        let style = match is_bad {
            _ if is_selected => Style::Selected,
            true => Style::Bad,
            false => Style::Plain,
        };
        (cut(&text, width), style)
    };
    let head =
        format!("{:<13} {:>4} {:>9}  {:<of_switch$} positions", "strategy", "life", "incidents", "switch");
    let selected = snapshot.strategies.iter().position(|line| shown.selected == Some(line.strategy));
    let rows = snapshot.strategies.iter().map(row).collect();
    Section { head: cut(&head, width), rows, wanted: selected.unwrap_or(0) }
}

/// `-1.23 M`, and of several instruments `0: 12, 3: -4`.
fn positions(line: &StrategyRow) -> String {
    let net = |net: i64| match net < 0 {
        true => format!("-{}", short(net.unsigned_abs())),
        false => short(net.unsigned_abs()),
    };
    match line.positions.as_slice() {
        [] => "–".into(),
        [only] if only.instrument == 0 => net(only.net),
        several => {
            let each = several.iter().map(|one| format!("{}: {}", one.instrument, net(one.net)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

fn stage_columns(stage: &str, p50: &str, p99: &str, samples: &str) -> String {
    format!("{stage:<17} {p50:>9} {p99:>9} {samples:>6}")
}

fn stages(snapshot: &Snapshot) -> Section {
    let row = |line: &StageRow| {
        let (p50, p99) = (duration_or_dash(line.p50_ns), duration_or_dash(line.p99_ns));
        (stage_columns(line.stage, &p50, &p99, &short(line.samples)), Style::Plain)
    };
    let head = stage_columns("stage", "p50", "p99", "seen");
    Section { head, rows: snapshot.stages.iter().map(row).collect(), wanted: 0 }
}

fn rings(snapshot: &Snapshot, width: usize) -> Section {
    let mut sorted: Vec<_> = snapshot.rings.iter().collect();
    let share = |fill: u64, capacity: u64| fill as f64 / capacity.max(1) as f64;
    let fullness = |ring: &RingRow| ring.fill.map_or(-1.0, |fill| share(fill, ring.capacity));
    sorted.sort_by(|a, b| fullness(b).total_cmp(&fullness(a)));
    // The name, the figure and two spaces take 25 columns.
    let length = width.saturating_sub(25).clamp(8, 32);
    let rows = sorted.into_iter().map(|ring| {
        let of = ring.fill.map(|fill| format!("{}/{}", short(fill), short(ring.capacity)));
        let of =
            of.filter(|of| of.len() <= 11).or_else(|| Some(percent(Some(share(ring.fill?, ring.capacity)))));
        let of = of.unwrap_or_else(|| "–".into());
        let filled = ring.fill.map_or(0.0, |fill| share(fill, ring.capacity));
        let marks = (filled.clamp(0.0, 1.0) * length as f64).round() as usize;
        let bar = format!("{}{}", "#".repeat(marks), ".".repeat(length - marks));
        let style = if filled > ALMOST_FULL { Style::Bad } else { Style::Plain };
        (cut(&format!("{:<12} {bar} {of:>11}", cut(&ring.ring, 12)), width), style)
    });
    Section {
        head: format!("{:<12} {:<length$} {:>11}", "ring", "", "fill"),
        rows: rows.collect(),
        wanted: 0,
    }
}

fn errors(snapshot: &Snapshot, width: usize) -> Section {
    let mut sorted: Vec<_> = snapshot.errors.iter().collect();
    sorted.sort_by_key(|line| std::cmp::Reverse(line.count));
    let mut rows: Vec<(String, Style)> = sorted
        .into_iter()
        .map(|line| {
            (cut(&format!("{:>10}  {}: {}", short(line.count), line.who, line.what), width), Style::Bad)
        })
        .collect();
    let switches = snapshot.switches.iter().map(|text| format!("    switch  {text}"));
    let unreadable = snapshot.unreadable.iter().map(|text| format!("unreadable  {text}"));
    rows.extend(switches.chain(unreadable).map(|text| (cut(&text, width), Style::Bad)));
    if snapshot.is_incomplete {
        rows.push((
            cut("   skipped  a part of the logs: positions and switches may lack something", width),
            Style::Dim,
        ));
    }
    Section { head: format!("{:>10}  what went wrong", "times"), rows, wanted: 0 }
}

fn head(snapshot: &Snapshot, width: usize) -> [StyledLine; 2] {
    let at = format!("{}  {}", snapshot.state.name(), duration(snapshot.elapsed_ns));
    let first = edges(&format!("bulkhead  {}", snapshot.run), &at, width);
    let open = snapshot.dispatched.saturating_sub(snapshot.settled);
    let left = format!("{} {}", snapshot.isolation, snapshot.technique);
    let right = format!(
        "{} of {} sent  {}/s  {} open  {} rejected",
        short(snapshot.sent),
        short(snapshot.planned),
        rate(snapshot.rate),
        short(open),
        short(snapshot.rejected)
    );
    let style = if snapshot.state.is_over() { Style::Over } else { Style::Bold };
    [StyledLine::styled(first, style), StyledLine::styled(edges(&left, &right, width), Style::Plain)]
}

/// Joins two sections side by side.
fn side_by_side(left: Vec<StyledLine>, right: Vec<StyledLine>) -> Vec<StyledLine> {
    let rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let row = |_| left.next().unwrap_or_default().followed_by(RINGS_AT, right.next().unwrap_or_default());
    (0..rows).map(row).collect()
}

/// Formats a snapshot as lines that fit `width` and `height`. Stages and rings have fixed space;
/// roles, strategies and errors share the rest.
pub fn lines(snapshot: &Snapshot, shown: &PromptView, width: usize, height: usize) -> Vec<StyledLine> {
    let (stages, errors) = (stages(snapshot), errors(snapshot, width));
    let is_wide = width >= WIDE;
    let rings = rings(snapshot, if is_wide { width - RINGS_AT } else { width });
    let (roles, strategies) = (roles(snapshot, width), strategies(snapshot, shown, width));
    let mut lines = head(snapshot, width).to_vec();
    let footer = usize::from(shown.selected.is_some() || !shown.message.is_empty());
    let room = height.saturating_sub(lines.len() + footer);
    let middle = if is_wide { stages.height() } else { stages.height() + rings.height().min(4) };
    let middle = middle.min(room / 2);
    let of_errors = errors.height().min(((room - middle) / 4).max(2)).min(room - middle);
    let of_strategies = strategies.height().min(((room - middle - of_errors) / 3).max(3));
    let of_roles = roles.height().min((room - middle - of_errors).saturating_sub(of_strategies));
    // Space that roles do not need goes to the others.
    let spare = (room - middle - of_errors).saturating_sub(of_roles + of_strategies);
    let of_strategies = (of_strategies + spare).min(strategies.height());
    let spare = room.saturating_sub(middle + of_errors + of_roles + of_strategies);
    let of_errors = (of_errors + spare).min(errors.height());
    lines.extend(roles.lines(of_roles));
    lines.extend(strategies.lines(of_strategies));
    if is_wide {
        lines.extend(side_by_side(stages.lines(middle), rings.lines(middle)));
    } else {
        let of_rings = rings.height().min(4).min(middle / 2);
        lines.extend(stages.lines(middle - of_rings));
        lines.extend(rings.lines(of_rings));
    }
    lines.extend(errors.lines(of_errors));
    lines.truncate(height.saturating_sub(footer));
    lines
}

/// Returns the last line: the key help, or the result of the last command.
fn footer(shown: &PromptView, is_over: bool, width: usize) -> StyledLine {
    let keys = match (is_over, width >= WIDE) {
        (true, _) => "the run is over: q quits",
        (false, true) => "↑↓ select  k kill  r revive  l limit  K kill all  R revive all  q quit",
        (false, false) => "↑↓ select k kill r revive l limit K R all q quit",
    };
    let text = if shown.message.is_empty() { keys } else { &shown.message };
    StyledLine::styled(cut(text, width), Style::Dim)
}

/// Formats a full screen: the snapshot, and the help on keys below it.
pub fn frame(snapshot: &Snapshot, shown: &PromptView, (width, height): (usize, usize)) -> Vec<StyledLine> {
    let mut rows = lines(snapshot, shown, width, height);
    rows.resize(height.saturating_sub(1), StyledLine::default());
    rows.push(footer(shown, snapshot.state.is_over(), width));
    rows.into_iter().map(|line| line.clipped(width)).collect()
}

#[cfg(test)]
mod tests;

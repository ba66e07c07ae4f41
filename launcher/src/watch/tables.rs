//! Formats a snapshot as aligned tables of at most 80 columns.

use super::model::{ErrorRow, RingRow, RoleRow, Snapshot, StrategyRow};
use record::escape::single_line;
use record::numbers::{duration, duration_or_dash, short};
use record::screen::DEFAULT_WIDTH;
use verdict::table::grid::wrap;
use verdict::table::{Column, Grid};

/// The longest reason of a strategy's stop, and the longest error, in characters.
const MAX_TEXT: usize = 56;
/// The longest name of a role, a thread or a ring, in characters.
const MAX_NAME: usize = 14;

/// Escapes a text and truncates it to `width` characters, with `…` at the end if it is cut.
fn cut(text: &str, width: usize) -> String {
    let text = single_line(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".into(), |rate| short(rate.round() as u64))
}

fn optional(number: Option<u64>) -> String {
    number.map_or_else(|| "–".into(), short)
}

fn roles(snapshot: &Snapshot) -> Grid {
    let columns: [Column<'_, RoleRow>; 9] = [
        ("role", &|row| cut(&row.role, MAX_NAME)),
        ("state", &|row| row.state.into()),
        ("orders", &|row| short(row.orders)),
        ("rate/s", &|row| rate(row.rate)),
        ("open", &|row| optional(row.in_flight)),
        ("reports", &|row| short(row.reports)),
        ("full", &|row| short(row.full)),
        ("gap", &|row| duration(row.longest_gap_ns)),
        ("beat", &|row| duration_or_dash(row.heartbeat_age_ns)),
    ];
    Grid::from_rows("", "", 2, &columns, &snapshot.roles)
}

fn strategies(snapshot: &Snapshot) -> Grid {
    let life = |row: &StrategyRow| match row.is_fenced {
        true if row.is_spare => "–".into(),
        true => "dead".into(),
        false => row.incarnation.to_string(),
    };
    let stopped = |row: &StrategyRow| match (&row.quarantined, row.killed.first()) {
        _ if row.is_spare => "spare, not started".into(),
        (Some(why), _) => format!("quarantined: {why}"),
        (None, Some(by)) => format!("killed: {by}"),
        (None, None) => "–".into(),
    };
    let columns: [Column<'_, StrategyRow>; 6] = [
        ("strategy", &|row| row.strategy.to_string()),
        ("stopped", &|row| cut(&stopped(row), MAX_TEXT - 20)),
        ("life", &life),
        ("deaths", &|row| short(row.incidents)),
        ("refused", &|row| short(row.refused)),
        ("orphaned", &|row| short(row.orphaned)),
    ];
    Grid::from_rows("", "", 2, &columns, &snapshot.strategies)
}

fn errors(snapshot: &Snapshot) -> Grid {
    let columns: [Column<'_, ErrorRow>; 3] = [
        ("error of", &|row| cut(&row.who, MAX_NAME)),
        ("what", &|row| cut(&row.what, MAX_TEXT)),
        ("times", &|row| short(row.count)),
    ];
    Grid::from_rows("", "", 2, &columns, &snapshot.errors)
}

fn rings(snapshot: &Snapshot) -> Grid {
    let share = |row: &RingRow| row.fill.map(|fill| fill as f64 / row.capacity.max(1) as f64);
    let mut sorted: Vec<_> = snapshot.rings.iter().collect();
    sorted.sort_by(|a, b| share(b).unwrap_or(-1.0).total_cmp(&share(a).unwrap_or(-1.0)));
    let columns: [Column<'_, RingRow>; 3] = [
        ("ring", &|row| cut(&row.ring, MAX_NAME)),
        ("messages", &|row| optional(row.fill)),
        ("capacity", &|row| short(row.capacity)),
    ];
    Grid::from_rows("", "", 1, &columns, sorted)
}

/// Returns lines with the process id of each thread, for a debugger. Threads of one process share
/// theirs: the first is named.
fn process_ids(snapshot: &Snapshot) -> Vec<String> {
    let mut pids: Vec<(u32, &str)> = Vec::new();
    for row in &snapshot.roles {
        if let Some(pid) = row.pid.filter(|pid| pids.iter().all(|(known, _)| known != pid)) {
            pids.push((pid, &row.thread));
        }
    }
    let names = pids.iter().map(|(pid, thread)| format!("{} {pid}", cut(thread, MAX_NAME)));
    let names = names.collect::<Vec<_>>().join(", ");
    let lines = if names.is_empty() { Vec::new() } else { wrap(&format!("pids: {names}"), DEFAULT_WIDTH, 2) };
    let indented = |(number, line): (usize, String)| if number == 0 { line } else { format!("  {line}") };
    lines.into_iter().enumerate().map(indented).collect()
}

/// Formats a snapshot of a run as a heading and tables: roles, strategies, errors and rings.
pub fn tables(snapshot: &Snapshot) -> String {
    let Snapshot { run, state, isolation, technique, .. } = snapshot;
    let mut lines = vec![
        format!("run {run}: {}, {}", state.name(), duration(snapshot.elapsed_ns)),
        format!(
            "{isolation} {technique}: {} of {} sent, {}/s, {} open, {} rejected",
            short(snapshot.sent),
            short(snapshot.planned),
            rate(snapshot.rate),
            short(snapshot.dispatched.saturating_sub(snapshot.settled)),
            short(snapshot.rejected)
        ),
    ];
    lines.extend(snapshot.switches.iter().map(|text| format!("kill switch: {text}")));
    lines.extend(process_ids(snapshot));
    let mut text: String = lines.iter().map(|line| cut(line, DEFAULT_WIDTH) + "\n").collect();
    for grid in [roles(snapshot), strategies(snapshot), errors(snapshot), rings(snapshot)] {
        if !grid.rows.is_empty() {
            text = text + "\n" + &grid.terminal(false);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(text: &str, number: u64) -> Snapshot {
        let role = RoleRow {
            role: text.into(),
            thread: text.into(),
            pid: Some(u32::try_from(number).unwrap_or(u32::MAX)),
            state: "unreadable",
            orders: number,
            rate: Some(number as f64),
            reports: number,
            in_flight: Some(number),
            full: number,
            longest_gap_ns: number,
            heartbeat_age_ns: Some(number),
            ..RoleRow::default()
        };
        let strategy = StrategyRow {
            strategy: number as u16,
            incarnation: number as u16,
            incidents: number,
            quarantined: Some(text.into()),
            refused: number,
            orphaned: number,
            ..StrategyRow::default()
        };
        let killed =
            StrategyRow { is_fenced: true, quarantined: None, killed: vec![text.into()], ..strategy.clone() };
        let ring = |fill| RingRow { ring: text.into(), fill, capacity: number };
        Snapshot {
            elapsed_ns: number,
            technique: text.into(),
            sent: number,
            rate: None,
            roles: vec![role],
            strategies: vec![strategy, killed],
            switches: vec![text.into()],
            errors: vec![ErrorRow { who: text.into(), what: text.into(), count: number }],
            rings: vec![ring(None), ring(Some(number))],
            ..Snapshot::default()
        }
    }

    #[test]
    fn snapshot_is_formatted_as_tables() {
        insta::assert_snapshot!(tables(&snapshot("a text", 1_234)));
    }

    /// Numbers and texts are those of other processes.
    #[test]
    fn any_figures_fit_eighty_columns() {
        let text = tables(&snapshot(&"\u{1b}[2J".repeat(100), u64::MAX));
        assert!(text.lines().all(|line| line.chars().count() <= DEFAULT_WIDTH), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}

//! Trading section of a run's report: positions, rejected orders, kill switches.

use super::units::{count, duration, duration_or_dash as time};
use crate::summary::{KillSummary, PositionSummary, RejectionCount, Summary, TradingSummary};
use crate::table::Grid;
use protocol::plan;

/// Returns the texts of the trading line in the report: `fills 200 · volume 1.5 · …`.
pub(super) fn totals(trading: &TradingSummary) -> Vec<String> {
    let mut fields = Vec::new();
    if trading.fills > 0 {
        fields.push(format!("fills {}", count(trading.fills)));
        fields.push(format!("volume {}", units(trading.volume)));
        fields.push(format!("realised {}", money(trading.realized_cents)));
        fields.push(format!("unrealised {}", money(trading.unrealized_cents)));
    }
    fields.extend(trading.rejections.iter().map(|refused| {
        let fix = refused.fix_code.map(|code| format!(" (FIX {code})")).unwrap_or_default();
        format!("rejected {}{fix} {}", refused.reason, count(refused.orders))
    }));
    fields.extend(trading.kills.iter().map(|kill| format!("killed {} by {}", kill.scope, kill.cause)));
    fields
}

/// Returns `true` if the positions add nothing to the trading line. Every venue only delays and
/// fills in full, and the run has one instrument.
fn is_plain(summary: &Summary) -> bool {
    let trading = summary.plan.trading();
    trading.instruments.len() <= 1
        && trading.venue_kinds.iter().all(|kind| kind == plan::Trading::DELAY_VENUE)
}

/// Returns the tables of a run's trading, without empty ones: at most `max` positions, those with
/// the most fills, and the kill switches.
pub(super) fn grids(summary: &Summary, max: usize) -> Vec<Grid> {
    let Some(trading) = &summary.trading else { return Vec::new() };
    let mut shown: Vec<&PositionSummary> = trading.positions.iter().filter(|_| !is_plain(summary)).collect();
    let hidden = shown.len().saturating_sub(max);
    if hidden > 0 {
        shown.sort_by_key(|position| std::cmp::Reverse(position.fills));
        shown.truncate(max);
        shown.sort_by_key(|position| (position.strategy, position.instrument));
    }
    let dash = || "–".to_owned();
    let mut positions = Grid::from_rows(
        "positions",
        "",
        2,
        &[
            ("position", &|row: &&PositionSummary| format!("strategy-{}", row.strategy)),
            ("instrument", &|row| row.name.chars().take(12).collect()),
            ("fills", &|row| count(row.fills)),
            ("net", &|row| units(row.net as f64)),
            ("average", &|row| row.average_price.map_or_else(dash, money)),
            ("last", &|row| row.last_price.map_or_else(dash, |price| money(price as f64))),
            ("realised", &|row| money(row.realized_cents)),
            ("unrealised", &|row| money(row.unrealized_cents)),
        ],
        &shown,
    );
    if hidden > 0 {
        let hidden = count(hidden as u64);
        positions = positions.note(format!("… and {hidden} more positions: see positions.csv"));
    }
    let rejections = Grid::from_rows(
        "rejections",
        "",
        1,
        &[
            ("refused for", &|row: &RejectionCount| row.reason.clone()),
            ("FIX 103", &|row| row.fix_code.map_or_else(dash, |code| code.to_string())),
            ("orders", &|row| count(row.orders)),
        ],
        &trading.rejections,
    );
    let kills = Grid::from_rows(
        "kills",
        "",
        2,
        &[
            ("kill switch", &|row: &KillSummary| row.scope.clone()),
            ("cause", &|row| row.cause.clone()),
            ("at", &|row| duration(row.seen_ns)),
            ("to seen", &|row| time(row.order_to_seen_ns)),
            ("to confirmed", &|row| time(row.seen_to_done_ns)),
            ("revived", &|row| time(row.revived_ns)),
        ],
        &trading.kills,
    );
    [positions, rejections, kills].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

/// Formats a quantity, given in 1e-8 units, in whole units: `1.5`, with at most eight decimals.
fn units(quantity: f64) -> String {
    let text = format!("{:.8}", quantity / 1e8);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Formats an amount in cents as `12.34`.
fn money(cents: f64) -> String {
    let text = format!("{:.2}", cents / 100.0);
    if text == "-0.00" { "0.00".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_print_short_and_exact() {
        assert_eq!(units(150_000_000.0), "1.5");
        assert_eq!(units(-1.0), "-0.00000001");
        assert_eq!(units(0.0), "0");
        assert_eq!((money(12_345.0), money(-0.4)), ("123.45".into(), "0.00".into()));
    }
}

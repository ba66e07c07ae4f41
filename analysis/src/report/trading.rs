//! Trading section of the terminal report: positions, rejected orders, kill switches.

use super::tables::{cell, ruled, table};
use super::units::{count, duration, duration_or_dash};
use crate::summary::{KillSummary, PositionSummary, Summary, TradingSummary};
use crate::table::fit_to_width;
use comfy_table::{Table, TableStyle};
use protocol::plan;

/// Maximum number of listed positions; all are in `positions.csv` and `summary.json`.
const MAX_POSITIONS: usize = 20;

/// Returns the texts of the trading line in the report: `fills 200 · volume 1.5 · …`.
pub(crate) fn totals(trading: &TradingSummary) -> Vec<String> {
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
pub(crate) fn is_plain(summary: &Summary) -> bool {
    let trading = summary.plan.trading();
    trading.instruments.len() <= 1
        && trading.venue_kinds.iter().all(|kind| kind == plan::Trading::DELAY_VENUE)
}

/// Returns the table of positions, if it adds something to the trading line.
pub(super) fn positions(summary: &Summary, style: TableStyle) -> Option<Table> {
    let trading = summary.trading.as_ref().filter(|trading| !trading.positions.is_empty())?;
    if is_plain(summary) {
        return None;
    }
    let mut table = table(
        style,
        &["position", "instrument", "fills", "net", "average", "last", "realised", "unrealised"],
    );
    for position in trading.positions.iter().take(MAX_POSITIONS) {
        let PositionSummary { strategy, name, fills, net, average_price, last_price, .. } = position;
        table.add_row([
            format!("strategy-{strategy}"),
            cell(style, &name.chars().take(12).collect::<String>()),
            count(*fills),
            units(*net as f64),
            average_price.map_or_else(|| "–".into(), money),
            last_price.map_or_else(|| "–".into(), |price| money(price as f64)),
            money(position.realized_cents),
            money(position.unrealized_cents),
        ]);
    }
    Some(table)
}

/// Returns the number of positions that the report's table omits.
pub(super) fn hidden_positions(summary: &Summary) -> usize {
    let listed = summary.trading.as_ref().filter(|_| !is_plain(summary));
    listed.map_or(0, |trading| trading.positions.len().saturating_sub(MAX_POSITIONS))
}

/// Returns the table of a run's kill switches.
pub(super) fn kills(trading: &TradingSummary, style: TableStyle) -> Option<Table> {
    if trading.kills.is_empty() {
        return None;
    }
    let mut table = table(style, &["kill switch", "cause", "at", "to seen", "to confirmed", "revived"]);
    for KillSummary { scope, cause, seen_ns, order_to_seen_ns, seen_to_done_ns, revived_ns } in &trading.kills
    {
        table.add_row([
            cell(style, scope),
            cell(style, cause),
            duration(*seen_ns),
            duration_or_dash(*order_to_seen_ns),
            duration_or_dash(*seen_to_done_ns),
            duration_or_dash(*revived_ns),
        ]);
    }
    Some(table)
}

/// Returns the lines of the trading tables for the terminal, each after an empty line.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    let kills = summary.trading.as_ref().and_then(|trading| kills(trading, ruled()));
    for table in [positions(summary, ruled()), kills].into_iter().flatten() {
        lines.push(String::new());
        lines.extend(fit_to_width(&table));
    }
    match hidden_positions(summary) {
        0 => {}
        hidden => lines.push(format!("… and {} more positions: see positions.csv", count(hidden as u64))),
    }
    lines
}

/// Formats a quantity, given in 1e-8 units, in whole units: `1.5`, with at most eight decimals.
pub(crate) fn units(quantity: f64) -> String {
    let text = format!("{:.8}", quantity / 1e8);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Formats an amount in cents as `12.34`.
pub(crate) fn money(cents: f64) -> String {
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

//! What was traded, for people: positions, refused orders, kill switches.

use super::tables::{ruled, table};
use super::units::{count, duration, duration_or_dash};
use crate::summary::{KillSummary, PositionSummary, Trading};
use comfy_table::{Table, TableStyle};

/// Positions that a report lists; the others are in `summary.json`.
const POSITIONS: usize = 20;

/// The fields of the line that every run with something to say has: `fills 200 · volume 1.5 · …`.
pub(super) fn totals(trading: &Trading) -> Vec<String> {
    let mut fields = Vec::new();
    if trading.fills > 0 {
        fields.push(format!("fills {}", count(trading.fills)));
        fields.push(format!("volume {}", units(trading.volume)));
        fields.push(format!("realised {}", money(trading.realised_cents)));
        fields.push(format!("unrealised {}", money(trading.unrealised_cents)));
    }
    fields.extend(trading.rejections.iter().map(|refused| {
        let fix = refused.fix_code.map(|code| format!(" (FIX {code})")).unwrap_or_default();
        format!("rejected {}{fix} {}", refused.reason, count(refused.orders))
    }));
    fields.extend(trading.kills.iter().map(|kill| format!("killed {} by {}", kill.scope, kill.cause)));
    fields
}

/// The positions, if they say more than the line: a plain run, in which every order is filled in one instrument, has none.
pub(super) fn positions(trading: &Trading, style: TableStyle) -> Option<Table> {
    let is_plain = trading
        .positions
        .iter()
        .all(|position| position.instrument == 0 && position.last_price.is_none_or(|price| price == 0));
    if is_plain || trading.positions.is_empty() {
        return None;
    }
    let mut table = table(
        style,
        &["position", "instrument", "fills", "net", "average", "last", "realised", "unrealised"],
    );
    for position in trading.positions.iter().take(POSITIONS) {
        let PositionSummary { strategy, name, fills, net, average_price, last_price, .. } = position;
        table.add_row([
            format!("strategy-{strategy}"),
            name.chars().take(12).collect(),
            count(*fills),
            units(*net as f64),
            average_price.map_or_else(|| "–".into(), money),
            last_price.map_or_else(|| "–".into(), |price| money(price as f64)),
            money(position.realised_cents),
            money(position.unrealised_cents),
        ]);
    }
    Some(table)
}

/// How many positions are not listed.
pub(super) fn hidden(trading: &Trading) -> usize {
    trading.positions.len().saturating_sub(POSITIONS)
}

/// The kill switches with their times.
pub(super) fn kills(trading: &Trading, style: TableStyle) -> Option<Table> {
    if trading.kills.is_empty() {
        return None;
    }
    let mut table = table(style, &["kill switch", "cause", "at", "to seen", "to confirmed", "revived"]);
    for KillSummary { scope, cause, seen_ns, order_to_seen_ns, seen_to_done_ns, revived_ns } in &trading.kills
    {
        table.add_row([
            scope.clone(),
            cause.clone(),
            duration(*seen_ns),
            duration_or_dash(*order_to_seen_ns),
            duration_or_dash(*seen_to_done_ns),
            duration_or_dash(*revived_ns),
        ]);
    }
    Some(table)
}

/// The tables for the terminal, with an empty line before each.
pub(super) fn lines(trading: &Trading) -> Vec<String> {
    let mut lines = Vec::new();
    for table in [positions(trading, ruled()), kills(trading, ruled())].into_iter().flatten() {
        lines.push(String::new());
        lines.extend(table.lines());
    }
    match hidden(trading) {
        0 => {}
        hidden => lines.push(format!("… and {} more positions: see summary.json", count(hidden as u64))),
    }
    lines
}

/// A quantity in whole units: `1.5`, at most eight digits behind the point.
pub(crate) fn units(quantity: f64) -> String {
    let text = format!("{:.8}", quantity / 1e8);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// An amount in cents as `12.34`.
pub(crate) fn money(cents: f64) -> String {
    let text = format!("{:.2}", cents / 100.0);
    if text == "-0.00" { "0.00".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_exact() {
        assert_eq!(units(150_000_000.0), "1.5");
        assert_eq!(units(-1.0), "-0.00000001");
        assert_eq!(units(0.0), "0");
        assert_eq!((money(12_345.0), money(-0.4)), ("123.45".into(), "0.00".into()));
    }
}

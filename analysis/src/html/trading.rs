//! The trading section of a run's page: positions, rejected orders, kill switches.

use crate::report::trading::{is_plain, money, totals, units};
use crate::report::units::{count, duration_or_dash};
use crate::summary::{KillSummary, PositionSummary, RejectionCount, Summary, TradingSummary};
use maud::{Markup, html};

/// The maximum number of positions that are listed: those with the most fills.
const MAX_ROWS: usize = 50;

/// Draws the trading section of a run's page; `None` for a run without trades, refusals and kills.
pub fn draw(summary: &Summary) -> Option<Markup> {
    let trading = summary.trading.as_ref()?;
    let has_positions = !is_plain(summary) && !trading.positions.is_empty();
    Some(html! {
        p data-fills=(trading.fills) data-realised-cents=(trading.realized_cents) { (totals(trading).join(" · ")) }
        @if has_positions { (positions(trading)) }
        @if !trading.rejections.is_empty() { (rejections(&trading.rejections)) }
        @if !trading.kills.is_empty() { (kills(&trading.kills)) }
    })
}

fn positions(trading: &TradingSummary) -> Markup {
    let mut shown: Vec<&PositionSummary> = trading.positions.iter().collect();
    let hidden = shown.len().saturating_sub(MAX_ROWS);
    if hidden > 0 {
        shown.sort_by_key(|position| std::cmp::Reverse(position.fills));
        shown.truncate(MAX_ROWS);
        shown.sort_by_key(|position| (position.strategy, position.instrument));
    }
    html! {
        h3 { "Positions" }
        table {
            thead { tr {
                th { "strategy" } th { "instrument" }
                @for name in ["fills", "net", "average", "last", "realised", "unrealised", "open buy", "open sell"] {
                    th class="n" { (name) }
                }
            } }
            tbody { @for position in shown {
                @let PositionSummary { strategy, instrument, name, net, fills, .. } = position;
                tr data-strategy=(strategy) data-instrument=(instrument) data-net=(net)
                    data-realised-cents=(position.realized_cents) data-unrealised-cents=(position.unrealized_cents) {
                    th scope="row" { "strategy-" (strategy) }
                    td { (name) }
                    td class="n" { (count(*fills)) }
                    td class="n" { (units(*net as f64)) }
                    td class="n" { (position.average_price.map_or_else(|| "–".into(), money)) }
                    td class="n" { (position.last_price.map_or_else(|| "–".into(), |price| money(price as f64))) }
                    td class="n" { (money(position.realized_cents)) }
                    td class="n" { (money(position.unrealized_cents)) }
                    td class="n" { (units(position.open_buy as f64)) }
                    td class="n" { (units(position.open_sell as f64)) }
                }
            } }
        }
        @if hidden > 0 { p class="note" { (count(hidden as u64)) " positions with fewer fills are in positions.csv." } }
        p class="note" {
            "By the fills that the gateways logged, in the order in which the orchestrator took them; realised at average cost, \
             unrealised at the last price. Open is what the orchestrator still counted as open in the end."
        }
    }
}

fn rejections(rejections: &[RejectionCount]) -> Markup {
    html! {
        h3 { "Refused orders" }
        table {
            thead { tr { th { "reason" } th class="n" { "FIX 103" } th class="n" { "orders" } } }
            tbody { @for RejectionCount { reason, fix_code, orders, .. } in rejections {
                tr data-reason=(reason) data-orders=(orders) {
                    th scope="row" { (reason) }
                    td class="n" { (fix_code.map_or_else(|| "–".into(), |code| code.to_string())) }
                    td class="n" { (count(*orders)) }
                }
            } }
        }
    }
}

fn kills(kills: &[KillSummary]) -> Markup {
    html! {
        h3 { "Kill switches" }
        table {
            thead { tr {
                th { "of" } th { "turned by" } th class="n" { "seen at" } th class="n" { "order to seen" }
                th class="n" { "seen to confirmed" } th class="n" { "revived at" }
            } }
            tbody { @for KillSummary { scope, cause, seen_ns, order_to_seen_ns, seen_to_done_ns, revived_ns } in kills {
                tr data-kill=(scope) data-seen-ns=(seen_ns) data-confirmed-ns=[seen_to_done_ns] {
                    th scope="row" { (scope) }
                    td { (cause) }
                    td class="n" { (seconds(*seen_ns)) }
                    td class="n" { (duration_or_dash(*order_to_seen_ns)) }
                    td class="n" { (duration_or_dash(*seen_to_done_ns)) }
                    td class="n" { (revived_ns.map_or_else(|| "–".into(), seconds)) }
                }
            } }
        }
        p class="note" {
            "No new order that a switch concerns passed between seen and revived: the merge holds the stamps against it. Confirmed: \
             the last report of the last order that it cancelled."
        }
    }
}

fn seconds(ns: u64) -> String {
    format!("{:.4} s", ns as f64 / 1e9)
}

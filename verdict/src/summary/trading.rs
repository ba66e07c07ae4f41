//! Positions, profit and loss, rejected orders and kill switches of a run.

use merge::{KillActivation, MergedRun, Position};
use protocol::index::StrategyIndex;
use protocol::plan::Plan;
use protocol::reject::Reject;
use record::run::RunRecord;
use serde::{Deserialize, Serialize};

/// The trading of a run: fills, positions, rejections and kill switches. Absent without any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TradingSummary {
    /// Number of fills of all venues.
    pub fills: u64,
    /// Total quantity of all fills, in 1e-8 units.
    pub volume: f64,
    /// Realized profit of all strategies, in cents.
    #[serde(rename = "realised_cents")]
    pub realized_cents: f64,
    /// Additional profit from closing all positions at the last prices, in cents.
    #[serde(rename = "unrealised_cents")]
    pub unrealized_cents: f64,
    /// Final position of each strategy in each instrument.
    pub positions: Vec<PositionSummary>,
    /// Refused orders by reason.
    pub rejections: Vec<RejectionCount>,
    /// Kill switches that were turned on, in the order in which the orchestrator saw them.
    pub kills: Vec<KillSummary>,
}

/// The final position of a strategy in an instrument, computed from the logged fills. In a valid
/// run it equals the orchestrator's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionSummary {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Index of the instrument.
    pub instrument: u16,
    /// Name of the instrument.
    pub name: String,
    /// Net quantity (bought − sold), in 1e-8 units.
    pub net: i64,
    /// Number of fills.
    pub fills: u64,
    /// Total quantity of all fills, in 1e-8 units.
    pub volume: f64,
    /// Average price of the position's open quantity, in cents; null if none is open.
    pub average_price: Option<f64>,
    /// Price of the last trade in the instrument, in cents.
    pub last_price: Option<i64>,
    /// Realized profit, in cents.
    #[serde(rename = "realised_cents")]
    pub realized_cents: f64,
    /// Additional profit from closing at the last price, in cents.
    #[serde(rename = "unrealised_cents")]
    pub unrealized_cents: f64,
    /// Open quantity of the strategy's buy orders at the end, according to the orchestrator, in
    /// 1e-8 units; 0 in a valid complete run.
    #[serde(default)]
    pub open_buy: i64,
    /// Open quantity of the strategy's sell orders at the end, according to the orchestrator, in
    /// 1e-8 units; 0 in a valid complete run.
    #[serde(default)]
    pub open_sell: i64,
}

/// The number of a run's orders that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectionCount {
    /// Name of the reason; `code 97` if unknown to this build.
    pub reason: String,
    /// Code of the reason in reports and logs.
    pub code: u8,
    /// Closest FIX OrdRejReason (tag 103); null for an unknown reason.
    pub fix_code: Option<u16>,
    /// Number of orders.
    pub orders: u64,
}

/// The activation of a kill switch in a run, with the orders that it affected. Times are
/// nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KillSummary {
    /// Scope of the kill switch: `all`, `strategy-0`, `credential-1`, `venue-2`, `instrument-3`.
    pub scope: String,
    /// Cause of the activation: `operator`, `death`, or the exceeded limit.
    pub cause: String,
    /// Time in nanoseconds at which the orchestrator saw the kill switch: no new order passed
    /// afterwards.
    pub seen_ns: u64,
    /// Nanoseconds from the operator's command until the orchestrator saw it; null without an
    /// operator.
    pub order_to_seen_ns: Option<u64>,
    /// Nanoseconds from when the orchestrator saw the switch to the last confirmed cancel; null if
    /// one was never confirmed.
    pub seen_to_done_ns: Option<u64>,
    /// Time in nanoseconds at which the kill switch was turned off; null if never.
    pub revived_ns: Option<u64>,
}

/// Quantities are in 1e-8 units.
const UNITS: f64 = 1e8;

/// Summarizes fills, positions, rejections and kill switches of a run; `None` without any.
pub(super) fn summarize(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Option<TradingSummary> {
    if merged.positions.is_empty() && merged.rejections.is_empty() && merged.kills.is_empty() {
        return None;
    }
    let plan = &record.plan;
    let positions: Vec<PositionSummary> =
        merged.positions.iter().map(|position| position_of(position, plan)).collect();
    // Not `sum`, which returns -0 for no values.
    let sum = |of: fn(&PositionSummary) -> f64| positions.iter().map(of).fold(0.0, |sum, value| sum + value);
    Some(TradingSummary {
        fills: positions.iter().fold(0, |sum: u64, position| sum.saturating_add(position.fills)),
        volume: sum(|position| position.volume),
        realized_cents: sum(|position| position.realized_cents),
        unrealized_cents: sum(|position| position.unrealized_cents),
        rejections: merged.rejections.iter().map(|(code, orders)| rejection(*code, *orders)).collect(),
        kills: merged.kills.iter().map(|kill| kill_of(kill, record, ns_per_tick)).collect(),
        positions,
    })
}

fn position_of(position: &Position, plan: &Plan) -> PositionSummary {
    let Position { strategy, instrument, account, last_price, open_buy, open_sell } = *position;
    let unrealised = last_price.map_or(0, |price| account.unrealized(price));
    PositionSummary {
        strategy,
        instrument,
        name: plan.trading().instrument_name(instrument),
        net: account.net,
        fills: account.fills,
        volume: account.volume as f64,
        average_price: (account.net != 0).then(|| account.basis() as f64 / account.net as f64),
        last_price,
        realized_cents: account.realized as f64 / UNITS,
        unrealized_cents: unrealised as f64 / UNITS,
        open_buy,
        open_sell,
    }
}

fn rejection(code: u8, orders: u64) -> RejectionCount {
    let reason = Reject::from_code(code);
    RejectionCount {
        reason: reason.map_or_else(|| format!("code {code}"), |reason| reason.name().into()),
        code,
        fix_code: reason.map(Reject::fix_code),
        orders,
    }
}

fn kill_of(kill: &KillActivation, record: &RunRecord, ns_per_tick: f64) -> KillSummary {
    let ns = |from: u64, to: u64| (to.saturating_sub(from) as f64 * ns_per_tick) as u64;
    let given = record.commands.iter().find(|command| {
        kill.switch.cause == protocol::kill::KillCause::Operator && command.number == kill.switch.number
    });
    KillSummary {
        scope: kill.switch.scope.to_string(),
        cause: kill.cause(),
        seen_ns: ns(record.clock.start_ticks, kill.seen),
        order_to_seen_ns: given.map(|command| ns(command.ticks, kill.seen)),
        seen_to_done_ns: kill.done.map(|done| ns(kill.seen, done)),
        revived_ns: kill.revived.map(|ticks| ns(record.clock.start_ticks, ticks)),
    }
}

//! Trading figures of a run: positions, profit and loss, rejected orders and kill switches.

use crate::merge::{Kill, Merged, Position};
use crate::record::RunRecord;
use protocol::plan::Plan;
use protocol::reject::Reject;
use serde::{Deserialize, Serialize};

/// What was traded. Absent from runs in which nothing was filled, refused or killed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trading {
    /// Fills of all venues.
    pub fills: u64,
    /// Quantity of all fills, in 1e-8 units.
    pub volume: f64,
    /// Realised profit of all strategies, in cents.
    pub realised_cents: f64,
    /// What closing everything at the last prices would realise beyond that, in cents.
    pub unrealised_cents: f64,
    /// What each strategy holds of each instrument in the end.
    pub positions: Vec<PositionSummary>,
    /// Refused orders by reason.
    pub rejections: Vec<Rejection>,
    /// Kill switches that were turned on, in the order in which they were seen.
    pub kills: Vec<KillSummary>,
}

/// What a strategy holds of an instrument, by the logged fills; in a valid run the same as the
/// orchestrator's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionSummary {
    /// The strategy.
    pub strategy: u16,
    /// The instrument's index.
    pub instrument: u16,
    /// Its name.
    pub name: String,
    /// Bought less sold, in 1e-8 units.
    pub net: i64,
    /// Fills.
    pub fills: u64,
    /// Quantity of all fills, in 1e-8 units.
    pub volume: f64,
    /// Average price of what is open, in cents; null where nothing is.
    pub average_price: Option<f64>,
    /// Price of the last trade in the instrument, in cents.
    pub last_price: Option<i64>,
    /// Realised profit, in cents.
    pub realised_cents: f64,
    /// What closing at the last price would realise beyond that, in cents.
    pub unrealised_cents: f64,
    /// What the orchestrator counted as open of its buy orders in the end, in 1e-8 units; in a
    /// valid complete run 0.
    #[serde(default)]
    pub open_buy: i64,
    /// The same of its sell orders.
    #[serde(default)]
    pub open_sell: i64,
}

/// Orders that were refused for a reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejection {
    /// The reason's name; `code 97` where this program knows none.
    pub reason: String,
    /// The reason's code in reports and logs.
    pub code: u8,
    /// FIX OrdRejReason (tag 103) that comes closest; null where the reason is not known.
    pub fix_code: Option<u16>,
    /// How many orders.
    pub orders: u64,
}

/// A kill switch that was turned on. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KillSummary {
    /// Whom it concerned: `all`, `strategy-0`, `credential-1`, `venue-2`, `instrument-3`.
    pub scope: String,
    /// What turned it: `operator`, `death`, or the limit.
    pub cause: String,
    /// When the orchestrator saw it: no new order passed after that.
    pub seen_ns: u64,
    /// From the operator's command to that; null where no operator gave one.
    pub order_to_seen_ns: Option<u64>,
    /// From seen to the last confirmed cancel; null where one was never confirmed.
    pub seen_to_done_ns: Option<u64>,
    /// When it was turned off; null: never.
    pub revived_ns: Option<u64>,
}

/// A quantity is counted in 1e-8 units.
const UNITS: f64 = 1e8;

/// What was traded; none where there is nothing to say.
pub(super) fn summarise(record: &RunRecord, merged: &Merged, ns_per_tick: f64) -> Option<Trading> {
    if merged.positions.is_empty() && merged.rejections.is_empty() && merged.kills.is_empty() {
        return None;
    }
    let plan = &record.plan;
    let positions: Vec<PositionSummary> =
        merged.positions.iter().map(|position| position_of(position, plan)).collect();
    // Not `sum`, of which nothing is -0.
    let sum = |of: fn(&PositionSummary) -> f64| positions.iter().map(of).fold(0.0, |sum, value| sum + value);
    Some(Trading {
        fills: positions.iter().fold(0, |sum: u64, position| sum.saturating_add(position.fills)),
        volume: sum(|position| position.volume),
        realised_cents: sum(|position| position.realised_cents),
        unrealised_cents: sum(|position| position.unrealised_cents),
        rejections: merged.rejections.iter().map(|(code, orders)| rejection(*code, *orders)).collect(),
        kills: merged.kills.iter().map(|kill| kill_of(kill, record, ns_per_tick)).collect(),
        positions,
    })
}

fn position_of(position: &Position, plan: &Plan) -> PositionSummary {
    let Position { strategy, instrument, account, last_price, open_buy, open_sell } = *position;
    let unrealised = last_price.map_or(0, |price| account.unrealised(price));
    PositionSummary {
        strategy,
        instrument,
        name: plan.trading().instrument_name(instrument),
        net: account.net,
        fills: account.fills,
        volume: account.volume as f64,
        average_price: (account.net != 0).then(|| account.basis() as f64 / account.net as f64),
        last_price,
        realised_cents: account.realised as f64 / UNITS,
        unrealised_cents: unrealised as f64 / UNITS,
        open_buy,
        open_sell,
    }
}

fn rejection(code: u8, orders: u64) -> Rejection {
    let reason = Reject::from_code(code);
    Rejection {
        reason: reason.map_or_else(|| format!("code {code}"), |reason| reason.name().into()),
        code,
        fix_code: reason.map(Reject::fix_code),
        orders,
    }
}

fn kill_of(kill: &Kill, record: &RunRecord, ns_per_tick: f64) -> KillSummary {
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

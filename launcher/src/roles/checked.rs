//! Gateways that do not simply believe their venue: where the plan has a fault for it, or a limit of its messages.

use super::parts::{Parts, VenueBuilder};
use crate::faults::venue::FaultyVenue;
use anyhow::Result;
use gateway::{Checked, CheckedRules, MessageLimit, Venue, VenueContext};
use protocol::plan::{Plan, Target};

/// How long a venue may say nothing about an order beyond the longest delay, in nanoseconds.
const SILENCE_NS: u64 = 1_000_000_000;

/// Whether the gateway with that index checks its venue, rather than having it directly.
pub(super) fn is_checked(plan: &Plan, gateway: u16) -> bool {
    let trading = plan.trading();
    let venue = Target::Venue(trading.venue_of(gateway));
    trading.venue_limit > 0 || plan.faults.iter().any(|fault| fault.target == venue)
}

/// The checked session with a venue, which does what the plan's faults make it do.
pub(super) fn checked<V: Venue>(
    parts: &mut Parts<'_, '_>,
    context: &VenueContext,
    make: &VenueBuilder<'_, V>,
) -> Result<Checked<FaultyVenue<V>>> {
    let plan = parts.plan;
    let trading = plan.trading();
    let silence_ns = match trading.venue_timeout_ns {
        0 => trading.max_delay_ns.saturating_add(SILENCE_NS),
        ns => ns,
    };
    let limit = (trading.venue_limit > 0)
        .then_some(MessageLimit { per_second: trading.venue_limit, rejects: trading.venue_limit_rejects });
    let max_held = context.max_held;
    let venue = FaultyVenue::new(make(parts, context)?, context, &plan.faults, max_held);
    Ok(Checked::new(venue, CheckedRules { silence_ns, limit, max_held }))
}

//! How gateways are built that do not simply believe their venue:
//! [`Plan::is_checked`](protocol::plan::Plan::is_checked).

use super::parts::{Parts, VenueBuilder};
use crate::faults::venue::FaultyVenue;
use anyhow::Result;
use gateway::{CheckedRules, MessageLimit, ValidatingSession, Venue, VenueContext};

/// How long a venue may say nothing about an order beyond the longest delay, in nanoseconds.
const SILENCE_NS: u64 = 1_000_000_000;

/// The checked session with a venue, which does what the plan's faults make it do.
pub(super) fn checked<V: Venue>(
    parts: &mut Parts<'_, '_>,
    context: &VenueContext,
    make: &VenueBuilder<'_, V>,
) -> Result<ValidatingSession<FaultyVenue<V>>> {
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
    Ok(ValidatingSession::new(venue, CheckedRules { silence_ns, limit, max_held }))
}

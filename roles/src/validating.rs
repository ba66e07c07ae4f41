//! Builds the sessions of gateways that validate their venue:
//! [`Plan::is_checked`](protocol::plan::Plan::is_checked).

use super::role_context::{RoleContext, VenueBuilder};
use crate::faults::venue::FaultyVenue;
use anyhow::Result;
use gateway::{ValidatingSession, ValidationRules, Venue, VenueContext};

/// Maximum silence of a venue about an order beyond the longest delay, in nanoseconds.
const SILENCE_NS: u64 = 1_000_000_000;

/// Creates a gateway's session that checks every report of its venue, which may have injected
/// faults.
pub(super) fn validating_session<V: Venue>(
    parts: &mut RoleContext<'_, '_>,
    context: &VenueContext,
    make: &VenueBuilder<'_, V>,
) -> Result<ValidatingSession<FaultyVenue<V>>> {
    let plan = parts.plan;
    let trading = plan.trading();
    let silence_ns = match trading.venue_timeout_ns {
        0 => trading.max_delay_ns.saturating_add(SILENCE_NS),
        ns => ns,
    };
    let max_held = context.max_held;
    let venue = FaultyVenue::new(make(parts, context)?, context, &plan.faults, max_held);
    Ok(ValidatingSession::new(venue, ValidationRules { silence_ns, max_held }))
}

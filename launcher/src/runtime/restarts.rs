//! A restart policy: when a strategy that died is started again, after which pause, and when not any more.
//!
//! An incarnation *ran well* if its duty cycles went on for [`STEADY`]; it *made progress* if it ran well, or sent or settled an order.
//!
//! | the incarnation that died | the next one |
//! |---|---|
//! | a fault of the plan killed it | at once; nothing is charged |
//! | ran well | at once; the whole budget is there again |
//! | died sooner | after a pause that doubles with each such death in a row, from nothing over 10 ms to 1 s |
//! | made no progress | as above, but at most [`MAX_RESTARTS`] times in a row: then the strategy stays down |
//!
//! Orders are counted by the strategy itself, so one that lies about them gets more restarts, but none without a pause.

use core::time::Duration;

/// The most restarts in a row after incarnations that made no progress.
pub const MAX_RESTARTS: u32 = 8;
/// An incarnation that runs for so long has run well.
pub const STEADY: Duration = Duration::from_secs(1);
/// The pause before the second restart in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How an incarnation came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncarnationEnd {
    /// A fault of the plan killed or stopped it.
    pub is_planned: bool,
    /// It sent or settled an order.
    pub has_traded: bool,
    /// For how long it was seen in its duty cycles.
    pub ran: Duration,
}

/// What follows the death of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// It is started again after that pause, which may be zero.
    RestartAfter(Duration),
    /// It stays down, after so many restarts in a row that came to nothing.
    StayDown(u32),
}

/// The budget of one strategy.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestartPolicy {
    /// Deaths in a row of incarnations that did not run well.
    hasty: u32,
    /// Deaths in a row of incarnations that made no progress.
    futile: u32,
}

impl RestartPolicy {
    /// Charges the death of an incarnation, and decides what follows.
    pub fn charge_death(&mut self, end: IncarnationEnd) -> RestartDecision {
        if end.is_planned {
            return RestartDecision::RestartAfter(Duration::ZERO);
        }
        let has_run_well = end.ran >= STEADY;
        self.hasty = if has_run_well { 0 } else { self.hasty.saturating_add(1) };
        self.futile = if has_run_well || end.has_traded { 0 } else { self.futile + 1 };
        match self.futile.checked_sub(MAX_RESTARTS + 1) {
            Some(_) => RestartDecision::StayDown(MAX_RESTARTS),
            None => RestartDecision::RestartAfter(pause(self.hasty)),
        }
    }
}

/// The pause after so many hasty deaths in a row.
fn pause(deaths: u32) -> Duration {
    match deaths {
        0 | 1 => Duration::ZERO,
        deaths => FIRST_PAUSE.saturating_mul(1 << (deaths - 2).min(16)).min(MAX_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const FUTILE: IncarnationEnd = IncarnationEnd { is_planned: false, has_traded: false, ran: MS };
    const AT_ONCE: RestartDecision = RestartDecision::RestartAfter(Duration::ZERO);

    /// The decisions on these deaths, one after the other.
    fn decisions(ends: impl IntoIterator<Item = IncarnationEnd>) -> Vec<RestartDecision> {
        let mut policy = RestartPolicy::default();
        ends.into_iter().map(|end| policy.charge_death(end)).collect()
    }

    #[test]
    fn a_crash_loop_backs_off_and_ends() {
        let found = decisions([FUTILE; 10]);
        let pauses = [0, 10, 20, 40, 80, 160, 320, 640].map(|ms| RestartDecision::RestartAfter(ms * MS));
        assert_eq!(found[..8], pauses);
        assert_eq!(found[8..], [RestartDecision::StayDown(MAX_RESTARTS); 2]);
    }

    #[test]
    fn planned_deaths_are_never_charged() {
        let planned = IncarnationEnd { is_planned: true, ..FUTILE };
        assert_eq!(decisions([planned; 2000]), [AT_ONCE; 2000]);
        let between = decisions([FUTILE, FUTILE, planned, FUTILE]);
        assert_eq!(between[3], RestartDecision::RestartAfter(20 * MS), "nor do they give anything back");
    }

    #[test]
    fn one_that_trades_and_dies_is_paused_and_never_given_up() {
        let found = decisions([IncarnationEnd { has_traded: true, ..FUTILE }; 2000]);
        assert_eq!(found[1], RestartDecision::RestartAfter(10 * MS));
        assert!(found[8..].iter().all(|one| *one == RestartDecision::RestartAfter(MAX_PAUSE)));
    }

    #[test]
    fn one_that_runs_well_earns_its_budget_back() {
        let well = IncarnationEnd { ran: STEADY, ..FUTILE };
        let all = [[FUTILE; 8].as_slice(), &[well], &[FUTILE; 9]].concat();
        let found = decisions(all);
        assert_eq!(found[8..10], [AT_ONCE; 2]);
        assert!(found[..17].iter().all(|one| matches!(one, RestartDecision::RestartAfter(_))));
        assert_eq!(found[17], RestartDecision::StayDown(MAX_RESTARTS));
    }
}

//! Restart policy of processes: whether a dead process is restarted, and after which backoff pause.
//!
//! An incarnation *ran well* if it ran duty cycles for [`STEADY`]; it *made progress* if it ran
//! well, or sent or settled an order.
//!
//! | the incarnation that died | the next one |
//! |---|---|
//! | a fault of the plan killed it | immediately; not counted |
//! | ran well | immediately; the budget is reset |
//! | died sooner | after a pause that doubles with each such death in a row, 0 to 1 s |
//! | made no progress | as above, but at most [`MAX_RESTARTS`] times in a row: then it stays down |
//!
//! Orders are counted by the strategy itself, so a strategy that reports false counts gets more
//! restarts, but none without a pause.

use std::time::{Duration, Instant};

/// Maximum number of restarts in a row of a process that makes no progress.
pub const MAX_RESTARTS: u32 = 8;
/// Time that a restarted process must run to count as stable.
pub const STEADY: Duration = Duration::from_secs(1);
/// The pause before the second restart in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How an incarnation ended, as far as its restart depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IncarnationEnd {
    /// Whether a fault of the plan killed or stopped the process.
    pub is_planned: bool,
    /// Whether the incarnation sent or settled an order.
    pub has_traded: bool,
    /// Time for which the incarnation ran duty cycles.
    pub ran: Duration,
}

/// Exponential backoff of restarts: no pause before the first, then twice as long with each early
/// exit in a row. It bounds the rate of restarts and not their number: the cause may disappear.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    /// Exits in a row of incarnations that did not run well.
    hasty: u32,
    /// End of the last pause.
    due: Option<Instant>,
}

impl Backoff {
    /// Counts an early exit of a process that ran for `ran`. Returns the pause.
    pub(crate) fn charge(&mut self, ran: Duration) -> Duration {
        self.hasty = if ran >= STEADY { 0 } else { self.hasty.saturating_add(1) };
        match self.hasty {
            0 | 1 => Duration::ZERO,
            hasty => FIRST_PAUSE.saturating_mul(1 << (hasty - 2).min(16)).min(MAX_PAUSE),
        }
    }

    /// Counts the early exit of a process that was started at `started`, or could not be started,
    /// and begins the next backoff pause.
    pub fn charge_loss(&mut self, started: Instant, now: Instant) {
        self.due = Some(now + self.charge(now.saturating_duration_since(started)));
    }

    /// Returns `true` once the last backoff pause before a restart is over.
    pub fn is_over(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }
}

/// The restart budget of one process, which decides whether it is restarted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RestartPolicy {
    backoff: Backoff,
    /// Deaths in a row of incarnations that made no progress.
    futile: u32,
    /// The sum of the pauses after them.
    futile_pauses: Duration,
}

impl RestartPolicy {
    /// Counts a process's death against its maximum number of restarts in a row without progress,
    /// unless the death was planned. `end`: how the process's incarnation ended; one that made
    /// progress resets the count. Returns the pause before its restart, which may be zero; `None`:
    /// it stays down after [`MAX_RESTARTS`] restarts in a row without progress.
    pub fn charge_death(&mut self, end: IncarnationEnd) -> Option<Duration> {
        if end.is_planned {
            return Some(Duration::ZERO);
        }
        let pause = self.backoff.charge(end.ran);
        let has_progressed = end.ran >= STEADY || end.has_traded;
        (self.futile, self.futile_pauses) = match has_progressed {
            true => (0, Duration::ZERO),
            false => (self.futile + 1, self.futile_pauses + pause),
        };
        (self.futile <= MAX_RESTARTS).then_some(pause)
    }

    /// Returns the total length of a process's backoff pauses since it last sent or settled an
    /// order, or ran for [`STEADY`].
    pub const fn futile_pauses(&self) -> Duration {
        self.futile_pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    const MS: Duration = Duration::from_millis(1);
    const FUTILE: IncarnationEnd = IncarnationEnd { is_planned: false, has_traded: false, ran: MS };
    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    fn pauses(ends: impl IntoIterator<Item = IncarnationEnd>) -> Vec<Option<Duration>> {
        let mut policy = RestartPolicy::default();
        ends.into_iter().map(|end| policy.charge_death(end)).collect()
    }

    #[test]
    fn planned_deaths_are_never_charged() {
        let planned = IncarnationEnd { is_planned: true, ..FUTILE };
        assert_eq!(pauses([planned; 2000]), [AT_ONCE; 2000]);
        let between = pauses([FUTILE, FUTILE, planned, FUTILE]);
        assert_eq!(between[3], Some(20 * MS), "nor do they give anything back");
    }

    #[test]
    fn trading_strategy_that_dies_is_always_restarted() {
        let found = pauses([IncarnationEnd { has_traded: true, ..FUTILE }; 2000]);
        assert_eq!(found[1], Some(10 * MS));
        assert!(found[8..].iter().all(|one| *one == Some(MAX_PAUSE)));
    }

    #[test]
    fn one_that_runs_well_earns_its_budget_back() {
        let well = IncarnationEnd { ran: STEADY, ..FUTILE };
        let all = [[FUTILE; 8].as_slice(), &[well], &[FUTILE; 9]].concat();
        let found = pauses(all);
        assert_eq!(found[8..10], [AT_ONCE; 2]);
        assert!(found[..17].iter().all(Option::is_some));
        assert_eq!(found[17], None);
    }

    /// Returns the number of starts in five minutes, and the longest time without one.
    fn starts(
        mut lost: impl FnMut(Instant, Instant),
        mut is_over: impl FnMut(Instant) -> bool,
        life: Duration,
    ) -> (u32, Duration) {
        let begin = Instant::now();
        let (mut started, mut starts, mut last, mut longest) = (None::<Instant>, 0, begin, Duration::ZERO);
        for now in (0..300_000).map(|ms| begin + ms * MS) {
            if let Some(since) = started.filter(|since| now - *since >= life) {
                lost(since, now);
                (started, last) = (None, now);
            }
            if started.is_none() && is_over(now) {
                (started, starts) = (Some(now), starts + 1);
            } else if started.is_none() {
                longest = longest.max(now - last);
            }
        }
        (starts, longest)
    }

    #[test]
    fn lost_helper_is_restarted_with_bounded_rate() {
        let is_good = |(starts, longest)| starts <= 310 && longest <= MAX_PAUSE;
        for life in [Duration::ZERO, 30 * MS, 900 * MS] {
            let backoff = RefCell::new(Backoff::default());
            let lost = |started, now| backoff.borrow_mut().charge_loss(started, now);
            assert!(is_good(starts(lost, |now| backoff.borrow().is_over(now), life)), "{life:?}");
            // One that starts again at once, and one that gives up some day, are found.
            assert!(life > 500 * MS || !is_good(starts(|_, _| (), |_| true, life)), "{life:?}");
            let left = Cell::new(16);
            let give_up = |_, _| left.set(left.get() - 1);
            assert!(!is_good(starts(give_up, |_| left.get() > 0, life)), "{life:?}");
        }
        let (begin, mut backoff) = (Instant::now(), Backoff::default());
        (0..40).for_each(|_| backoff.charge_loss(begin, begin));
        assert!(!backoff.is_over(begin + 999 * MS) && backoff.is_over(begin + 1000 * MS));
        backoff.charge_loss(begin, begin + STEADY);
        assert!(backoff.is_over(begin + STEADY), "one that has lived is replaced at once");
    }
}

//! The time of a survey, shared among its parts.

use analysis::experiment::SurveyPart;
use std::time::{Duration, Instant};

/// The share of the time that remains for saving and for runs that end late.
const RESERVE: f64 = 0.03;

/// The times at which the experiments of a survey must end.
pub struct TimeBudget {
    began: Instant,
    limit: Duration,
}

impl TimeBudget {
    /// Starts a time budget of `minutes` minutes for a survey.
    pub fn new(began: Instant, minutes: u32) -> Self {
        Self { began, limit: Duration::from_secs(60 * u64::from(minutes)).mul_f64(1.0 - RESERVE) }
    }

    /// Returns the time at which one of the survey's experiments must end. What a part leaves is
    /// for the next ones.
    pub fn end_of(&self, part: SurveyPart) -> Instant {
        let share_until: f64 = SurveyPart::ALL[..=part as usize].iter().map(|part| share(*part)).sum();
        self.began + self.limit.mul_f64(share_until.min(1.0))
    }
}

/// The share of the time that is for a part.
const fn share(part: SurveyPart) -> f64 {
    match part {
        SurveyPart::Cores => 0.03,
        SurveyPart::Recovery => 0.10,
        SurveyPart::Containment => 0.20,
        SurveyPart::Journal => 0.12,
        SurveyPart::Bill => 0.30,
        SurveyPart::Queue => 0.25,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_in_order_within_the_limit() {
        let began = Instant::now();
        let budget = TimeBudget::new(began, 5);
        let ends: Vec<Instant> = SurveyPart::ALL.iter().map(|part| budget.end_of(*part)).collect();
        assert!(ends.is_sorted() && ends[0] > began);
        let last = ends[ends.len() - 1] - began;
        assert!((285..300).contains(&last.as_secs()), "{last:?}");
        assert_eq!(ends.len(), SurveyPart::ALL.len());
    }
}

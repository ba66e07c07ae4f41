//! The endpoint of an experiment: the figures that it compares, and the difference that counts as
//! none. Both are declared before the first run, and saved with the plan.

use crate::stats::{ComparisonLine, Margin, Percentile, RunOutline};
use serde::{Deserialize, Serialize};
use verdict::summary::Measure;

/// An endpoint: the latency figures that an experiment compares, with their equivalence margin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The name of the measured duration.
    pub measure: String,
    /// The percentile of the duration that headlines show.
    pub percentile: Percentile,
    /// The further percentiles of the duration.
    #[serde(default)]
    pub further: Vec<Percentile>,
    /// The largest difference that counts as none.
    #[serde(default)]
    pub margin: Margin,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            measure: Measure::RtVenueFromDue.name().to_owned(),
            percentile: Percentile::P50,
            further: vec![Percentile::P99],
            margin: Margin::default(),
        }
    }
}

impl Endpoint {
    /// Returns the endpoint of experiments whose launcher saved none: the median of `rt_venue`
    /// alone, with the default margin.
    pub fn legacy() -> Self {
        Self { measure: Measure::RtVenue.name().to_owned(), further: Vec::new(), ..Self::default() }
    }

    /// Returns this endpoint, with `rt_venue` as its measured duration if no run has
    /// `rt_venue_from_due` (latency from an order's due time). Runs under closed pacing, which
    /// ignores due times, have none.
    #[must_use]
    pub fn for_runs<'a>(&self, runs: impl IntoIterator<Item = &'a RunOutline>) -> Self {
        let is_absent = |run: &RunOutline| run.measure(Measure::RtVenueFromDue).count == 0;
        let mut runs = runs.into_iter().peekable();
        let has_none = runs.peek().is_some() && runs.all(is_absent);
        let measure = if has_none { Measure::RtVenue.name().to_owned() } else { self.measure.clone() };
        Self { measure, ..self.clone() }
    }

    /// Returns the measured duration that the endpoint compares, such as `rt_venue`.
    pub fn measure(&self) -> Measure {
        Measure::every().find(|measure| measure.name() == self.measure).unwrap_or(Measure::RtVenue)
    }

    /// Iterates over the latency percentiles that the endpoint compares, the headline one first.
    pub fn percentiles(&self) -> impl Iterator<Item = Percentile> {
        std::iter::once(self.percentile).chain(self.further.iter().copied())
    }

    /// Returns `true` if a comparison line's duration and percentile are among those that the
    /// endpoint compares.
    pub fn is_of(&self, line: &ComparisonLine) -> bool {
        line.measure == self.measure && self.percentiles().any(|percentile| percentile == line.percentile)
    }

    /// Describes the figures that the endpoint compares: `rt_venue_from_due p50 and p99`.
    pub fn describe(&self) -> String {
        let names: Vec<&str> = self.percentiles().map(Percentile::name).collect();
        format!("{} {}", self.measure, names.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixtures;
    use verdict::summary::Distribution;

    #[test]
    fn endpoint_of_older_document_is_read() {
        let read = |text: &str| serde_json::from_str::<Endpoint>(text).unwrap();
        assert_eq!(read(r#"{"measure":"rt_venue","percentile":"p50"}"#), Endpoint::legacy());
        let saved = serde_json::to_string(&Endpoint::default()).unwrap();
        assert_eq!(read(&saved), Endpoint::default());
        assert_eq!(Endpoint::default().describe(), "rt_venue_from_due p50 and p99");
    }

    #[test]
    fn runs_without_due_times_fall_back_to_rt_venue() {
        let mut run = fixtures::run(0, 300.0);
        assert_eq!(Endpoint::default().for_runs([&run]), Endpoint::default());
        run.measures.insert("rt_venue_from_due".into(), Distribution::default());
        assert_eq!(Endpoint::default().for_runs([&run]).measure, "rt_venue");
    }
}

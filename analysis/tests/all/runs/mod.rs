//! Synthetic runs through everything that reads a run's folder: logs, merge, summary, report,
//! histograms, inspect.

mod accounts;
mod away;
mod broken_links;
mod containment;
mod damaged;
pub mod deaths;
mod distrust;
mod exchanges;
mod figures;
mod inspecting;
mod larger;
mod logfiles;
mod lying_venues;
mod market;
mod merging;
mod outages;
mod quarantine;
mod reporting;
mod shifted;
mod spilled;
mod venues;
mod verdicts;

//! Synthetic runs through everything that reads a run's folder: logs, merge, summary, report,
//! histograms, inspect.

mod accounts;
mod broken_links;
mod containment;
mod damaged;
pub mod deaths;
mod distrust;
mod exchanges;
mod figures;
mod inspecting;
mod logfiles;
mod market;
mod merging;
mod outages;
mod pauses;
mod quarantine;
mod reporting;
mod shifted_stamps;
mod unfired;
mod venue_report_defects;
mod venues;
mod verdicts;

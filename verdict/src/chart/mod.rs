//! Charts of pages and pictures in files.
//!
//! A page's charts are values with their data, which its script draws: `plot`, made by `xy_plot`
//! (lines over a varied setting), `interval_plot` (estimates with intervals), `percentile_plot`
//! (latency by percentile) and `sparkline` (a section of a run over time). Pictures for the book, a
//! README or a card are SVG: `svg`, with `scale` (values to coordinates) and `axis`.

pub mod axis;
pub mod interval_plot;
pub mod percentile_plot;
pub mod plot;
pub mod scale;
pub mod sparkline;
mod spread;
pub mod svg;
pub mod xy_plot;

pub use spread::{Spread, median};

//! Charts of experiments: lines over a varied setting (`xy_plot`), estimates with intervals
//! (`interval_plot`), and a section of a run over time (`sparkline`).

pub mod interval_plot;
pub mod sparkline;
pub mod xy_plot;

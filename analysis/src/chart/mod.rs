//! SVG charts for the HTML pages. Each chart is one SVG element with a title and a description.
//!
//! `svg`: numbers, paths, the frame; `scale`: values to coordinates; `axis`, `labels`: axes and
//! line labels; `xy_plot`: lines over a varied setting; `interval_plot`: estimates with intervals;
//! `percentile_plot`: latency by percentile; `sparkline`: a section of a run over time.

pub mod axis;
pub mod interval_plot;
pub mod labels;
pub mod percentile_plot;
pub mod scale;
pub mod sparkline;
pub mod svg;
pub mod xy_plot;

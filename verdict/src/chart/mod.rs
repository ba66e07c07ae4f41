//! Charts of pages and pictures in files.
//!
//! A page's charts are values with their data, which its script draws: `plot`, with `levels`
//! (median and maximum over time), made by `percentile_plot` (latency by percentile) and, of
//! experiments, by `analysis::chart`. Pictures for the book, a README or a card are SVG: `svg`,
//! with `scale` (values to coordinates) and `axis`.

pub mod axis;
pub mod levels;
pub mod percentile_plot;
pub mod plot;
pub mod scale;
pub mod svg;

//! Drawings that pages are made of: an SVG element each, with a title and a description in words.
//!
//! `svg`: numbers, paths, the frame; `scale`: values to places; `axis`, `labels`: what stands
//! around the data; `xy_plot`: lines over a varied value; `interval_plot`: rows of figures with
//! their intervals; `small`: a part of a run over time.

pub mod axis;
pub mod interval_plot;
pub mod labels;
pub mod scale;
pub mod small;
pub mod svg;
pub mod xy_plot;

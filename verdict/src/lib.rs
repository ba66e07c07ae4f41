//! Evaluates the logs of one run: merge, figures, verdict, and the report as text and page. Starts
//! no process and sends no signal.
#![forbid(unsafe_code)]

pub mod chart;
pub mod evaluation;
pub mod html;
pub mod inspect;
pub mod report;
pub mod spacing;
pub mod summary;
pub mod table;

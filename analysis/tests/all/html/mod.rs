//! `report.html`: the charts match the saved results, and the file is self-contained.

mod contain;
mod dom;
mod fixtures;
mod incidents;
mod lab;
mod order_path;
mod run_page;
mod sweeps;

//! `report.html`: the charts match the saved results, the file is self-contained, and a browser
//! shows it without errors.

mod browser;
mod contain;
mod dom;
mod fixtures;
mod incidents;
mod lab;
mod order_path;
mod run_page;
mod survey;
mod sweeps;

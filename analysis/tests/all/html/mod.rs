//! `report.html`: the pictures show what the saved results say, the file stands alone, a browser is
//! content with it.

mod browser;
mod contain;
mod dom;
mod fixtures;
mod incidents;
mod lab;
mod order_path;
mod run_page;
mod sweeps;

//! `report.html`: the pictures show what the saved results say, the file stands alone, a browser is content with it.

use crate::runs::{fixture, killing};

mod browser;
mod command;
mod dom;
pub mod fixtures;
mod folders;
mod incidents;
mod lab;
mod order_path;
mod run_page;
mod sweeps;

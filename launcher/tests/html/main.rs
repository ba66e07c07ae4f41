//! `report.html`: the pictures show what the saved results say, the file stands alone, a browser is content with it.

#[path = "../runs/fixture.rs"]
mod fixture;
#[path = "../runs/killing.rs"]
mod killing;

mod browser;
mod command;
mod dom;
mod incidents;
mod made_up;
mod run_page;
mod sweeps;

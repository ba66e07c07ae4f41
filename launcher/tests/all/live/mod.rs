//! Real runs: what they measure, and what they survive.

mod board;
mod comebacks;
mod contained;
mod deaths;
mod exchange;
mod faults;
mod journalled;
mod kills;
mod lab;
mod languages;
mod ledger;
mod market;
mod neighbours;
mod operators;
mod permissions;
mod programs;
mod quiet;
mod room;
mod runs;
mod sandboxed;
mod spares;
mod spill;
mod stalls;
mod techniques;
mod venues;
mod watching;

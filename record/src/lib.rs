//! The vocabulary of a run: its record, the logs of its threads, its documents, the units and
//! numbers of all texts, and the screen. Reads and writes files; starts no process and decides
//! nothing.
#![forbid(unsafe_code)]

pub mod benchmark;
pub mod cpu_list;
pub mod cpu_shortage;
pub mod document;
pub mod escape;
pub mod experiment;
pub mod fitness;
pub mod kernel;
pub mod logfile;
pub mod machine;
pub mod machine_check;
pub mod numbers;
pub mod run;
pub mod screen;
pub mod spread;
pub mod switch_price;
pub mod units;
pub mod wake_times;

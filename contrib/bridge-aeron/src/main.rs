//! The launcher with strategies on another host:
//!
//! ```text
//! # the engine's host
//! launcher run --strategies 2 --on-death restart \
//!     --strategy "player,exec:bulkhead-bridge serve desk-7@0.0.0.0:40400"
//! # the far host
//! bulkhead-bridge join desk-7@10.0.0.1:40400 --strategies 4 --orders 100k
//! ```
#![forbid(unsafe_code)]

use bridge_aeron::join::{self, JoinFlags};
use bridge_aeron::serve::{self, ServeFlags};
use bridge_aeron::venue::Remote;
use clap::Parser;
use std::process::ExitCode;

/// Strategies on another host. Every other command is the launcher's: `bulkhead-bridge run --help`.
#[derive(Parser, Debug)]
#[command(name = "bulkhead-bridge", version, max_term_width = 80)]
enum Own {
    /// The engine's side; the launcher starts it, as a strategy
    Serve(ServeFlags),
    /// A run of this host whose orders go to an engine on another one
    Join(JoinFlags),
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match words.get(1).map(String::as_str) {
        Some("serve" | "join" | "-h" | "--help") | None => match Own::parse() {
            Own::Serve(flags) => serve::serve(&flags),
            Own::Join(flags) => join::join(&flags),
        },
        command => {
            let is_run = command == Some("run");
            let code = launcher::Harness::new().venue("remote", Remote::new).main();
            if is_run {
                join::show(&words);
            }
            code
        }
    }
}

//! The launcher with strategies that are WebAssembly modules:
//!
//! ```text
//! wasm-strategy run --strategy wasm --isolation thread
//! WASM_MODULE=player.wasm wasm-strategy run --strategy wasm
//! wasm-strategy run --strategy wasm,wasm-loop --isolation thread --on-death continue
//! ```
#![forbid(unsafe_code)]

use launcher::strategy::Context;
use std::process::ExitCode;
use std::sync::Arc;
use wasm_strategy::{HOSTILE, NativePlayer, Program, Settings, WasmStrategy};

fn main() -> ExitCode {
    let settings = Settings::from_environment();
    let user = settings.and_then(|settings| Ok((Program::from_settings(&settings)?, settings)));
    let (user, settings) = match user {
        Ok(user) => user,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(2);
        }
    };
    let hostile = |index: usize| {
        let (name, function) = HOSTILE[index];
        make(Program::hostile(name, function, &settings))
    };
    launcher::Harness::new()
        .strategy("native", NativePlayer::new)
        .strategy("wasm", make(user))
        .strategy(HOSTILE[0].0, hostile(0))
        .strategy(HOSTILE[1].0, hostile(1))
        .strategy(HOSTILE[2].0, hostile(2))
        .strategy(HOSTILE[3].0, hostile(3))
        .strategy(HOSTILE[4].0, hostile(4))
        .strategy(HOSTILE[5].0, hostile(5))
        .main()
}

/// Returns a function that creates strategies of a program.
fn make(program: Program) -> impl Fn(&Context) -> WasmStrategy + Send + Sync + 'static {
    let program = Arc::new(program);
    move |context| WasmStrategy::new(&program, context)
}

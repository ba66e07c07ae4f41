//! Strategies of bulkhead that are WebAssembly modules: a Wasm runtime in the thread of a strategy,
//! at any isolation level. At `thread` it separates strategies within the engine's process.
#![forbid(unsafe_code)]

mod epochs;
mod interface;
mod native;
mod program;
mod settings;
mod strategy;

pub use native::NativePlayer;
pub use program::{HOSTILE, Program};
pub use settings::Settings;
pub use strategy::WasmStrategy;

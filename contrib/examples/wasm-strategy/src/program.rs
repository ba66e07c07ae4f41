//! Modules: what is built in, and how one is compiled.

use crate::interface::{self, Host};
use crate::settings::Settings;
use std::sync::OnceLock;
use wasmtime::{Config, Engine, InstancePre, Linker, Module};

/// Stack of a module's calls in bytes. The thread's own is 2 MiB.
const STACK_BYTES: usize = 256 << 10;

/// The player, in text form.
const PLAYER: &str = include_str!("../modules/player.wat");

/// The function of the player that each hostile module replaces.
const HARMLESS: &str = "(func $misbehave)";

/// The hostile strategies: the name of each kind, and the WebAssembly text of the function that it
/// runs after its hundredth order.
pub const HOSTILE: [(&str, &str); 6] = [
    ("wasm-loop", include_str!("../modules/hostile/loop.wat")),
    ("wasm-grow", include_str!("../modules/hostile/grow.wat")),
    ("wasm-store", include_str!("../modules/hostile/store.wat")),
    ("wasm-unreachable", include_str!("../modules/hostile/unreachable.wat")),
    ("wasm-pointer", include_str!("../modules/hostile/pointer.wat")),
    ("wasm-recursion", include_str!("../modules/hostile/recursion.wat")),
];

/// A WebAssembly module that is compiled once per process, at its first use.
pub struct Program {
    name: String,
    /// In text or binary form.
    source: Vec<u8>,
    settings: Settings,
    ready: OnceLock<Result<InstancePre<Host>, String>>,
}

impl Program {
    /// Creates a program from a WebAssembly module in text or binary form, without compiling it.
    pub fn new(name: &str, source: impl Into<Vec<u8>>, settings: &Settings) -> Self {
        Self { name: name.into(), source: source.into(), settings: settings.clone(), ready: OnceLock::new() }
    }

    /// Reads and compiles the WebAssembly module that the settings name; returns the built-in
    /// player if they name none.
    ///
    /// # Errors
    /// The file cannot be read, is no module, or imports or exports other things.
    pub fn from_settings(settings: &Settings) -> Result<Self, String> {
        let Some(file) = &settings.module else { return Ok(Self::new("wasm", PLAYER, settings)) };
        let named = |why: String| format!("WASM_MODULE={}: {why}", file.display());
        let source = std::fs::read(file).map_err(|error| named(error.to_string()))?;
        let name = file.file_name().unwrap_or_default().display().to_string();
        let program = Self::new(&name, source, settings);
        program.ready().map_err(named)?;
        Ok(program)
    }

    /// Creates a program that misbehaves: the built-in player with the WebAssembly text `function`
    /// in place of its empty `$misbehave`.
    pub fn hostile(name: &str, function: &str, settings: &Settings) -> Self {
        assert!(PLAYER.contains(HARMLESS), "what hostile modules replace");
        Self::new(name, PLAYER.replace(HARMLESS, function), settings)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the module, compiled and linked.
    pub(crate) fn ready(&self) -> Result<&InstancePre<Host>, String> {
        let compile = || self.compile().map_err(|error| format!("{error:#}"));
        self.ready.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    fn compile(&self) -> wasmtime::Result<InstancePre<Host>> {
        let engine = engine()?;
        let module = Module::new(engine, &self.source)?;
        let mut linker = Linker::new(engine);
        interface::add_to(&mut linker)?;
        linker.instantiate_pre(&module)
    }
}

/// Returns the process's engine, which all its modules share.
fn engine() -> wasmtime::Result<&'static Engine> {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    if let Some(engine) = ENGINE.get() {
        return Ok(engine);
    }
    let mut config = Config::new();
    // An incident has one line.
    config.epoch_interruption(true).max_wasm_stack(STACK_BYTES).wasm_backtrace_max_frames(None);
    let engine = Engine::new(&config)?;
    Ok(ENGINE.get_or_init(|| engine))
}

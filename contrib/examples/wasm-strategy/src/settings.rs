//! The settings of modules, from the environment: every process of a run inherits it.

use std::path::PathBuf;

/// Longest call of a module in milliseconds without `WASM_DEADLINE_MS`.
const DEFAULT_DEADLINE_MS: u64 = 1_000;

/// Largest memory of a module in MiB without `WASM_MEMORY_MIB`.
const DEFAULT_MEMORY_MIB: u64 = 64;

/// Largest memory in MiB that a module can address.
const MAX_MEMORY_MIB: u64 = 4_096;

/// The WebAssembly module to run, the time limit of each call and the memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// File of the module of kind `wasm`, binary or text; `None`: the built-in player.
    pub module: Option<PathBuf>,
    /// Longest time that one call of a module may take, in milliseconds, from 4.
    pub deadline_ms: u64,
    /// Largest memory of a module, in bytes.
    pub memory_bytes: usize,
}

impl Settings {
    /// Reads the settings from `WASM_MODULE`, `WASM_DEADLINE_MS` and `WASM_MEMORY_MIB`.
    ///
    /// # Errors
    /// A number that is none or out of range, with the variable's name.
    pub fn from_environment() -> Result<Self, String> {
        Self::read(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, default: u64, range: core::ops::RangeInclusive<u64>| {
            let Some(text) = variable(name) else { return Ok(default) };
            let number = text.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| {
                format!("{name}={text}: not a whole number from {} to {}", range.start(), range.end())
            })
        };
        let memory_mib = number("WASM_MEMORY_MIB", DEFAULT_MEMORY_MIB, 1..=MAX_MEMORY_MIB)?;
        Ok(Self {
            module: variable("WASM_MODULE").map(PathBuf::from),
            deadline_ms: number("WASM_DEADLINE_MS", DEFAULT_DEADLINE_MS, 4..=3_600_000)?,
            memory_bytes: (memory_mib << 20) as usize,
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        let memory_bytes = (DEFAULT_MEMORY_MIB << 20) as usize;
        Self { module: None, deadline_ms: DEFAULT_DEADLINE_MS, memory_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_number_is_refused_with_its_variable() {
        let with = |name: &'static str, value: &'static str| {
            Settings::read(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(Settings::read(|_| None), Ok(Settings::default()));
        assert_eq!(with("WASM_DEADLINE_MS", "20").unwrap().deadline_ms, 20);
        for (name, value) in
            [("WASM_DEADLINE_MS", "3"), ("WASM_DEADLINE_MS", "1s"), ("WASM_MEMORY_MIB", "4097")]
        {
            assert!(with(name, value).unwrap_err().starts_with(&format!("{name}={value}: ")), "{name}");
        }
    }
}

//! Modules in real runs: this program is the launcher, and each of its processes.

use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// Orders of a run of two strategies: far more than the hundred after which a module misbehaves.
const ORDERS: u64 = 1_000;

/// The hostile kinds, and what the incident says about each.
const ENDS: [(&str, &str); 6] = [
    ("wasm-loop", "interrupted: one call took longer than 200 ms (WASM_DEADLINE_MS)"),
    ("wasm-grow", "interrupted: one call took longer than 200 ms (WASM_DEADLINE_MS)"),
    ("wasm-store", "out of bounds memory access"),
    ("wasm-unreachable", "unreachable"),
    ("wasm-pointer", "bh_send: order at 0xfffffff0 with 64 bytes is outside of the memory of 65536"),
    ("wasm-recursion", "call stack exhausted"),
];

/// Runs the program with these words; `OUT` stands for a folder of the test's own.
fn program(words: &str, variables: &[(&str, &str)]) -> (Output, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wasm-strategy"));
    command.args(words.split_whitespace().map(|word| if word == "OUT" { folder } else { word }));
    command.envs(variables.iter().copied());
    (command.stdin(Stdio::null()).output().unwrap(), out)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the summary of a run of two strategies with these words, and its exit code.
fn run(words: &str, variables: &[(&str, &str)]) -> (Value, Option<i32>) {
    let load = format!("--strategies 2 --venues 2 --orders {ORDERS} --delay fixed:50us --out OUT");
    let (output, _out) = program(&format!("run --json {load} {words}"), variables);
    let summary = serde_json::from_slice(&output.stdout);
    let summary = summary.unwrap_or_else(|_| panic!("{words}: {}", text(&output.stderr)));
    (summary, output.status.code())
}

fn count(summary: &Value, what: &str) -> u64 {
    summary["orders"][what].as_u64().unwrap()
}

#[test]
fn module_trades_as_thread_and_as_process() {
    for isolation in ["thread", "process"] {
        for idle in ["spin", "park"] {
            let (summary, code) = run(&format!("--strategy wasm --isolation {isolation} --idle {idle}"), &[]);
            assert_eq!(code, Some(0), "{isolation} {idle}: {summary:#}");
            let counts = ["sent", "returned"].map(|what| count(&summary, what));
            assert_eq!(counts, [ORDERS; 2], "{isolation} {idle}");
        }
    }
}

#[test]
fn module_and_player_in_rust_send_the_same() {
    let both = ["wasm", "native"].map(|kind| {
        let (summary, _) = run(&format!("--strategy {kind} --isolation thread"), &[]);
        assert_eq!(summary["valid"], true, "{summary:#}");
        (count(&summary, "sent"), count(&summary, "returned"))
    });
    assert_eq!(both[0], both[1]);
}

/// Each ends its own thread of the engine's process, with its reason, and the other one trades on.
#[test]
fn hostile_module_ends_alone_and_is_restarted() {
    for (kind, reason) in ENDS {
        for on_death in ["continue", "restart"] {
            let words = format!("--strategy wasm,{kind} --isolation thread --on-death {on_death}");
            let (summary, _) = run(&words, &[("WASM_DEADLINE_MS", "200")]);
            let incidents = summary["incidents"].as_array().unwrap();
            assert_eq!(incidents.len(), 1, "{words}: {summary:#}");
            let incident = incidents[0].to_string();
            assert!(incident.contains(reason), "{words}: {incident}");
            assert_eq!(incidents[0]["strategy"], 1, "{words}: {incident}");
            assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{words}: {summary:#}");
            let restarted = incidents[0]["repair_to_restart_ns"].as_u64().is_some();
            assert_eq!(restarted, on_death == "restart", "{words}: {incident}");
            if on_death == "restart" {
                assert_eq!(count(&summary, "sent"), ORDERS, "{words}: {}", summary["orders"]);
            }
        }
    }
}

#[test]
fn hostile_module_stops_run_that_stops_on_death() {
    let (summary, code) = run("--strategy wasm,wasm-unreachable --isolation thread --on-death stop", &[]);
    assert_ne!(code, Some(0), "{summary:#}");
    assert!(summary.to_string().contains("unreachable"), "{summary:#}");
}

/// A hang's deadline is that of one call: a module may trade for longer.
#[test]
fn deadline_is_of_one_call() {
    let words = "--strategy wasm --isolation thread --idle park";
    let (summary, _) = run(words, &[("WASM_DEADLINE_MS", "300"), ("WASM_MEMORY_MIB", "1")]);
    assert_eq!(summary["valid"], true, "{summary:#}");
    assert_eq!(count(&summary, "returned"), ORDERS);
}

#[test]
fn user_module_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.wat");
    let with = |module: &str| {
        std::fs::write(&file, module).unwrap();
        program(
            "run --json --strategy wasm --strategies 1 --orders 50 --delay fixed:50us --isolation thread --out OUT",
            &[("WASM_MODULE", file.to_str().unwrap())],
        )
        .0
    };
    let player = with(include_str!("../modules/player.wat"));
    assert!(player.status.success(), "{}{}", text(&player.stdout), text(&player.stderr));
    for (module, why) in [
        ("(module", "expected"),
        ("(module (import \"env\" \"fork\" (func)))", "unknown import"),
        ("(module (import \"bulkhead\" \"bh_send\" (func (param i32))))", "incompatible import type"),
    ] {
        let refused = with(module);
        let message = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{module}: {message}");
        assert!(message.contains("WASM_MODULE=") && message.contains(why), "{module}: {message}");
    }
    // What is known only when an instance is made ends the strategy.
    for (module, why) in [
        ("(module)", "exports no memory"),
        ("(module (memory (export \"memory\") 1))", "exports no function"),
        ("(module (memory (export \"memory\") 2000))", "memory minimum size"),
        (
            "(module (memory (export \"memory\") 1) (func (export \"bh_cycle\")) (func $f unreachable) (start $f))",
            "unreachable",
        ),
    ] {
        let refused = with(module);
        let message = text(&refused.stdout) + &text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{module}: {message}");
        assert!(message.contains(why), "{module}: {message}");
    }
}

#[test]
fn invalid_setting_is_refused() {
    let (output, _) = program("run --strategy wasm", &[("WASM_DEADLINE_MS", "soon")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("WASM_DEADLINE_MS=soon"), "{}", text(&output.stderr));
}

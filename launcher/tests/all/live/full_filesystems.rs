//! Too little space in `/dev/shm` or on the disk, on file systems that the test mounts. Without the
//! right to mount in a new namespace the tests print a message and are skipped.

use crate::common::{CommandResult, output_of, skip};
use std::process::Command;

/// Runs a script in a new mount namespace, with `$L` as the launcher and `$OUT` as an empty folder.
/// Returns `None`, with a message, if that is not allowed or the script prints `SKIPPED`.
pub fn run_in_namespace(script: &str) -> Option<CommandResult> {
    if output_of(Command::new("unshare").args(["--mount", "true"])).code != Some(0) {
        skip("no right to make a mount namespace here; run as root to test small file systems");
        return None;
    }
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    let result = output_of(command.env("L", env!("CARGO_BIN_EXE_launcher")).env("OUT", out.path()));
    let skipped = result.stdout.lines().find_map(|line| line.strip_prefix("SKIPPED: "));
    if let Some(reason) = skipped {
        skip(reason);
    }
    skipped.is_none().then_some(result)
}

impl CommandResult {
    /// Checks that stdout has all of `expected` but not `without`.
    #[track_caller]
    pub fn shows(&self, expected: &[&str], without: &str) -> &Self {
        for word in expected {
            assert!(self.stdout.contains(word), "{word:?} is not in: {}", self.all_output());
        }
        assert!(without.is_empty() || !self.stdout.contains(without), "{without:?}: {}", self.all_output());
        self
    }

    /// Checks that stderr has all of these words.
    #[track_caller]
    pub fn complains(&self, expected: &[&str]) -> &Self {
        for word in expected {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.all_output());
        }
        assert!(!self.all_output().contains("panicked"), "{}", self.all_output());
        self
    }
}

#[test]
fn small_dev_shm_is_reported_before_start() {
    let script = "mount -t tmpfs -o size=64m tmpfs /dev/shm && $L run --orders 1M --out $OUT; echo rc=$?; ls /dev/shm $OUT";
    let Some(result) = run_in_namespace(script) else { return };
    result.shows(&["rc=1"], "bulkhead").complains(&["/dev/shm", "--shm-size"]);
}

#[test]
fn late_full_dev_shm_is_an_error() {
    // The file system has space, but the limit on file sizes is too low.
    let script = "mount -t tmpfs -o size=64m tmpfs /dev/shm && ulimit -f 1000; trap '' XFSZ; \
                  $L run --orders 100k --out $OUT; echo rc=$?; ls /dev/shm";
    let Some(result) = run_in_namespace(script) else { return };
    result.shows(&["rc=2"], "bulkhead.").complains(&["bulkhead.", "reserve", "ulimit -f"]);
}

#[test]
fn small_disk_is_reported_before_start() {
    let script =
        "mount -t tmpfs -o size=1m tmpfs $OUT && $L run --orders 100k --out $OUT; echo rc=$?; ls $OUT";
    let Some(result) = run_in_namespace(script) else { return };
    result.complains(&["--out", "MiB"]);
    assert!(result.stdout.trim_end().ends_with("rc=1"), "no folder is left: {}", result.stdout);
}

/// Waits in a script until the orders of the run flow.
const BEGUN: &str = "until ls $OUT/*/run.json >/dev/null 2>&1; do sleep 0.05; done;";
/// A run of two seconds in the background.
const TWO_SECONDS: &str = "$L run --orders 20000 --window 2s --strategies 2 --venues 1 --delay fixed:1ms --idle park --out $OUT >/dev/null &";
const SMALL_DISKS: &str =
    "mount -t tmpfs -o size=256m tmpfs /dev/shm && mount -t tmpfs -o size=48m tmpfs $OUT || exit 9;";
const FILL: &str = "cat /dev/zero > $OUT/filler 2>/dev/null;";
/// Reports the run once there is space again, and prints its orders' counts and the number of
/// remaining segments.
const RESCUE: &str = "rm $OUT/filler; $L report $OUT/*-* --json > $OUT/json; echo report=$?; \
                      grep -E '\"(valid|sent|returned|lost)\":' $OUT/json | head -4 | tr -d ' ,\\n'; echo; \
                      echo left=$(ls /dev/shm | wc -l)";

#[test]
fn full_disk_at_end_loses_no_log() {
    let script = format!(
        "{SMALL_DISKS} {TWO_SECONDS} PID=$!; {BEGUN} {FILL} wait $PID; echo rc=$?; ls /dev/shm; \
         grep -h '\"ended\"' $OUT/*/run.json; {RESCUE}"
    );
    let Some(result) = run_in_namespace(&script) else { return };
    // The record's space is reserved, so the outcome is saved: the run completed.
    result.shows(&["rc=1", "\"ended\": \"complete\"", "report=0", "\"valid\":true"], "failed");
    result.complains(&["launcher report", "No space left"]);
    result.shows(&[".thread-engine", "\"sent\":20000\"returned\":20000", "\"lost\":0", "left=0"], ".control");
}

#[test]
fn full_disk_loses_no_log_of_sandboxed_run() {
    let run = TWO_SECONDS.replace("$L run", "$L run --isolation sandbox --allow-weaker-sandbox");
    let script =
        format!("{SMALL_DISKS} {run} PID=$!; {BEGUN} {FILL} wait $PID; echo rc=$?; ls /dev/shm; {RESCUE}");
    let Some(result) = run_in_namespace(&script) else { return };
    result.shows(&["rc=1", ".thread-engine", "\"sent\":20000\"returned\":20000", "left=0"], "");
}

#[test]
fn reaper_on_full_disk_keeps_logs_and_removes_rest() {
    let wait_for_reaper =
        "while ls /dev/shm | grep -q control; do sleep 0.05; done; kill $FILLER; wait $FILLER 2>/dev/null;";
    // After 1.2 s the engine's log is larger than the 1 MiB that a dead launcher frees.
    let fill =
        "( while :; do cat /dev/zero >> $OUT/filler; sleep 0.005; done ) 2>/dev/null & FILLER=$!; sleep 1.2;";
    let script = format!(
        "{SMALL_DISKS} {TWO_SECONDS} PID=$!; {BEGUN} {fill} kill -KILL $PID; {wait_for_reaper} ls /dev/shm; \
         cat $OUT/*/reaper.stderr; {RESCUE}"
    );
    let Some(result) = run_in_namespace(&script) else { return };
    let left: Vec<&str> = result.stdout.lines().filter(|line| line.starts_with("bulkhead.")).collect();
    assert!(!left.is_empty() && left.iter().all(|name| name.contains(".thread-")), "{}", result.all_output());
    result.shows(&["left=0", "report="], "\"sent\":0").complains(&[]);
}

#[test]
fn clean_removes_unsaved_logs_and_start_keeps_them() {
    let script = format!(
        "{SMALL_DISKS} {TWO_SECONDS} PID=$!; {BEGUN} {FILL} wait $PID; rm $OUT/filler; \
         $L run --orders 100 --window 50ms --out $OUT/second >/dev/null; echo second=$?; \
         echo kept=$(ls /dev/shm | grep -c thread-); $L clean; echo left=$(ls /dev/shm | wc -l)"
    );
    let Some(result) = run_in_namespace(&script) else { return };
    result.shows(&["second=0", "left=0"], "kept=0");
}

/// Makes a run whose strategy is killed and restarted after a second, and whose launcher may open
/// only `more` further descriptors after its start. `None` sets the limit below those that it has
/// open.
fn with_descriptors(more: Option<u32>) -> Option<CommandResult> {
    let kill = "--on-death restart --fault kill:strategy-1@1s";
    let run = TWO_SECONDS.replace("--out", &format!("{kill} --out"));
    let find_free_descriptor = "free=0; n=0; while [ $free -lt MORE ]; do [ -e /proc/$PID/fd/$n ] || free=$((free + 1)); n=$((n + 1)); done;";
    let find_free_descriptor =
        more.map_or("n=4;".into(), |more| find_free_descriptor.replace("MORE", &more.to_string()));
    let limit = format!("{find_free_descriptor} prlimit --pid $PID --nofile=$n;");
    run_in_namespace(&format!(
        "which prlimit >/dev/null || {{ echo SKIPPED: no prlimit here; exit; }}; {SMALL_DISKS} {run} PID=$!; {BEGUN} {limit} \
         wait $PID; echo rc=$?; touch $OUT/filler; ls $OUT/*/; ls /dev/shm; {RESCUE}; cat $OUT/json"
    ))
}

#[test]
fn restart_without_descriptors_leaves_only_its_strategy_down() {
    let Some(result) = with_descriptors(Some(1)) else { return };
    let files = ["summary.json", "strategy-1.stamps"];
    result.shows(&["rc=0", "cannot be started", "Too many open files", "left=0"], "bulkhead.2");
    result.shows(&files, "").complains(&["strategy-1 stayed down"]);
}

#[test]
fn launcher_without_descriptors_leaves_rescuable_logs() {
    let Some(result) = with_descriptors(None) else { return };
    result.shows(&["rc=1", ".thread-engine", "report=", "left=0"], ".control");
    result.shows(&["\"sent\":"], "\"sent\":0").complains(&["launcher report"]);
}

#[test]
fn foreign_dev_shm_files_stay_and_never_block() {
    let script = "mount -t tmpfs -o size=256m tmpfs /dev/shm || exit 9; cd /dev/shm; \
                  mkfifo bulkhead.x-1.control; echo data > bulkhead.mydb; ln -s /dev/zero bulkhead.link.control; \
                  mkfifo bulkhead.20260101-000000000-5-1.control bulkhead.20260101-000000000-1.control; \
                  timeout 60 $L clean; echo clean=$?; \
                  timeout 60 $L run --orders 100 --window 50ms --out $OUT >/dev/null; echo run=$?; ls";
    let Some(result) = run_in_namespace(script) else { return };
    let kept = ["bulkhead.x-1.control", "bulkhead.mydb", "bulkhead.link.control"];
    // The run of a process 1 with another start time is dead.
    result.shows(&["clean=0", "run=0"], "-5-1.control").shows(&kept, "");
}

#[test]
fn clean_in_other_namespace_keeps_starting_run() {
    let script = "mount -t tmpfs -o size=512m tmpfs /dev/shm || exit 9; \
                  unshare --pid --fork --mount-proc true || { echo SKIPPED: no right to make a PID namespace here; exit; }; \
                  $L run --isolation sandbox --allow-weaker-sandbox --strategies 16 --orders 16000 --window 200ms --idle park \
                  --delay fixed:1ms --out $OUT >/dev/null & PID=$!; \
                  for n in $(seq 1 20); do unshare --pid --fork --mount-proc $L clean; done; \
                  wait $PID; echo rc=$?; ls /dev/shm";
    let Some(result) = run_in_namespace(script) else { return };
    result.shows(&["rc=0", "kept"], "bulkhead.").shows(&[], "1 segment removed");
}

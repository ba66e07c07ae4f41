//! Invalid flags, files and paths: each gives an error that names the cause, the right exit code,
//! and leaves no files.

use crate::common::{Launcher, Running, command, output, output_of, proc, wait_until};
use crate::fixture::{Fixture, Shape};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Runs with these flags; must be a usage error that contains all of `expected`.
fn usage_error(flags: &str, expected: &[&str]) {
    let launcher = Launcher::new();
    launcher.result(flags).fails(2, expected);
    assert_eq!(launcher.folders().len(), 0, "{flags}");
}

/// Under a limit of the shell the launcher names the limit, exits with 2 and leaves no files.
#[test]
fn shell_limits_are_named() {
    for (limit, advice) in [
        // At the first byte, at a segment, at a log.
        ("-f 0", "ulimit -f unlimited"),
        ("-f 16", "ulimit -f unlimited"),
        ("-f 256", "ulimit -f unlimited"),
        ("-s 64", "ulimit -s 8192"),
        ("-s 512", "ulimit -s 8192"),
        // A failed allocation would otherwise abort without a message, or go unnoticed.
        ("-v 100000", "ulimit -v"),
        ("-d 20000", "ulimit -d"),
    ] {
        let launcher = Launcher::new();
        let run = launcher.run("--orders 1000 --window 100ms --delay fixed:1ms --strategies 1 --venues 1");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).stdin(Stdio::null());
        shell.arg(run.get_program()).args(run.get_args());
        Running::spawn(&mut shell).end().fails(2, &[advice, "error: "]);
        assert_eq!(launcher.folders().len(), 0, "{limit}");
    }
}

#[test]
fn invalid_flags_are_named() {
    for (flags, expected) in [
        ("--technique spsc-mix", &["spsc-mux"][..]),
        ("--isolation proces", &["process"]),
        ("--window 5", &["--window", "unit"]),
        ("--window '5 parsecs'", &["--window"]),
        ("--delay uniform:9ms..5ms", &["--delay"]),
        ("--capacity 100", &["--capacity", "power of two"]),
        ("--strategies 0", &["--strategies"]),
        ("--strategies 100000", &["--strategies", "256"]),
        ("--venues 65", &["--venues", "64"]),
        ("--threading dedicated --strategies 200", &["dedicated", "cores"]),
        ("--cores 4095", &["4095"]),
        ("--speed 2", &["--schedule"]),
        ("--orders", &["--orders"]),
        ("--liveness 5ms", &["--liveness", "20ms"]),
        ("--on-death restrat", &["--on-death", "restart"]),
        ("--priority 50", &["--priority", "for example fifo:50"]),
        ("--nonsense", &["--nonsense"]),
        ("--orders -5", &["--orders", "-5", "is not a count"]),
        ("--technique SPSC-MUX", &["possible values", "spsc-mux"]),
        ("--technique std-mpsc", &["--technique linked, its twin"]),
        ("--liveness 0", &["has no unit", "for example 100ms"]),
        ("--fault kil:strategy-0", &["--fault", "kill", "KIND[:TARGET][@WHEN]"]),
        (
            "--strategies 2 --fault kill:strategy-2@1s",
            &["--fault", "strategy-0 to strategy-1", "--strategies"],
        ),
        ("--fault 'leak@1s every 10ms'", &["--fault", "only kill and stop come again"]),
        ("--fault ''", &["--fault", "KIND[:TARGET][@WHEN]"]),
        ("--window -5s", &["--window", "is negative"]),
        ("--delay 5ms..1ms", &["--delay", "uniform:1ms..5ms"]),
        ("--credentials 5 --strategies 1", &["Use --credentials 1, or --strategies 5 or more"]),
        ("--capacity 1M", &["k and M are decimal", "1048576"]),
    ] {
        usage_error(flags, expected);
    }
}

fn write_file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn configuration_files_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("stratgies: 3\n", &["stratgies", "strategies"][..]),
        ("n_strategies: 8\n", &["n_strategies", "strategies"]),
        ("venues: many\n", &["venues"]),
        ("venues: 1\nvenues: 2\n", &["bulkhead.yaml:2", "duplicate", "venues"]),
        ("venues: [1, 2\n", &["bulkhead.yaml:1"]),
        ("fault: kill:any@1s; explode\n", &["bulkhead.yaml:1", "fault", "explode"]),
        (&"# long\n".repeat(10_000), &["too much"]),
    ] {
        let config = write_file(&folder, "bulkhead.yaml", text);
        usage_error(&format!("--config {config}"), &[expected, &["bulkhead.yaml"]].concat());
    }
    usage_error("--config /nowhere/bulkhead.yaml", &["/nowhere/bulkhead.yaml"]);
    usage_error("--config /dev/zero", &["/dev/zero", "too much"]);
}

const FLOW: &str = "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi";

#[test]
fn schedules_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let bad_price = write_file(&folder, "flow.csv", &format!("{FLOW}\n0,1,new,1,S,limit,gtc,abc,5\n"));
    usage_error(&format!("--schedule {bad_price}"), &["flow.csv:2", "price_cents", "abc"]);
    usage_error("--schedule /nowhere/flow.csv", &["/nowhere/flow.csv"]);
    let venue = write_file(&folder, "venue.csv", &format!("{FLOW},venue\n0,1,new,1,S,limit,gtc,1,5,9\n"));
    usage_error(&format!("--schedule {venue}"), &["venue.csv:2", "venue"]);
}

#[test]
fn non_utf8_paths_are_refused_or_read() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let non_utf8 = folder.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    for flag in ["--out", "--schedule", "--instruments"] {
        output_of(command(&format!("run {flag}")).arg(&non_utf8)).fails(2, &[flag, "not UTF-8"]);
        assert!(!non_utf8.exists());
    }
    // A run in a folder with such a name is read like any other.
    std::fs::create_dir(&non_utf8).unwrap();
    Fixture::new(Shape::PLAIN).write_to(&non_utf8);
    for (before, after) in
        [("report", ""), ("report", "--html"), ("inspect", ""), ("inspect", "--order 0/3"), ("open", "")]
    {
        output_of(command(before).arg(&non_utf8).args(after.split_whitespace())).succeeds();
    }
}

#[test]
fn endless_or_silent_input_never_blocks() {
    for flag in ["--schedule", "--instruments"] {
        usage_error(&format!("{flag} /dev/zero"), &["/dev/zero"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for flag in ["--schedule", "--config", "--instruments"] {
        let launcher = Launcher::new();
        let running = Running::spawn(&mut launcher.run(&format!("{flag} {}", fifo.display())));
        // It catches signals before it reads, so Ctrl-C works although nothing is ever written.
        let catches = |line: &str| line.starts_with("SigCgt:") && line.ends_with(|c| "2367abef".contains(c));
        wait_until("signals are caught", || proc(running.pid(), "status").lines().any(catches));
        running.interrupt().fails(130, &["interrupted"]);
    }
    // A pipe with content is read like a file.
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::write(fifo, "strategies: nine\n")
    });
    usage_error(&format!("--config {}", fifo.display()), &["fifo:1", "nine"]);
    writer.join().unwrap().unwrap();
}

#[test]
fn recorded_flow_shows_duration_and_rate() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..2000).map(|n| format!("{},{n},new,{n},S,limit,gtc,1,5\n", n * 100)).collect();
    let flow = write_file(&folder, "flow.csv", &format!("{FLOW}\n{rows}"));
    let printed =
        Launcher::new().result(&format!("--schedule {flow} --strategies 1 --delay fixed:1ms")).stdout;
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("over 200 ms (10,005/s), as recorded"), "{printed}");
    assert!(printed.contains("200 ms at 10,005/s"), "{printed}");
}

#[test]
fn unwritable_folder_is_named() {
    output("run --out /proc/nowhere").fails(2, &["/proc/nowhere", "choose another --out"]);
    output("sweep --work 0ns,1us --out /proc/nowhere").fails(2, &["/proc/nowhere", "choose another --out"]);
}

#[test]
fn too_little_shared_memory_is_reported_before_start() {
    let result = Launcher::new().result("--orders 1000M --strategies 1");
    assert!(matches!(result.code, Some(1 | 2)), "{result:?}");
    assert!(result.stderr.contains("/dev/shm") || result.stderr.contains("--orders"), "{result:?}");
}

/// What no run of an experiment can have leaves no folder, and does not speak of finished runs.
#[test]
fn experiment_without_its_preconditions_leaves_nothing() {
    for command in [
        "sweep --work 0ns,1us --orders 1000M --strategies 1",
        "compare --a work=0ns --b work=1us --orders 1000M --strategies 1",
    ] {
        let launcher = Launcher::new();
        let result = output(&format!("{command} --out {}", launcher.out.path().display()));
        assert!(matches!(result.code, Some(1 | 2)), "{command}: {result:?}");
        assert!(!result.all_output().contains("saved"), "{command}: {result:?}");
        assert_eq!(launcher.folders().len(), 0, "{command}: {result:?}");
    }
}

#[test]
fn misspelt_command_suggests_the_nearest() {
    output("swep").fails(2, &["'sweep'"]);
}

#[test]
fn unwritable_page_is_reported_once() {
    let folder = Fixture::new(Shape::PLAIN).write();
    let report = output(&format!("report {} --html /dev/full/report.html", folder.path().display()));
    let report = report.fails(1, &[]);
    assert_eq!(report.stderr.matches("Not a directory").count(), 1, "{report:?}");
}

#[test]
fn sweep_folder_error_names_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/all/formats/saved/sweep.json");
    std::fs::copy(golden, folder.path().join("experiment.json")).unwrap();
    let refused = output(&format!("inspect {}", folder.path().display()));
    let refused = refused.fails(2, &["many runs", "launcher resume"]);
    assert!(!refused.stderr.contains("killed"), "{refused:?}");
    let report = output(&format!("report {}", folder.path().display())).succeeds();
    assert!(report.contains("fit for latency claims"), "{report}");
}

#[test]
fn clean_dry_run_lists_segments() {
    // A segment of a dead run: its process does not exist, and there is no control segment.
    let name = "bulkhead.20200101-000000000-5-2147483600.submit";
    let path = Path::new("/dev/shm").join(name);
    std::fs::write(&path, [0; 64]).unwrap();
    let printed = output("clean --dry-run").stdout;
    // Another run that starts now may have removed it.
    let is_listed = printed.contains(name) && printed.contains("would be removed");
    assert!(is_listed || !path.exists(), "{printed}");
    let _ = std::fs::remove_file(&path);
}

#[test]
fn role_started_by_hand_is_refused() {
    output("role strategy-0 20260101-000000000-1").fails(1, &["launcher"]);
}

#[test]
fn damaged_logs_never_crash_inspect() {
    let folder = Fixture::new(Shape::PLAIN).write();
    let log = folder.path().join("orchestrator.stamps");
    let intact = std::fs::read(&log).unwrap();
    let inspect = |path: &Path| {
        let result = output(&format!("inspect {}", path.display()));
        assert!(matches!(result.code, Some(0 | 1)) && !result.stderr.contains("panicked"), "{result:?}");
        result
    };
    for len in [0, 7, 128, 300, 640, 641, 648, 700, intact.len() - 3] {
        std::fs::write(&log, &intact[..len]).unwrap();
        inspect(&log);
        inspect(folder.path());
    }
    for (word, name) in [(0, "magic"), (1, "version"), (2, "layout")] {
        let mut scribbled = intact.clone();
        scribbled[word * 8] ^= 0xff;
        std::fs::write(&log, &scribbled).unwrap();
        inspect(&log).fails(1, &[name]);
    }
    let mut random = 1u64;
    for _ in 0..40 {
        let mut scribbled = intact.clone();
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (random >> 33) as usize % scribbled.len();
            scribbled[offset] = random as u8;
        }
        std::fs::write(&log, &scribbled).unwrap();
        inspect(&log);
    }
    std::fs::write(&log, &intact).unwrap();
    inspect(&log).succeeds();
}

#[test]
fn log_of_another_run_is_refused() {
    let mut other = Fixture::new(Shape::PLAIN);
    other.record.plan.run += "1";
    let [run, other] = [Fixture::new(Shape::PLAIN).write(), other.write()];
    let log = "orchestrator.stamps";
    std::fs::copy(other.path().join(log), run.path().join(log)).unwrap();
    output(&format!("report {}", run.path().display())).fails(1, &["another run"]);
}

#[test]
fn missing_folder_is_usage_error_of_every_command() {
    for command in ["inspect", "report", "open", "export --perfetto /dev/null", "delete", "compare ."] {
        output(&format!("{command} no-such-run")).fails(2, &["no-such-run"]);
    }
}

#[test]
fn doctor_exits_1_exactly_with_bad_checks() {
    let doctor = output("doctor");
    let is_bad = doctor.stdout.lines().any(|line| line.starts_with("BAD"));
    assert_eq!(doctor.code, Some(i32::from(is_bad)), "{}", doctor.stdout);
}

#[test]
fn missing_program_of_experiments_is_named_with_its_build() {
    let alone = tempfile::tempdir().unwrap();
    let launcher = alone.path().join("launcher");
    std::fs::copy(env!("CARGO_BIN_EXE_launcher"), &launcher).unwrap();
    for line in ["compare --a x=1 --b x=2", "help bill", "run --baseline ."] {
        let mut command = Command::new(&launcher);
        command.args(line.split(' ')).env("PATH", "").current_dir(alone.path());
        output_of(&mut command).fails(2, &["bulkhead-experiments", "cargo build", "-p experiments"]);
    }
    assert_eq!(std::fs::read_dir(alone.path()).unwrap().count(), 1, "nothing was begun");
}

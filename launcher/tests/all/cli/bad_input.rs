//! Whatever a user types or feeds: a clear error that names the thing, the right exit code, nothing
//! left behind.

use crate::common::{Launcher, Running, command, output, segments, signal, text, wait_until};
use std::process::Stdio;

/// Runs with these flags; must be a usage error that contains all of `words`.
fn usage_error(flags: &[&str], words: &[&str]) {
    let launcher = Launcher::new();
    let output = launcher.run(flags).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{flags:?}: {word:?} is not in: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(launcher.folders().len(), 0, "{flags:?}");
}

/// The launcher below a limit of the shell's: it says which, fails in order and leaves nothing.
fn limited(limit: &str, args: &str, wanted: &str) {
    let launcher = Launcher::new();
    let (program, out) = (env!("CARGO_BIN_EXE_launcher"), launcher.out.path().display());
    let script = format!("ulimit {limit}; exec {program} {args} --out {out}");
    let mut shell = std::process::Command::new("sh");
    let child = shell
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let (code, stdout, stderr) = Running { child }.end();
    assert_eq!(code, Some(1), "{limit}: {stdout}{stderr}");
    assert!(stderr.contains(wanted) && stderr.contains("error: "), "{limit}: {stdout}{stderr}");
    assert!(!stderr.contains("panicked") && segments(pid).is_empty(), "{limit}: {stdout}{stderr}");
}

#[test]
fn limits_of_the_shell_are_named() {
    let run = "run --orders 1000 --window 100ms --delay fixed:1ms --strategies 1 --venues 1";
    // At the first byte, at a segment, at a log.
    for blocks in [0, 16, 256] {
        limited(&format!("-f {blocks}"), run, "ulimit -f unlimited");
    }
    limited("-s 64", run, "ulimit -s 8192");
    limited("-s 512", run, "ulimit -s 8192");
}

#[test]
fn flags_that_make_no_sense_are_named() {
    usage_error(&["--technique", "spsc-mix"], &["spsc-mux"]);
    usage_error(&["--isolation", "proces"], &["process"]);
    usage_error(&["--window", "5"], &["--window", "unit"]);
    usage_error(&["--window", "5 parsecs"], &["--window"]);
    usage_error(&["--delay", "uniform:9ms..5ms"], &["--delay"]);
    usage_error(&["--capacity", "100"], &["--capacity", "power of two"]);
    usage_error(&["--strategies", "0"], &["--strategies"]);
    usage_error(&["--strategies", "100000"], &["--strategies", "256"]);
    usage_error(&["--venues", "65"], &["--venues", "64"]);
    usage_error(&["--threading", "dedicated", "--strategies", "200"], &["dedicated", "cores"]);
    usage_error(&["--cores", "4095"], &["4095"]);
    usage_error(&["--speed", "2"], &["--schedule"]);
    usage_error(&["--orders"], &["--orders"]);
    usage_error(&["--liveness", "5ms"], &["--liveness", "20ms"]);
    usage_error(&["--on-death", "restrat"], &["--on-death", "restart"]);
    usage_error(&["--priority", "50"], &["--priority", "for example fifo:50"]);
    usage_error(&["--nonsense"], &["--nonsense"]);
    usage_error(&["--orders", "-5"], &["--orders", "-5", "is not a count"]);
    usage_error(&["--technique", "SPSC-MUX"], &["possible values", "spsc-mux"]);
    usage_error(&["--liveness", "0"], &["has no unit", "for example 100ms"]);
}

#[test]
fn faults_that_cannot_be_are_named() {
    let fault = |spec: &str, words: &[&str]| {
        usage_error(&["--strategies", "2", "--fault", spec], &[&["--fault"], words].concat());
    };
    fault("kil:strategy-0", &["kill", "KIND[:TARGET][@WHEN]"]);
    fault("kill:strategy-2@1s", &["strategy-0 to strategy-1", "--strategies"]);
    fault("kill:orchestrator", &["expected strategy-N, any, engine, launcher"]);
    fault("kill@2", &["unit"]);
    fault("kill@order:many", &["count"]);
    fault("kill@push:claimd:1", &["claimd", "claimed"]);
    fault("kill@push:linked:1", &["spsc-mux", "linked", "--technique"]);
    fault("hang:engine", &["kill and stop"]);
    fault("kill:launcher@order:1", &["Give a time"]);
    fault("kill@order:1 every 10ms", &["every"]);
    fault("leak@1s every 10ms", &["only kill and stop come again"]);
    fault("kill@1s every 10us", &["at least 1ms"]);
    fault("", &["KIND[:TARGET][@WHEN]"]);
    usage_error(
        &["--isolation", "thread", "--on-death", "restart"],
        &["--on-death", "--isolation", "cannot be fenced"],
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bulkhead.yaml");
    std::fs::write(&path, "fault: kill:any@1s; explode\n").unwrap();
    usage_error(&["--config", path.to_str().unwrap()], &["bulkhead.yaml:1", "fault", "explode"]);
}

#[test]
fn configuration_files_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let config = |text: &str| {
        let path = folder.path().join("bulkhead.yaml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    usage_error(&["--config", &config("stratgies: 3\n")], &["stratgies", "strategies", "bulkhead.yaml"]);
    usage_error(&["--config", &config("n_strategies: 8\n")], &["n_strategies", "strategies"]);
    usage_error(&["--config", &config("venues: many\n")], &["venues"]);
    usage_error(
        &["--config", &config("venues: 1\nvenues: 2\n")],
        &["bulkhead.yaml:2", "duplicate", "venues"],
    );
    let launcher = Launcher::new();
    let output = launcher.run(&["--config", &config("venues: 1\nvenues: 2\n")]).output().unwrap();
    assert!(
        !text(&output.stderr).contains("Policy"),
        "the user has no such option: {}",
        text(&output.stderr)
    );
    usage_error(&["--config", &config("venues: [1, 2\n")], &["bulkhead.yaml"]);
    usage_error(&["--config", "/nowhere/bulkhead.yaml"], &["/nowhere/bulkhead.yaml"]);
    usage_error(&["--config", "/dev/zero"], &["/dev/zero", "too much"]);
    usage_error(&["--config", &config(&"# long\n".repeat(10_000))], &["bulkhead.yaml", "too much"]);
}

#[test]
fn schedules_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let flow = |rows: &str| {
        let path = folder.path().join("flow.csv");
        let header = "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi";
        std::fs::write(&path, format!("{header}\n{rows}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bad_price = flow("0,1,new,1,S,limit,gtc,abc,5");
    usage_error(&["--schedule", &bad_price], &["flow.csv:2", "price_cents", "abc"]);
    usage_error(&["--schedule", "/nowhere/flow.csv"], &["/nowhere/flow.csv"]);
    let venue = folder.path().join("venue.csv");
    let rows = "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi,venue\n0,1,new,1,S,limit,gtc,1,5,9\n";
    std::fs::write(&venue, rows).unwrap();
    usage_error(&["--schedule", venue.to_str().unwrap()], &["venue.csv:2", "venue"]);
}

#[test]
fn names_that_are_no_text_are_refused_or_read() {
    use std::os::unix::ffi::OsStrExt;
    let launcher = Launcher::new();
    let odd = launcher.out.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    for flag in ["--out", "--schedule", "--instruments"] {
        let output = command(&["run", flag]).arg(&odd).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(flag) && stderr.contains("not UTF-8"), "{stderr}");
        assert!(!odd.exists());
    }
    // A run that was put into such a folder is read like any other.
    launcher.summary(&["--orders", "500", "--window", "50ms", "--delay", "fixed:1ms"]);
    std::fs::rename(&launcher.folders()[0], &odd).unwrap();
    for args in
        [&["report"][..], &["report", "--html"], &["inspect"], &["inspect", "--order", "0/3"], &["open"]]
    {
        let output = command(&[args[0]]).arg(&odd).args(&args[1..]).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

#[test]
fn endless_or_silent_input_never_blocks() {
    for flag in ["--schedule", "--instruments"] {
        usage_error(&[flag, "/dev/zero"], &["/dev/zero"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for flag in ["--schedule", "--config", "--instruments"] {
        let launcher = Launcher::new();
        let mut command = launcher.run(&[flag, fifo.to_str().unwrap()]);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // It catches signals before it reads; then Ctrl-C is heard although nobody ever writes.
        let status = || std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = || {
            status()
                .lines()
                .any(|line| line.starts_with("SigCgt:") && line.ends_with(|c| "2367abef".contains(c)))
        };
        wait_until("signals are caught", caught);
        signal(child.id(), "INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{flag}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("interrupted"), "{}", text(&output.stderr));
    }
    // What is written into a pipe is as good as a file.
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::write(fifo, "strategies: nine\n")
    });
    usage_error(&["--config", fifo.to_str().unwrap()], &["fifo:1", "nine"]);
    writer.join().unwrap().unwrap();
}

#[test]
fn recorded_flow_shows_duration_and_rate() {
    let launcher = Launcher::new();
    let flow = launcher.out.path().with_extension("csv");
    let rows: String = (0..2000).map(|n| format!("{},{n},new,{n},S,limit,gtc,1,5\n", n * 100)).collect();
    let header = "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi";
    std::fs::write(&flow, format!("{header}\n{rows}")).unwrap();
    let flags = ["--schedule", flow.to_str().unwrap(), "--strategies", "1", "--delay", "fixed:1ms"];
    let said = text(&launcher.run(&flags).output().unwrap().stdout);
    std::fs::remove_file(&flow).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("over 200 ms (10,005/s), as recorded"), "{said}");
    assert!(said.contains("200 ms at 10,005/s"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let output = output(&["run", "--out", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/proc/nowhere"), "{}", text(&output.stderr));
}

#[test]
fn too_little_shared_memory_is_said_before_anything_starts() {
    let launcher = Launcher::new();
    let output = launcher.run(&["--orders", "1000M", "--strategies", "1"]).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{stderr}");
    assert!(stderr.contains("/dev/shm") || stderr.contains("--orders"), "{stderr}");
}

#[test]
fn a_command_that_is_misspelt_is_told_the_nearest() {
    let output = output(&["swep"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'sweep'"), "{}", text(&output.stderr));
}

#[test]
fn full_disk_is_reported_once() {
    let launcher = Launcher::new();
    launcher.summary(&["--orders", "500", "--window", "50ms", "--delay", "fixed:1ms"]);
    let folder = launcher.folders()[0].clone();
    let output = output(&["report", folder.to_str().unwrap(), "--html", "/dev/full/report.html"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches("Not a directory").count(), 1, "{stderr}");
}

#[test]
fn several_runs_are_one_document() {
    let launcher = Launcher::new();
    let flags = ["--orders", "500", "--window", "50ms", "--delay", "fixed:1ms", "--repeats", "2", "--json"];
    let output = launcher.run(&flags).output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs: Vec<_> = list.as_array().unwrap().iter().map(|summary| &summary["valid"]).collect();
    assert_eq!(runs, [true, true]);
}

#[test]
fn the_folder_of_a_sweep_says_what_reads_it() {
    let launcher = Launcher::new();
    let out = launcher.out.path().to_str().unwrap();
    let load = ["--orders", "200", "--window", "20ms", "--delay", "fixed:1ms", "--strategies", "1"];
    let sweep = ["sweep", "--idle", "yield,park", "--repeats", "1", "--out", out];
    let made = output(&[&sweep[..], &load].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    let folder = launcher.folders()[0].clone();
    for command in ["report", "inspect"] {
        let output = output(&[command, folder.to_str().unwrap()]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("many runs") && stderr.contains("launcher sweep --resume"), "{stderr}");
        assert!(!stderr.contains("killed"), "{stderr}");
    }
}

#[test]
fn clean_can_only_say_what_it_would_remove() {
    // A name with a nonexistent process, and no control segment: of a dead run.
    let name = "bulkhead.20200101-000000000-5-2147483600.submit";
    let path = std::path::Path::new("/dev/shm").join(name);
    std::fs::write(&path, [0; 64]).unwrap();
    let said = text(&output(&["clean", "--dry-run"]).stdout);
    // Another run that starts now removes it as well.
    let was_there = said.contains(name) && said.contains("would be removed");
    assert!(was_there || !path.exists(), "{said}");
    let _ = std::fs::remove_file(&path);
}

#[test]
fn a_role_started_by_hand_says_who_starts_it() {
    let output = output(&["role", "strategy-0", "20260101-000000000-1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("launcher"), "{}", text(&output.stderr));
}

#[test]
fn damaged_logs_never_crash_inspect() {
    let launcher = Launcher::new();
    launcher.summary(&["--orders", "500", "--window", "50ms", "--delay", "fixed:1ms"]);
    let folder = launcher.folders()[0].clone();
    let log = folder.join("engine.stamps");
    let whole = std::fs::read(&log).unwrap();
    let inspect = |path: &str| {
        let output = command(&["inspect", path]).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {stderr}", output.status);
        assert!(!stderr.contains("panicked"), "{stderr}");
        (output.status.code(), stderr)
    };
    let path = log.to_str().unwrap();
    for len in [0, 7, 128, 300, 640, 641, 648, 700, whole.len() - 3] {
        std::fs::write(&log, &whole[..len]).unwrap();
        inspect(path);
        inspect(folder.to_str().unwrap());
    }
    for (word, name) in [(0, "magic"), (1, "version"), (2, "layout")] {
        let mut scribbled = whole.clone();
        scribbled[word * 8] ^= 0xff;
        std::fs::write(&log, &scribbled).unwrap();
        let (code, stderr) = inspect(path);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(name), "{name}: {stderr}");
    }
    let mut random = 1u64;
    for _ in 0..40 {
        let mut scribbled = whole.clone();
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (random >> 33) as usize % scribbled.len();
            scribbled[place] = random as u8;
        }
        std::fs::write(&log, &scribbled).unwrap();
        inspect(path);
    }
    std::fs::write(&log, &whole).unwrap();
    assert_eq!(inspect(path).0, Some(0));
}

#[test]
fn a_log_of_another_run_is_refused() {
    let launcher = Launcher::new();
    let flags = ["--orders", "500", "--window", "50ms", "--delay", "fixed:1ms"];
    launcher.summary(&flags);
    launcher.summary(&flags);
    let folders = launcher.folders();
    std::fs::copy(folders[0].join("engine.stamps"), folders[1].join("engine.stamps")).unwrap();
    let report = output(&["report", folders[1].to_str().unwrap()]);
    assert_eq!(report.status.code(), Some(1));
    assert!(text(&report.stderr).contains("another run"), "{}", text(&report.stderr));
}

#[test]
fn missing_folder_is_usage_error_of_every_command() {
    for command in ["inspect", "report", "open", "export --perfetto /dev/null", "delete", "compare ."] {
        let words: Vec<&str> = command.split_whitespace().chain(["no-such-run"]).collect();
        let output = output(&words);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains("no-such-run"), "{command}: {stderr}");
    }
}

#[test]
fn doctor_exits_1_exactly_with_bad_checks() {
    let output = output(&["doctor"]);
    let is_bad = text(&output.stdout).lines().any(|line| line.starts_with("BAD"));
    assert_eq!(output.status.code(), Some(i32::from(is_bad)), "{}", text(&output.stdout));
}

#[test]
fn help_fits_eighty_columns() {
    for args in [&["--help"][..], &["run", "--help"], &["inspect", "--help"], &["doctor"]] {
        let stdout = text(&output(args).stdout);
        for line in stdout.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
}

/// An allocation that fails would end it without a word, or not at all.
#[test]
fn a_limit_of_memory_is_named() {
    for limit in ["-v 100000", "-d 20000"] {
        let script = format!("ulimit {limit}; exec \"$0\" run --orders 100");
        let launcher = env!("CARGO_BIN_EXE_launcher");
        let output = std::process::Command::new("sh").args(["-c", &script, launcher]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{limit}");
        let said = text(&output.stderr);
        assert!(said.contains(&format!("ulimit {}", &limit[..2])), "{limit}: {said}");
    }
}

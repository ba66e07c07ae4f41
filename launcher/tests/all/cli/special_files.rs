//! An untrusted folder of results with links and pipes under the names that bulkhead reads and
//! writes. Nothing outside of the folder is written, no command blocks, and unreadable files are
//! named.

use crate::common::{CommandResult, entries, output};
use crate::fixture::{Fixture, Shape};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use protocol::segments::thread_segment;
use shm::memory::{Region, SHM_DIR, unlink};
use shm::sync::Ordering;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A special file in place of a regular one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpecialFile {
    Link,
    Dangling,
    Pipe,
}

impl SpecialFile {
    const ALL: [Self; 3] = [Self::Link, Self::Dangling, Self::Pipe];

    fn place_at(self, path: &Path, outside: &Path) {
        let _ = fs::remove_file(path);
        match self {
            Self::Link => symlink(outside.join("victim"), path).unwrap(),
            Self::Dangling => symlink(outside.join("not-there"), path).unwrap(),
            Self::Pipe => mkfifo(path, Mode::S_IRWXU).unwrap(),
        }
    }
}

/// A folder with a finished run in it, `results/run`, and a victim outside of it.
struct ForeignFolder {
    outside: tempfile::TempDir,
    run: PathBuf,
}

impl ForeignFolder {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let run = outside.path().join("results/run");
        fs::create_dir_all(&run).unwrap();
        Fixture::new(Shape { fills: true, ..Shape::PLAIN }).write_to(&run);
        output(&format!("report {}", run.display())).succeeds();
        fs::write(outside.path().join("victim"), "precious").unwrap();
        Self { outside, run }
    }

    fn place(&self, file_kind: SpecialFile, name: &str) {
        file_kind.place_at(&self.run.join(name), self.outside.path());
    }

    /// Runs every command that reads or writes a run's folder, `delete` last. Returns their
    /// results.
    fn run_all_commands(&self) -> Vec<(&'static str, CommandResult)> {
        let (outside, run) = (self.outside.path(), self.run.display());
        let commands = [
            ("inspect", format!("inspect {run}")),
            ("inspect", format!("inspect {run} --worst 3")),
            ("list", format!("list {}/results", outside.display())),
            ("compare", format!("compare {run} {run}")),
            ("page", format!("report {run} --html")),
            ("open", format!("open {run}")),
            ("export", format!("export {run} --perfetto {run}/run.pftrace")),
            ("report", format!("report {run}")),
            ("delete", format!("delete {run}")),
        ];
        let results = commands.map(|(name, line)| {
            let result = output(&line);
            assert!(matches!(result.code, Some(0..=2)), "{line}: {result:?}");
            assert!(!result.stderr.contains("panicked"), "{line}: {result:?}");
            assert_eq!(fs::read(outside.join("victim")).unwrap(), b"precious", "{line}");
            (name, result)
        });
        let paths = entries(outside);
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["results", "victim"], "nothing is written outside of the folder");
        results.into()
    }
}

#[test]
fn special_files_as_results_do_no_harm() {
    for file_kind in SpecialFile::ALL {
        let folder = ForeignFolder::new();
        let names = [
            "summary.json",
            "timeline.json",
            "tail.json",
            "histograms.hlog",
            "stages.csv",
            "stages.md",
            "positions.csv",
            "report.html",
            "tags",
            "run.pftrace",
        ];
        for name in names {
            folder.place(file_kind, name);
            // The name of temporary files in earlier versions.
            folder.place(file_kind, &format!(".{name}.new"));
        }
        // The record and the logs are intact, so `report` replaces the special files with new
        // results.
        let report = folder.run_all_commands().into_iter().find(|(name, _)| *name == "report").unwrap();
        assert_eq!(report.1.code, Some(0), "{file_kind:?}: {report:?}");
    }
}

#[test]
fn special_files_as_record_are_named() {
    for file_kind in SpecialFile::ALL {
        let folder = ForeignFolder::new();
        for name in ["run.json", ".run.json.new", "summary.json"] {
            folder.place(file_kind, name);
        }
        for (name, result) in folder.run_all_commands() {
            if !["list", "open"].contains(&name) {
                assert!(matches!(result.code, Some(1 | 2)), "{file_kind:?} {name}: {result:?}");
                let printed = result.all_output();
                assert!(
                    printed.contains("run.json") || printed.contains("summary.json"),
                    "{name}: {printed}"
                );
            }
        }
        assert!(folder.run.exists(), "a folder that is not a run is not deleted");
    }
}

#[test]
fn special_files_as_logs_are_named() {
    for file_kind in SpecialFile::ALL {
        let folder = ForeignFolder::new();
        folder.place(file_kind, "engine.stamps");
        folder.place(file_kind, "orchestrator.stamps");
        let thread = if folder.run.join("gateway-0.stamps").exists() { "orchestrator" } else { "engine" };
        let reason = if file_kind == SpecialFile::Pipe { "not a regular file" } else { "a symbolic link" };
        for (_, result) in
            folder.run_all_commands().into_iter().filter(|(name, _)| ["report", "export"].contains(name))
        {
            assert_eq!(result.code, Some(1), "{file_kind:?}: {result:?}");
            assert!(result.all_output().contains(&format!("{thread}.stamps: {reason}")), "{result:?}");
        }
    }
}

/// `report` saves logs that remained in `/dev/shm` into the run's folder, replacing special files.
#[test]
fn rescued_logs_replace_special_files_without_following_links() {
    for file_kind in SpecialFile::ALL {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        let mut fixture = Fixture::new(Shape::PLAIN);
        fixture.record.plan.run =
            format!("20200101-000000000-{}-{}", std::process::id(), file_kind as u8 + 1);
        // A concurrent `launcher clean` may remove the segments before they are rescued.
        let is_rescued = (0..5).any(|_| {
            let run = tempfile::tempdir_in(outside.path()).unwrap();
            fixture.write_to(run.path());
            fs::write(&victim, "precious").unwrap();
            let plan = &fixture.record.plan;
            let names: Vec<String> =
                plan.threads.iter().map(|thread| plan.segment_name(&thread_segment(&thread.name))).collect();
            for (thread, name) in names.iter().enumerate() {
                let bytes = fixture.bytes(thread);
                let segment = Region::create(name, bytes.len() / 8).unwrap().words();
                for (index, word) in bytes.as_chunks().0.iter().enumerate() {
                    segment[index].store(u64::from_le_bytes(*word), Ordering::Relaxed);
                }
                let file = run.path().join(format!("{}.stamps", plan.threads[thread].name));
                file_kind.place_at(&file, outside.path());
            }
            let result = output(&format!("report {}", run.path().display()));
            assert_eq!(fs::read(&victim).unwrap(), b"precious", "{file_kind:?}: {result:?}");
            assert!(!outside.path().join("not-there").exists(), "{file_kind:?}: {result:?}");
            let left = names.iter().filter(|name| Path::new(SHM_DIR).join(name).exists()).count();
            names.iter().for_each(|name| drop(unlink(name)));
            result.code == Some(0) && left == 0 && result.stderr.contains("saved in ")
        });
        assert!(is_rescued, "{file_kind:?}");
    }
}

#[test]
fn journals_with_special_files_are_refused() {
    for file_kind in SpecialFile::ALL {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("journal");
        fs::create_dir(&folder).unwrap();
        fs::write(outside.path().join("victim"), "precious").unwrap();
        for name in ["log-00000001", "snapshot-00000000000000000007", "lock", "orphaned-00000001"] {
            file_kind.place_at(&folder.join(name), outside.path());
        }
        for action in ["list", "verify", "dump", "cut"] {
            let result = output(&format!("journal {action} {}", folder.display()));
            assert!(matches!(result.code, Some(0..=2)), "{file_kind:?} {action}: {result:?}");
            assert_eq!(
                fs::read(outside.path().join("victim")).unwrap(),
                b"precious",
                "{file_kind:?} {action}"
            );
            assert!(!outside.path().join("not-there").exists(), "{file_kind:?} {action}");
        }
    }
}

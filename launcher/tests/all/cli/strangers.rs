//! A folder of results that a stranger has made: links and pipes under the names that bulkhead
//! reads and writes. Nothing outside of the folder is written, nothing is waited for, and what
//! cannot be read is named.

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

    fn set(self, place: &Path, outside: &Path) {
        let _ = fs::remove_file(place);
        match self {
            Self::Link => symlink(outside.join("victim"), place).unwrap(),
            Self::Dangling => symlink(outside.join("not-there"), place).unwrap(),
            Self::Pipe => mkfifo(place, Mode::S_IRWXU).unwrap(),
        }
    }
}

/// A folder with a finished run in it, `shelf/run`, and a victim outside of it.
struct ForeignFolder {
    outside: tempfile::TempDir,
    run: PathBuf,
}

impl ForeignFolder {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let run = outside.path().join("shelf/run");
        fs::create_dir_all(&run).unwrap();
        Fixture::new(Shape { fills: true, ..Shape::PLAIN }).write_to(&run);
        output(&format!("report {}", run.display())).succeeds();
        fs::write(outside.path().join("victim"), "precious").unwrap();
        Self { outside, run }
    }

    fn trap(&self, trap: SpecialFile, name: &str) {
        trap.set(&self.run.join(name), self.outside.path());
    }

    /// Runs every command that reads or writes such a folder, deleting last, and gives what each
    /// came to.
    fn attacked(&self) -> Vec<(&'static str, CommandResult)> {
        let (outside, run) = (self.outside.path(), self.run.display());
        let commands = [
            ("inspect", format!("inspect {run}")),
            ("inspect", format!("inspect {run} --worst 3")),
            ("list", format!("list {}/shelf", outside.display())),
            ("compare", format!("compare {run} {run}")),
            ("page", format!("report {run} --html")),
            ("open", format!("open {run}")),
            ("export", format!("export {run} --perfetto {run}/run.pftrace")),
            ("report", format!("report {run}")),
            ("delete", format!("delete {run}")),
        ];
        let attacked = commands.map(|(name, line)| {
            let result = output(&line);
            assert!(matches!(result.code, Some(0..=2)), "{line}: {result:?}");
            assert!(!result.stderr.contains("panicked"), "{line}: {result:?}");
            assert_eq!(fs::read(outside.join("victim")).unwrap(), b"precious", "{line}");
            (name, result)
        });
        let paths = entries(outside);
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["shelf", "victim"], "nothing is written outside of the folder");
        attacked.into()
    }
}

#[test]
fn traps_in_place_of_results_harm_nobody() {
    for trap in SpecialFile::ALL {
        let world = ForeignFolder::new();
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
            world.trap(trap, name);
            // The name that drafts used to have.
            world.trap(trap, &format!(".{name}.new"));
        }
        // The run and its logs are as they were, so that a report can make all of the results
        // again, in place of the traps.
        let attacked = world.attacked().into_iter().find(|(name, _)| *name == "report").unwrap();
        assert_eq!(attacked.1.code, Some(0), "{trap:?}: {attacked:?}");
    }
}

#[test]
fn traps_in_place_of_the_record_are_named() {
    for trap in SpecialFile::ALL {
        let world = ForeignFolder::new();
        for name in ["run.json", ".run.json.new", "summary.json"] {
            world.trap(trap, name);
        }
        for (name, result) in world.attacked() {
            if !["list", "open"].contains(&name) {
                assert!(matches!(result.code, Some(1 | 2)), "{trap:?} {name}: {result:?}");
                let said = result.said();
                assert!(said.contains("run.json") || said.contains("summary.json"), "{name}: {said}");
            }
        }
        assert!(world.run.exists(), "what is no run is not deleted");
    }
}

#[test]
fn traps_in_place_of_logs_are_named() {
    for trap in SpecialFile::ALL {
        let world = ForeignFolder::new();
        world.trap(trap, "engine.stamps");
        world.trap(trap, "orchestrator.stamps");
        let thread = if world.run.join("gateway-0.stamps").exists() { "orchestrator" } else { "engine" };
        let why = if trap == SpecialFile::Pipe { "not a regular file" } else { "a symbolic link" };
        for (_, result) in
            world.attacked().into_iter().filter(|(name, _)| ["report", "export"].contains(name))
        {
            assert_eq!(result.code, Some(1), "{trap:?}: {result:?}");
            assert!(result.said().contains(&format!("{thread}.stamps: {why}")), "{result:?}");
        }
    }
}

/// Logs that stayed in `/dev/shm` are saved by `report`: into files of the folder, whatever stands
/// there.
#[test]
fn rescued_logs_replace_traps_and_follow_none() {
    for trap in SpecialFile::ALL {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        let mut fixture = Fixture::new(Shape::PLAIN);
        fixture.record.plan.run = format!("20200101-000000000-{}-{}", std::process::id(), trap as u8 + 1);
        // Somebody else's `launcher clean` may take the segments away before they are rescued.
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
                for (place, word) in bytes.as_chunks().0.iter().enumerate() {
                    segment[place].store(u64::from_le_bytes(*word), Ordering::Relaxed);
                }
                let file = run.path().join(format!("{}.stamps", plan.threads[thread].name));
                trap.set(&file, outside.path());
            }
            let result = output(&format!("report {}", run.path().display()));
            assert_eq!(fs::read(&victim).unwrap(), b"precious", "{trap:?}: {result:?}");
            assert!(!outside.path().join("not-there").exists(), "{trap:?}: {result:?}");
            let left = names.iter().filter(|name| Path::new(SHM_DIR).join(name).exists()).count();
            names.iter().for_each(|name| drop(unlink(name)));
            result.code == Some(0) && left == 0 && result.stderr.contains("saved in ")
        });
        assert!(is_rescued, "{trap:?}");
    }
}

#[test]
fn journals_with_traps_are_refused() {
    for trap in SpecialFile::ALL {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("journal");
        fs::create_dir(&folder).unwrap();
        fs::write(outside.path().join("victim"), "precious").unwrap();
        for name in ["log-00000001", "snapshot-00000000000000000007", "lock", "orphaned-00000001"] {
            trap.set(&folder.join(name), outside.path());
        }
        for act in ["list", "verify", "dump", "cut"] {
            let result = output(&format!("journal {act} {}", folder.display()));
            assert!(matches!(result.code, Some(0..=2)), "{trap:?} {act}: {result:?}");
            assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"precious", "{trap:?} {act}");
            assert!(!outside.path().join("not-there").exists(), "{trap:?} {act}");
        }
    }
}

//! A folder of results that a stranger has made: links and pipes under the names that bulkhead
//! reads and writes. Nothing outside of the folder is written, nothing is waited for, and what
//! cannot be read is named.

use crate::common::{bounded, text};
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
        let (code, _, stderr) = bounded(&["report", run.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{stderr}");
        fs::write(outside.path().join("victim"), "precious").unwrap();
        Self { outside, run }
    }

    fn trap(&self, trap: SpecialFile, name: &str) {
        trap.set(&self.run.join(name), self.outside.path());
    }

    fn path(&self, name: &str) -> String {
        self.outside.path().join(name).to_str().unwrap().to_owned()
    }

    /// Every command that reads or writes such a folder; deleting comes last.
    fn commands(&self) -> Vec<Vec<String>> {
        let run = self.run.to_str().unwrap().to_owned();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        vec![
            words(&["inspect", &run]),
            words(&["inspect", &run, "--worst", "3"]),
            words(&["list", &self.path("shelf")]),
            words(&["compare", &run, &run]),
            words(&["report", &run, "--html"]),
            words(&["open", &run]),
            words(&["export", &run, "--perfetto", &format!("{run}/run.pftrace")]),
            words(&["report", &run]),
            words(&["delete", &run]),
        ]
    }

    /// Does all of it, and gives what each came to.
    fn attacked(&self) -> Vec<(Vec<String>, Option<i32>, String)> {
        let attacked = self.commands().into_iter().map(|words| {
            let (code, stdout, stderr) = bounded(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(matches!(code, Some(0..=2)), "{words:?}: {code:?} {stderr}");
            assert!(!stderr.contains("panicked"), "{words:?}: {stderr}");
            assert_eq!(fs::read(self.path("victim")).unwrap(), b"precious", "{words:?}");
            (words, code, stdout + &stderr)
        });
        let attacked: Vec<_> = attacked.collect();
        let names = fs::read_dir(self.outside.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["shelf", "victim"], "nothing is written outside of the folder");
        attacked
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
        let attacked = world.attacked();
        // The run and its logs are as they were, so that a report can make all of the results
        // again, in place of the traps.
        let (_, code, said) =
            attacked.iter().find(|(words, ..)| words[0] == "report" && words.len() == 2).unwrap();
        assert_eq!(*code, Some(0), "{trap:?}: {said}");
    }
}

#[test]
fn traps_in_place_of_the_record_are_named() {
    for trap in SpecialFile::ALL {
        let world = ForeignFolder::new();
        for name in ["run.json", ".run.json.new", "summary.json"] {
            world.trap(trap, name);
        }
        for (words, code, said) in world.attacked() {
            let is_read = ["report", "inspect", "export", "compare", "delete"].contains(&words[0].as_str());
            if is_read {
                assert!(matches!(code, Some(1 | 2)), "{trap:?} {words:?}: {code:?} {said}");
                assert!(said.contains("run.json") || said.contains("summary.json"), "{words:?}: {said}");
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
        for (words, code, said) in world.attacked() {
            if words[0] == "report" && words.len() == 2 || words.contains(&"--perfetto".to_owned()) {
                assert_eq!(code, Some(1), "{trap:?} {words:?}: {said}");
                let why = if trap == SpecialFile::Pipe { "not a regular file" } else { "a symbolic link" };
                assert!(said.contains(&format!("{thread}.stamps: {why}")), "{words:?}: {said}");
            }
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
            let (code, _, stderr) = bounded(&["report", run.path().to_str().unwrap()]);
            assert_eq!(fs::read(&victim).unwrap(), b"precious", "{trap:?}: {stderr}");
            assert!(!outside.path().join("not-there").exists(), "{trap:?}: {stderr}");
            let left = names.iter().filter(|name| Path::new(SHM_DIR).join(name).exists()).count();
            names.iter().for_each(|name| drop(unlink(name)));
            code == Some(0) && left == 0 && text(stderr.as_bytes()).contains("are saved in")
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
            let (code, stdout, stderr) = bounded(&["journal", act, folder.to_str().unwrap()]);
            assert!(matches!(code, Some(0..=2)), "{trap:?} {act}: {stdout}{stderr}");
            assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"precious", "{trap:?} {act}");
            assert!(!outside.path().join("not-there").exists(), "{trap:?} {act}");
        }
    }
}

//! Runs writer and readers as processes: this program starts itself, and each child prints *ready*
//! and then its results.

use crate::figures::Figures;
use crate::work::{self, CONTROL, GO, Load, OVER, Read, START, STATE, Value};
use shm::memory::{AtomicWords, Region};
use shm::sync::{AtomicU64, Ordering};
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use system::clock::{Clock, Monotonic};
use system::process;

/// The first word of the command line of a child process.
pub const CHILD: &str = "--child";
/// How long an end may take beyond the time of a round: a writer of mmap-sync may wait for a second
/// more than once.
const GRACE: Duration = Duration::from_secs(4);

/// A compared crate whose ends are in separate processes, as a child process runs it.
pub struct Contender {
    pub name: &'static str,
    role: Box<dyn Fn(&Role<'_>) -> Figures>,
}

impl Contender {
    /// A crate with its name, how it makes the writing end in a new directory for some readers, a
    /// write, how it makes a reading end there, and a read. The writing end is there before readers
    /// come.
    pub fn new<W, R>(
        name: &'static str,
        writer: impl Fn(&Path, usize) -> W + 'static,
        write: impl Fn(&mut W, &Value) + 'static,
        reader: impl Fn(&Path) -> R + 'static,
        read: impl Read<R>,
    ) -> Self {
        let role = move |role: &Role<'_>| {
            let shared = work::place(role.agent, role.readers);
            if role.agent == 0 {
                let mut writer = writer(role.folder, role.readers);
                println!("ready");
                let due = work::due(role.load, role.ns);
                return work::write(|value| write(&mut writer, value), &role.control, &due, role.ns);
            }
            let mut reader = reader(role.folder);
            println!("ready");
            work::read(&mut reader, read, &role.control, shared, role.load.hold(role.agent))
        };
        Self { name, role: Box::new(role) }
    }
}

struct Role<'a> {
    /// 0: it writes.
    agent: usize,
    readers: usize,
    ns: u64,
    load: Load,
    folder: &'a Path,
    control: AtomicWords,
}

pub fn name(folder: &Path) -> String {
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn control(folder: &Path) -> AtomicWords {
    let file =
        OpenOptions::new().read(true).write(true).open(folder.join("control")).expect("the control file");
    Region::map("control", &file, true).expect("its memory").words()
}

pub fn child(words: &[String], all: &[Contender]) {
    let [parent, name, agent, readers, ns, load, folder] = words else { panic!("{CHILD} is for itself") };
    let number = |word: &String| word.parse::<u64>().expect("a number");
    process::die_with_parent(number(parent) as u32).expect("a parent");
    let contender = all.iter().find(|contender| contender.name == name).expect("a contender");
    let folder = Path::new(folder);
    let (load, ..) = Load::ALL.into_iter().find(|(_, its, _)| its == load).expect("a load");
    let (agent, readers) = (number(agent) as usize, number(readers) as usize);
    let mut figures =
        (contender.role)(&Role { agent, readers, ns: number(ns), load, folder, control: control(folder) });
    print!("{}", figures.text());
}

/// A child that has reported that it is ready.
fn start(words: &[String], agent: usize) -> (Child, Option<BufReader<ChildStdout>>) {
    let mut words = words.to_vec();
    words[3] = agent.to_string();
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let mut child =
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a process");
    let mut message = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    let is_ready = message.read_line(&mut line).is_ok() && line == "ready\n";
    (child, is_ready.then_some(message))
}

pub fn run(contender: &Contender, readers: usize, ns: u64, load: Load, folder: &Path) -> Figures {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let folder = folder.join(format!("peer-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&folder).expect("a folder");
    let file = fs::File::create_new(folder.join("control")).expect("a control file");
    file.set_len(CONTROL as u64 * 8).expect("its length");
    let control = control(&folder);
    let (_, load, _) = Load::ALL.into_iter().find(|(its, ..)| *its == load).expect("it is one of all");
    let numbers = [readers.to_string(), ns.to_string(), load.into(), folder.display().to_string()];
    let mut words = vec![CHILD.into(), std::process::id().to_string(), contender.name.into(), String::new()];
    words.extend(numbers);
    let mut all: Vec<_> = (0..=readers).map(|agent| start(&words, agent)).collect();
    control[START].store(Monotonic.now() + 1_000_000, Ordering::Relaxed);
    // Release: pairs with the agents' Acquire; the time of the start is there.
    control[STATE].store(GO, Ordering::Release);
    let mut figures = Figures::new();
    let deadline = Instant::now() + Duration::from_nanos(2 * ns) + GRACE;
    let texts: Vec<_> = all
        .iter_mut()
        .map(|(_, message)| message.take())
        .map(|message| {
            std::thread::spawn(move || {
                let mut text = String::new();
                message.is_some_and(|mut message| message.read_to_string(&mut text).is_ok()).then_some(text)
            })
        })
        .collect();
    for (agent, ((mut child, _), text)) in all.into_iter().zip(texts).enumerate() {
        while !text.is_finished() {
            if Instant::now() > deadline {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let text = text.join().ok().flatten().unwrap_or_default();
        figures.died += u64::from(!child.wait().is_ok_and(|status| status.success()));
        figures.add_text(&text);
        if agent == 0 {
            // Also of a writer that died.
            control[STATE].store(OVER, Ordering::Release);
        }
    }
    let _ = fs::remove_dir_all(&folder);
    remove_named(&folder);
    figures
}

/// Removes what a peer has left next to its folder, under names that begin with the folder's.
fn remove_named(folder: &Path) {
    let prefix = format!("{}_", name(folder));
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

//! Remote strategies on two hosts, over a network that delays, loses, doubles and reorders.

mod host;
mod relay;

use bridge_aeron::figures::Crossing;
use host::{Host, PATIENCE, ended, enter_the_network_between, may_make_hosts, text};
use launcher::shm::sync::Ordering;
use relay::{Relay, Weather};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

const PORT: u16 = 40_400;

/// Lead of the engine's clock in seconds, which the bounds must contain.
const AHEAD_S: u32 = 1_000;

/// The engine's host, the far host, and the network between them.
struct World {
    engine: Host,
    far: Host,
    relay: Relay,
    folder: tempfile::TempDir,
}

/// What a run has left in its folder.
struct Run {
    folder: PathBuf,
    summary: Value,
}

/// A line of positions.
#[derive(Debug, Default, PartialEq)]
struct Traded {
    net: i64,
    fills: u64,
}

/// The word in which a meeting is named on the engine's host.
const SERVE: &str = concat!("exec:", env!("CARGO_BIN_EXE_bulkhead-bridge"), " serve hosts@0.0.0.0:40400");

impl World {
    /// Moves the calling thread into the network between; `None`: this process may not make hosts.
    fn new(weather: Weather) -> Option<Self> {
        if !may_make_hosts() {
            return None;
        }
        enter_the_network_between();
        let (engine, far) = (Host::new(1, AHEAD_S), Host::new(2, 0));
        let relay = Relay::start(far.beside, engine.beside, engine.address, PORT, weather);
        Some(Self { engine, far, relay, folder: tempfile::tempdir().unwrap() })
    }

    fn out(&self, of: &str) -> PathBuf {
        self.folder.path().join(of)
    }

    fn start_far(&self, words: &str) -> Child {
        let meeting = format!("hosts@{}:{PORT}", self.far.beside);
        let words: Vec<&str> = ["join", &meeting].into_iter().chain(words.split(' ')).collect();
        self.far.start(&words, &self.out("far"))
    }

    fn start_engine(&self, strategies: &str, words: &str) -> Child {
        let words = ["run", "--strategy", strategies].into_iter().chain(words.split(' '));
        self.engine.start(&words.collect::<Vec<_>>(), &self.out("engine"))
    }

    /// The run of a side, which is over and must have left nothing but its folder.
    fn run(&self, of: &str, child: Child) -> Run {
        let output = ended(of, child);
        let host = if of == "far" { &self.far } else { &self.engine };
        assert_eq!(host.shm(), Vec::<String>::new(), "left by {of}");
        let folder = std::fs::read_dir(self.out(of)).unwrap().next().unwrap().unwrap().path();
        let summary = read(&folder.join("summary.json"));
        let why = [&summary["outcome"], &summary["violations"], &summary["reasons"], &summary["incidents"]];
        assert_eq!(summary["valid"], true, "{of}: {why:#?} {}", text(&output));
        assert!(output.status.success(), "{of}: {}", text(&output));
        Run { folder, summary }
    }

    fn wait(&self, what: &str, holds: impl Fn() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < PATIENCE, "never: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Until trading is well under way: handshakes and heartbeats alone are fewer datagrams.
    fn wait_for_trade(&self) {
        let process = |name: &str| self.out(name).read_dir().is_ok_and(|mut runs| runs.next().is_some());
        self.wait("two runs that began", || process("far") && process("engine"));
        let passed = || self.relay.state.passed.load(Ordering::Relaxed);
        let before = passed();
        self.wait("trade", || passed() > before + 4_000);
    }
}

fn read(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap()
}

impl Run {
    fn count(&self, what: &str) -> u64 {
        self.summary["orders"][what].as_u64().unwrap_or_else(|| panic!("{what}: {}", self.summary["orders"]))
    }

    fn crossing(&self) -> Crossing {
        Crossing::read(&self.folder).unwrap()
    }

    fn traded(&self) -> Traded {
        let text = std::fs::read_to_string(self.folder.join("positions.csv")).unwrap();
        let mut all = Traded::default();
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            all.net += cells[3].parse::<i64>().unwrap();
            all.fills += cells[4].parse::<u64>().unwrap();
        }
        all
    }

    /// Returns what the engine's side printed at the end of each incarnation that got that far.
    fn served(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.join("strategy-0.stderr")).unwrap_or_default();
        text.lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn deaths(&self) -> usize {
        self.summary["incidents"].as_array().map_or(0, Vec::len)
    }
}

fn sum(served: &[Value], what: &str) -> u64 {
    served.iter().map(|line| line[what].as_u64().unwrap()).sum()
}

/// Every order of the far host in exactly one of the ways in which an order can end.
fn ends(crossing: &Crossing) -> u64 {
    let orders = &crossing.orders;
    orders.answered + orders.lost + orders.cut_off + orders.unknown + orders.refused
}

/// The true offset is within the bounds: before, during and after.
fn clocks_are_right(crossing: &Crossing) {
    let truth = i128::from(AHEAD_S) * 1_000_000_000;
    assert_eq!((crossing.clocks.unknown.as_deref(), crossing.clocks.ahead.len()), (None, 5));
    for ahead in &crossing.clocks.ahead {
        assert!(ahead.least_ns <= truth && truth <= ahead.most_ns, "{ahead:?}");
    }
}

const ORDERS: u64 = 4_000;
const TRADE: &str = "--orders 4000 --window 2s --delay uniform:1ms..5ms --idle park";

/// Every order of the far host's strategies is answered once, with equal trades in both books.
fn whole(weather: Weather) -> Option<(Crossing, World)> {
    let world = World::new(weather)?;
    let far = world.start_far(&format!("--strategies 2 {TRADE}"));
    let engine = world.start_engine(SERVE, &format!("--strategies 1 {TRADE}"));
    let (far, engine) = (world.run("far", far), world.run("engine", engine));
    assert_eq!((far.count("sent"), far.count("returned")), (ORDERS, ORDERS));
    assert_eq!((engine.count("sent"), engine.count("returned"), engine.deaths()), (ORDERS, ORDERS, 0));
    let crossing = far.crossing();
    assert_eq!((crossing.orders.answered, ends(&crossing)), (ORDERS, ORDERS), "{crossing:?}");
    assert_eq!(
        (crossing.frames.sessions, crossing.frames.doubled, crossing.downs.len()),
        (1, 0, 0),
        "{crossing:?}"
    );
    let served = engine.served();
    assert_eq!(
        (sum(&served, "came"), sum(&served, "sent"), sum(&served, "answered")),
        (ORDERS, ORDERS, ORDERS)
    );
    assert_eq!(far.traded(), engine.traded());
    assert_eq!((crossing.measured, crossing.stages.len()), (ORDERS, 4));
    // A figure smaller than its error is left out.
    for figure in crossing.stages.iter().flat_map(|stage| &stage.quantiles) {
        assert!(figure.ns.is_none_or(|ns| ns.unsigned_abs() > figure.error_ns), "{figure:?}");
    }
    clocks_are_right(&crossing);
    Some((crossing, world))
}

#[test]
fn calm_network_answers_every_order_once() {
    whole(Weather::default());
}

#[test]
fn delay_loss_and_disorder_lose_and_double_nothing() {
    let weather = Weather { lost: 30, doubled: 20, delay_us: 2_000 };
    let Some((_, world)) = whole(weather) else { return };
    let state = &world.relay.state;
    let happened = [state.lost.load(Ordering::Relaxed), state.overtaken.load(Ordering::Relaxed)];
    assert!(happened.iter().all(|times| *times > 20), "{happened:?}");
}

/// Some orders are open at any time, however long nothing is heard.
const LONG: &str = "--orders 12000 --window 6s --delay uniform:1ms..4s --max-open 12000 --idle park";
const LONG_ORDERS: u64 = 12_000;

#[test]
fn partition_reports_every_outcome() {
    let Some(world) = World::new(Weather::default()) else { return };
    let far = world.start_far(&format!("--strategies 2 {LONG}"));
    let engine = world.start_engine(SERVE, &format!("--strategies 1 --on-death restart {LONG}"));
    world.wait_for_trade();
    world.relay.state.is_parted.set(true);
    std::thread::sleep(Duration::from_secs(3));
    world.relay.state.is_parted.set(false);
    let (far, engine) = (world.run("far", far), world.run("engine", engine));
    let (crossing, served) = (far.crossing(), engine.served());
    // One death, and an incarnation behind it.
    assert_eq!((engine.deaths(), served.len()), (1, 2), "{served:?}");
    assert_eq!((served[0]["epoch"].as_u64(), served[1]["epoch"].as_u64()), (Some(0), Some(1)));
    assert_eq!((crossing.frames.sessions, crossing.downs.len()), (2, 1), "{crossing:?}");
    // The history was saved, so every outcome is known.
    assert_eq!((ends(&crossing), crossing.orders.unknown), (LONG_ORDERS, 0), "{crossing:?}");
    assert!(crossing.orders.answered > 0 && crossing.orders.cut_off > 0, "{crossing:?}");
    let came = crossing.orders.answered + crossing.orders.cut_off;
    assert_eq!(sum(&served, "came"), came, "{crossing:?} {served:?}");
    assert_eq!(sum(&served, "sent") + sum(&served, "refused") + sum(&served, "dropped"), came, "{served:?}");
    assert_eq!(engine.count("sent"), sum(&served, "sent"));
    let (there, here) = (engine.traded().fills, far.traded().fills);
    assert!((here..=here + crossing.orders.cut_off).contains(&there), "{there} {here} {crossing:?}");
    clocks_are_right(&crossing);
}

#[test]
fn dead_far_host_is_a_dead_strategy() {
    let Some(mut world) = World::new(Weather::default()) else { return };
    let mut far = world.start_far(&format!("--strategies 2 {LONG}"));
    let strategies = format!("{SERVE},player");
    let engine = world.start_engine(&strategies, &format!("--strategies 2 --on-death continue {LONG}"));
    world.wait_for_trade();
    world.far.die();
    far.wait().unwrap();
    let engine = world.run("engine", engine);
    let served = engine.served();
    assert_eq!((engine.deaths(), served.len()), (1, 1), "{served:?}");
    // The other strategy is not concerned, and what was open of this one is cancelled.
    let share = engine.summary["plan"]["workload"]["trading"]["orders"][1].as_u64().unwrap();
    assert_eq!(engine.count("sent"), share + sum(&served, "sent"), "{served:?}");
    assert!(sum(&served, "sent") > 0 && engine.count("cancelled") > 0, "{}", engine.summary["orders"]);
}

#[test]
fn killed_engine_side_leaves_outcomes_unknown() {
    let Some(world) = World::new(Weather::default()) else { return };
    let far = world.start_far(&format!("--strategies 2 {LONG}"));
    let engine = world.start_engine(SERVE, &format!("--strategies 1 --on-death restart {LONG}"));
    world.wait_for_trade();
    assert!(world.engine.kill("serve"), "no such process");
    let (far, engine) = (world.run("far", far), world.run("engine", engine));
    let (crossing, served) = (far.crossing(), engine.served());
    assert_eq!((engine.deaths(), served.len()), (1, 1), "only the second incarnation came to say something");
    assert_eq!((ends(&crossing), crossing.frames.sessions), (LONG_ORDERS, 2), "{crossing:?}");
    // The dead incarnation's orders are among those answered, cut off or unknown.
    let first = engine.count("sent") - sum(&served, "sent");
    let of_first = crossing.orders.answered + crossing.orders.cut_off - sum(&served, "came");
    assert!(
        (of_first..=of_first + crossing.orders.unknown).contains(&first),
        "{first} {crossing:?} {served:?}"
    );
    let (there, here) = (engine.traded().fills, far.traded().fills);
    let open = crossing.orders.cut_off + crossing.orders.unknown;
    assert!((here..=here + open).contains(&there), "{there} {here} {crossing:?}");
    clocks_are_right(&crossing);
}

#[test]
fn dead_far_strategy_has_its_orders_cancelled() {
    let Some(world) = World::new(Weather::default()) else { return };
    let far =
        world.start_far(&format!("--strategies 2 --on-death continue --fault kill:strategy-1@1s {LONG}"));
    let engine = world.start_engine(SERVE, &format!("--strategies 1 {LONG}"));
    let (far, engine) = (world.run("far", far), world.run("engine", engine));
    let (crossing, served) = (far.crossing(), engine.served());
    assert_eq!((far.deaths(), engine.deaths(), crossing.frames.sessions), (1, 0, 1));
    let orders = &crossing.orders;
    assert!(orders.cancels > 0 && far.count("sent") < LONG_ORDERS, "{crossing:?}");
    assert_eq!(ends(&crossing), orders.answered, "{crossing:?}");
    assert_eq!(sum(&served, "came"), orders.answered + orders.cancels, "{served:?}");
    assert_eq!(engine.traded(), far.traded());
}

#[test]
fn engine_refuses_orders_beyond_its_plan() {
    let Some(world) = World::new(Weather::default()) else { return };
    let far = world.start_far(&format!("--strategies 2 {TRADE}"));
    let few = TRADE.replace("4000", "1000");
    let engine = world.start_engine(SERVE, &format!("--strategies 1 {few}"));
    let (far, engine) = (world.run("far", far), world.run("engine", engine));
    let (crossing, served) = (far.crossing(), engine.served());
    assert_eq!((crossing.orders.answered, ends(&crossing)), (ORDERS, ORDERS), "{crossing:?}");
    assert_eq!((sum(&served, "sent"), sum(&served, "refused")), (1_000, ORDERS - 1_000), "{served:?}");
    assert_eq!((engine.deaths(), engine.traded()), (0, far.traded()));
}

#[test]
fn killed_launcher_leaves_nothing() {
    let Some(world) = World::new(Weather::default()) else { return };
    let mut far = world.start_far(&format!("--strategies 2 {LONG}"));
    let mut engine = world.start_engine(SERVE, &format!("--strategies 1 {LONG}"));
    world.wait_for_trade();
    assert!(world.far.kill("run") && world.engine.kill("run"), "no such process");
    far.wait().unwrap();
    engine.wait().unwrap();
    world.wait("two empty /dev/shm", || world.far.shm().is_empty() && world.engine.shm().is_empty());
}

#[test]
fn dead_engine_host_ends_every_order() {
    let Some(mut world) = World::new(Weather::default()) else { return };
    // Whose orders take so little that ten seconds without any are a stall.
    let quick = LONG.replace("4s", "20ms");
    let far = world.start_far(&format!("--strategies 2 {quick}"));
    let mut engine = world.start_engine(SERVE, &format!("--strategies 1 {quick}"));
    world.wait_for_trade();
    world.engine.die();
    engine.wait().unwrap();
    let far = world.run("far", far);
    let crossing = far.crossing();
    assert_eq!((ends(&crossing), crossing.frames.sessions), (LONG_ORDERS, 1), "{crossing:?}");
    assert!(crossing.orders.answered > 0 && crossing.orders.refused > 0, "{crossing:?}");
    clocks_are_right(&crossing);
}

//! Two links over a faulty network between processes that crash: every sent message must arrive or
//! have its outcome reported.

use super::*;
use proptest::prelude::*;
use protocol::wire::{Order, OrderId, Report};

const RUN: u32 = 7;
/// Timing in the simulated time of these tests, which has no unit.
const TIMING: Timing = Timing { heartbeat_ns: 1_000, silence_ns: 20_000, hello_ns: 10_000 };
const STEP: u64 = 100;
const TRANSIT: u64 = 400;

/// Failures, each in parts per thousand.
#[derive(Clone, Copy, Debug)]
struct NetworkFaults {
    lost: u64,
    doubled: u64,
    /// Frames that others overtake.
    slow: u64,
    /// Frames delayed beyond the end of their session.
    late: u64,
    /// Steps in which a partition begins.
    partitions: u64,
    /// Steps in which a process crashes.
    deaths: u64,
}

const CALM: NetworkFaults = NetworkFaults { lost: 0, doubled: 0, slow: 0, late: 0, partitions: 0, deaths: 0 };

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
    fn is_hit_in_thousand(&mut self, cases: u64) -> bool {
        self.next() % 1000 < cases
    }
}

#[derive(Clone, Copy, Default)]
struct Sent {
    arrived: u32,
    outcome: Option<DeliveryOutcome>,
    /// The sender crashed: no outcome is reported.
    is_orphan: bool,
}

/// The messages that one side sent, and the number of its crashes.
#[derive(Default)]
struct SentLog {
    sent: Vec<Sent>,
    last_arrived: Option<usize>,
    deaths: u64,
}

struct Simulation {
    now: u64,
    /// The strategy's side and the engine's side.
    links: [Link; 2],
    logs: [SentLog; 2],
    /// Frames in flight: arrival time, receiving side, bytes.
    in_flight: Vec<(u64, usize, [u8; FRAME])>,
    partitioned_until: u64,
    random: Random,
    broken: Option<Broken>,
    violation: Option<String>,
}

fn message(side: usize, number: usize) -> Message {
    let order = Order::new(OrderId::new(0, 0, number as u64), 0);
    if side == 0 { order.to_message() } else { Report::full_fill(&order).to_message() }
}

fn number(message: &Message) -> usize {
    OrderId::from_word(message[0]).sequence() as usize
}

impl Simulation {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut links = [Link::strategy_side(RUN, 0, TIMING), Link::engine_side(RUN, 0, TIMING)];
        links.iter_mut().for_each(|link| link.broken = broken);
        let (logs, in_flight) = (Default::default(), Vec::new());
        Self {
            now: 0,
            links,
            logs,
            in_flight,
            partitioned_until: 0,
            random: Random(seed),
            broken,
            violation: None,
        }
    }

    fn crash(&mut self, side: usize) {
        let log = &mut self.logs[side];
        log.deaths += 1;
        log.sent.iter_mut().filter(|sent| sent.outcome.is_none()).for_each(|sent| sent.is_orphan = true);
        self.links[side] = match side {
            0 => Link::strategy_side(RUN, log.deaths << 32, TIMING),
            _ => Link::engine_side(RUN, log.deaths as u16, TIMING),
        };
        self.links[side].broken = self.broken;
    }

    /// Restarts the engine's process normally. Its successor has the saved history if it
    /// `remembers`.
    fn restart_engine(&mut self, epoch: u16, remembers: bool) {
        self.links[1].hang_up();
        self.handle_events(1);
        let unsettled = self.logs[1].sent.iter_mut().filter(|sent| sent.outcome.is_none());
        unsettled.for_each(|sent| sent.is_orphan = true);
        let past = SessionHistory::from_words(self.links[1].history().to_words()).filter(|_| remembers);
        self.links[1] = Link::engine_side(RUN, epoch, TIMING).with_history(past.unwrap_or_default());
    }

    fn step(&mut self, network: &NetworkFaults, sends: bool) {
        self.now += STEP;
        if self.random.is_hit_in_thousand(network.partitions) {
            self.partitioned_until = self.now + self.random.next() % (3 * TIMING.silence_ns);
        }
        if self.random.is_hit_in_thousand(network.deaths) {
            let side = (self.random.next() % 2) as usize;
            self.crash(side);
        }
        for side in 0..2 {
            while let Some(at) =
                self.in_flight.iter().position(|(due, to, _)| *to == side && *due <= self.now)
            {
                let (_, _, bytes) = self.in_flight.remove(at);
                self.links[side].receive(&bytes, self.now);
                self.handle_events(side);
            }
            while sends && self.random.is_hit_in_thousand(300) {
                let log = &mut self.logs[side].sent;
                if !self.links[side].try_send(message(side, log.len()), None) {
                    break;
                }
                log.push(Sent::default());
            }
            let (now, in_flight, random) = (self.now, &mut self.in_flight, &mut self.random);
            let is_parted = now < self.partitioned_until;
            self.links[side].poll(now, |bytes| {
                // One that is not taken now is tried again.
                if random.is_hit_in_thousand(network.slow) {
                    return false;
                }
                for copy in 0..1 + u64::from(random.is_hit_in_thousand(network.doubled)) {
                    let late =
                        if random.is_hit_in_thousand(network.late) { 2 * TIMING.silence_ns } else { 0 };
                    let slow = if random.is_hit_in_thousand(network.slow) { random.next() % 3000 } else { 0 };
                    if !is_parted && !random.is_hit_in_thousand(network.lost) {
                        in_flight.push((now + TRANSIT + late + slow + copy * STEP, 1 - side, *bytes));
                    }
                }
                true
            });
            self.handle_events(side);
        }
    }

    /// Handles the events of a link, and records them.
    fn handle_events(&mut self, side: usize) {
        while let Some(event) = self.links[side].next_event() {
            match event {
                Event::Message(message, _) => {
                    let (number, log) = (number(&message), &mut self.logs[1 - side]);
                    log.sent[number].arrived += 1;
                    if log.last_arrived.replace(number).is_some_and(|last| last >= number) {
                        self.violation =
                            Some(format!("{number} of side {} came after a later one", 1 - side));
                    }
                }
                Event::Outcome { message, outcome, .. } => {
                    let sent = &mut self.logs[side].sent[number(&message)];
                    if sent.outcome.replace(outcome).is_some() {
                        self.violation = Some(format!("{message:?} has two outcomes"));
                    }
                }
                Event::Up { .. } | Event::Down { .. } | Event::Over => {}
            }
        }
    }

    /// Checks the invariants of every message after the faults.
    fn judge(mut self) -> Result<[LinkCounts; 2], String> {
        for _ in 0..4 * (TIMING.silence_ns + TIMING.hello_ns) / STEP {
            self.step(&CALM, false);
        }
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        for (side, log) in self.logs.iter().enumerate() {
            if !self.links[side].is_up() || !self.links[side].is_settled() {
                return Err(format!("side {side} is not up and settled in calm weather"));
            }
            for (number, Sent { arrived, outcome, is_orphan }) in log.sent.iter().enumerate() {
                let is_right = match outcome {
                    None => *arrived == 1 || (*is_orphan && *arrived == 0),
                    Some(DeliveryOutcome::Taken) => *arrived == 1,
                    Some(DeliveryOutcome::Lost) => *arrived == 0,
                    Some(DeliveryOutcome::Unknown) => *arrived <= 1 && self.logs[1 - side].deaths > 0,
                };
                if !is_right {
                    return Err(format!(
                        "{number} of side {side} arrived {arrived} times with the outcome {outcome:?}"
                    ));
                }
            }
        }
        Ok(self.links.map(|link| link.counts))
    }
}

fn run(seed: u64, network: &NetworkFaults, steps: u32, broken: Option<Broken>) -> Simulation {
    let mut simulation = Simulation::new(seed, broken);
    for _ in 0..steps {
        simulation.step(network, true);
    }
    simulation
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases()))]
    #[test]
    fn every_loss_is_reported_and_nothing_doubled(
        seed: u64, lost in 0_u64..60, doubled in 0_u64..100, slow in 0_u64..60, late in 0_u64..30, partitions in 0_u64..4, deaths in 0_u64..3,
    ) {
        let network = NetworkFaults { lost, doubled, slow, late, partitions, deaths };
        let judged = run(seed, &network, 3_000, None).judge();
        prop_assert!(judged.is_ok(), "{judged:?}");
    }

    #[test]
    fn reliable_transport_ends_no_session(seed: u64) {
        let [far, engine] = run(seed, &CALM, 1_000, None).judge().map_err(TestCaseError::fail)?;
        prop_assert_eq!((far.sessions, engine.sessions, far.stale, engine.stale), (1, 1, 0, 0));
    }

    /// Frames with the right checksum of a peer that has the right run and session.
    #[test]
    fn hostile_peer_does_no_harm(
        seed: u64,
        frames in proptest::collection::vec((0_u8..5, 0_u64..4, (0_u64..6, 0_u64..6, any::<u64>(), any::<u64>()), any::<Message>(), 0_u64..1 << 20), 1..200),
    ) {
        for side in 0..2 {
            let mut simulation = run(seed, &CALM, 60, None);
            let link = &mut simulation.links[side];
            for (kind, session, (sequence, taken, sent, received), words, later) in &frames {
                let kind = [FrameKind::Hello, FrameKind::Welcome, FrameKind::Heartbeat, FrameKind::Data, FrameKind::End][usize::from(*kind)];
                let talk = ControlFields { ask: words[0] % 3, of: words[1] % 3, taken: Some(words[2] % 9), epoch: 1, received_end: words[3] % 2 == 1 };
                let words = if kind == FrameKind::Data { *words } else { talk.to_words() };
                let from = link.side.other();
                let attempt = (link.attempt + taken % 4).saturating_sub(2);
                let echo = Some(Echo { sent: *sent, received: *received });
                let (sequence, taken) = (link.taken + sequence, taken % 3);
                let frame = Frame { kind, from, run: RUN, session: *session, attempt, sequence, taken, sent: *sent, echo, words };
                simulation.now += later;
                link.receive(&frame.encode(), simulation.now);
                link.poll(simulation.now, |_| true);
                while let Some(event) = link.next_event() {
                    if let Event::Message(message, _) = event {
                        let is_valid = if side == 1 { Order::from_message(message).is_ok() } else { Report::from_message(message).is_ok() };
                        prop_assert!(is_valid);
                    }
                }
            }
        }
    }
}

const STORM: NetworkFaults =
    NetworkFaults { lost: 20, doubled: 50, slow: 5, late: 20, partitions: 2, deaths: 0 };

#[test]
fn storm_causes_every_kind_of_event() {
    let (mut arrived, mut outcomes, mut totals) = (0, [0; 3], LinkCounts::default());
    for seed in 0..50 {
        let mut simulation = run(seed, &NetworkFaults { deaths: 1, ..STORM }, 2_000, None);
        (0..2_000).for_each(|_| simulation.step(&CALM, false));
        for sent in simulation.logs.iter().flat_map(|log| &log.sent) {
            arrived += u64::from(sent.arrived);
            if let Some(outcome) = sent.outcome {
                outcomes[outcome as usize] += 1;
            }
        }
        for counts in simulation.links.map(|link| link.counts) {
            totals.sessions += counts.sessions;
            totals.stale += counts.stale;
            totals.doubled += counts.doubled;
        }
    }
    let happened =
        [arrived, outcomes[0], outcomes[1], outcomes[2], totals.sessions, totals.stale, totals.doubled];
    assert!(happened.iter().all(|times| *times > 50), "{happened:?}");
}

#[test]
fn broken_links_are_detected() {
    let network = STORM;
    for broken in [
        Broken::AcceptsDuplicates,
        Broken::AcceptsGaps,
        Broken::IgnoresSentCounts,
        Broken::AcceptsFencedFrames,
        Broken::ReportsUnconfirmedAsLost,
        Broken::LosesReceiveHistory,
        Broken::DropsOutcomes,
    ] {
        let found = (0..400).find_map(|seed| run(seed, &network, 2_000, Some(broken)).judge().err());
        assert!(found.is_some(), "{broken:?}");
    }
    for seed in 0..100 {
        assert!(
            run(seed, &network, 2_000, None).judge().is_ok(),
            "correct links have no violation, seed {seed}"
        );
    }
}

/// With its predecessor's history, a process reports the outcome of every message.
#[test]
fn saved_history_leaves_no_outcome_unknown() {
    let restarted = |seed, remembers| {
        let mut simulation = run(seed, &STORM, 100, None);
        for epoch in 1..8 {
            (0..400).for_each(|_| simulation.step(&STORM, true));
            simulation.restart_engine(epoch, remembers);
        }
        (0..400).for_each(|_| simulation.step(&STORM, true));
        simulation.judge()
    };
    for seed in 0..40 {
        assert!(restarted(seed, true).is_ok(), "seed {seed}");
    }
    assert!((0..40).any(|seed| restarted(seed, false).is_err()), "a restart without history is detected");
    assert_eq!((SessionHistory::from_words([0, 0, 1]), SessionHistory::from_words([3, 2, 1])), (None, None));
}

#[test]
fn link_ends_once_both_sides_are_done() {
    for seed in 0..200 {
        let mut simulation = run(seed, &CALM, 100, None);
        simulation.links[0].end();
        let lossy = NetworkFaults { lost: 200, doubled: 100, ..CALM };
        // Data must not be lost, or the session would end: messages in flight arrive first.
        (0..20).for_each(|_| simulation.step(&CALM, true));
        assert!(
            !simulation.links[0].is_over() && simulation.links[1].is_up(),
            "one side alone does not end the link"
        );
        simulation.links[1].end();
        (0..20).for_each(|_| simulation.step(&CALM, true));
        (0..400).for_each(|_| simulation.step(&lossy, true));
        assert!(simulation.links.iter().all(|link| link.is_over() && link.is_settled()), "seed {seed}");
        assert!(simulation.in_flight.len() < 10, "links stop sending once they are over");
    }
}

#[test]
fn abandoned_link_reports_unknown_outcomes() {
    let mut simulation = run(1, &CALM, 60, None);
    simulation.partitioned_until = u64::MAX;
    (0..60).for_each(|_| simulation.step(&CALM, true));
    simulation.links[0].abandon();
    simulation.handle_events(0);
    let outcomes: Vec<_> = simulation.logs[0].sent.iter().filter_map(|sent| sent.outcome).collect();
    assert!(
        !outcomes.is_empty() && outcomes.iter().all(|outcome| *outcome == DeliveryOutcome::Unknown),
        "{outcomes:?}"
    );
    assert!(simulation.links[0].is_over() && !simulation.links[0].try_send([0; 7], None));
}

#[test]
fn window_bounds_unconfirmed_messages() {
    let mut simulation = run(1, &CALM, 60, None);
    simulation.partitioned_until = u64::MAX;
    let sent = (0..2 * WINDOW).take_while(|_| simulation.links[0].try_send(message(0, 0), None)).count();
    assert!(sent <= WINDOW && simulation.links[0].is_full(), "{sent}");
}

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;

#[test]
fn open_session_allocates_nothing() {
    assert!(system::alloc::is_counted());
    let mut links = [Link::strategy_side(RUN, 0, TIMING), Link::engine_side(RUN, 0, TIMING)];
    // The frames that each side sends in one step, of which there are few.
    let mut wires = [[[0; FRAME]; 32]; 2];
    let (mut now, mut before, mut taken) = (0, 0, 0);
    for step in 0..100_000 {
        if step == 100 {
            assert!(links.iter().all(Link::is_up));
            before = system::alloc::allocations();
        }
        now += STEP;
        for side in 0..2 {
            let sent = step > 100 && links[side].try_send(message(side, step), None);
            let mut frames = 0;
            links[side].poll(now, |bytes| {
                wires[side][frames] = *bytes;
                frames += 1;
                frames < wires[side].len()
            });
            assert!(sent || step <= 100);
            for frame in &wires[side][..frames] {
                links[1 - side].receive(frame, now + TRANSIT);
                while let Some(event) = links[1 - side].next_event() {
                    taken += u64::from(matches!(event, Event::Message(..)));
                }
            }
        }
    }
    assert_eq!((system::alloc::allocations() - before, taken), (0, 2 * 99_899));
}

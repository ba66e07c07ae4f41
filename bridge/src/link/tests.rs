//! Two links over a bad network, with processes that crash: what was sent, arrived and was
//! reported.

use super::*;
use proptest::prelude::*;
use protocol::wire::{Order, OrderId, Report};

const RUN: u32 = 7;
/// Of the time of these tests, which has no unit.
const TIMING: Timing = Timing { heartbeat_ns: 1_000, silence_ns: 20_000, hello_ns: 10_000 };
const STEP: u64 = 100;
const TRANSIT: u64 = 400;

/// Failures, each in parts per thousand.
#[derive(Clone, Copy, Debug)]
struct Weather {
    lost: u64,
    doubled: u64,
    /// Overtaken by others.
    slow: u64,
    /// Delayed beyond the end of its session.
    late: u64,
    /// Steps in which a partition begins.
    partitions: u64,
    /// Steps in which a process dies.
    deaths: u64,
}

const CALM: Weather = Weather { lost: 0, doubled: 0, slow: 0, late: 0, partitions: 0, deaths: 0 };

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
    fn is_hit_in_thousand(&mut self, cases: u64) -> bool {
        self.roll() % 1000 < cases
    }
}

#[derive(Clone, Copy, Default)]
struct Sent {
    arrived: u32,
    fate: Option<DeliveryOutcome>,
    /// The sender died: no outcome is reported.
    is_orphan: bool,
}

/// Everything that one side sent, and how often it died.
#[derive(Default)]
struct Book {
    sent: Vec<Sent>,
    last_arrived: Option<usize>,
    deaths: u64,
}

struct World {
    now: u64,
    /// Far, engine.
    links: [Link; 2],
    books: [Book; 2],
    /// When, to whom, what.
    flying: Vec<(u64, usize, [u8; FRAME])>,
    parted_until: u64,
    dice: Dice,
    broken: Option<Broken>,
    wrong: Option<String>,
}

fn message(side: usize, number: usize) -> Message {
    let order = Order::new(OrderId::new(0, 0, number as u64), 0);
    if side == 0 { order.to_message() } else { Report::full_fill(&order).to_message() }
}

fn number(message: &Message) -> usize {
    OrderId::from_word(message[0]).sequence() as usize
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut links = [Link::strategy_side(RUN, 0, TIMING), Link::engine_side(RUN, 0, TIMING)];
        links.iter_mut().for_each(|link| link.broken = broken);
        let (books, flying) = (Default::default(), Vec::new());
        Self { now: 0, links, books, flying, parted_until: 0, dice: Dice(seed), broken, wrong: None }
    }

    fn die(&mut self, side: usize) {
        let book = &mut self.books[side];
        book.deaths += 1;
        book.sent.iter_mut().filter(|sent| sent.fate.is_none()).for_each(|sent| sent.is_orphan = true);
        self.links[side] = match side {
            0 => Link::strategy_side(RUN, book.deaths << 32, TIMING),
            _ => Link::engine_side(RUN, book.deaths as u16, TIMING),
        };
        self.links[side].broken = self.broken;
    }

    /// The engine's process ends in order; its successor has the saved history, or does not.
    fn resign(&mut self, epoch: u16, remembers: bool) {
        self.links[1].hang_up();
        self.hear(1);
        let unsettled = self.books[1].sent.iter_mut().filter(|sent| sent.fate.is_none());
        unsettled.for_each(|sent| sent.is_orphan = true);
        let past = SessionHistory::from_words(self.links[1].history().to_words()).filter(|_| remembers);
        self.links[1] = Link::engine_side(RUN, epoch, TIMING).with_history(past.unwrap_or_default());
    }

    fn step(&mut self, weather: &Weather, sends: bool) {
        self.now += STEP;
        if self.dice.is_hit_in_thousand(weather.partitions) {
            self.parted_until = self.now + self.dice.roll() % (3 * TIMING.silence_ns);
        }
        if self.dice.is_hit_in_thousand(weather.deaths) {
            let side = (self.dice.roll() % 2) as usize;
            self.die(side);
        }
        for side in 0..2 {
            while let Some(at) = self.flying.iter().position(|(due, to, _)| *to == side && *due <= self.now) {
                let (_, _, bytes) = self.flying.remove(at);
                self.links[side].receive(&bytes, self.now);
                self.hear(side);
            }
            while sends && self.dice.is_hit_in_thousand(300) {
                let book = &mut self.books[side].sent;
                if !self.links[side].try_send(message(side, book.len()), None) {
                    break;
                }
                book.push(Sent::default());
            }
            let (now, flying, dice) = (self.now, &mut self.flying, &mut self.dice);
            let is_parted = now < self.parted_until;
            self.links[side].poll(now, |bytes| {
                // One that is not taken now is tried again.
                if dice.is_hit_in_thousand(weather.slow) {
                    return false;
                }
                for copy in 0..1 + u64::from(dice.is_hit_in_thousand(weather.doubled)) {
                    let late = if dice.is_hit_in_thousand(weather.late) { 2 * TIMING.silence_ns } else { 0 };
                    let slow = if dice.is_hit_in_thousand(weather.slow) { dice.roll() % 3000 } else { 0 };
                    if !is_parted && !dice.is_hit_in_thousand(weather.lost) {
                        flying.push((now + TRANSIT + late + slow + copy * STEP, 1 - side, *bytes));
                    }
                }
                true
            });
            self.hear(side);
        }
    }

    /// Records the events of a link for its owner.
    fn hear(&mut self, side: usize) {
        while let Some(event) = self.links[side].next_event() {
            match event {
                Event::Message(message, _) => {
                    let (number, book) = (number(&message), &mut self.books[1 - side]);
                    book.sent[number].arrived += 1;
                    if book.last_arrived.replace(number).is_some_and(|last| last >= number) {
                        self.wrong = Some(format!("{number} of side {} came after a later one", 1 - side));
                    }
                }
                Event::Outcome { message, outcome: fate, .. } => {
                    let sent = &mut self.books[side].sent[number(&message)];
                    if sent.fate.replace(fate).is_some() {
                        self.wrong = Some(format!("{message:?} has two fates"));
                    }
                }
                Event::Up { .. } | Event::Down { .. } | Event::Over => {}
            }
        }
    }

    /// After the weather: what must hold of every message.
    fn judge(mut self) -> Result<[LinkCounts; 2], String> {
        for _ in 0..4 * (TIMING.silence_ns + TIMING.hello_ns) / STEP {
            self.step(&CALM, false);
        }
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        for (side, book) in self.books.iter().enumerate() {
            if !self.links[side].is_up() || !self.links[side].is_settled() {
                return Err(format!("side {side} is not up and settled in calm weather"));
            }
            for (number, Sent { arrived, fate, is_orphan }) in book.sent.iter().enumerate() {
                let is_right = match fate {
                    None => *arrived == 1 || (*is_orphan && *arrived == 0),
                    Some(DeliveryOutcome::Taken) => *arrived == 1,
                    Some(DeliveryOutcome::Lost) => *arrived == 0,
                    Some(DeliveryOutcome::Unknown) => *arrived <= 1 && self.books[1 - side].deaths > 0,
                };
                if !is_right {
                    return Err(format!(
                        "{number} of side {side} arrived {arrived} times, and is told {fate:?}"
                    ));
                }
            }
        }
        Ok(self.links.map(|link| link.counts))
    }
}

fn run(seed: u64, weather: &Weather, steps: u32, broken: Option<Broken>) -> World {
    let mut world = World::new(seed, broken);
    for _ in 0..steps {
        world.step(weather, true);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases()))]
    #[test]
    fn every_loss_is_reported_and_nothing_doubled(
        seed: u64, lost in 0_u64..60, doubled in 0_u64..100, slow in 0_u64..60, late in 0_u64..30, partitions in 0_u64..4, deaths in 0_u64..3,
    ) {
        let weather = Weather { lost, doubled, slow, late, partitions, deaths };
        let judged = run(seed, &weather, 3_000, None).judge();
        prop_assert!(judged.is_ok(), "{judged:?}");
    }

    #[test]
    fn reliable_transport_ends_no_session(seed: u64) {
        let [far, engine] = run(seed, &CALM, 1_000, None).judge().map_err(TestCaseError::fail)?;
        prop_assert_eq!((far.sessions, engine.sessions, far.stale, engine.stale), (1, 1, 0, 0));
    }

    /// Frames with the right checksum of a peer that has the right run and session.
    #[test]
    fn a_hostile_peer_does_no_harm(
        seed: u64,
        frames in proptest::collection::vec((0_u8..5, 0_u64..4, (0_u64..6, 0_u64..6, any::<u64>(), any::<u64>()), any::<Message>(), 0_u64..1 << 20), 1..200),
    ) {
        for side in 0..2 {
            let mut world = run(seed, &CALM, 60, None);
            let link = &mut world.links[side];
            for (kind, session, (sequence, taken, sent, seen), words, later) in &frames {
                let kind = [FrameKind::Hello, FrameKind::Welcome, FrameKind::Heartbeat, FrameKind::Data, FrameKind::End][usize::from(*kind)];
                let talk = ControlFields { ask: words[0] % 3, of: words[1] % 3, taken: Some(words[2] % 9), epoch: 1, received_end: words[3] % 2 == 1 };
                let words = if kind == FrameKind::Data { *words } else { talk.to_words() };
                let from = link.side.other();
                let attempt = (link.attempt + taken % 4).saturating_sub(2);
                let echo = Some(Echo { sent: *sent, seen: *seen });
                let (sequence, taken) = (link.taken + sequence, taken % 3);
                let frame = Frame { kind, from, run: RUN, session: *session, attempt, sequence, taken, sent: *sent, echo, words };
                world.now += later;
                link.receive(&frame.encode(), world.now);
                link.poll(world.now, |_| true);
                while let Some(event) = link.next_event() {
                    if let Event::Message(message, _) = event {
                        let is_one = if side == 1 { Order::from_message(message).is_ok() } else { Report::from_message(message).is_ok() };
                        prop_assert!(is_one);
                    }
                }
            }
        }
    }
}

const STORM: Weather = Weather { lost: 20, doubled: 50, slow: 5, late: 20, partitions: 2, deaths: 0 };

#[test]
fn a_storm_is_one() {
    let (mut arrived, mut fates, mut all) = (0, [0; 3], LinkCounts::default());
    for seed in 0..50 {
        let mut world = run(seed, &Weather { deaths: 1, ..STORM }, 2_000, None);
        (0..2_000).for_each(|_| world.step(&CALM, false));
        for sent in world.books.iter().flat_map(|book| &book.sent) {
            arrived += u64::from(sent.arrived);
            if let Some(fate) = sent.fate {
                fates[fate as usize] += 1;
            }
        }
        for counts in world.links.map(|link| link.counts) {
            all.sessions += counts.sessions;
            all.stale += counts.stale;
            all.doubled += counts.doubled;
        }
    }
    let happened = [arrived, fates[0], fates[1], fates[2], all.sessions, all.stale, all.doubled];
    assert!(happened.iter().all(|times| *times > 50), "{happened:?}");
}

#[test]
fn broken_links_are_found() {
    let weather = STORM;
    for broken in [
        Broken::TakesDoubles,
        Broken::PassesOverGaps,
        Broken::IgnoresCounts,
        Broken::HearsTheFenced,
        Broken::GuessesFates,
        Broken::ForgetsWhatItTook,
        Broken::ForgetsWhatItSent,
    ] {
        let found = (0..400).find_map(|seed| run(seed, &weather, 2_000, Some(broken)).judge().err());
        assert!(found.is_some(), "{broken:?}");
    }
    for seed in 0..100 {
        assert!(run(seed, &weather, 2_000, None).judge().is_ok(), "whole links are not, seed {seed}");
    }
}

/// With its predecessor's history, a process reports the outcome of every message.
#[test]
fn saved_history_leaves_no_outcome_unknown() {
    let resigned = |seed, remembers| {
        let mut world = run(seed, &STORM, 100, None);
        for epoch in 1..8 {
            (0..400).for_each(|_| world.step(&STORM, true));
            world.resign(epoch, remembers);
        }
        (0..400).for_each(|_| world.step(&STORM, true));
        world.judge()
    };
    for seed in 0..40 {
        assert!(resigned(seed, true).is_ok(), "seed {seed}");
    }
    assert!((0..40).any(|seed| resigned(seed, false).is_err()), "one that remembers nothing is found");
    assert_eq!((SessionHistory::from_words([0, 0, 1]), SessionHistory::from_words([3, 2, 1])), (None, None));
}

#[test]
fn link_ends_once_both_sides_are_done() {
    for seed in 0..200 {
        let mut world = run(seed, &CALM, 100, None);
        world.links[0].end();
        let lossy = Weather { lost: 200, doubled: 100, ..CALM };
        // Data are not lost here, or the session would end: what is still under way arrives first.
        (0..20).for_each(|_| world.step(&CALM, true));
        assert!(!world.links[0].is_over() && world.links[1].is_up(), "one alone ends nothing");
        world.links[1].end();
        (0..20).for_each(|_| world.step(&CALM, true));
        (0..400).for_each(|_| world.step(&lossy, true));
        assert!(world.links.iter().all(|link| link.is_over() && link.is_settled()), "seed {seed}");
        assert!(world.flying.len() < 10, "and then nobody talks for ever");
    }
}

#[test]
fn abandoned_link_reports_unknown_outcomes() {
    let mut world = run(1, &CALM, 60, None);
    world.parted_until = u64::MAX;
    (0..60).for_each(|_| world.step(&CALM, true));
    world.links[0].abandon();
    world.hear(0);
    let fates: Vec<_> = world.books[0].sent.iter().filter_map(|sent| sent.fate).collect();
    assert!(!fates.is_empty() && fates.iter().all(|fate| *fate == DeliveryOutcome::Unknown), "{fates:?}");
    assert!(world.links[0].is_over() && !world.links[0].try_send([0; 7], None));
}

#[test]
fn window_bounds_unconfirmed_messages() {
    let mut world = run(1, &CALM, 60, None);
    world.parted_until = u64::MAX;
    let sent = (0..2 * WINDOW).take_while(|_| world.links[0].try_send(message(0, 0), None)).count();
    assert!(sent <= WINDOW && world.links[0].is_full(), "{sent}");
}

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;

#[test]
fn while_a_session_lasts_nothing_is_allocated() {
    assert!(system::alloc::is_counted());
    let mut links = [Link::strategy_side(RUN, 0, TIMING), Link::engine_side(RUN, 0, TIMING)];
    // The last frames of each side: a turn has few.
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

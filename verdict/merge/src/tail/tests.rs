//! Tests of the attribution rule on simulated runs with known causes: a sender, a receiver that
//! serves in order, and stalls at known times.

use super::attribute::add_ticks;
use super::*;
use proptest::prelude::*;
use protocol::stamps::{Gap, KernelEvents};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Ticks from a push until a polling receiver takes it.
const HOP: u64 = 60;
/// Maximum service time in ticks.
const LONGEST: u64 = 3_000;

/// Ticks that a receiver polls before it gives its core away.
const POLL_TICKS: u64 = 100;
/// Ticks that a sender takes per order in a burst.
const SEND: u64 = 100;

/// A simulated run: due times, service times, and stalls of receiver and sender.
#[derive(Clone, Debug, Default)]
struct SimulatedRun {
    due: Vec<u64>,
    service: Vec<u64>,
    stalls: Vec<(u64, u64)>,
    late: Vec<(u64, u64)>,
    /// Sleeps of the receiver. Orders that become due wait, as in a stall.
    sleeps: Vec<(u64, u64)>,
    /// The receiver sleeps whenever it has nothing to do, and wakes this many ticks after the next
    /// order.
    wakes: Option<u64>,
    /// How its sleeps appear in its log.
    sleep_logging: SleepLogging,
    /// The due times are ignored: a deliberately broken rule.
    ignores_due: bool,
}

/// How the log of a receiver records its sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SleepLogging {
    /// As sleeps.
    #[default]
    Slept,
    /// Not at all: a deliberately broken rule.
    Nothing,
    /// As gaps: a deliberately broken rule that attributes them to the machine.
    Gaps,
}

/// Returns `at`, or the end of the stall that contains it.
fn after_stall(stalls: &[(u64, u64)], at: u64) -> u64 {
    stalls.iter().find(|(begin, back)| (begin..back).contains(&&at)).map_or(at, |stall| stall.1)
}

/// Returns `at` moved past consecutive pauses.
fn after_all(pauses: &[(u64, u64)], mut at: u64) -> u64 {
    loop {
        match after_stall(pauses, at) {
            same if same == at => return at,
            later => at = later,
        }
    }
}

impl SimulatedRun {
    /// Creates a run with Poisson arrivals and a constant service time.
    fn poisson(orders: usize, mean: f64, service: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut at = 0.0;
        let due = (0..orders).map(|_| {
            let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            at -= (1.0 - unit).ln() * mean;
            at as u64 + 1_000
        });
        Self { due: due.collect(), service: vec![service; orders], ..Self::default() }
    }

    /// Returns the send times.
    fn sent(&self) -> Vec<u64> {
        let mut free = 0;
        let send = |due: &u64| {
            let sent = after_stall(&self.late, (*due).max(free));
            free = sent + SEND;
            sent
        };
        // A sender that never pauses sends at the due time.
        if self.late.is_empty() { self.due.clone() } else { self.due.iter().map(send).collect() }
    }

    /// Returns the spans sorted by their ends, and the gaps and sleeps of sender and receiver.
    fn run(&self) -> (Vec<StageSpan>, [[Vec<Gap>; 2]; 2]) {
        let mut pauses = [self.stalls.as_slice(), &self.sleeps].concat();
        pauses.sort_unstable();
        // A paused thread does nothing: what would end in a stall ends after it.
        let through = |from: u64, work: u64| {
            pauses.iter().fold(from + work, |end, (begin, back)| {
                if from < *back && *begin < end { end + (back - from.max(*begin)) } else { end }
            })
        };
        let mut all = Vec::new();
        let (mut free, mut sleeps) = (0, self.sleeps.clone());
        let sent = self.sent();
        for (order, ((due, sent), service)) in (0..).zip(self.due.iter().zip(&sent).zip(&self.service)) {
            let arrival = sent + HOP;
            let taken = match self.wakes.filter(|_| arrival > free + POLL_TICKS) {
                Some(work) => {
                    sleeps.push((free + POLL_TICKS, arrival + work));
                    arrival + work
                }
                None => arrival.max(free),
            };
            let taken = after_all(&pauses, through(taken, 0));
            free = through(taken, *service);
            let of =
                |stage, from, to, sender, receiver| StageSpan { order, stage, from, to, sender, receiver };
            all.extend([
                of(None, if self.ignores_due { *sent } else { *due }, *sent, 0, 0),
                of(Some(0), *sent, taken, 0, 1),
                of(Some(1), taken, free, 1, 1),
            ]);
        }
        all.sort_by_key(|passage| (passage.to, passage.order, passage.stage));
        let gaps = |times: &[(u64, u64)], bits: u8| -> Vec<Gap> {
            let gap = |(begin, back): &(u64, u64)| Gap {
                ended: *back,
                ticks: back - begin,
                events: KernelEvents(bits),
            };
            times.iter().map(gap).collect()
        };
        let taken = KernelEvents::INVOLUNTARY;
        let receiver = match self.sleep_logging {
            SleepLogging::Slept => [gaps(&self.stalls, taken), gaps(&sleeps, 0)],
            SleepLogging::Nothing => [gaps(&self.stalls, taken), Vec::new()],
            SleepLogging::Gaps => [gaps(&[self.stalls.as_slice(), &sleeps].concat(), taken), Vec::new()],
        };
        (all, [[gaps(&self.late, taken), Vec::new()], receiver])
    }

    /// Returns the ticks by cause of each order, and whether it is affected: by a broken rule only
    /// by pauses, if the rule `forgets_backlog`.
    fn explain(&self, forgets_backlog: bool) -> Vec<(TicksByCause, bool)> {
        let (passages, gaps) = self.run();
        let absent = [0, 1].map(|thread: usize| {
            let own = passages.iter().filter(|passage| usize::from(passage.receiver) == thread);
            let [gaps, sleeps] = &gaps[thread];
            pauses(gaps, sleeps, &sorted(own.map(|passage| passage.to).collect()), LONGEST)
        });
        let usual = vec![HOP, self.service.first().copied().unwrap_or(0)];
        let horizon = passages.iter().map(|passage| passage.to - passage.from).max().unwrap_or(0);
        let rules = AttributionParams { usual, max_service: LONGEST, horizon };
        let mut all = vec![(TicksByCause::default(), false); self.due.len()];
        attribute(passages, all.len(), absent.into(), &rules, |passage, causes, touched| {
            assert_eq!(total(causes), passage.to - passage.from, "{passage:?}: {causes:?}");
            let (sum, is_touched) = &mut all[passage.order as usize];
            if passage.stage.is_some() {
                add_ticks(sum, causes);
            }
            let has_pause = causes[Cause::Machine as usize] > 0;
            *is_touched = if forgets_backlog { *is_touched || has_pause } else { touched };
        });
        all
    }
}

fn at(values: &[u64], share: f64) -> u64 {
    values[((values.len() - 1) as f64 * share) as usize]
}

/// Returns the 99 % confidence interval of a quantile.
fn interval(values: &[u64], share: f64) -> std::ops::RangeInclusive<u64> {
    let count = values.len() as f64;
    let reach = 2.6 * (share * (1.0 - share) / count).sqrt();
    at(values, (share - reach).max(0.0))..=at(values, (share + reach).min(1.0))
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

fn total(causes: &TicksByCause) -> u64 {
    causes.iter().sum()
}

/// Returns the times of all orders, or of the untouched ones, in ascending order.
fn times(explained: &[(TicksByCause, bool)], only_untouched: bool) -> Vec<u64> {
    let chosen = explained.iter().filter(|(_, touched)| !(only_untouched && *touched));
    sorted(chosen.map(|(causes, _)| total(causes)).collect())
}

/// Checks that these quantiles are those of the run without stalls.
#[track_caller]
fn assert_match(found: &[u64], quiet: &[u64], shares: &[f64]) {
    for share in shares {
        let expected = interval(quiet, *share);
        assert!(expected.contains(&at(found, *share)), "{share}: {} not in {expected:?}", at(found, *share));
    }
}

/// Half load, so that orders queue, with eight stalls of 4 ms; and the round trips without them.
fn stalled() -> (SimulatedRun, Vec<u64>) {
    let quiet = SimulatedRun::poisson(200_000, 2_000.0, 1_000);
    let times = times(&quiet.explain(false), false);
    let stalls = (1..=8).map(|stall| (stall * 40_000_000, stall * 40_000_000 + 4_000_000)).collect();
    (SimulatedRun { stalls, ..quiet }, times)
}

#[test]
fn stall_free_percentiles_match_run_without_stalls() {
    let (disturbed, quiet) = stalled();
    let explained = disturbed.explain(false);
    let [all, free] = [false, true].map(|only_untouched| times(&explained, only_untouched));
    assert!(at(&all, 0.99) > 100 * at(&quiet, 0.99), "the stalls are seen");
    assert_match(&free, &quiet, &[0.5, 0.9, 0.99, 0.999]);
    let taken_out = 1.0 - free.len() as f64 / all.len() as f64;
    // A stall of 4 ms at half load takes as long again to drain: 16 of 100 ms, and the busy period
    // that follows.
    assert!((0.1..0.25).contains(&taken_out), "{taken_out}");
    let expected = interval(&quiet, 0.999);
    // Broken rules: backlog is left in, or slow orders are taken out and with them real queueing.
    assert!(at(&times(&disturbed.explain(true), true), 0.999) > *expected.end());
    let limit = at(&quiet, 0.99);
    let flattering: Vec<u64> = all.into_iter().filter(|time| *time <= limit).collect();
    assert!(at(&flattering, 0.999) < *expected.start());
}

/// A sender that pauses eight times and then sends everything due in one burst, faster than the
/// receiver.
#[test]
fn burst_after_paused_sender_is_attributed_to_machine() {
    let (disturbed, quiet) = stalled();
    let disturbed = SimulatedRun { late: disturbed.stalls, stalls: Vec::new(), ..disturbed };
    let free = times(&disturbed.explain(false), true);
    assert_match(&free, &quiet, &[0.5, 0.9, 0.99, 0.999]);
    assert!(free.len() as f64 > 0.75 * quiet.len() as f64, "only what the burst touched: {}", free.len());
    // A rule that ignores the due times attributes the burst to the load.
    let forgetful = times(&SimulatedRun { ignores_due: true, ..disturbed }.explain(false), true);
    assert!(at(&forgetful, 0.99) > *interval(&quiet, 0.99).end());
}

/// Orders that overlap without end: each is taken before the last one is finished. The broken rule,
/// whose backlog has no end, leaves out all that follow a stall.
#[test]
fn backlog_ends_where_threads_are_never_idle() {
    let due: Vec<u64> = (0..2_000).map(|order| 1_000 + order * 1_000).collect();
    let service = vec![1_000; due.len()];
    let disturbed =
        SimulatedRun { due, service, stalls: vec![(100_000, 110_000)], ..SimulatedRun::default() };
    let explained = disturbed.explain(false);
    let affected: Vec<usize> = (0..explained.len()).filter(|order| explained[*order].1).collect();
    assert_eq!(affected.first(), Some(&98), "{affected:?}");
    let last = disturbed.due[*affected.last().unwrap()];
    assert!((180_000..300_000).contains(&last), "nine times the stall of 10,000 after it: {last}");
}

#[test]
fn each_injected_cause_is_attributed() {
    // The first finds the receiver idle, the second waits for the first, the third is sent into a
    // stall, the fourth waits for the third.
    let disturbed = SimulatedRun {
        due: vec![1_000, 1_100, 20_000, 20_010],
        service: vec![400; 4],
        stalls: vec![(19_000, 26_000)],
        ..SimulatedRun::default()
    };
    let found = disturbed.explain(false);
    let of = |order: usize, cause| found[order].0[cause as usize];
    let touched: Vec<bool> = found.iter().map(|(_, touched)| *touched).collect();
    assert_eq!(touched, [false, false, true, true]);
    assert_eq!(found[0].0, [0, 0, 0, 0, HOP + 400, 0, 0]);
    assert_eq!(of(1, Cause::Queueing), 360, "until the first was served");
    assert_eq!((of(2, Cause::Machine), of(2, Cause::Backlog)), (6_000, 0));
    assert_eq!((of(3, Cause::Machine), of(3, Cause::Backlog)), (5_990, 400));
    for (order, (causes, _)) in found.iter().enumerate() {
        assert_eq!(of(order, Cause::Unexplained), 0, "{causes:?}");
    }
}

/// Attributes the time of one order, from its push at 100 until it is taken at `taken`.
fn explain_push(taken: u64, sender: Pause, receiver: Vec<Pause>) -> (TicksByCause, bool) {
    let passage =
        |stage, from, to, sender, receiver| StageSpan { order: 0, stage, from, to, sender, receiver };
    let passages = [passage(None, 100, 100, 0, 0), passage(Some(0), 100, taken, 0, 1)];
    let rules = AttributionParams { usual: vec![60], max_service: LONGEST, horizon: u64::MAX };
    let mut found = None;
    attribute(passages, 1, vec![vec![sender], receiver], &rules, |_, causes, touched| {
        found = Some((*causes, touched));
    });
    found.unwrap()
}

/// A pause of the sender before its push has priority over everything that the receiver does.
#[test]
fn sender_pause_before_push_precedes_receiver() {
    let of = |causes: TicksByCause, cause| causes[cause as usize];
    let paused = |from, to, cause| explain_push(9_000, Pause { from, to, cause }, Vec::new());
    let (causes, touched) = paused(100, 8_900, PauseCause::OffCpu);
    assert_eq!((of(causes, Cause::Machine), of(causes, Cause::Memory), touched), (8_800, 40, true));
    assert_eq!(of(paused(100, 8_900, PauseCause::PageFault).0, Cause::Memory), 8_840);
    // It resumed after the order had been taken, so it had pushed before; or it paused after a
    // later stamp.
    for (from, to) in [(100, 9_500), (101, 8_900)] {
        let (causes, touched) = paused(from, to, PauseCause::OffCpu);
        assert_eq!((of(causes, Cause::Unexplained), touched), (8_840, false));
    }
    // A sender that sleeps after its push delays no order.
    for (cause, machine, wake_up, is_touched) in
        [(PauseCause::OffCpu, 7_900, 1_000, true), (PauseCause::Sleep, 0, 8_900, false)]
    {
        let slept = Pause { from: 50, to: 9_000, cause: PauseCause::Sleep };
        let (causes, touched) = explain_push(9_100, Pause { from: 100, to: 8_000, cause }, vec![slept]);
        let found = [Cause::Machine, Cause::WakeUp, Cause::Usual].map(|cause| of(causes, cause));
        assert_eq!((found, touched), ([machine, wake_up, 60], is_touched), "{cause:?}");
    }
}

/// Sleeps and stalls of the receiver at known times. Returns what is wrong with the four orders'
/// causes.
fn wrong_about_sleeps(sleep_logging: SleepLogging) -> Option<String> {
    // The first is sent into a sleep, the second waits for the first and began in that sleep; the
    // third is sent into a sleep that a stall follows, the fourth waits for the third, and its wait
    // began in the stall.
    let disturbed = SimulatedRun {
        due: vec![2_000, 2_100, 40_000, 48_000],
        service: vec![400; 4],
        sleeps: vec![(1_500, 7_500), (30_000, 46_000)],
        stalls: vec![(46_000, 52_000)],
        sleep_logging,
        ..SimulatedRun::default()
    };
    let found = disturbed.explain(false);
    let causes = [Cause::WakeUp, Cause::Machine, Cause::Queueing, Cause::Backlog, Cause::Unexplained];
    let expected = [
        ([5_500, 0, 0, 0, 0], false),
        ([5_400, 0, 400, 0, 0], false),
        ([6_000, 6_000, 0, 0, 0], true),
        ([0, 4_000, 0, 400, 0], true),
    ];
    let of = |(ticks, touched): &(TicksByCause, bool)| (causes.map(|cause| ticks[cause as usize]), *touched);
    let found: Vec<_> = found.iter().map(of).collect();
    (found != expected).then(|| format!("{found:?}"))
}

#[test]
fn voluntary_sleep_is_not_attributed_to_machine() {
    assert_eq!(wrong_about_sleeps(SleepLogging::Slept), None);
    for broken in [SleepLogging::Nothing, SleepLogging::Gaps] {
        assert!(wrong_about_sleeps(broken).is_some(), "{broken:?}");
    }
}

/// A receiver that sleeps whenever it has nothing to do, with and without stalls: the rule excludes
/// stalls and keeps sleeps.
#[test]
fn stall_free_figures_keep_sleeps() {
    let (disturbed, _) = stalled();
    let disturbed = SimulatedRun { wakes: Some(5_000), ..disturbed };
    let slept = SimulatedRun { stalls: Vec::new(), ..disturbed.clone() }.explain(false);
    assert!(slept.iter().all(|(_, touched)| !touched), "a sleep touches nobody");
    let woken = slept.iter().filter(|(causes, _)| causes[Cause::WakeUp as usize] > 0).count();
    assert!((0.15..0.9).contains(&(woken as f64 / slept.len() as f64)), "{woken}");
    let quiet = times(&slept, false);
    let free =
        |sleep_logging| times(&SimulatedRun { sleep_logging, ..disturbed.clone() }.explain(false), true);
    assert_match(&free(SleepLogging::Slept), &quiet, &[0.5, 0.9, 0.99]);
    // A rule that attributes sleeps to the machine also excludes their cost.
    assert!(at(&free(SleepLogging::Gaps), 0.9) < *interval(&quiet, 0.9).start());
}

proptest! {
    #[test]
    fn causes_sum_to_span(
        due in prop::collection::vec(0_u64..50_000, 1..60),
        service in prop::collection::vec(0_u64..9_000, 60),
        stalls in prop::collection::vec((0_u64..60_000, 1_u64..20_000), 0..4),
        late in prop::collection::vec((0_u64..60_000, 1_u64..20_000), 0..4),
        sleeps in prop::collection::vec((0_u64..60_000, 1_u64..20_000), 0..4),
    ) {
        let [stalls, late, sleeps] = [stalls, late, sleeps].map(|stalls| {
            let mut begin = 0;
            let one = |(after, long)| {
                let stall = (begin + after, begin + after + long);
                begin = stall.1 + 1;
                stall
            };
            stalls.into_iter().map(one).collect::<Vec<_>>()
        });
        let disturbed = SimulatedRun { service: service[..due.len()].to_vec(), due: sorted(due), stalls, late, sleeps, ..SimulatedRun::default() };
        // `explain` asserts it for each span.
        let found = disturbed.explain(false);
        if disturbed.stalls.is_empty() && disturbed.late.is_empty() {
            for (causes, touched) in found {
                let by_machine = causes[Cause::Machine as usize] + causes[Cause::Backlog as usize];
                prop_assert!(!touched && by_machine == 0);
            }
        }
    }

    #[test]
    fn arbitrary_spans_do_not_panic(
        inputs in prop::collection::vec((0_u64..1_000, 0_u64..1_000, 0_u16..3, 0_u16..3, prop::option::of(0_u8..2)), 1..40),
        gaps in prop::collection::vec((0_u64..1_200, 0_u64..u64::MAX, 0_u8..16), 0..6),
    ) {
        let mut passages: Vec<StageSpan> = (0..).zip(&inputs).map(|(order, (a, b, sender, receiver, stage))| StageSpan {
            order, stage: *stage, from: *a.min(b), to: *a.max(b), sender: *sender, receiver: *receiver,
        }).collect();
        passages.sort_by_key(|passage| passage.to);
        let gaps: Vec<Gap> = gaps.into_iter()
            .map(|(ended, ticks, switches)| Gap { ended, ticks, events: KernelEvents(switches) }).collect();
        let (some, others) = gaps.split_at(gaps.len() / 2);
        let absent = vec![pauses(some, others, &[], 1), pauses(&[], some, &[], 1), pauses(some, &gaps, &[100, 500], 5)];
        let rules = AttributionParams { usual: vec![10, 20], max_service: 50, horizon: 2_000 };
        let mut wrong = Vec::new();
        attribute(passages.clone(), passages.len(), absent, &rules, |passage, causes, _| {
            if passage.stage.is_some() && total(causes) != passage.to - passage.from {
                wrong.push((*passage, *causes));
            }
        });
        prop_assert!(wrong.is_empty(), "{wrong:?}");
    }
}

//! Deaths of producers at an instruction of their push, and the effects on the others.

use super::bed::{FIRST, SECOND, TestBed, Trial};
use super::report::{TrialCounts, is_slow};
use super::setups::{SetUp, Victims, prepare};
use super::victim::{StepPosition, Victim};
use shm::ring::{Consumer, Link};
use std::collections::HashSet;

/// The actions of the others while a victim is stopped: a number of pushes, then a number of pops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConcurrentActions {
    pub push: u64,
    pub take: u64,
}

pub const NOTHING: ConcurrentActions = ConcurrentActions { push: 0, take: 0 };
/// Enough to fill any ring here.
pub const UNTIL_FULL: u64 = 1000;

/// A boundary between two instructions, counted from the first instruction of the push, and the
/// actions there.
pub type Stop = (usize, ConcurrentActions);

/// The recording of a push from a boundary to its end: the position at each boundary, and a
/// fingerprint of the memory.
pub struct CallRecording {
    /// The first boundary of `path`.
    pub from: usize,
    pub path: Vec<(StepPosition, u64)>,
    /// `true` if the push was accepted.
    pub taken: bool,
}

impl CallRecording {
    /// Returns the number of the last boundary, where the push has returned.
    pub fn end(&self) -> usize {
        self.from + self.path.len() - 1
    }

    pub fn path_to(&self, boundary: usize) -> Vec<StepPosition> {
        self.path[..=boundary - self.from].iter().map(|(at, _)| *at).collect()
    }

    /// Returns `true` if the instruction after that boundary changes shared memory.
    fn changes(&self, boundary: usize) -> bool {
        let pair = boundary.checked_sub(self.from).and_then(|place| self.path.get(place..place + 2));
        pair.is_some_and(|pair| pair[0].1 != pair[1].1)
    }

    /// Returns the boundaries before instructions that change shared memory.
    pub fn before_changes(&self) -> Vec<usize> {
        (self.from..self.end()).filter(|boundary| self.changes(*boundary)).collect()
    }

    /// Returns the boundaries at which more than one death is tried: one for each state of the
    /// memory, because only memory survives a death. In slow mode all boundaries.
    pub fn boundaries_to_try(&self) -> Vec<usize> {
        if is_slow() {
            return (self.from..=self.end()).collect();
        }
        let mut boundaries_to_try = self.before_changes();
        boundaries_to_try.push(self.end());
        boundaries_to_try
    }

    pub fn distinct_states(&self) -> u64 {
        self.path.iter().map(|(_, state)| state).collect::<HashSet<_>>().len() as u64
    }
}

impl<T: Link> Trial<'_, '_, T> {
    pub fn run_actions(&mut self, run_actions: ConcurrentActions) {
        self.push(run_actions.push);
        self.take(run_actions.take);
    }

    /// Begins the first victim's push and runs it from stop to stop, on known paths if they exist.
    pub fn approach(&mut self, victim: &mut Victim, stops: &[Stop], recordings: &[&CallRecording]) {
        victim.begin();
        let mut now = 0;
        for (stop, (boundary, run_actions)) in stops.iter().enumerate() {
            match recordings.get(stop) {
                Some(survey) => victim.replay(&survey.path_to(*boundary)),
                None => victim.step_at_most(boundary - now),
            }
            now = *boundary;
            self.run_actions(*run_actions);
        }
    }
}

/// Records a victim's push by single steps to its end.
pub fn record_to_end<T: Link>(trial: &Trial<'_, '_, T>, victim: &Victim, from: usize) -> CallRecording {
    let mut path = vec![(victim.at(), trial.bed.state())];
    while victim.at().is_some() {
        victim.step(1);
        path.push((victim.at(), trial.bed.state()));
    }
    let before = victim.done();
    victim.finish();
    CallRecording { from, path, taken: victim.done() > before }
}

pub fn survey<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> CallRecording {
    let (mut trial, mut victims) = prepare(bed, &set_up.acts, false);
    trial.approach(&mut victims.first, &[], &[]);
    record_to_end(&trial, &victims.first, 0)
}

/// Records the rest of a push after other actions at a stop.
fn survey_from<T: Link>(
    bed: &mut TestBed<'_, T>,
    set_up: &SetUp,
    stop: Stop,
    undisturbed: &CallRecording,
) -> CallRecording {
    let (mut trial, mut victims) = prepare(bed, &set_up.acts, false);
    trial.approach(&mut victims.first, &[stop], &[undisturbed]);
    record_to_end(&trial, &victims.first, stop.0)
}

/// Another producer that is stopped in the middle of a push while the first one dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondStop {
    /// The boundary at which it is stopped.
    pub at: usize,
    /// `true` if it has begun before the first producer.
    pub early: bool,
    /// `true` if it dies as well; otherwise it is only slow.
    pub dies: bool,
}

const NO_SECOND_STOP: Option<SecondStop> = None;

/// Tries one death at the last of the stops. Returns `true` if the message in flight arrived.
pub fn try_death<T: Link>(
    bed: &mut TestBed<'_, T>,
    set_up: &SetUp,
    stops: &[Stop],
    recordings: &[&CallRecording],
    second_stop: Option<SecondStop>,
    tally: &mut TrialCounts,
) -> bool {
    let (boundary, run_actions) = *stops.last().expect("a boundary to die at");
    let survey = recordings.last().expect("a recording");
    let (mut trial, victims) = prepare(bed, &set_up.acts, second_stop.is_some());
    let Victims { mut first, mut second } = victims;
    let step_second = |second: &mut Option<Victim>, early: bool| {
        if let (Some(second), Some(second_stop)) =
            (second, second_stop.filter(|second_stop| second_stop.early == early))
        {
            second.begin();
            second.step_at_most(second_stop.at);
        }
    };
    step_second(&mut second, true);
    // If another producer has already begun, the path may differ.
    let is_known = second_stop.is_none_or(|second_stop| !second_stop.early);
    trial.approach(&mut first, stops, if is_known { recordings } else { &[] });
    let (at, state) = survey.path[boundary - survey.from];
    if is_known {
        assert_eq!(first.at(), at, "{set_up:?} {stops:?}: another path than recorded");
    }
    if run_actions == NOTHING && second_stop.is_none() {
        assert_eq!(trial.bed.state(), state, "{set_up:?} {stops:?}: another state than recorded");
    }
    step_second(&mut second, false);
    trial.fence(FIRST, first);
    tally.add("deaths", 1);
    let mut dead = vec![FIRST];
    let mut slow = None;
    match (second, second_stop) {
        (Some(second), Some(SecondStop { dies: true, .. })) => {
            trial.fence(SECOND, second);
            tally.add("deaths", 1);
            dead.insert(boundary % 2, SECOND);
        }
        (second, _) => slow = second,
    }
    if !trial.bed.shared {
        // Each producer has its own ring: the others do not need the repair.
        trial.take_all();
        trial.check_all_received(&[1], "before the repair");
    }
    let mut retired = trial.try_retire(&dead);
    if let Some(slow) = &slow {
        tally.add("waited for slow producer", u64::from(!retired));
        slow.finish();
        trial.sent[SECOND] += slow.done();
        retired = trial.try_retire(&dead);
    }
    if !retired {
        trial.problem("unretired", format_args!("{dead:?} cannot be retired"));
    }
    let returned = at.is_none() && survey.taken && second_stop.is_none();
    let received = check_dead_producer(&mut trial, FIRST, returned);
    if dead.contains(&SECOND) {
        check_dead_producer(&mut trial, SECOND, false);
    }
    let running = if dead.contains(&SECOND) { &[1][..] } else { &[1, SECOND] };
    trial.check_all_received(running, "after the repair");
    let passed_over = trial.consumer.passed_over();
    tally.add("passed over", passed_over);
    if passed_over > dead.len() as u64 {
        trial.problem("passed over", format_args!("{passed_over} for {} dead", dead.len()));
    }
    // The current block may be used up; a slow producer may keep a spare one; blocks of dead
    // producers were freed.
    let lost = trial.bed.slack * (1 + u64::from(slow.is_some()));
    trial.check_two_laps(lost, "after the repair");
    if let Some(slow) = &slow {
        let before = slow.done();
        slow.run(2);
        trial.sent[SECOND] += slow.done() - before;
        trial.take_all();
        trial.check_all_received(&[SECOND], "the slow producer continues");
    }
    for index in dead {
        trial.renew(index);
    }
    trial.check_two_laps(lost, "after the renewal");
    trial.conclude(&set_up.name, format_args!("{stops:?} of {}, {second_stop:?}", survey.end()), tally);
    received
}

/// Checks that all accepted messages of a dead producer have arrived, and at most the one in
/// flight.
fn check_dead_producer<T: Link>(trial: &mut Trial<'_, '_, T>, dead: usize, returned: bool) -> bool {
    let (sent, received) = (trial.sent[dead], trial.received[dead]);
    if !(sent + u64::from(returned)..=sent + 1).contains(&received) {
        trial.problem(
            "dead",
            format_args!("dead producer {dead}: {sent} were accepted, returned: {returned}, but {received} were received"),
        );
    }
    received > sent
}

/// Distance of the boundaries at which the others act, in addition to those before a change.
const INTERFERENCE_STEP: usize = 40;

/// Tries a death at every boundary of the push in one state. At the chosen ones also with active
/// producers and with another stopped producer, and with actions in between; in quick mode with one
/// choice each.
pub fn try_all_boundaries<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let undisturbed = survey(bed, set_up);
    tally.add("distinct states", undisturbed.distinct_states());
    let mut came_before = false;
    for boundary in 0..=undisturbed.end() {
        let received =
            try_death(bed, set_up, &[(boundary, NOTHING)], &[&undisturbed], NO_SECOND_STOP, &mut tally);
        tally.add("boundaries", 1);
        if came_before && !received {
            tally.problem(
                &set_up.name,
                format!("received for an earlier boundary, but not for boundary {boundary}"),
            );
        }
        came_before = received;
    }
    tally.add("all boundaries", undisturbed.end() as u64 + 1);
    for (turn, boundary) in undisturbed.boundaries_to_try().into_iter().enumerate() {
        for push in sample(&[1, UNTIL_FULL], turn) {
            let run_actions = ConcurrentActions { push, take: boundary as u64 % 3 };
            try_death(bed, set_up, &[(boundary, run_actions)], &[&undisturbed], NO_SECOND_STOP, &mut tally);
        }
        for second_stop in second_stops(set_up, &undisturbed, boundary, turn) {
            try_death(bed, set_up, &[(boundary, NOTHING)], &[&undisturbed], Some(second_stop), &mut tally);
        }
    }
    interfere(bed, set_up, &undisturbed, &mut tally);
    tally
}

/// Returns one of the choices, a different one each time; all of them in slow mode.
pub fn sample<C: Copy>(all: &[C], time: usize) -> Vec<C> {
    if is_slow() { all.to_vec() } else { vec![all[time % all.len()]] }
}

/// Returns the second producers tried at a boundary: one at some boundary, and one at each boundary
/// before a change.
fn second_stops(
    set_up: &SetUp,
    undisturbed: &CallRecording,
    boundary: usize,
    turn: usize,
) -> Vec<SecondStop> {
    let variants = [(false, false), (false, true), (true, false), (true, true)];
    let second_stop = |at: usize| move |(early, dies)| SecondStop { at, early, dies };
    let any_boundary = boundary * 7 % (undisturbed.end() + 1);
    let mut second_stops: Vec<SecondStop> =
        sample(&variants, turn).into_iter().map(second_stop(any_boundary)).collect();
    let changes = undisturbed.before_changes();
    if set_up.thorough && changes.contains(&boundary) {
        let choices = changes.iter().enumerate();
        second_stops.extend(
            choices.flat_map(|(place, at)| sample(&variants, turn + place).into_iter().map(second_stop(*at))),
        );
    }
    second_stops
}

/// Lets the others push or take at one boundary, and the victim die at each selected later one.
fn interfere<T: Link>(
    bed: &mut TestBed<'_, T>,
    set_up: &SetUp,
    undisturbed: &CallRecording,
    tally: &mut TrialCounts,
) {
    let mut places = undisturbed.before_changes();
    places.extend((0..undisturbed.end()).step_by(INTERFERENCE_STEP));
    places.sort_unstable();
    places.dedup();
    let kinds = [
        ConcurrentActions { push: 1, take: 0 },
        ConcurrentActions { push: 0, take: 1 },
        ConcurrentActions { push: UNTIL_FULL, take: UNTIL_FULL },
    ];
    for (turn, place) in places.into_iter().enumerate() {
        if !set_up.thorough && turn % 3 != 0 {
            continue;
        }
        for run_actions in sample(&kinds, turn / 3 + turn) {
            let other = survey_from(bed, set_up, (place, run_actions), undisturbed);
            tally.add("distinct states", other.distinct_states());
            for boundary in other.boundaries_to_try().into_iter().filter(|boundary| *boundary > place) {
                let stops = [(place, run_actions), (boundary, NOTHING)];
                try_death(bed, set_up, &stops, &[undisturbed, &other], NO_SECOND_STOP, tally);
                tally.add("interfered", 1);
            }
        }
    }
}

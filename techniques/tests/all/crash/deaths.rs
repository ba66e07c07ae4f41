//! Deaths of producers at an instruction of their push, and the effects on the others.

use super::bed::{Bed, FIRST, SECOND, Scene};
use super::report::{TrialCounts, is_slow};
use super::setups::{SetUp, Victims, prepare};
use super::victim::{At, Victim};
use shm::ring::{Consumer, Link};
use std::collections::HashSet;

/// The actions of the others while a victim is stopped: a number of pushes, then a number of pops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meanwhile {
    pub push: u64,
    pub take: u64,
}

pub const NOTHING: Meanwhile = Meanwhile { push: 0, take: 0 };
/// Enough to fill any ring here.
pub const UNTIL_FULL: u64 = 1000;

/// A boundary between two instructions, counted from the first instruction of the push, and the
/// actions there.
pub type Stop = (usize, Meanwhile);

/// The recording of a push from a boundary to its end: the position at each boundary, and a
/// fingerprint of the memory.
pub struct Survey {
    /// The first boundary of `path`.
    pub from: usize,
    pub path: Vec<(At, u64)>,
    /// `true` if the push was accepted.
    pub taken: bool,
}

impl Survey {
    /// Returns the number of the last boundary, where the push has returned.
    pub fn end(&self) -> usize {
        self.from + self.path.len() - 1
    }

    pub fn way(&self, boundary: usize) -> Vec<At> {
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
    pub fn chosen(&self) -> Vec<usize> {
        if is_slow() {
            return (self.from..=self.end()).collect();
        }
        let mut chosen = self.before_changes();
        chosen.push(self.end());
        chosen
    }

    pub fn distinct_states(&self) -> u64 {
        self.path.iter().map(|(_, state)| state).collect::<HashSet<_>>().len() as u64
    }
}

impl<T: Link> Scene<'_, '_, T> {
    pub fn meanwhile(&mut self, meanwhile: Meanwhile) {
        self.push(meanwhile.push);
        self.take(meanwhile.take);
    }

    /// Begins the first victim's push and runs it from stop to stop, on known paths if they exist.
    pub fn approach(&mut self, victim: &mut Victim, stops: &[Stop], known: &[&Survey]) {
        victim.begin();
        let mut now = 0;
        for (stop, (boundary, meanwhile)) in stops.iter().enumerate() {
            match known.get(stop) {
                Some(survey) => victim.go(&survey.way(*boundary)),
                None => victim.step_at_most(boundary - now),
            }
            now = *boundary;
            self.meanwhile(*meanwhile);
        }
    }
}

/// Records a victim's push by single steps to its end.
pub fn walk<T: Link>(scene: &Scene<'_, '_, T>, victim: &Victim, from: usize) -> Survey {
    let mut path = vec![(victim.at(), scene.bed.state())];
    while victim.at().is_some() {
        victim.step(1);
        path.push((victim.at(), scene.bed.state()));
    }
    let before = victim.done();
    victim.finish();
    Survey { from, path, taken: victim.done() > before }
}

pub fn survey<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> Survey {
    let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
    scene.approach(&mut victims.first, &[], &[]);
    walk(&scene, &victims.first, 0)
}

/// Records the rest of a push after other actions at a stop.
fn survey_from<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp, stop: Stop, plain: &Survey) -> Survey {
    let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
    scene.approach(&mut victims.first, &[stop], &[plain]);
    walk(&scene, &victims.first, stop.0)
}

/// Another producer that is stopped in the middle of a push while the first one dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Company {
    /// The boundary at which it is stopped.
    pub at: usize,
    /// `true` if it has begun before the first producer.
    pub early: bool,
    /// `true` if it dies as well; otherwise it is only slow.
    pub dies: bool,
}

const ALONE: Option<Company> = None;

/// Tries one death at the last of the stops. Returns `true` if the message in flight arrived.
pub fn die<T: Link>(
    bed: &mut Bed<'_, T>,
    set_up: &SetUp,
    stops: &[Stop],
    known: &[&Survey],
    company: Option<Company>,
    tally: &mut TrialCounts,
) -> bool {
    let (boundary, meanwhile) = *stops.last().expect("a place to die");
    let survey = known.last().expect("the way there");
    let (mut scene, victims) = prepare(bed, &set_up.acts, company.is_some());
    let Victims { mut first, mut second } = victims;
    let come_along = |second: &mut Option<Victim>, early: bool| {
        if let (Some(second), Some(company)) = (second, company.filter(|company| company.early == early)) {
            second.begin();
            second.step_at_most(company.at);
        }
    };
    come_along(&mut second, true);
    // If another producer has already begun, the path may differ.
    let is_known = company.is_none_or(|company| !company.early);
    scene.approach(&mut first, stops, if is_known { known } else { &[] });
    let (at, state) = survey.path[boundary - survey.from];
    if is_known {
        assert_eq!(first.at(), at, "{set_up:?} {stops:?}: another way than before");
    }
    if meanwhile == NOTHING && company.is_none() {
        assert_eq!(scene.bed.state(), state, "{set_up:?} {stops:?}: another state than before");
    }
    come_along(&mut second, false);
    scene.fence(FIRST, first);
    tally.add("deaths", 1);
    let mut dead = vec![FIRST];
    let mut slow = None;
    match (second, company) {
        (Some(second), Some(Company { dies: true, .. })) => {
            scene.fence(SECOND, second);
            tally.add("deaths", 1);
            dead.insert(boundary % 2, SECOND);
        }
        (second, _) => slow = second,
    }
    if !scene.bed.shared {
        // Each producer has its own ring: the others do not need the repair.
        scene.take_all();
        scene.check_all_received(&[1], "before the repair");
    }
    let mut retired = scene.try_retire(&dead);
    if let Some(slow) = &slow {
        tally.add("waited for the slow", u64::from(!retired));
        slow.finish();
        scene.sent[SECOND] += slow.done();
        retired = scene.try_retire(&dead);
    }
    if !retired {
        scene.problem("unretired", format_args!("{dead:?} cannot be retired"));
    }
    let returned = at.is_none() && survey.taken && company.is_none();
    let came = judge_dead(&mut scene, FIRST, returned);
    if dead.contains(&SECOND) {
        judge_dead(&mut scene, SECOND, false);
    }
    let living = if dead.contains(&SECOND) { &[1][..] } else { &[1, SECOND] };
    scene.check_all_received(living, "after the repair");
    let passed_over = scene.consumer.passed_over();
    tally.add("passed over", passed_over);
    if passed_over > dead.len() as u64 {
        scene.problem("passed over", format_args!("{passed_over} for {} dead", dead.len()));
    }
    // The current block may be used up; a slow producer may keep a spare one; blocks of dead
    // producers were freed.
    let lost = scene.bed.slack * (1 + u64::from(slow.is_some()));
    scene.check_two_laps(lost, "after the repair");
    if let Some(slow) = &slow {
        let before = slow.done();
        slow.run(2);
        scene.sent[SECOND] += slow.done() - before;
        scene.take_all();
        scene.check_all_received(&[SECOND], "the slow one goes on");
    }
    for index in dead {
        scene.revive(index);
    }
    scene.check_two_laps(lost, "after the revival");
    scene.conclude(&set_up.name, format_args!("{stops:?} of {}, {company:?}", survey.end()), tally);
    came
}

/// Checks that all accepted messages of a dead producer have arrived, and at most the one in
/// flight.
fn judge_dead<T: Link>(scene: &mut Scene<'_, '_, T>, dead: usize, returned: bool) -> bool {
    let (sent, came) = (scene.sent[dead], scene.came[dead]);
    if !(sent + u64::from(returned)..=sent + 1).contains(&came) {
        scene.problem(
            "dead",
            format_args!("dead producer {dead}: {sent} were taken, returned: {returned}, and {came} came"),
        );
    }
    came > sent
}

/// Distance of the boundaries at which the others act, in addition to those before a change.
const MEDDLE_EVERY: usize = 40;

/// Tries a death at every boundary of the push in one state. At the chosen ones also with active
/// producers and with another stopped producer, and with actions in between; in quick mode with one
/// choice each.
pub fn exhaust<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let plain = survey(bed, set_up);
    tally.add("distinct states", plain.distinct_states());
    let mut came_before = false;
    for boundary in 0..=plain.end() {
        let came = die(bed, set_up, &[(boundary, NOTHING)], &[&plain], ALONE, &mut tally);
        tally.add("boundaries", 1);
        if came_before && !came {
            tally.problem(&set_up.name, format!("there before boundary {boundary}, and then no more"));
        }
        came_before = came;
    }
    tally.add("of", plain.end() as u64 + 1);
    for (turn, boundary) in plain.chosen().into_iter().enumerate() {
        for push in sample(&[1, UNTIL_FULL], turn) {
            let meanwhile = Meanwhile { push, take: boundary as u64 % 3 };
            die(bed, set_up, &[(boundary, meanwhile)], &[&plain], ALONE, &mut tally);
        }
        for company in companies(set_up, &plain, boundary, turn) {
            die(bed, set_up, &[(boundary, NOTHING)], &[&plain], Some(company), &mut tally);
        }
    }
    meddle(bed, set_up, &plain, &mut tally);
    tally
}

/// Returns one of the choices, a different one each time; all of them in slow mode.
pub fn sample<C: Copy>(all: &[C], time: usize) -> Vec<C> {
    if is_slow() { all.to_vec() } else { vec![all[time % all.len()]] }
}

/// Returns the second producers tried at a boundary: one at some boundary, and one at each boundary
/// before a change.
fn companies(set_up: &SetUp, plain: &Survey, boundary: usize, turn: usize) -> Vec<Company> {
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    let company = |at: usize| move |(early, dies)| Company { at, early, dies };
    let somewhere = boundary * 7 % (plain.end() + 1);
    let mut companies: Vec<Company> = sample(&ways, turn).into_iter().map(company(somewhere)).collect();
    let changes = plain.before_changes();
    if set_up.thorough && changes.contains(&boundary) {
        let choices = changes.iter().enumerate();
        companies.extend(
            choices.flat_map(|(place, at)| sample(&ways, turn + place).into_iter().map(company(*at))),
        );
    }
    companies
}

/// Lets the others push or take at one boundary, and the victim die at each selected later one.
fn meddle<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp, plain: &Survey, tally: &mut TrialCounts) {
    let mut places = plain.before_changes();
    places.extend((0..plain.end()).step_by(MEDDLE_EVERY));
    places.sort_unstable();
    places.dedup();
    let kinds = [
        Meanwhile { push: 1, take: 0 },
        Meanwhile { push: 0, take: 1 },
        Meanwhile { push: UNTIL_FULL, take: UNTIL_FULL },
    ];
    for (turn, place) in places.into_iter().enumerate() {
        if !set_up.thorough && turn % 3 != 0 {
            continue;
        }
        for meanwhile in sample(&kinds, turn / 3 + turn) {
            let other = survey_from(bed, set_up, (place, meanwhile), plain);
            tally.add("distinct states", other.distinct_states());
            for boundary in other.chosen().into_iter().filter(|boundary| *boundary > place) {
                let stops = [(place, meanwhile), (boundary, NOTHING)];
                die(bed, set_up, &stops, &[plain, &other], ALONE, tally);
                tally.add("meddled with", 1);
            }
        }
    }
}

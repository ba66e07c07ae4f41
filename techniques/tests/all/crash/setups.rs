//! The states of a ring in which a victim dies, and the actions that lead to them.

use super::bed::{FIRST, SECOND, TestBed, Trial};
use super::report::is_slow;
use super::victim::{Role, Victim};
use shm::ring::Link;
use techniques::Technique;
use techniques::channel::Channel;
use techniques::linked::{BLOCK_SLOTS, Linked};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Pushes a number of messages into the victim's ring, by all producers in turn if they share
    /// it.
    Fill(u64),
    Take(u64),
    TakeAll,
    /// Stops the victim in a push after a number of changes of shared memory; the others push a
    /// number of messages; the victim continues.
    Interrupted(usize, u64),
    /// Puts the receiver to sleep, if it can sleep: a push must wake it.
    Park,
}
use Act::{Fill, Interrupted, Park, Take, TakeAll};

#[derive(Clone, Debug)]
pub struct SetUp {
    pub name: String,
    pub acts: Vec<Act>,
    /// `true` if all combinations are tried in this state, and not only some.
    pub thorough: bool,
}

fn set_up(name: &str, acts: &[Act]) -> SetUp {
    SetUp { name: name.into(), acts: acts.to_vec(), thorough: is_slow() }
}

/// Returns the relevant states of a technique.
pub fn set_ups(technique: Technique, capacity: u64) -> Vec<SetUp> {
    if technique.is_kernel() {
        // The kernel's state is not visible.
        return vec![set_up("empty", &[]), set_up("part-full", &[Fill(3)])];
    }
    let half = capacity / 2;
    let is_linked = technique == Technique::from_link::<Linked>();
    let mut set_ups = vec![
        set_up("empty", &[]),
        set_up("part-full", &[Fill(3)]),
        set_up("wrapped", &[Fill(capacity), TakeAll, Fill(half), TakeAll, Fill(2)]),
        set_up("one free", &[Fill(capacity - 1)]),
        set_up("full", &[Fill(capacity)]),
    ];
    if is_linked {
        let block = BLOCK_SLOTS as u64;
        set_ups.extend([
            set_up("last slot of a block", &[Fill(block - 1)]),
            set_up("next block not linked", &[Fill(block)]),
            set_up(
                "a block to use again",
                &[Fill(block), TakeAll, Fill(block), TakeAll, Fill(block), Take(block - 1)],
            ),
            set_up("a spare block held", &[Fill(block), Interrupted(2, 1), Fill(block - 2)]),
            set_up(
                "all blocks used before",
                &[Fill(capacity), TakeAll, Fill(capacity - 2 * block), TakeAll, Fill(5)],
            ),
        ]);
    } else {
        set_ups.extend([
            set_up("last slot of a lap", &[Fill(capacity - 1), TakeAll]),
            set_up("first slot of a lap", &[Fill(capacity), TakeAll]),
            set_up("one free, wrapped", &[Fill(half + 1), TakeAll, Fill(capacity - 1)]),
            set_up("full, wrapped", &[Fill(half + 1), TakeAll, Fill(capacity)]),
        ]);
    }
    if technique == Technique::from_link::<Channel>() {
        set_ups.extend([
            set_up("receiver asleep", &[Park]),
            set_up("receiver asleep, wrapped", &[Fill(capacity), TakeAll, Fill(half), TakeAll, Park]),
        ]);
    }
    let thorough = if is_linked { "next block not linked" } else { "one free" };
    for set_up in &mut set_ups {
        set_up.thorough |= ["empty", thorough].contains(&set_up.name.as_str());
    }
    set_ups
}

impl SetUp {
    /// Shifts the state by a number of slots. Not for states that depend on a specific slot.
    pub fn shifted(self, slots: u64) -> Self {
        if slots == 0 {
            return self;
        }
        let acts = [Fill(slots), TakeAll].into_iter().chain(self.acts.iter().copied());
        Self { name: format!("{} +{slots}", self.name), acts: acts.collect(), ..self }
    }

    pub fn is_fill_only(&self) -> bool {
        self.acts.iter().all(|run_act| matches!(run_act, Fill(_)))
    }

    /// Returns `true` if a producer is single-stepped by the actions.
    pub fn interrupts(&self) -> bool {
        self.acts.iter().any(|run_act| matches!(run_act, Interrupted(..)))
    }
}

pub struct Victims {
    pub first: Victim,
    pub second: Option<Victim>,
}

/// Resets the memory, starts the victims and brings the ring into a state.
pub fn prepare<'b, 'a, T: Link>(
    bed: &'b mut TestBed<'a, T>,
    acts: &[Act],
    with_second: bool,
) -> (Trial<'b, 'a, T>, Victims) {
    let victims_indices: &[usize] = if with_second { &[FIRST, SECOND] } else { &[FIRST] };
    let mut trial = Trial::new(bed, victims_indices);
    let first = trial.bed.victim(Role::Producer(FIRST));
    let second = with_second.then(|| trial.bed.victim(Role::Producer(SECOND)));
    let mut victims = Victims { first, second };
    acts.iter().for_each(|run_act| trial.run_act(*run_act, &mut victims.first));
    (trial, victims)
}

impl<T: Link> Trial<'_, '_, T> {
    pub fn run_act(&mut self, run_act: Act, victim: &mut Victim) {
        match run_act {
            Fill(messages) => {
                // The victim pushes half of the messages if the ring is shared.
                let victims_share = if self.bed.shared { messages.div_ceil(2) } else { messages };
                self.push_by_victim(victim, victims_share);
                self.push(messages - if self.bed.shared { victims_share } else { 0 });
            }
            Take(messages) => {
                self.take(messages);
            }
            TakeAll => {
                self.take_all();
            }
            Park => self.bed.park(),
            Interrupted(changes, others) => {
                victim.begin();
                let mut state = self.bed.state();
                for _ in 0..changes {
                    while self.bed.state() == state && victim.at().is_some() {
                        victim.step(1);
                    }
                    state = self.bed.state();
                }
                self.push(others);
                self.finish_victim(victim);
            }
        }
    }

    pub fn push_by_victim(&mut self, victim: &Victim, messages: u64) {
        let before = victim.done();
        victim.run(messages);
        self.sent[FIRST] += victim.done() - before;
    }

    pub fn finish_victim(&mut self, victim: &Victim) {
        let before = victim.done();
        victim.finish();
        self.sent[FIRST] += victim.done() - before;
    }
}

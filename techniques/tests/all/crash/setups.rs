//! The states of a ring in which a victim dies, and the actions that lead to them.

use super::bed::{Bed, FIRST, SECOND, Scene};
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
pub fn all(technique: Technique, room: u64) -> Vec<SetUp> {
    if technique.is_kernel() {
        // The kernel's state is not visible.
        return vec![set_up("empty", &[]), set_up("part-full", &[Fill(3)])];
    }
    let half = room / 2;
    let is_linked = technique == Technique::from_link::<Linked>();
    let mut all = vec![
        set_up("empty", &[]),
        set_up("part-full", &[Fill(3)]),
        set_up("wrapped", &[Fill(room), TakeAll, Fill(half), TakeAll, Fill(2)]),
        set_up("one free", &[Fill(room - 1)]),
        set_up("full", &[Fill(room)]),
    ];
    if is_linked {
        let block = BLOCK_SLOTS as u64;
        all.extend([
            set_up("last place of a block", &[Fill(block - 1)]),
            set_up("next block not linked", &[Fill(block)]),
            set_up(
                "a block to use again",
                &[Fill(block), TakeAll, Fill(block), TakeAll, Fill(block), Take(block - 1)],
            ),
            set_up("a spare block held", &[Fill(block), Interrupted(2, 1), Fill(block - 2)]),
            set_up(
                "all blocks used before",
                &[Fill(room), TakeAll, Fill(room - 2 * block), TakeAll, Fill(5)],
            ),
        ]);
    } else {
        all.extend([
            set_up("last place of a lap", &[Fill(room - 1), TakeAll]),
            set_up("first place of a lap", &[Fill(room), TakeAll]),
            set_up("one free, wrapped", &[Fill(half + 1), TakeAll, Fill(room - 1)]),
            set_up("full, wrapped", &[Fill(half + 1), TakeAll, Fill(room)]),
        ]);
    }
    if technique == Technique::from_link::<Channel>() {
        all.extend([
            set_up("receiver asleep", &[Park]),
            set_up("receiver asleep, wrapped", &[Fill(room), TakeAll, Fill(half), TakeAll, Park]),
        ]);
    }
    let thorough = if is_linked { "next block not linked" } else { "one free" };
    for set_up in &mut all {
        set_up.thorough |= ["empty", thorough].contains(&set_up.name.as_str());
    }
    all
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
        self.acts.iter().all(|act| matches!(act, Fill(_)))
    }

    /// Returns `true` if a producer is single-stepped by the actions.
    pub fn interrupts(&self) -> bool {
        self.acts.iter().any(|act| matches!(act, Interrupted(..)))
    }
}

pub struct Victims {
    pub first: Victim,
    pub second: Option<Victim>,
}

/// Resets the memory, starts the victims and brings the ring into a state.
pub fn prepare<'b, 'a, T: Link>(
    bed: &'b mut Bed<'a, T>,
    acts: &[Act],
    two: bool,
) -> (Scene<'b, 'a, T>, Victims) {
    let who: &[usize] = if two { &[FIRST, SECOND] } else { &[FIRST] };
    let mut scene = Scene::new(bed, who);
    let first = scene.bed.victim(Role::Producer(FIRST));
    let second = two.then(|| scene.bed.victim(Role::Producer(SECOND)));
    let mut victims = Victims { first, second };
    acts.iter().for_each(|act| scene.act(*act, &mut victims.first));
    (scene, victims)
}

impl<T: Link> Scene<'_, '_, T> {
    pub fn act(&mut self, act: Act, victim: &mut Victim) {
        match act {
            Fill(messages) => {
                // The victim pushes half of the messages if the ring is shared.
                let its = if self.bed.shared { messages.div_ceil(2) } else { messages };
                self.let_push(victim, its);
                self.push(messages - if self.bed.shared { its } else { 0 });
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
                self.let_finish(victim);
            }
        }
    }

    pub fn let_push(&mut self, victim: &Victim, messages: u64) {
        let before = victim.done();
        victim.run(messages);
        self.sent[FIRST] += victim.done() - before;
    }

    pub fn let_finish(&mut self, victim: &Victim) {
        let before = victim.done();
        victim.finish();
        self.sent[FIRST] += victim.done() - before;
    }
}

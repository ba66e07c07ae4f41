//! Equal inputs give equal effects and equal state, also in a core that continues from a snapshot.

use super::{core, drawn, events, load};
use crate::core::tests::{Effect, order};
use crate::core::{Core, Input, SavedCore};
use crate::replica::Replica;
use journal::{State, codec};
use proptest::prelude::*;
use protocol::commands::Command;
use protocol::kill::Scope;
use protocol::wire::Report;

/// Changes a core that was read back; the second one is a core in which nothing has happened.
type Forget = fn(&mut SavedCore, SavedCore);

fn encoded(core: &Core) -> Vec<u8> {
    codec::encode(Replica::VERSION, &core.save()).unwrap()
}

fn decoded(bytes: &[u8]) -> SavedCore {
    codec::decode(Replica::VERSION, bytes).unwrap()
}

fn apply_to(core: &mut Core, (index, input): &(usize, Input), out: &mut Vec<Effect>) {
    let ticks = 10 * *index as u64;
    if core.can_apply(input) {
        core.apply(*input, ticks, out);
        core.book();
    }
}

/// Applies inputs, the ones from `cut` on in a core that was restored from a snapshot. Returns all
/// effects, and the state.
fn play(inputs: &[(usize, Input)], cut: usize, forget: Forget) -> (Vec<Effect>, Vec<u8>) {
    let (mut live, mut out) = (core(), Vec::new());
    inputs[..cut].iter().for_each(|input| apply_to(&mut live, input, &mut out));
    if cut < inputs.len() {
        let mut saved = decoded(&encoded(&live));
        forget(&mut saved, decoded(&encoded(&core())));
        live = core();
        live.restore(saved).unwrap();
        inputs[cut..].iter().for_each(|input| apply_to(&mut live, input, &mut out));
    }
    (out, encoded(&live))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn restored_core_continues_with_equal_effects(drawn in drawn(), cut in any::<prop::sample::Index>()) {
        let inputs: Vec<_> = events(&drawn).into_iter().enumerate().collect();
        let whole = play(&inputs, inputs.len(), |_, _| {});
        prop_assert!(play(&inputs, inputs.len(), |_, _| {}) == whole, "equal inputs have other effects");
        let cut = cut.index(inputs.len() + 1);
        prop_assert!(play(&inputs, cut, |_, _| {}) == whole, "a core restored at {cut} goes on in another way");
    }
}

#[test]
fn core_that_forgets_a_field_is_detected() {
    let mut inputs = load();
    // Then everything is killed, and every order is confirmed.
    let mut then = |input| inputs.push((inputs.len(), input));
    then(Input::Command { number: 7, command: Some(Command::Kill(Scope::All)) });
    for (strategy, sequence) in (0..4).flat_map(|strategy| (0..40).map(move |n| (strategy, n))) {
        let message = Report::full_fill(&order(strategy, sequence, 0)).to_message();
        then(Input::Report { gateway: None, message });
    }
    let whole = play(&inputs, inputs.len(), |_, _| {}).0;
    let forgetful: [(&str, Forget); 7] = [
        ("nothing", |_, _| {}),
        ("sessions", |core, fresh| core.0.sessions = fresh.0.sessions),
        ("open orders", |core, fresh| (core.0.positions, core.1) = (fresh.0.positions, fresh.1)),
        ("kill switches", |core, fresh| core.0.risk = fresh.0.risk),
        ("unconfirmed kills", |core, _| core.0.kills.clear()),
        ("orders at gateways", |core, fresh| core.0.gateways = fresh.0.gateways),
        ("rejections", |core, fresh| core.0.rejected_by_reason = fresh.0.rejected_by_reason),
    ];
    let is_equal = |(_, forget): &&(&str, Forget)| play(&inputs, 100, *forget).0 == whole;
    let unseen: Vec<&str> = forgetful.iter().filter(is_equal).map(|(what, _)| *what).collect();
    assert_eq!(unseen, ["nothing"]);
}

/// The tables of a restored core are as large as before, and so is the room for kill switches.
#[test]
fn restored_core_applies_without_allocating() {
    let inputs = load();
    let (mut live, mut out) = (core(), Vec::new());
    inputs[..100].iter().for_each(|input| apply_to(&mut live, input, &mut out));
    let mut restored = core();
    restored.restore(decoded(&encoded(&live))).unwrap();
    out.reserve(10_000);
    let before = system::alloc::allocations();
    inputs[100..].iter().for_each(|input| apply_to(&mut restored, input, &mut out));
    for strategy in 0..4 {
        for command in [Command::Kill(Scope::Strategy(strategy)), Command::Revive(Scope::All)] {
            let input = Input::Command { number: 9, command: Some(command) };
            apply_to(&mut restored, &(200, input), &mut out);
        }
    }
    assert_eq!(system::alloc::allocations() - before, 0);
}

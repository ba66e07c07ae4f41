//! Engines with one mistake each, which the comparison with the naive engine must detect.

use crate::drawn::{CommandSource, Setting};
use crate::pair::{Engine, run, shrink};
use exchange::{Command, Event, Exchange, NewOrder, OrderType, SelfTrade, TimeInForce};
use shm::random::SplitMix64;
use std::marker::PhantomData;

/// A mistake: changes commands on their way to the engine, or events on their way from it.
trait Mistake {
    /// Returns the commands that the engine gets instead.
    fn commands(_before: &Exchange, command: Command) -> Vec<Command> {
        vec![command]
    }

    fn change_events(_command: Command, _events: &mut Vec<Event>) {}
}

struct FaultyEngine<M>(Exchange, PhantomData<M>);

impl<M: Mistake> Engine for FaultyEngine<M> {
    fn start(setting: &Setting) -> Self {
        FaultyEngine(Exchange::start(setting), PhantomData)
    }

    fn apply(&mut self, command: Command, events: &mut Vec<Event>) {
        for changed in M::commands(&self.0, command) {
            Exchange::apply(&mut self.0, changed, events);
        }
        M::change_events(command, events);
    }

    fn exchange(&self) -> &Exchange {
        &self.0
    }
}

macro_rules! command_mistakes {
    ($($name:ident: |$before:ident, $command:ident| $body:expr;)*) => {$(
        struct $name;
        impl Mistake for $name {
            fn commands($before: &Exchange, $command: Command) -> Vec<Command> {
                $body
            }
        }
    )*};
}

macro_rules! event_mistakes {
    ($($name:ident: |$command:ident, $events:ident| $body:expr;)*) => {$(
        struct $name;
        impl Mistake for $name {
            fn change_events($command: Command, $events: &mut Vec<Event>) {
                $body
            }
        }
    )*};
}

fn altered(command: Command, alter: impl Fn(&mut NewOrder)) -> Vec<Command> {
    let Command::New(mut order) = command else { return vec![command] };
    alter(&mut order);
    vec![Command::New(order)]
}

fn resting(exchange: &Exchange, id: u64) -> Option<(i64, u64)> {
    use exchange::Side::{Buy, Sell};
    let mut sides = (0..3).flat_map(|instrument| [(instrument, Buy), (instrument, Sell)]);
    sides.find_map(|(instrument, side)| {
        exchange
            .orders(instrument, side)
            .find(|order| order.id == id)
            .map(|order| (order.price, order.leaves))
    })
}

command_mistakes! {
    LosesACancel: |_before, command| match command { Command::Cancel { id, .. } if id % 8 == 5 => vec![], _ => vec![command] };
    CancelsForAnyOwner: |_before, command| match command {
        Command::Cancel { id, .. } => (0..5).map(|owner| Command::Cancel { id, owner }).collect(),
        _ => vec![command],
    };
    KeepsPriorityOnANewPrice: |before, command| match command {
        Command::Replace { id, owner, price, quantity } => match resting(before, id) {
            Some((old, leaves)) if old.abs_diff(price) == 1 && quantity <= leaves => vec![Command::Replace { id, owner, price: old, quantity }],
            _ => vec![command],
        },
        _ => vec![command],
    };
    LosesPriorityOnReduction: |before, command| match command {
        Command::Replace { id, owner, price, quantity } => match resting(before, id) {
            Some((old, leaves)) if old == price && quantity < leaves => {
                vec![Command::Replace { id, owner, price, quantity: leaves + quantity }, Command::Replace { id, owner, price, quantity }]
            }
            _ => vec![command],
        },
        _ => vec![command],
    };
    FillsAndKills: |_before, command| altered(command, |order| {
        if order.time_in_force == TimeInForce::FillOrKill { order.time_in_force = TimeInForce::ImmediateOrCancel }
    });
    ForgetsTheMinimum: |_before, command| altered(command, |order| order.minimum = 0);
    PostOnlyTakes: |_before, command| altered(command, |order| order.post_only = false);
    ShowsTheIceberg: |_before, command| altered(command, |order| order.display = 0);
    CancelsOldestInsteadOfNewest: |_before, command| altered(command, |order| {
        if order.self_trade == SelfTrade::CancelNewest { order.self_trade = SelfTrade::CancelOldest }
    });
    ForgetsToDecrement: |_before, command| altered(command, |order| {
        if order.self_trade == SelfTrade::Decrement { order.self_trade = SelfTrade::Allow }
    });
    StopsDoNotWait: |_before, command| altered(command, |order| {
        if order.order_type == OrderType::StopLimit { order.order_type = OrderType::Limit }
    });
    TriggersLate: |_before, command| altered(command, |order| match order.side {
        exchange::Side::Buy if order.stop_price < 24 => order.stop_price += 1,
        _ => {}
    });
    ExpiresLate: |_before, command| match command { Command::Time(now) => vec![Command::Time(now.saturating_sub(1))], _ => vec![command] };
    CancelsTooMuch: |_before, command| match command {
        Command::MassCancel { owner, instrument: Some(0..=2) } => vec![Command::MassCancel { owner, instrument: None }],
        _ => vec![command],
    };
    SkipsTheAuction: |_before, command| match command { Command::Auction { instrument: 0 } => vec![], _ => vec![command] };
}

event_mistakes! {
    LosesAnEvent: |_command, events| if events.len() > 3 { events.pop(); };
    SwapsTwoMakers: |_command, events| {
        let trades: Vec<usize> = (0..events.len()).filter(|at| matches!(events[*at], Event::Trade { .. })).collect();
        if let [.., first, second] = trades[..] {
            let makers = [first, second].map(|at| match events[at] { Event::Trade { maker, .. } => maker, _ => unreachable!() });
            for (at, with) in [(first, makers[1]), (second, makers[0])] {
                if let Event::Trade { maker, .. } = &mut events[at] { *maker = with }
            }
        }
    };
    ForgetsADecrement: |_command, events| for event in events {
        if let Event::Trade { quantity, maker_leaves, .. } = event && *maker_leaves > 0 { *maker_leaves += *quantity }
    };
    TradesAtTheTakersPrice: |command, events| if let Command::New(order) = command && order.order_type == OrderType::Limit {
        for event in events {
            if let Event::Trade { taker, price, .. } = event && *taker == order.id { *price = order.price }
        }
    };
    RestartsTradeNumbers: |_command, events| for event in events {
        if let Event::Trade { number, .. } = event { *number %= 64 }
    };
}

/// Runs commands until the comparison detects the mistake, and checks that few of them suffice.
fn assert_mistake_is_detected<M: Mistake>(name: &str) {
    let setting = Setting::crowded();
    for seed in 0..40 {
        let (mut numbers, mut source) = (SplitMix64(seed), CommandSource::new(&setting));
        let commands: Vec<Command> = (0..2000).map(|_| source.command(&mut numbers)).collect();
        if run::<FaultyEngine<M>>(&setting, &commands).is_err() {
            let shortest = shrink::<FaultyEngine<M>>(&setting, &commands);
            assert!(run::<Exchange>(&setting, &shortest).is_ok(), "{name}: the engine itself differs");
            let max = if name == "RestartsTradeNumbers" { 200 } else { 12 };
            assert!(
                shortest.len() <= max,
                "{name}: detected, but the shortest list has {} commands",
                shortest.len()
            );
            return;
        }
    }
    panic!("{name}: 80,000 commands did not detect it");
}

macro_rules! assert_each_is_detected {
    ($($name:ident)*) => {
        #[test]
        fn every_mistake_is_detected() {
            $(assert_mistake_is_detected::<$name>(stringify!($name));)*
        }
    };
}

assert_each_is_detected! {
    LosesACancel CancelsForAnyOwner KeepsPriorityOnANewPrice LosesPriorityOnReduction FillsAndKills ForgetsTheMinimum PostOnlyTakes
    ShowsTheIceberg CancelsOldestInsteadOfNewest ForgetsToDecrement StopsDoNotWait TriggersLate ExpiresLate CancelsTooMuch SkipsTheAuction
    LosesAnEvent SwapsTwoMakers ForgetsADecrement TradesAtTheTakersPrice RestartsTradeNumbers
}

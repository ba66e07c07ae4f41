//! Engines with one mistake each, which the comparison with the naive engine must find.

use crate::drawn::{Drawer, Seeded, Setting};
use crate::pair::{Engine, run, shrink};
use exchange::{Command, Event, Exchange, NewOrder, OrderType, SelfTrade, TimeInForce};
use std::marker::PhantomData;

/// A mistake: changes commands on their way to the engine, or events on their way from it.
trait Mistake {
    /// Returns the commands that the engine gets instead.
    fn commands(_before: &Exchange, command: Command) -> Vec<Command> {
        vec![command]
    }

    /// Changes the events of a command.
    fn change_events(_command: Command, _events: &mut Vec<Event>) {}
}

struct FaultyEngine<M>(Exchange, PhantomData<M>);

impl<M: Mistake> Engine for FaultyEngine<M> {
    fn start(setting: &Setting) -> Self {
        FaultyEngine(Exchange::start(setting), PhantomData)
    }

    fn apply(&mut self, command: Command, events: &mut Vec<Event>) {
        for instead in M::commands(&self.0, command) {
            Exchange::apply(&mut self.0, instead, events);
        }
        M::change_events(command, events);
    }

    fn exchange(&self) -> &Exchange {
        &self.0
    }
}

/// Defines mistakes in commands.
macro_rules! told {
    ($($(#[$doc:meta])* $name:ident: |$before:ident, $command:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        struct $name;
        impl Mistake for $name {
            fn commands($before: &Exchange, $command: Command) -> Vec<Command> {
                $body
            }
        }
    )*};
}

/// Defines mistakes in events.
macro_rules! said {
    ($($(#[$doc:meta])* $name:ident: |$command:ident, $events:ident| $body:expr;)*) => {$(
        $(#[$doc])*
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

told! {
    /// A cancel is lost.
    LosesACancel: |_before, command| match command { Command::Cancel { id, .. } if id % 8 == 5 => vec![], _ => vec![command] };
    /// Anybody cancels anything.
    CancelsForAnybody: |_before, command| match command {
        Command::Cancel { id, .. } => (0..5).map(|owner| Command::Cancel { id, owner }).collect(),
        _ => vec![command],
    };
    /// The price changes and the place is kept: the price does not change.
    KeepsPriorityOnANewPrice: |before, command| match command {
        Command::Replace { id, owner, price, quantity } => match resting(before, id) {
            Some((old, leaves)) if old.abs_diff(price) == 1 && quantity <= leaves => vec![Command::Replace { id, owner, price: old, quantity }],
            _ => vec![command],
        },
        _ => vec![command],
    };
    /// A smaller quantity costs the place.
    LosesPriorityOnLess: |before, command| match command {
        Command::Replace { id, owner, price, quantity } => match resting(before, id) {
            Some((old, leaves)) if old == price && quantity < leaves => {
                vec![Command::Replace { id, owner, price, quantity: leaves + quantity }, Command::Replace { id, owner, price, quantity }]
            }
            _ => vec![command],
        },
        _ => vec![command],
    };
    /// Fill or kill is immediate or cancel.
    FillsAndKills: |_before, command| altered(command, |order| {
        if order.time_in_force == TimeInForce::FillOrKill { order.time_in_force = TimeInForce::ImmediateOrCancel }
    });
    /// The minimum is not looked at.
    ForgetsTheMinimum: |_before, command| altered(command, |order| order.minimum = 0);
    /// A post-only order takes.
    PostOnlyTakes: |_before, command| altered(command, |order| order.post_only = false);
    /// An iceberg shows everything.
    ShowsTheIceberg: |_before, command| altered(command, |order| order.display = 0);
    /// Self-trade prevention cancels the wrong one.
    CancelsTheOther: |_before, command| altered(command, |order| {
        if order.self_trade == SelfTrade::CancelNewest { order.self_trade = SelfTrade::CancelOldest }
    });
    /// Own orders trade instead of being decremented.
    ForgetsToDecrement: |_before, command| altered(command, |order| {
        if order.self_trade == SelfTrade::Decrement { order.self_trade = SelfTrade::Allow }
    });
    /// A stop order does not wait.
    StopsDoNotWait: |_before, command| altered(command, |order| {
        if order.order_type == OrderType::StopLimit { order.order_type = OrderType::Limit }
    });
    /// A stop order is triggered one tick late.
    TriggersLate: |_before, command| altered(command, |order| match order.side {
        exchange::Side::Buy if order.stop_price < 24 => order.stop_price += 1,
        _ => {}
    });
    /// Orders outlive their time by one.
    ExpiresLate: |_before, command| match command { Command::Time(now) => vec![Command::Time(now.saturating_sub(1))], _ => vec![command] };
    /// A mass cancel of one instrument takes all.
    CancelsTooMuch: |_before, command| match command {
        Command::MassCancel { owner, instrument: Some(0..=2) } => vec![Command::MassCancel { owner, instrument: None }],
        _ => vec![command],
    };
    /// The uncrossing trades continuously: never gathers.
    SkipsTheAuction: |_before, command| match command { Command::Auction { instrument: 0 } => vec![], _ => vec![command] };
}

said! {
    /// The last event of many is lost.
    LosesAnEvent: |_command, events| if events.len() > 3 { events.pop(); };
    /// Two makers trade in the other order.
    SwapsTwoMakers: |_command, events| {
        let trades: Vec<usize> = (0..events.len()).filter(|at| matches!(events[*at], Event::Trade { .. })).collect();
        if let [.., first, second] = trades[..] {
            let makers = [first, second].map(|at| match events[at] { Event::Trade { maker, .. } => maker, _ => unreachable!() });
            for (at, with) in [(first, makers[1]), (second, makers[0])] {
                if let Event::Trade { maker, .. } = &mut events[at] { *maker = with }
            }
        }
    };
    /// The maker's open quantity is not decremented.
    ForgetsADecrement: |_command, events| for event in events {
        if let Event::Trade { quantity, maker_leaves, .. } = event && *maker_leaves > 0 { *maker_leaves += *quantity }
    };
    /// A trade is at the taker's price.
    TradesAtTheTakersPrice: |command, events| if let Command::New(order) = command && order.order_type == OrderType::Limit {
        for event in events {
            if let Event::Trade { taker, price, .. } = event && *taker == order.id { *price = order.price }
        }
    };
    /// The number of a trade restarts from 0.
    RestartsTradeNumbers: |_command, events| for event in events {
        if let Event::Trade { number, .. } = event { *number %= 64 }
    };
}

/// Runs commands until the comparison finds the mistake, and checks that few of them suffice.
fn found<M: Mistake>(name: &str) {
    let setting = Setting::crowded();
    for seed in 0..40 {
        let (mut numbers, mut drawer) = (Seeded(seed), Drawer::new(&setting));
        let commands: Vec<Command> = (0..2000).map(|_| drawer.command(&mut numbers)).collect();
        if run::<FaultyEngine<M>>(&setting, &commands).is_err() {
            let shortest = shrink::<FaultyEngine<M>>(&setting, &commands);
            assert!(run::<Exchange>(&setting, &shortest).is_ok(), "{name}: the engine itself differs");
            let max = if name == "RestartsTradeNumbers" { 200 } else { 12 };
            assert!(
                shortest.len() <= max,
                "{name}: found, but shrunk to no fewer than {} commands",
                shortest.len()
            );
            return;
        }
    }
    panic!("{name}: 80,000 commands did not find it");
}

macro_rules! all_found {
    ($($name:ident)*) => {
        #[test]
        fn every_mistake_is_found() {
            $(found::<$name>(stringify!($name));)*
        }
    };
}

all_found! {
    LosesACancel CancelsForAnybody KeepsPriorityOnANewPrice LosesPriorityOnLess FillsAndKills ForgetsTheMinimum PostOnlyTakes
    ShowsTheIceberg CancelsTheOther ForgetsToDecrement StopsDoNotWait TriggersLate ExpiresLate CancelsTooMuch SkipsTheAuction
    LosesAnEvent SwapsTwoMakers ForgetsADecrement TradesAtTheTakersPrice RestartsTradeNumbers
}

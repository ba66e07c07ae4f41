//! The built-in strategies as one type, so that they share the machine code of each technique.

use crate::{Context, Crosser, Maker, Orders, Player, Strategy, Taker};
use protocol::wire::Report;

/// A built-in strategy: player, market maker, taker or crosser.
pub enum BuiltIn {
    /// The player, which sends the orders of its schedule.
    Player(Player),
    /// The market maker, which quotes both sides of the market.
    Maker(Maker),
    /// The taker, which trades against the quotes of others.
    Taker(Taker),
    /// The crosser, which rests an order and trades against it with the next one.
    Crosser(Crosser),
}

/// A function that creates a built-in strategy from its context.
pub type BuiltInFactory = fn(&Context) -> BuiltIn;

impl BuiltIn {
    /// All built-in strategies by name, the default first.
    pub const ALL: [(&'static str, BuiltInFactory); 4] = [
        ("player", |context| Self::Player(context.player())),
        ("maker", |context| {
            let due = context.schedule().skip(context.sent_before as usize);
            let due = due.map(|entry| (entry.request.venue, entry.request.side));
            Self::Maker(Maker::new(context.player(), context.venues, due))
        }),
        ("taker", |context| Self::Taker(Taker::new(context.player(), context.venues))),
        ("crosser", |context| Self::Crosser(Crosser::new(context.player(), context.venues))),
    ];
}

macro_rules! each {
    ($self:ident, $strategy:ident => $call:expr) => {
        match $self {
            Self::Player($strategy) => $call,
            Self::Maker($strategy) => $call,
            Self::Taker($strategy) => $call,
            Self::Crosser($strategy) => $call,
        }
    };
}

impl Strategy for BuiltIn {
    #[inline(always)]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        each!(self, strategy => strategy.on_cycle(orders))
    }

    #[inline(always)]
    fn on_turn(&mut self, orders: &mut impl Orders) -> usize {
        each!(self, strategy => strategy.on_turn(orders))
    }

    fn wants_market_data(&self) -> bool {
        each!(self, strategy => strategy.wants_market_data())
    }

    #[inline]
    fn on_report(&mut self, report: &Report, orders: &mut impl Orders) {
        each!(self, strategy => strategy.on_report(report, orders));
    }

    fn next_due(&self) -> u64 {
        each!(self, strategy => strategy.next_due())
    }

    fn finished(&self) -> bool {
        each!(self, strategy => strategy.finished())
    }
}

//! Random commands for properties, soak and fuzzing; the number 0 draws ordinary values.

use exchange::{Capacity, Command, Instrument, NewOrder, OrderType, SelfTrade, Side, TimeInForce};
use shm::random::SplitMix64;

/// A source of numbers.
pub trait Numbers {
    fn below(&mut self, bound: u64) -> u64;

    /// Draws a value with a probability proportional to its weight.
    fn pick<T: Copy>(&mut self, weighted: &[(u64, T)]) -> T {
        let mut drawn = self.below(weighted.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in weighted {
            match drawn.checked_sub(*weight) {
                Some(remainder) => drawn = remainder,
                None => return *value,
            }
        }
        unreachable!()
    }

    fn is_one_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }
}

impl Numbers for SplitMix64 {
    fn below(&mut self, bound: u64) -> u64 {
        self.below(bound)
    }
}

/// A source of given words; 0 when they are used up.
#[allow(dead_code, reason = "properties and fuzzing draw from words, the soak from a seed")]
pub struct Words<'a>(pub &'a [u16]);

impl Numbers for Words<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        (u64::from(*first) * bound) >> 16
    }
}

/// The instruments of a run, and how crowded their books are.
#[derive(Clone)]
pub struct Setting {
    pub instruments: Vec<Instrument>,
    pub capacity: Capacity,
    /// Ids are below this: with few, they are used again and cancels meet open orders.
    pub ids: u64,
    /// Number of prices to draw from, from the lowest of the band.
    pub prices: u64,
    /// An auction begins once in this number of commands, and ends twice as often; 0 for never.
    pub auctions: u64,
    /// Bids and offers rarely cross and mass cancels are rare, so that the book grows.
    pub deep: bool,
}

impl Setting {
    /// Few prices, and more ids than capacity, so that all features interact.
    pub fn crowded() -> Setting {
        let plain = Instrument {
            price_low: 1,
            price_high: 24,
            max_quantity: 1000,
            reference_price: 12,
            ..Instrument::default()
        };
        let coarse = Instrument {
            tick: 5,
            lot: 10,
            price_low: 48,
            price_high: 150,
            max_quantity: 10_000,
            reference_price: 98,
        };
        // Four times the highest price does not fit 64 bits; four times a price below it does.
        let expensive = Instrument {
            price_low: (1 << 62) - 20,
            price_high: 1 << 62,
            reference_price: (1 << 62) - 7,
            ..plain
        };
        let instruments = vec![plain, coarse, expensive];
        Setting {
            instruments,
            capacity: Capacity::for_orders(40),
            ids: 52,
            prices: 22,
            auctions: 60,
            deep: false,
        }
    }

    /// The same with fewer levels than the orders could need.
    pub fn few_levels() -> Setting {
        Setting { capacity: Capacity { orders: 30, levels: 16 }, ..Setting::crowded() }
    }

    /// Prices near the powers of two up to 2^62, so that levels lie close together and far apart.
    /// No auctions: the naive engine looks at every tick.
    pub fn scattered() -> Setting {
        let wide = Instrument { price_high: 1 << 62, max_quantity: 1000, ..Instrument::default() };
        let coarse = Instrument { tick: 64, ..wide };
        let capacity = Capacity { orders: 60, levels: 90 };
        Setting { instruments: vec![wide, coarse], capacity, ids: 80, prices: 0, auctions: 0, deep: false }
    }

    /// Every fourth history has few levels, every fourth far prices.
    pub fn of_history(number: u64) -> Setting {
        match number % 4 {
            2 => Setting::scattered(),
            3 => Setting::few_levels(),
            _ => Setting::crowded(),
        }
    }

    /// One instrument, a hundred thousand orders at two thousand prices.
    pub fn large() -> Setting {
        let instrument = Instrument {
            price_high: 2000,
            max_quantity: 1000,
            reference_price: 1000,
            ..Instrument::default()
        };
        let capacity = Capacity::for_orders(100_000);
        Setting {
            instruments: vec![instrument],
            capacity,
            ids: 120_000,
            prices: 2000,
            auctions: 50_000,
            deep: true,
        }
    }
}

/// Draws commands, with a time that advances.
pub struct CommandSource {
    setting: Setting,
    now: u64,
}

impl CommandSource {
    pub fn new(setting: &Setting) -> CommandSource {
        CommandSource { setting: setting.clone(), now: 0 }
    }

    pub fn command(&mut self, numbers: &mut impl Numbers) -> Command {
        let auctions = self.setting.auctions;
        if auctions > 0 && numbers.is_one_in(auctions) {
            return Command::Auction { instrument: self.instrument(numbers) };
        }
        if auctions > 0 && numbers.is_one_in(auctions / 2) {
            return Command::Uncross { instrument: self.instrument(numbers) };
        }
        let id = numbers.below(self.setting.ids);
        match numbers.pick(&[(60, 0), (16, 1), (16, 2), (6, 3), (1, 4)]) {
            0 => Command::New(self.order(numbers, id)),
            1 => Command::Cancel { id, owner: owner(numbers, id) },
            2 => {
                let owner = owner(numbers, id);
                let instrument = self.instrument_of(numbers, id);
                let (price, quantity) = (self.price(numbers, instrument), self.quantity(numbers, instrument));
                Command::Replace { id, owner, price, quantity }
            }
            3 | 4 if self.setting.deep && !numbers.is_one_in(1000) => Command::New(self.order(numbers, id)),
            3 => {
                self.now += numbers.below(6);
                Command::Time(if numbers.is_one_in(16) { self.now / 2 } else { self.now })
            }
            _ => {
                let instrument = (!numbers.is_one_in(3)).then(|| self.instrument(numbers));
                Command::MassCancel { owner: owner(numbers, id), instrument }
            }
        }
    }

    fn instrument(&self, numbers: &mut impl Numbers) -> u16 {
        let count = self.setting.instruments.len() as u64;
        let drawn = if numbers.is_one_in(100) { count } else { numbers.below(count) };
        drawn as u16
    }

    /// Returns an id's instrument, rarely another, so that replacements mostly have valid prices.
    fn instrument_of(&self, numbers: &mut impl Numbers, id: u64) -> u16 {
        if numbers.is_one_in(20) {
            self.instrument(numbers)
        } else {
            (id / 4 % self.setting.instruments.len() as u64) as u16
        }
    }

    fn rules(&self, instrument: u16) -> Instrument {
        self.setting.instruments.get(instrument as usize).copied().unwrap_or_default()
    }

    fn price(&self, numbers: &mut impl Numbers, instrument: u16) -> i64 {
        let rules = self.rules(instrument);
        if numbers.is_one_in(64) {
            return numbers.pick(&[
                (1, 0),
                (1, -1),
                (1, rules.price_low - 1),
                (1, rules.price_high + 1),
                (1, i64::MAX),
            ]);
        }
        if self.setting.prices == 0 {
            let near = (1i64 << numbers.pick(&[(6, 6), (3, 12), (2, 20), (2, 33), (1, 48), (1, 61)]))
                + numbers.below(70) as i64;
            return near / rules.tick * rules.tick;
        }
        let lowest = (rules.price_low + rules.tick - 1) / rules.tick * rules.tick;
        lowest + rules.tick * numbers.below(self.setting.prices) as i64 + i64::from(numbers.is_one_in(128))
    }

    fn quantity(&self, numbers: &mut impl Numbers, instrument: u16) -> u64 {
        let rules = self.rules(instrument);
        if numbers.is_one_in(64) {
            return numbers.pick(&[
                (1, 0),
                (1, rules.lot + 1),
                (1, rules.max_quantity + rules.lot),
                (1, u64::MAX),
            ]);
        }
        let max_lots = if rules.price_low > 1 << 60 { 5 } else { 20 };
        rules.lot * (1 + numbers.below(max_lots))
    }

    /// Returns a price that rarely crosses in a deep book: low for buyers, high for sellers.
    fn rarely_crossing_price(&self, numbers: &mut impl Numbers, side: Side, price: i64) -> i64 {
        let half = self.setting.prices as i64 / 2;
        match side {
            _ if !self.setting.deep || numbers.is_one_in(12) => price,
            Side::Buy if price > half => price - half,
            Side::Sell if price < half => price + half,
            _ => price,
        }
    }

    fn order(&self, numbers: &mut impl Numbers, id: u64) -> NewOrder {
        use {OrderType::*, SelfTrade::*, TimeInForce::*};
        let instrument = self.instrument_of(numbers, id);
        let lot = self.rules(instrument).lot;
        let order_type = numbers.pick(&[(70, Limit), (8, Market), (10, Stop), (12, StopLimit)]);
        let time_in_force = numbers.pick(&[
            (60, GoodTillCancel),
            (12, ImmediateOrCancel),
            (12, FillOrKill),
            (16, GoodTillTime),
        ]);
        let side = numbers.pick(&[(1, Side::Buy), (1, Side::Sell)]);
        let price = self.price(numbers, instrument);
        NewOrder {
            id,
            instrument,
            owner: owner(numbers, id),
            side,
            order_type,
            time_in_force,
            self_trade: numbers.pick(&[
                (4, Allow),
                (1, CancelNewest),
                (1, CancelOldest),
                (1, CancelBoth),
                (2, Decrement),
            ]),
            price: self.rarely_crossing_price(numbers, side, price),
            stop_price: self.price(numbers, instrument),
            quantity: self.quantity(numbers, instrument),
            display: if numbers.is_one_in(6) { lot * (1 + numbers.below(5)) } else { 0 },
            minimum: if numbers.is_one_in(12) { lot * (1 + numbers.below(12)) } else { 0 },
            expires_at: self.now + numbers.below(30),
            post_only: numbers.is_one_in(12),
        }
    }
}

/// Returns an id's owner, rarely another, so that cancels mostly name the right one.
fn owner(numbers: &mut impl Numbers, id: u64) -> u32 {
    if numbers.is_one_in(40) { numbers.below(5) as u32 } else { (id % 4) as u32 }
}

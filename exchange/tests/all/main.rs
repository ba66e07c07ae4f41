//! The matching engine against a naive one, documented behaviour and recorded flow.

mod back_test;
mod cases;
mod deep;
mod drawn;
mod faulty;
mod ledger;
mod naive;
mod notation;
mod pair;
mod properties;
mod recorded;
mod rejects;
#[cfg(feature = "serde")]
mod state;

//! The matching engine against a naive one, documented behaviour and recorded flow.

mod cases;
mod deep;
mod drawn;
mod faulty;
mod ledger;
mod naive;
mod notation;
mod pair;
mod properties;
mod published;
mod recorded;
mod rejects;

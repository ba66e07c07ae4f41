//! The matching engine against a naive one, against the behaviour that venues document, and against
//! recorded flow.

mod cases;
mod deep;
mod drawn;
mod faulty;
mod ledger;
mod model;
mod naive;
mod notation;
mod pair;
mod properties;
mod recorded;
mod rejects;

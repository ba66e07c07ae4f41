//! The matching engine against a naive one, against the behaviour that venues document, and against recorded flow.

mod drawn;
mod ledger;
mod model;
mod naive;
mod recorded;

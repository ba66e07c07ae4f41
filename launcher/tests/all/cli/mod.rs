//! Wrong usage, folders that are damaged, hostile or large, and the journal command.

mod bad_input;
mod hostile_text;
mod journal;
mod mutated;
mod narrow;
mod pages;
mod shelf;
mod strangers;

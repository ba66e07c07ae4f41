//! What users get wrong, and the command that looks into journals.

mod bad_input;
mod hostile_text;
mod journal;
mod narrow;
mod shelf;
mod strangers;

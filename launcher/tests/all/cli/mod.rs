//! What users get wrong.

mod bad_input;

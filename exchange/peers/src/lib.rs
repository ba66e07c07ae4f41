//! The exchange beside other order books: the same loads through each of them.

pub mod load;
pub mod obvious;
pub mod op;
pub mod peers;
pub mod recorded;
pub mod rows;

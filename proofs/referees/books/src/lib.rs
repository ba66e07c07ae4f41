//! A comparison of the exchange with other order books: equal loads through each of them.

pub mod btree_book;
pub mod load;
pub mod op;
pub mod peers;
pub mod recorded;
pub mod rows;

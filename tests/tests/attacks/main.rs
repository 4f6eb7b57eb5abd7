//! Attacks on a real server, with honest clients beside, who are served as if there were none.

mod all;
mod claims;
mod flood;
mod unread;
mod waiting;

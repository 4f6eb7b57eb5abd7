//! Attacks on a real server, with honest clients beside it. A program of its own, because a flood takes all cores and
//! would delay other tests. The server serves honest clients as if there were no attack.

mod all;
mod claims;
mod flood;
mod unread;
mod waiting;

//! Memory of a map of keys.

use super::*;
use crate::fixed_window::FixedWindow;
use crate::gcra::Gcra;
use crate::key::Keys;
use crate::token_bucket::TokenBucket;

/// A fifth of the entries is empty at most, and a place has 5 bytes more in a table that is at least seven sixteenths full.
#[test]
fn a_key_takes_at_most_62_bytes() {
    #[track_caller]
    fn check<A: Algorithm>(bytes: usize) {
        assert_eq!(size_of::<Entry<A::State>>(), bytes);
        assert_eq!(align_of::<Entry<A::State>>(), 8);
    }
    check::<Gcra>(32);
    check::<TokenBucket>(40);
    check::<FixedWindow>(40);
}

#[test]
fn memory_of_a_flood_of_keys_is_freed() {
    let map = Keyed::new(Gcra::new(100, "1/s".parse().unwrap()).unwrap(), 100_000);
    let keys = Keys::new([5, 6]);
    let key = |it| keys.key().number(it).finish();
    for it in 0..100_000 {
        map.charge(key(it), Units::ONE, Moment::ORIGIN);
    }
    // These stay for a longer time.
    for it in 0..640 {
        map.charge(key(it), Units::whole(50), Moment::ORIGIN);
    }
    let later = Moment::from_nanos(2_000_000_000);
    map.sweep(10_000, later);
    assert_eq!(map.figures().keys, 640);
    let places = map.shards.iter().map(|it| lock(it).entries.capacity());
    assert!(places.sum::<usize>() < 64 * 129);
    for it in 0..640 {
        let standing = map.standing(key(it), later);
        assert_eq!(standing.remaining, Units::whole(51));
    }
}

//! Weights of the programs of an identity at `/v1/lease`: together they count as one client of a resource, however many
//! names they use. Pure.
//!
//! Each program has the same part, from its next request on. Until all have asked again, the others count with less, so
//! that the identity never counts as more than two clients.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use doorward::time::Time;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, ResourceId};
use parking_lot::Mutex;

use crate::room::Room;

/// Largest number of programs of an identity at a resource.
const PROGRAMS_MAX: usize = 1_000;

/// Weights of all programs of an identity, at most.
const WEIGHT_MAX: f64 = 2.0;

/// Least weight of a program: those of all together are a tenth.
const WEIGHT_LEAST: f64 = 1e-4;

/// Time for which a program counts that has no answer yet.
const UNANSWERED: Duration = Duration::from_secs(10);

/// Time between two looks for crowds without leases.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Estimated bytes of a program without its name, if it is the only one of its place.
const PROGRAM_BYTES: usize = 900;

/// The programs of all identities.
#[derive(Debug, Default)]
pub(crate) struct Crowds(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    crowds: HashMap<Place, Crowd>,
    swept_at: Time,
}

/// An identity and a resource.
pub(crate) type Place = (Box<str>, ResourceId);

type Crowd = BTreeMap<HolderName, Program>;

#[derive(Clone, Copy, Debug)]
struct Program {
    weight: f64,
    until: Time,
}

impl Crowds {
    /// Returns the weight of a program that asks. None: the identity has too many.
    pub(crate) fn enter(
        &self,
        place: &Place,
        name: &HolderName,
        room: &Room,
        now: Time,
    ) -> Option<Subclients> {
        let mut known = self.0.lock();
        if now.since(known.swept_at) >= SWEEP_EVERY {
            known.swept_at = now;
            known.crowds.retain(|(identity, _), crowd| {
                forget_ended(crowd, identity, room, now);
                !crowd.is_empty()
            });
        }
        let crowd = known.crowds.entry(place.clone()).or_default();
        forget_ended(crowd, &place.0, room, now);
        let former = crowd.get(name).copied();
        if former.is_none() && (crowd.len() >= PROGRAMS_MAX || !room.take(&place.0, bytes(name))) {
            return None;
        }
        let others = crowd.iter().filter(|(other, _)| *other != name);
        let count = 1.0 + others.clone().count() as f64;
        let taken: f64 = others.map(|(_, it)| it.weight).sum();
        let weight = (WEIGHT_MAX - taken).min(1.0 / count).max(WEIGHT_LEAST);
        let program = Program {
            // The node may not take the new one yet.
            weight: former.map_or(weight, |it| it.weight.max(weight)),
            until: former.map_or(now, |it| it.until).max(now + UNANSWERED),
        };
        crowd.insert(name.clone(), program);
        Subclients::new(weight).ok()
    }

    /// Notes the lease of a program, and its weight if the node has decided by it.
    pub(crate) fn note(
        &self,
        place: &Place,
        name: &HolderName,
        weight: Option<Subclients>,
        until: Time,
    ) {
        let mut known = self.0.lock();
        let crowd = known.crowds.get_mut(place);
        if let Some(program) = crowd.and_then(|crowd| crowd.get_mut(name)) {
            program.weight = weight.map_or(program.weight, Subclients::get);
            program.until = program.until.max(until);
        }
    }

    /// Forgets a program that has released its lease.
    pub(crate) fn leave(&self, place: &Place, name: &HolderName, room: &Room) {
        let mut known = self.0.lock();
        let crowd = known.crowds.get_mut(place);
        if crowd.is_some_and(|crowd| crowd.remove(name).is_some()) {
            room.free(&place.0, bytes(name));
        }
    }
}

fn forget_ended(crowd: &mut Crowd, identity: &str, room: &Room, now: Time) {
    let ended = crowd.extract_if(.., |_, it| it.until <= now);
    let freed = ended.map(|(name, _)| bytes(&name)).sum();
    if freed > 0 {
        room.free(identity, freed);
    }
}

fn bytes(name: &HolderName) -> usize {
    PROGRAM_BYTES + name.as_str().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(16);

    struct World {
        crowds: Crowds,
        room: Room,
        now: Time,
    }

    impl World {
        fn new() -> Self {
            Self {
                crowds: Crowds::default(),
                room: Room::new(8 << 20),
                now: Time::from_secs(60),
            }
        }

        /// A program of an identity asks, and gets a lease. Returns its weight.
        fn ask(&self, identity: &str, name: &str) -> Option<f64> {
            let place = place(identity);
            let name = HolderName::new(name).unwrap();
            let weight = self.crowds.enter(&place, &name, &self.room, self.now)?;
            let until = self.now + LEASE;
            self.crowds.note(&place, &name, Some(weight), until);
            Some(weight.get())
        }

        fn sum(&self, identity: &str) -> f64 {
            let known = self.crowds.0.lock();
            known.crowds[&place(identity)]
                .values()
                .map(|it| it.weight)
                .sum()
        }
    }

    fn place(identity: &str) -> Place {
        (identity.into(), ResourceId::new("db").unwrap())
    }

    #[test]
    fn programs_of_an_identity_count_as_one_client_once_all_have_asked_again() {
        let mut world = World::new();
        assert_eq!(world.ask("ann", "a"), Some(1.0));
        assert_eq!(world.ask("bob", "b"), Some(1.0));
        for round in 0..2 {
            for number in 0..200 {
                let weight = world.ask("bob", &format!("b{number}")).unwrap();
                assert!(round == 0 || weight <= 1.0 / 200.0, "{weight}");
                assert!(world.sum("bob") <= 2.02, "{}", world.sum("bob"));
            }
        }
        world.ask("bob", "b");
        assert!(world.sum("bob") <= 1.02, "{}", world.sum("bob"));
        assert_eq!(world.ask("ann", "a"), Some(1.0));
        world.now = world.now + LEASE;
        assert_eq!(world.ask("bob", "b"), Some(1.0), "the others are gone");
        world.now = world.now + SWEEP_EVERY;
        assert_eq!(world.ask("bob", "b"), Some(1.0));
        let bytes = world.room.bytes();
        assert_eq!(bytes, PROGRAM_BYTES + 1, "ann's is forgotten, too");
    }

    #[test]
    fn a_program_counts_with_its_former_weight_until_the_node_has_decided_by_another_one() {
        let world = World::new();
        let (place, name) = (place("ann"), HolderName::new("a").unwrap());
        world.ask("ann", "a");
        world.ask("ann", "b");
        let weight = world.crowds.enter(&place, &name, &world.room, world.now);
        assert_eq!(weight.map(Subclients::get), Some(0.5));
        assert_eq!(world.sum("ann"), 1.5);
        world.crowds.note(&place, &name, None, world.now);
        assert_eq!(world.sum("ann"), 1.5);
        world.crowds.note(&place, &name, weight, world.now);
        assert_eq!(world.sum("ann"), 1.0);
        world.crowds.leave(&place, &name, &world.room);
        assert_eq!(world.ask("ann", "b"), Some(1.0));
    }

    #[test]
    fn an_identity_has_a_number_of_programs() {
        let world = World::new();
        for number in 0..PROGRAMS_MAX {
            assert!(world.ask("ann", &number.to_string()).is_some());
        }
        assert_eq!(world.ask("ann", "more"), None);
        assert!(world.ask("ann", "7").is_some());
        assert!(world.ask("bob", "more").is_some());
    }
}

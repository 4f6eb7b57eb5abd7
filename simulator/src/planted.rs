//! Checkers that can be blunted, to see that somebody notices: what "0 violations" is worth, nobody knows while
//! a checker may be silent.
//!
//! Only the feature `planted` makes that possible, which one package of tests switches on and which is built
//! alone, as [bugs of sessions](doorward_session::session_bugs) are. Without it, `is` is false when the program is
//! compiled. Each way to blunt a checker is caught by one of the small worlds in `testdata/promises`.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::recording::{Checker, LimitSide};

/// How much at either end of a run a blunted checker does not see.
pub const UNSEEN: Duration = Duration::from_secs(10);

/// When the small worlds end, by which checkers are judged.
pub const SMALL_WORLDS_LAST: Duration = Duration::from_secs(600);

/// A way in which a checker is blunt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blunt {
    /// It finds nothing.
    Off(Checker),
    /// Its limit is twice as far; where that is zero, it lets a little pass.
    Lenient(Checker),
    /// It does not see the beginning of a run.
    BeginningUnseen(Checker),
    /// It does not see the end of a run.
    EndUnseen(Checker),
    /// More than there is may be out while a root learns.
    OvershootOfLearnersAllowed,
    /// What is out from before an edit may be so for two lease lengths.
    OvershootAfterEditsAllowed,
    /// Overshoot is looked at only when a grant changes, not when the time for what was from before is over.
    OvershootBetweenChangesUnseen,
    /// Every edit allows what was out before it, not only one that lowers the capacity.
    OvershootForgivenByEdits,
    /// Of a subtree only what the clients of its topmost node use counts.
    NestingOfParentsOnly,
    /// Only what the root has reserved counts.
    NestingOfRootsOnly,
    /// Of whom a parent has reserved nothing for, nothing is judged.
    NestingOfNothingUnseen,
    /// Who has a lease in etcd may decide, whoever else takes itself for the master.
    MastershipByLeaseOnly,
    /// Who is the only one that takes itself for the master may decide, whatever its lease.
    MastershipByBeliefOnly,
    /// What is granted counts as used.
    UtilisationOfGranted,
    /// What is used beyond a lowered capacity makes up for what is not used at other times.
    UtilisationMadeUpFor,
    /// Only the total is compared with the ideal, not who has it.
    FairnessOfTotal,
    /// Where nothing is to be had, everybody has its share.
    SettledFairnessOfNothing,
    /// A shift during another one begins anew.
    ConvergenceBeginsAnew,
    /// Only demand shifts, no capacity.
    ConvergenceOfDemandOnly,
    /// Only those of the highest priority can starve.
    StarvationOfHighestOnly,
    /// Who gives up was not starved.
    StarvationForgivenByGivingUp,
    /// A turn by less than a tenth is none.
    OscillationOfLargeTurnsOnly,
    /// Only a turn down is one.
    OscillationOfTurnsDownOnly,
    /// Only what is used in safe mode counts, not what may be.
    SafeUseOfThoseInSafeMode,
    /// Once everybody has been informed, nobody looks again.
    SafeUseOfFirstRound,
}

/// The ways of single checkers.
const SINGLE: [Blunt; 21] = [
    Blunt::OvershootOfLearnersAllowed,
    Blunt::OvershootAfterEditsAllowed,
    Blunt::OvershootBetweenChangesUnseen,
    Blunt::OvershootForgivenByEdits,
    Blunt::NestingOfParentsOnly,
    Blunt::NestingOfRootsOnly,
    Blunt::NestingOfNothingUnseen,
    Blunt::MastershipByLeaseOnly,
    Blunt::MastershipByBeliefOnly,
    Blunt::UtilisationOfGranted,
    Blunt::UtilisationMadeUpFor,
    Blunt::FairnessOfTotal,
    Blunt::SettledFairnessOfNothing,
    Blunt::ConvergenceBeginsAnew,
    Blunt::ConvergenceOfDemandOnly,
    Blunt::StarvationOfHighestOnly,
    Blunt::StarvationForgivenByGivingUp,
    Blunt::OscillationOfLargeTurnsOnly,
    Blunt::OscillationOfTurnsDownOnly,
    Blunt::SafeUseOfThoseInSafeMode,
    Blunt::SafeUseOfFirstRound,
];

impl Blunt {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let mut all = SINGLE.to_vec();
        for checker in Checker::ALL {
            all.push(Self::Off(checker));
            all.push(Self::Lenient(checker));
            // Who is not back is counted when all is over, and at no other time.
            if checker != Checker::NotBack {
                all.push(Self::BeginningUnseen(checker));
                all.push(Self::EndUnseen(checker));
            }
        }
        all
    }
}

/// The limit to which a lenient checker holds a value.
pub(crate) fn lenient(checker: Checker, limit: f64) -> f64 {
    match (checker.bound(), checker) {
        (LimitSide::AtLeast, _) => 1.0 - (1.0 - limit) * 2.0,
        (LimitSide::AtMost, Checker::Mastership | Checker::NotBack | Checker::Requests) => {
            limit.max(0.5) * 2.0
        }
        (LimitSide::AtMost, _) => limit.max(0.005) * 2.0,
    }
}

/// Whether a checker sees what happens at a time: always, unless it is blunted.
pub(crate) fn sees(checker: Checker, now: Time) -> bool {
    let early = Time::ZERO + UNSEEN;
    let late = Time::ZERO + (SMALL_WORLDS_LAST - UNSEEN);
    !(is(Blunt::BeginningUnseen(checker)) && now < early
        || is(Blunt::EndUnseen(checker)) && now > late)
}

/// What a checker sees of a time: all, unless it is blunted.
pub(crate) fn seen(checker: Checker, since: Time, until: Time) -> (Time, Time) {
    let since = match is(Blunt::BeginningUnseen(checker)) {
        true => since.max(Time::ZERO + UNSEEN),
        false => since,
    };
    let until = match is(Blunt::EndUnseen(checker)) {
        true => until.min(Time::ZERO + (SMALL_WORLDS_LAST - UNSEEN)),
        false => until,
    };
    (since, until)
}

#[cfg(feature = "planted")]
mod switch {
    use std::sync::{Mutex, PoisonError};

    use super::Blunt;

    static PLANTED: Mutex<Option<Blunt>> = Mutex::new(None);

    /// Blunts a checker, for the whole program, and no other one.
    pub fn plant(blunt: Option<Blunt>) {
        *PLANTED.lock().unwrap_or_else(PoisonError::into_inner) = blunt;
    }

    pub(crate) fn is(blunt: Blunt) -> bool {
        *PLANTED.lock().unwrap_or_else(PoisonError::into_inner) == Some(blunt)
    }
}

#[cfg(feature = "planted")]
pub(crate) use switch::is;
#[cfg(feature = "planted")]
pub use switch::plant;

/// Whether a checker is blunted: never.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is(_: Blunt) -> bool {
    false
}

//! The protocol from outside: what this version and the version before it read of each other's messages.

mod previous_version;

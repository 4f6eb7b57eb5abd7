//! The world of the stories: servers, clients and messages between them, by a script or by chance.

pub(crate) mod asks;
pub(crate) mod by_chance;
pub(crate) mod chance;
pub(crate) mod client;
pub(crate) mod healed;
pub(crate) mod inspect;
pub(crate) mod mail;
pub(crate) mod mark_store;
pub(crate) mod passing;
pub(crate) mod player;
pub(crate) mod promises;
pub(crate) mod script;
pub(crate) mod setup;
pub(crate) mod spoken;
pub(crate) mod story_server;
pub(crate) mod template_line;
pub(crate) mod upheaval;
pub(crate) mod wording;
pub(crate) mod world;

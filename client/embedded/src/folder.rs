//! The folder of a group on one machine: the lock of the process that serves, its socket, and its marks.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{self, PathBuf};

use doorward_door::listener::Address;
use doorward_server::app::ServerConfig;
use doorward_server::flags::LimitFlags;
use doorward_server::state_directory::place::{StateConfig, StatePlace};

use crate::error::JoinError;

/// Longest name of a group.
const NAME_BYTES_MAX: usize = 64;

/// Longest path of a Unix socket that all systems take.
const SOCKET_BYTES_MAX: usize = 103;

/// Files that the server of a group may open, so that its program has some left.
pub(crate) const FILES: usize = 512;

/// Whether a group may have that name.
pub(crate) fn is_name(group: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = group.bytes().all(|byte| byte == b'.');
    group.len() <= NAME_BYTES_MAX && group.bytes().all(is_valid) && !is_path
}

/// The folder of a group.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder, or makes it for its user alone.
    ///
    /// # Errors
    ///
    /// If there is no place for it, or it cannot be made.
    pub(crate) fn open(above: Option<PathBuf>, group: &str) -> Result<Self, JoinError> {
        let name = format!("embedded-{group}");
        let usual = || match StatePlace::usual(&name, None, |it| env::var_os(it))? {
            StatePlace::Named(path) | StatePlace::Usual(path) => Some(path),
        };
        let given = above.map(|above| above.join(&name));
        let path = given.or_else(usual).ok_or(JoinError::NoFolder)?;
        let failed = |source: io::Error| JoinError::Folder {
            path: path.clone(),
            source,
        };
        let folder = Self(path::absolute(&path).map_err(failed)?);
        let socket = folder.socket();
        if socket.to_str().is_none_or(|it| it.len() > SOCKET_BYTES_MAX) {
            return Err(JoinError::LongPath(socket));
        }
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&folder.0);
        made.map_err(failed)?;
        let mode = fs::metadata(&folder.0).map_err(failed)?.mode();
        match mode & 0o002 {
            0 => Ok(folder),
            _ => Err(JoinError::SharedFolder(folder.0)),
        }
    }

    /// Opens the file that the process which serves has locked.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub(crate) fn lock(&self) -> Result<File, JoinError> {
        let mut options = File::options();
        let opened = options.create(true).truncate(false).write(true);
        let opened = opened.open(self.0.join("serving"));
        opened.map_err(|source| JoinError::Folder {
            path: self.0.clone(),
            source,
        })
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    /// Returns the address of the process that serves, for clients.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Returns the server of the folder.
    pub(crate) fn server(&self) -> ServerConfig {
        ServerConfig {
            listen: Address::Unix(self.socket()),
            state: Some(StateConfig {
                place: StatePlace::Named(self.0.clone()),
                // Processes hold leases of this folder's servers only.
                is_unused: true,
            }),
            bounds: LimitFlags::default().of_door(FILES),
            ..ServerConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_name_is_that_of_one_folder() {
        for name in ["orders", "a", "db-1.eu_west", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_folder_in_which_others_may_write_is_refused_and_each_group_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let open = |group| Folder::open(Some(dir.path().to_owned()), group);
        let (one, other) = (open("a").unwrap(), open("b").unwrap());
        assert_ne!(one.address(), other.address());
        fs::set_permissions(&one.0, Permissions::from_mode(0o777)).unwrap();
        let error = open("a").unwrap_err();
        assert!(matches!(error, JoinError::SharedFolder(_)), "{error}");
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().join("x".repeat(90));
        let error = Folder::open(Some(long.clone()), "a").unwrap_err();
        assert!(matches!(error, JoinError::LongPath(_)), "{error}");
        assert!(!long.exists());
    }
}

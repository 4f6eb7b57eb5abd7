//! Finds the store that the flags mean.

use doorward_etcd::TemplatesPlace;
use doorward_etcd::templates::WriteError;

use crate::failure::Failure;
use crate::flags::Common;
use crate::templates::flags::PlaceFlags;
use crate::templates::store::TemplateStore;

/// Returns the store that the flags name, without a connection.
pub(crate) fn open(common: &Common, flags: &PlaceFlags) -> Result<TemplateStore, Failure> {
    let config = common.etcd.config();
    let place = match (&flags.at, &config) {
        (Some(place), _) => place.clone(),
        (None, Ok(Some(_)) | Err(_)) => TemplatesPlace::default(),
        (None, Ok(None)) => {
            return Err(Failure::Usage(
                "where the templates are is not known: give --etcd-endpoints URL (or \
                 DOORWARD_ETCD_ENDPOINTS) for those in etcd, or --at FILE (or \
                 DOORWARD_TEMPLATES) for a file"
                    .to_owned(),
            ));
        }
    };
    match &place {
        TemplatesPlace::File(path) => Ok(TemplateStore::file(path)),
        TemplatesPlace::Etcd(keys) => {
            match config.map_err(|error| Failure::Usage(error.to_string()))? {
                Some(mut config) => {
                    config.call_timeout = common.timeout;
                    Ok(TemplateStore::etcd(config, keys.clone(), place.to_string()))
                }
                None => Err(Failure::Usage(format!(
                    "the templates are at {place}, but not where etcd is: give --etcd-endpoints \
                     URL, as in http://127.0.0.1:2379"
                ))),
            }
        }
    }
}

/// Returns the failure for an error of etcd, with advice.
pub(crate) fn failure_of(error: &doorward_etcd::Error) -> Failure {
    match error {
        doorward_etcd::Error::Unreachable { .. } => Failure::Unreachable(format!(
            "{error}. Is etcd running there? --etcd-endpoints says where to look"
        )),
        doorward_etcd::Error::Refused { .. } | doorward_etcd::Error::LeaseGone => {
            Failure::No(error.to_string())
        }
    }
}

/// The same of a write, but for the one that is explained at length.
pub(crate) fn failure_of_write(error: &WriteError) -> Failure {
    match error {
        WriteError::Etcd(error) => failure_of(error),
        WriteError::Unknown(_) => Failure::Unreachable(error.to_string()),
        WriteError::Changed | WriteError::TooLarge { .. } | WriteError::NoNumber { .. } => {
            Failure::No(error.to_string())
        }
    }
}

//! JSON form of the status: the fields of `admin.proto` under their names, and a limit's unit by its name.

use serde::Serializer;

use crate::admin::v1::limit_status::Unit;

/// Writes a limit's unit, such as `per_second`. An unknown unit is a count.
pub(crate) fn unit<S: Serializer>(unit: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    let unit = Unit::try_from(*unit).unwrap_or(Unit::Count);
    serializer.serialize_str(&unit.as_str_name().to_lowercase())
}

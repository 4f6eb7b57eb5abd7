//! What is made of the declaration of one field: a macro for each of what `record!` and `kinds!` need of it.

/// The key of a field, and its older ones.
macro_rules! names {
    ($field:ident) => {
        &[stringify!($field)]
    };
    ($field:ident $($key:literal)+) => {
        &[$($key),+]
    };
}

/// Reads a field: None, and noted, if it is missing or wrong.
macro_rules! read_field {
    ($map:ident $reader:ident $names:expr, $shape:expr, flattened()) => {
        $crate::scenario::declared::Fields::read_fields($map, $reader)
    };
    ($map:ident $reader:ident $names:expr, $shape:expr, by_hand($Hand:ty)) => {
        <$Hand as $crate::scenario::declared::ByHand>::read($map, $reader)
    };
    ($map:ident $reader:ident $names:expr, $shape:expr, needed($what:expr)) => {
        match $map.need($names, &$what, &mut $reader.problems) {
            Some(at) => $shape.read(&at, $reader),
            None => None,
        }
    };
    ($map:ident $reader:ident $names:expr, $shape:expr, optional($text:literal)) => {
        match $map.get($names) {
            Some(at) => $shape.read(&at, $reader).map(Some),
            None => Some(None),
        }
    };
    ($map:ident $reader:ident $names:expr, $shape:expr, or($value:expr)) => {
        match $map.get($names) {
            Some(at) => $shape.read(&at, $reader),
            None => Some($value),
        }
    };
    ($map:ident $reader:ident $names:expr, $shape:expr, or_empty()) => {
        match $map.get($names) {
            Some(at) => $shape.read(&at, $reader),
            None => Some(Vec::new()),
        }
    };
    ($map:ident $reader:ident $names:expr, $shape:expr, or_from($text:literal, $value:expr)) => {
        match $map.get($names) {
            Some(at) => $shape.read(&at, $reader),
            None => $crate::scenario::declared::absent($map, $reader, $value),
        }
    };
}

/// Notes what is wrong with a field beside others, if it is there.
macro_rules! check_field {
    ($map:ident $reader:ident $names:ident $field:ident) => {
        let _ = $names;
    };
    ($map:ident $reader:ident $names:ident $field:ident $check:expr) => {
        if let (Some(value), Some(at)) = (&$field, $map.get($names)) {
            $crate::scenario::declared::checked(&at, value, $reader, $check);
        }
    };
}

/// The keys of a field.
macro_rules! names_of_field {
    ($out:ident $map:ident $Type:ty, $names:expr, flattened()) => {
        $out.extend(<$Type as $crate::scenario::declared::Fields>::names_in(
            $map,
        )?)
    };
    ($out:ident $map:ident $Type:ty, $names:expr, by_hand($Hand:ty)) => {
        $out.extend(<$Hand as $crate::scenario::declared::ByHand>::NAMES)
    };
    ($out:ident $map:ident $Type:ty, $names:expr, $absent:ident($($arg:tt)*)) => {{
        let names: &'static doorward_documents::form::Names = $names;
        $out.push(names)
    }};
}

/// A value as it is written.
macro_rules! written {
    ($value:expr, $of:ident) => {
        $crate::scenario::declared::Written::written($value, $of)?
    };
    ($value:expr, $of:ident, $by:expr) => {
        $crate::scenario::declared::applied($value, $of, $by)?
    };
}

/// Puts a field into a map.
macro_rules! write_field {
    ($out:ident $of:ident $field:ident $names:expr, flattened() $($by:expr)?) => {
        $crate::scenario::declared::Fields::write_fields($field, $out, $of)?
    };
    ($out:ident $of:ident $field:ident $names:expr, by_hand($Hand:ty) $($by:expr)?) => {
        <$Hand as $crate::scenario::declared::ByHand>::write($field, $out)
    };
    ($out:ident $of:ident $field:ident $names:expr, optional($text:literal) $($by:expr)?) => {
        if let Some(value) = $field {
            $out.put($crate::scenario::declared::main_name($names), written!(value, $of $(, $by)?));
        }
    };
    ($out:ident $of:ident $field:ident $names:expr, or($value:expr) $($by:expr)?) => {
        if $crate::scenario::declared::differ($field, &$value) {
            $out.put($crate::scenario::declared::main_name($names), written!($field, $of $(, $by)?));
        }
    };
    ($out:ident $of:ident $field:ident $names:expr, or_empty() $($by:expr)?) => {
        if !$field.is_empty() {
            $out.put($crate::scenario::declared::main_name($names), written!($field, $of $(, $by)?));
        }
    };
    ($out:ident $of:ident $field:ident $names:expr, $absent:ident($($arg:tt)*) $($by:expr)?) => {
        $out.put($crate::scenario::declared::main_name($names), written!($field, $of $(, $by)?))
    };
}

/// The rows of a field.
macro_rules! rows_of_field {
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr, flattened()) => {
        $out.extend(<$Type as $crate::scenario::declared::Fields>::rows())
    };
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr, by_hand($Hand:ty)) => {
        $out.extend(<$Hand as $crate::scenario::declared::ByHand>::rows())
    };
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr, needed($what:expr)) => {
        $out.push($crate::scenario::declared::FieldRow::new::<$Type>(
            $names, &$shape, "", $doc,
        ))
    };
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr, or($value:expr)) => {{
        let value: $Type = $value;
        let value = $crate::scenario::declared::shown(&value);
        $out.push($crate::scenario::declared::FieldRow::new::<$Type>(
            $names, &$shape, value, $doc,
        ))
    }};
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr, or_empty()) => {
        $out.push($crate::scenario::declared::FieldRow::new::<$Type>(
            $names, &$shape, "none", $doc,
        ))
    };
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr, optional($text:literal)) => {
        $out.push($crate::scenario::declared::FieldRow::new::<
            <$Type as $crate::scenario::declared::Optional>::Inner,
        >($names, &$shape, $text, $doc))
    };
    ($out:ident $Type:ty, $names:expr, $shape:expr, $doc:expr,
     or_from($text:literal, $value:expr)) => {
        $out.push($crate::scenario::declared::FieldRow::new::<$Type>(
            $names, &$shape, $text, $doc,
        ))
    };
}

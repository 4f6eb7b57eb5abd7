//! Declares one of several things, of which each has a key.

/// Where the fields of a kind stand: beside its key, or in a map under it.
macro_rules! map_of_kind {
    (beside() $map:ident $reader:ident $kind:literal $names:expr) => {
        Some($map.clone())
    };
    (inside($example:literal, $what:literal) $map:ident $reader:ident $kind:literal $names:expr) => {
        $map.need(&[$kind], $what, &mut $reader.problems)
            .and_then(|at| at.map($example, &mut $reader.problems))
            .inspect(|map| map.check_keys($names, &mut $reader.problems))
    };
}

/// Whether the fields of a kind stand beside its key.
macro_rules! is_beside {
    (beside) => {
        true
    };
    (inside) => {
        false
    };
}

/// Puts the fields of a kind where they stand.
macro_rules! write_kind {
    (beside() $out:ident $kind:literal $inner:ident) => {
        $out.extend($inner)
    };
    (inside($example:literal, $what:literal) $out:ident $kind:literal $inner:ident) => {
        $out.put($kind, $inner)
    };
}

/// Declares one of several things: `pub enum NAME, STYLE { KIND as "key" { FIELDS }; … }`. In the style `beside()`
/// the first field stands under the key of the kind, and all others beside it; in the style
/// `inside(EXAMPLE, WHAT)` all stand in a map under that key. `KIND as "key" (name: Type = SHAPE, WHAT);` has no more
/// than a value under its key.
macro_rules! kinds {
    (
        $(#[$attr:meta])*
        $vis:vis enum $Name:ident, $style:ident $style_args:tt {$(
            $(#[doc = $kind_doc:literal])*
            $Kind:ident as $kind:literal
            $( {$(
                $(#[doc = $doc:literal])*
                $field:ident $(as $($key:literal)|+)? : $Type:ty = $shape:expr,
                $absent:ident ( $($arg:tt)* )
                $(, check($check:expr))? $(, unless($unless:expr))? $(, by($by:expr))? ;
            )*} )?
            $( ($value:ident : $Value:ty = $value_shape:expr, $what:literal) )? ;
        )*}
    ) => {
        $(#[$attr])*
        $vis enum $Name {$(
            $(#[doc = $kind_doc])*
            $Kind $( {$( $(#[doc = $doc])* $field: $Type ),*} )? $( ($Value) )?,
        )*}

        impl $Name {
            /// The keys of all kinds.
            pub(crate) const KINDS: &'static [&'static str] = &[$($kind),*];

            /// Reads one of that kind.
            fn read_kind(
                kind: &str,
                map: &doorward_documents::form::Map<'_>,
                reader: &mut $crate::scenario::read::Reader<'_>,
            ) -> Option<Self> {
                match kind {
                    $( $kind => {
                        $(
                            let names: &[&doorward_documents::form::Names]
                                = &[$( names!($field $($($key)+)?) ),*];
                            let _ = names;
                            let map = &map_of_kind!(
                                $style $style_args map reader $kind names
                            )?;
                            $(
                                let names: &'static doorward_documents::form::Names
                                    = names!($field $($($key)+)?);
                                let $field: Option<$Type> = read_field!(
                                    map reader names, $shape, $absent($($arg)*)
                                );
                                check_field!(map reader names $field $($check)?);
                            )*
                            Some(Self::$Kind {$( $field: $field? ),*})
                        )?
                        $(
                            let at = map.need(&[$kind], $what, &mut reader.problems)?;
                            let value: Option<$Value> = $value_shape.read(&at, reader);
                            value.map(Self::$Kind)
                        )?
                    } )*
                    _ => None,
                }
            }
        }

        impl $crate::scenario::declared::Fields for $Name {
            fn names_in(
                map: &doorward_documents::form::Map<'_>,
            ) -> Option<Vec<&'static doorward_documents::form::Names>> {
                match map.chosen(Self::KINDS)? {
                    $( $kind => {
                        let mut out: Vec<&'static doorward_documents::form::Names> = Vec::new();
                        if is_beside!($style) {
                            $( $( names_of_field!(
                                out map $Type, names!($field $($($key)+)?), $absent($($arg)*)
                            ); )* )?
                        }
                        if out.is_empty() {
                            out.push(&[$kind]);
                        }
                        Some(out)
                    } )*
                    _ => None,
                }
            }

            fn read_fields(
                map: &doorward_documents::form::Map<'_>,
                reader: &mut $crate::scenario::read::Reader<'_>,
            ) -> Option<Self> {
                let kind = map.only_one(Self::KINDS, &mut reader.problems)?;
                Self::read_kind(kind, map, reader)
            }

            fn write_fields(
                &self,
                out: &mut $crate::scenario::yaml::Yaml,
                of: &$crate::scenario::Scenario,
            ) -> Result<(), $crate::scenario::write::CannotWrite> {
                match self {
                    $( Self::$Kind $( {$( $field ),*} )? $( ($value) )? => {
                        $(
                            let mut fields = $crate::scenario::yaml::Yaml::map();
                            let inner = &mut fields;
                            $( if true
                                $( && !$crate::scenario::declared::applied($field, of, $unless) )?
                            {
                                write_field!(
                                    inner of $field names!($field $($($key)+)?),
                                    $absent($($arg)*) $($by)?
                                );
                            } )*
                            write_kind!($style $style_args out $kind fields);
                        )?
                        $( out.put($kind, written!($value, of)); )?
                    } )*
                }
                Ok(())
            }

            #[allow(clippy::vec_init_then_push, reason = "some fields push, and others extend")]

            fn rows() -> Vec<$crate::scenario::declared::FieldRow> {
                let mut rows = Vec::new();
                $( {
                    let (mut beside, mut is) = (Vec::new(), String::new());
                    let _ = (&mut beside, &mut is);
                    $(
                        $( rows_of_field!(
                            beside $Type, names!($field $($($key)+)?), $shape,
                            concat!($($doc),*), $absent($($arg)*)
                        ); )*
                        if beside.first().is_some_and(|row| row.key == $kind) {
                            is = beside.remove(0).is;
                        }
                    )?
                    $( let shape: $crate::scenario::shape::Shape<$Value> = $value_shape;
                       is = shape.is; )?
                    rows.push($crate::scenario::declared::FieldRow {
                        key: $kind.to_owned(),
                        is,
                        absent: "one of these".to_owned(),
                        doc: concat!($($kind_doc),*).trim().to_owned(),
                        beside,
                    });
                } )*
                rows
            }
        }
    };
}

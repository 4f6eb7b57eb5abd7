//! Declares maps, and words.

/// Declares a map: `pub struct NAME (EXAMPLE) { FIELDS }`, or `impl NAME (EXAMPLE) { FIELDS }` for a type that
/// there is. Behind the example may stand what is done with the whole: `, |whole, map, reader| …`.
macro_rules! record {
    (
        $(#[$attr:meta])*
        $vis:vis struct $Name:ident ($example:literal $(, $finish:expr)?) {$(
            $(#[doc = $doc:literal])*
            $field:ident $(as $($key:literal)|+)? : $Type:ty = $shape:expr,
            $absent:ident ( $($arg:tt)* )
            $(, check($check:expr))? $(, unless($unless:expr))? $(, by($by:expr))? ;
        )*}
    ) => {
        $(#[$attr])*
        $vis struct $Name {$(
            $(#[doc = $doc])*
            pub $field: $Type,
        )*}
        record! { impl $Name ($example $(, $finish)?) {$(
            $(#[doc = $doc])*
            $field $(as $($key)|+)? : $Type = $shape, $absent ( $($arg)* )
            $(, check($check))? $(, unless($unless))? $(, by($by))? ;
        )*} }
    };
    (
        impl $Name:ident ($example:literal $(, $finish:expr)?) {$(
            $(#[doc = $doc:literal])*
            $field:ident $(as $($key:literal)|+)? : $Type:ty = $shape:expr,
            $absent:ident ( $($arg:tt)* )
            $(, check($check:expr))? $(, unless($unless:expr))? $(, by($by:expr))? ;
        )*}
    ) => {
        impl $crate::scenario::declared::Fields for $Name {
            #[allow(clippy::vec_init_then_push, reason = "some fields push, and others extend")]
            fn names_in(
                _map: &doorward_documents::form::Map<'_>,
            ) -> Option<Vec<&'static doorward_documents::form::Names>> {
                let mut out = Vec::new();
                $( names_of_field!(
                    out _map $Type, names!($field $($($key)+)?), $absent($($arg)*)
                ); )*
                Some(out)
            }

            fn read_fields(
                map: &doorward_documents::form::Map<'_>,
                reader: &mut $crate::scenario::read::Reader<'_>,
            ) -> Option<Self> {
                $(
                    let names: &'static doorward_documents::form::Names
                        = names!($field $($($key)+)?);
                    let $field: Option<$Type> = read_field!(
                        map reader names, $shape, $absent($($arg)*)
                    );
                    check_field!(map reader names $field $($check)?);
                )*
                let whole = Self {$( $field: $field? ),*};
                $( let whole = $crate::scenario::declared::finished(
                    whole, map, reader, $finish
                )?; )?
                Some(whole)
            }

            fn write_fields(
                &self,
                out: &mut $crate::scenario::yaml::Yaml,
                of: &$crate::scenario::Scenario,
            ) -> Result<(), $crate::scenario::write::CannotWrite> {
                let Self {$( $field ),*} = self;
                $(
                    if true $( && !$crate::scenario::declared::applied($field, of, $unless) )? {
                        write_field!(
                            out of $field names!($field $($($key)+)?),
                            $absent($($arg)*) $($by)?
                        );
                    }
                )*
                Ok(())
            }

            #[allow(clippy::vec_init_then_push, reason = "some fields push, and others extend")]

            fn rows() -> Vec<$crate::scenario::declared::FieldRow> {
                let mut out = Vec::new();
                $( rows_of_field!(
                    out $Type, names!($field $($($key)+)?), $shape,
                    concat!($($doc),*), $absent($($arg)*)
                ); )*
                out
            }
        }

        impl $crate::scenario::declared::Record for $Name {
            const EXAMPLE: &'static str = $example;
        }

        impl $crate::scenario::declared::Written for $Name {
            fn written(
                &self,
                of: &$crate::scenario::Scenario,
            ) -> Result<$crate::scenario::yaml::Yaml, $crate::scenario::write::CannotWrite> {
                let mut out = $crate::scenario::yaml::Yaml::map();
                $crate::scenario::declared::Fields::write_fields(self, &mut out, of)?;
                Ok(out)
            }
        }
    };
}

/// Declares one of some words: `pub enum NAME { MEANING = "word", … }`.
macro_rules! words {
    (
        $(#[$attr:meta])*
        pub enum $Name:ident {$(
            $(#[$word_attr:meta])*
            $Meaning:ident = $word:literal,
        )*}
    ) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name {$( $(#[$word_attr])* $Meaning ),*}

        words! { impl $Name {$( $Meaning = $word, )*} }
    };
    (impl $Name:ident {$( $Meaning:ident = $word:literal, )*}) => {
        impl $crate::scenario::declared::Words for $Name {
            const WORDS: &'static [(&'static str, Self)] = &[$( ($word, Self::$Meaning) ),*];
        }

        impl $crate::scenario::declared::Written for $Name {
            fn written(
                &self,
                _of: &$crate::scenario::Scenario,
            ) -> Result<$crate::scenario::yaml::Yaml, $crate::scenario::write::CannotWrite> {
                use $crate::scenario::declared::Words;
                Ok($crate::scenario::yaml::Yaml::plain(self.word()))
            }
        }
    };
}

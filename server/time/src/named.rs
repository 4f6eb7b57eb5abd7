//! Enums whose variants have names, for logs, metrics and pages, or on the wire.

/// Defines an enum of variants with names, and lists them all.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$more:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$more])* $variant,)* }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Returns its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

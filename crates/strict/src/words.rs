//! Enums whose every value is one written word: the words are listed once and serve parsing, printing and messages.

/// A closed set of words.
pub(crate) trait Word: Copy + 'static {
    /// Every value with its word, in the order in which messages list them.
    const ALL: &'static [(&'static str, Self)];

    /// The value that a word stands for.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| *value)
    }
}

/// Declares an enum, its words, its `as_str` and its `Serialize`.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Gives the word that scenarios and reports use.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl $crate::words::Word for $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

//! What a job does to the record that its key stands for, and what makes two jobs alike.
//!
//! Owns the stored shapes and the pure rule of likeness. Does not look at requests: whoever makes a card has reduced
//! them to fingerprints. Invariant: two jobs that go together have one principal, budget, key, place and form, and
//! nothing that says when or how often the one may be tried differs from the other.

use serde::{Deserialize, Serialize};

use crate::job::{Card, Repeat};

/// The most jobs that are merged into one; the next one queues behind it.
pub const MAX_MERGED: usize = 255;
/// The most bytes of requests that go together as one.
pub const MAX_MERGED_BYTES: u64 = 16 * 1024 * 1024;

/// What a job does to the record that its key stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Changes some fields: later fields go over earlier ones.
    Patch,
    /// Puts a whole record in the place of the last one.
    Replace,
    /// Makes the record.
    Create,
    /// Removes the record.
    Delete,
    /// Anything else.
    #[default]
    Custom,
}

impl Kind {
    /// Parses the name used on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "patch" => Self::Patch,
            "replace" => Self::Replace,
            "create" => Self::Create,
            "delete" => Self::Delete,
            "custom" => Self::Custom,
            _ => return None,
        })
    }

    /// Tells whether it is neither of the named kinds.
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde asks for"
    )]
    pub fn is_custom(&self) -> bool {
        *self == Self::Custom
    }

    /// Tells whether a later job of this kind can be merged into an earlier one.
    pub const fn merges(self) -> bool {
        match self {
            Self::Patch | Self::Replace => true,
            Self::Create | Self::Delete | Self::Custom => false,
        }
    }
}

/// What becomes of the later jobs of a key when one of them fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// They go on.
    #[default]
    Continue,
    /// They wait until the failed one is retried or cancelled, or the queue is resumed.
    HoldKey,
    /// They fail.
    FailLater,
}

impl OnFailure {
    /// Parses the name used on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "continue" => Self::Continue,
            "hold-key" => Self::HoldKey,
            "fail-later" => Self::FailLater,
            _ => return None,
        })
    }

    /// Tells whether later jobs go on.
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde asks for"
    )]
    pub fn is_continue(&self) -> bool {
        *self == Self::Continue
    }
}

/// What is left of a text when only likeness matters: 53 bits, which a browser's number holds exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The largest number of a fingerprint.
    pub const MAX: u64 = (1 << 53) - 1;

    /// Takes a number as a fingerprint; none when it is too large.
    pub const fn new(number: u64) -> Option<Self> {
        if number > Self::MAX {
            return None;
        }
        Some(Self(number))
    }

    /// Makes the fingerprint of texts: FNV-1a over each text and its end, spread over all bits by a last mix.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        const END: u8 = 0xff;
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for text in texts {
            // 0xff is no byte of a text in UTF-8, so that "ab", "c" is not "a", "bc".
            for byte in text.bytes().chain(std::iter::once(END)) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        Self(hash & Self::MAX)
    }
}

/// By what a job is known to be like another one. A job without it always goes alone: its app wants that, or its body is
/// none that could be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Likeness {
    /// The address that it speaks to.
    pub place: Fingerprint,
    /// How it speaks to it: method, headers, credentials.
    pub form: Fingerprint,
    /// The body; none when its sender could not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Fingerprint>,
}

/// Tells whether `later` may go together with `earlier`, which nobody has tried to send.
pub(crate) fn go_together(earlier: &Card, later: &Card) -> bool {
    let (Some(one), Some(other)) = (earlier.likeness, later.likeness) else {
        return false;
    };
    let is_alike = one.place == other.place
        && one.form == other.form
        && earlier.principal == later.principal
        && earlier.budget == later.budget
        && earlier.key == later.key
        && earlier.kind == later.kind;
    // One of them would be sent earlier or later, dearer or more often than it asked for.
    let is_even = earlier.repeat == later.repeat
        && earlier.cost == later.cost
        && earlier.timeout_ms == later.timeout_ms
        && earlier.not_before == later.not_before
        && earlier.on_failure == later.on_failure
        && earlier.expires_at.is_none()
        && later.expires_at.is_none();
    let is_merge = lays_over(later);
    let is_same = later.repeat == Repeat::Always && one.body.is_some() && one.body == other.body;
    is_alike && is_even && (is_merge || is_same)
}

/// Tells whether a job's request can be laid over an earlier one of its key.
pub(crate) fn lays_over(card: &Card) -> bool {
    card.likeness.is_some() && card.key.is_some() && card.kind.merges()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_where_one_text_ends() {
        assert_ne!(Fingerprint::of(["ab", "c"]), Fingerprint::of(["a", "bc"]));
        assert_ne!(Fingerprint::of(["a"]), Fingerprint::of(["a", ""]));
        assert_eq!(Fingerprint::of(["a", "b"]), Fingerprint::of(["a", "b"]));
    }

    #[test]
    fn a_fingerprint_is_a_number_that_a_browser_holds() {
        assert_eq!(Fingerprint::new(Fingerprint::MAX + 1), None);
        assert!(
            (0..1_000).all(|n| Fingerprint::of([n.to_string().as_str()]).0 <= Fingerprint::MAX)
        );
    }
}

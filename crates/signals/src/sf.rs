//! Structured fields (RFC 9651), as far as limits use them.
//!
//! The grammar is the `sfv` crate's; this module keeps of each member its value and its parameters. Invariant: a field
//! that is not valid to its end gives nothing, as the RFC asks.

use std::convert::Infallible;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor,
    ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

/// The most members of one field that are kept.
const MAX_MEMBERS: usize = 16;

/// A value without its parameters; kinds that no limit uses are left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bare {
    Whole(u64),
    Text(String),
    Other,
}

/// One member of a list or dictionary.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Member {
    /// Its name in a dictionary.
    pub(crate) name: String,
    pub(crate) value: Option<Bare>,
    parameters: Vec<(String, Bare)>,
}

impl Member {
    /// Returns a parameter that is a whole number.
    pub(crate) fn whole(&self, name: &str) -> Option<u64> {
        match self.parameter(name)? {
            Bare::Whole(whole) => Some(*whole),
            Bare::Text(_) | Bare::Other => None,
        }
    }

    /// Returns a parameter that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.parameter(name)? {
            Bare::Text(text) => Some(text),
            Bare::Whole(_) | Bare::Other => None,
        }
    }

    /// The last one of a name counts.
    fn parameter(&self, name: &str) -> Option<&Bare> {
        let mut named = self.parameters.iter().rev();
        named
            .find(|(other, _)| other == name)
            .map(|(_, value)| value)
    }
}

/// Reads a list.
pub(crate) fn list(text: &str) -> Option<Vec<Member>> {
    Parser::new(text)
        .parse_list_with_visitor(Members::default())
        .ok()
}

/// Reads a dictionary.
pub(crate) fn dictionary(text: &str) -> Option<Vec<Member>> {
    Parser::new(text)
        .parse_dictionary_with_visitor(Members::default())
        .ok()
}

fn bare(item: BareItemFromInput<'_>) -> Bare {
    match item {
        BareItemFromInput::Integer(whole) => {
            u64::try_from(i64::from(whole)).map_or(Bare::Other, Bare::Whole)
        }
        BareItemFromInput::String(text) => Bare::Text(text.as_str().to_owned()),
        BareItemFromInput::Token(token) => Bare::Text(token.as_str().to_owned()),
        BareItemFromInput::Decimal(_)
        | BareItemFromInput::ByteSequence(_)
        | BareItemFromInput::Boolean(_)
        | BareItemFromInput::Date(_)
        | BareItemFromInput::DisplayString(_) => Bare::Other,
    }
}

#[derive(Default)]
struct Members {
    members: Vec<Member>,
    /// Takes what comes after the last member that is kept.
    spare: Member,
}

impl Members {
    fn next(&mut self, name: &str) -> Visitor<'_> {
        if self.members.len() >= MAX_MEMBERS {
            return Visitor(&mut self.spare);
        }
        self.members.push(Member {
            name: name.to_owned(),
            ..Member::default()
        });
        Visitor(self.members.last_mut().unwrap_or(&mut self.spare))
    }
}

impl<'de> ListVisitor<'de> for Members {
    type Out = Vec<Member>;
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(self.next(""))
    }

    fn finish(self) -> Result<Vec<Member>, Infallible> {
        Ok(self.members)
    }
}

impl<'de> DictionaryVisitor<'de> for Members {
    type Out = Vec<Member>;
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        Ok(self.next(key.as_str()))
    }

    fn finish(self) -> Result<Vec<Member>, Infallible> {
        Ok(self.members)
    }
}

struct Visitor<'a>(&'a mut Member);

impl<'de> EntryVisitor<'de> for Visitor<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Visitor<'_> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = ()>, Infallible> {
        self.0.value = Some(bare(item));
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for Visitor<'_> {
    type Out = ();
    type Error = Infallible;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Infallible> {
        if self.0.parameters.len() < MAX_MEMBERS {
            self.0
                .parameters
                .push((key.as_str().to_owned(), bare(value)));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_values_and_parameters() {
        let members = list("\"burst\";r=0;t=4, 100;w=60;comment=\"x\"").unwrap();

        assert_eq!(members[0].value, Some(Bare::Text("burst".to_owned())));
        assert_eq!(members[0].whole("t"), Some(4));
        assert_eq!(members[1].value, Some(Bare::Whole(100)));
        assert_eq!(members[1].text("comment"), Some("x"));
    }

    #[test]
    fn what_is_not_valid_to_its_end_is_nothing() {
        assert_eq!(list("\"a\";r=1, \"b"), None);
        assert_eq!(list("\"fixed window\";\"api\";q=500;w=300"), None);
        assert_eq!(dictionary("limit=1, remaining="), None);
    }

    #[test]
    fn members_are_bounded() {
        let long = vec!["1"; 5_000].join(", ");

        assert_eq!(list(&long).unwrap().len(), MAX_MEMBERS);
    }
}

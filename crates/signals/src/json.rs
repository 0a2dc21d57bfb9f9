//! Reads the beginning of a JSON text.
//!
//! A body comes cut after 16 KiB, and what was read up to there still counts; a parser that wants the whole would give
//! nothing (`serde_json`, which would also add more to the worker than all dialects together). Invariant: depth is
//! bounded, what cannot be read ends the reading, and everything read before it is kept.

use std::borrow::Cow;

/// The deepest nesting that is read.
const MAX_DEPTH: u32 = 24;

/// A JSON value; a number stays the text that it was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

static NULL: Value<'static> = Value::Null;

impl<'a> Value<'a> {
    /// Reads an object or an array, or as much of it as there is; other texts are none.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let mut reader = Reader {
            rest: text.trim_start_matches('\u{feff}'),
        };
        reader.skip_blanks();
        if !reader.rest.starts_with(['{', '[']) {
            return None;
        }
        Some(reader.value(0).0)
    }

    /// Returns a member of an object; null where there is none.
    pub(crate) fn get(&self, name: &str) -> &Value<'a> {
        let Self::Object(members) = self else {
            return &NULL;
        };
        let member = members.iter().find(|(key, _)| key == name);
        member.map_or(&NULL, |(_, value)| value)
    }

    /// Tells whether an object has a member.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Object(members) => members.iter().any(|(key, _)| key == name),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => false,
        }
    }

    /// Follows member names.
    pub(crate) fn at(&self, path: &[&str]) -> &Value<'a> {
        path.iter().fold(self, |value, name| value.get(name))
    }

    /// Returns the items of an array; none where it is no array.
    pub(crate) fn items(&self) -> &[Value<'a>] {
        match self {
            Self::List(items) => items,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object(_) => &[],
        }
    }

    /// Returns a text, or a number as it was written.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Tells whether it is this text, or a number written so.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// Tells whether there is a value.
    pub(crate) fn is_some(&self) -> bool {
        *self != Self::Null
    }
}

struct Reader<'a> {
    rest: &'a str,
}

/// Whether what follows a value can be read.
#[derive(Clone, Copy, PartialEq)]
enum After {
    More,
    Nothing,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes one character after blanks.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self, depth: u32) -> (Value<'a>, After) {
        if depth > MAX_DEPTH {
            return (Value::Null, After::Nothing);
        }
        if self.take('{') {
            return self.object(depth);
        }
        if self.take('[') {
            return self.list(depth);
        }
        if self.take('"') {
            return match self.string() {
                Some(text) => (Value::Text(text), After::More),
                None => (Value::Null, After::Nothing),
            };
        }
        self.word()
    }

    fn object(&mut self, depth: u32) -> (Value<'a>, After) {
        let mut members = Vec::new();
        if self.take('}') {
            return (Value::Object(members), After::More);
        }
        loop {
            let name = if self.take('"') { self.string() } else { None };
            let Some(name) = name.filter(|_| self.take(':')) else {
                return (Value::Object(members), After::Nothing);
            };
            let (value, after) = self.value(depth + 1);
            members.push((name, value));
            if after == After::More && self.take(',') {
                continue;
            }
            let is_closed = after == After::More && self.take('}');
            let after = if is_closed {
                After::More
            } else {
                After::Nothing
            };
            return (Value::Object(members), after);
        }
    }

    fn list(&mut self, depth: u32) -> (Value<'a>, After) {
        let mut items = Vec::new();
        if self.take(']') {
            return (Value::List(items), After::More);
        }
        loop {
            let (value, after) = self.value(depth + 1);
            items.push(value);
            if after == After::More && self.take(',') {
                continue;
            }
            let is_closed = after == After::More && self.take(']');
            let after = if is_closed {
                After::More
            } else {
                After::Nothing
            };
            return (Value::List(items), after);
        }
    }

    /// Reads the rest of a string, whose opening quote is taken; none where its end is missing.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let end = self.rest.find(['"', '\\'])?;
        let (plain, rest) = self.rest.split_at(end);
        if let Some(rest) = rest.strip_prefix('"') {
            self.rest = rest;
            return Some(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        let mut chars = rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => text.push(escaped(&mut chars)?),
                other => text.push(other),
            }
        }
        self.rest = chars.as_str();
        Some(Cow::Owned(text))
    }

    /// Reads a number, `true`, `false` or `null`.
    fn word(&mut self) -> (Value<'a>, After) {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        // A word at the very end may have been cut.
        let Some(end) = end else {
            return (Value::Null, After::Nothing);
        };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            number if number.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                Value::Number(number)
            }
            _ => return (Value::Null, After::Nothing),
        };
        (value, After::More)
    }
}

/// Reads what follows a backslash. Halves of surrogate pairs become the replacement character.
fn escaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match chars.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => {
            let mut code = 0;
            for _ in 0..4 {
                code = code * 16 + chars.next()?.to_digit(16)?;
            }
            char::from_u32(code).unwrap_or('\u{fffd}')
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_nested() {
        let body =
            Value::read(r#" { "a": [1, {"b": "x\/\u00e9"}], "c": true, "d": -1.5e3 } "#).unwrap();

        assert_eq!(body.get("a").items()[1].get("b").text(), Some("x/é"));
        assert_eq!(body.get("c"), &Value::Bool(true));
        assert_eq!(body.get("d").text(), Some("-1.5e3"));
        assert_eq!(body.at(&["a", "b"]), &Value::Null);
    }

    #[test]
    fn keeps_what_came_before_the_cut() {
        let body =
            Value::read(r#"{"error":{"code":"rate_limit","wait":12},"items":[{"a":1},{"b":"unfin"#)
                .unwrap();

        assert!(body.at(&["error", "code"]).is("rate_limit"));
        assert_eq!(body.get("items").items().len(), 2);
    }

    #[test]
    fn a_number_at_the_cut_is_not_believed() {
        assert_eq!(
            Value::read(r#"{"retry_after":12"#)
                .unwrap()
                .get("retry_after"),
            &Value::Null
        );
    }

    #[test]
    fn what_is_no_json_is_none_or_empty() {
        assert_eq!(Value::read("error code: 1015"), None);
        assert_eq!(Value::read("<html>"), None);
        assert_eq!(Value::read(""), None);
        assert_eq!(Value::read("{]"), Some(Value::Object(Vec::new())));
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "[".repeat(16_000);

        assert!(Value::read(&deep).is_some());
    }
}

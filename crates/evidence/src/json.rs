//! JSON as the format sees it: numbers in three kinds, members in the order they were written.
//!
//! The text is parsed by `serde_json` (nesting limit 128, exact floats); this module only keeps
//! what a plain map would lose: the order of members and duplicate keys.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};

/// Most values that one JSON text may hold: in memory a value takes many times the two bytes
/// that it can take in a text.
pub const MAX_VALUES: u32 = 1 << 20;

/// A JSON value that borrows its strings from the text where it can.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer literal from 0 to 2^64 − 1.
    Unsigned(u64),
    /// A negative integer literal down to −2^63.
    Negative(i64),
    /// Every other number, `-0` among them.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// Members in the order they were written, duplicates kept; the last of equal keys is the value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object<'a> {
    /// Key and value of each member.
    pub members: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// The text is not JSON that the format accepts.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON: {0}")]
pub struct JsonError(#[from] serde_json::Error);

impl JsonError {
    /// Column in the line, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.0.column()
    }
}

/// Parses one JSON text.
///
/// # Errors
/// When the text is not JSON, nests deeper than 127, holds more than [`MAX_VALUES`] values, a lone
/// surrogate or a number outside the range of a double, or is followed by anything but white
/// space.
pub fn parse(text: &[u8]) -> Result<Value<'_>, JsonError> {
    Ok(serde_json::from_slice(text)?)
}

impl<'a> Value<'a> {
    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// What kind of value it is, in a word for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Unsigned(_) | Self::Negative(_) => "an integer",
            Self::Float(_) => "a number with fraction or exponent",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// The same value without borrowed text.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::Negative(value) => Value::Negative(value),
            Self::Float(value) => Value::Float(value),
            Self::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Self::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
            Self::Object(object) => Value::Object(object.into_owned()),
        }
    }

    /// The first key that stands twice in one object, at any depth.
    #[must_use]
    pub fn duplicate_key(&self) -> Option<&str> {
        match self {
            Self::Array(items) => items.iter().find_map(Value::duplicate_key),
            Self::Object(object) => object
                .duplicate_key()
                .or_else(|| object.members.iter().find_map(|(_, value)| value.duplicate_key())),
            _ => None,
        }
    }
}

impl<'a> Object<'a> {
    /// The value of `key`; of equal keys the last.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Adds a member at the end.
    pub fn push(&mut self, key: impl Into<Cow<'a, str>>, value: Value<'a>) {
        self.members.push((key.into(), value));
    }

    /// Sets `key`, removing what stood there.
    pub fn set(&mut self, key: &'a str, value: Value<'a>) {
        self.members.retain(|(name, _)| name != key);
        self.push(key, value);
    }

    /// Whether the keys stand in strictly ascending order of their bytes, so that there is
    /// nothing to sort and no duplicate.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.members.windows(2).all(|pair| pair[0].0.as_bytes() < pair[1].0.as_bytes())
    }

    /// The members as the format orders them: by the bytes of the key, last of duplicates only.
    #[must_use]
    pub fn sorted(&self) -> Vec<&(Cow<'a, str>, Value<'a>)> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        // A stable sort leaves duplicates in written order; the last one is kept.
        let mut kept: Vec<&(Cow<'a, str>, Value<'a>)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        kept
    }

    /// The same object without borrowed text.
    #[must_use]
    pub fn into_owned(self) -> Object<'static> {
        Object {
            members: self
                .members
                .into_iter()
                .map(|(key, value)| (Cow::Owned(key.into_owned()), value.into_owned()))
                .collect(),
        }
    }

    fn duplicate_key(&self) -> Option<&str> {
        if self.is_sorted() {
            return None;
        }
        let mut keys: Vec<&str> = self.members.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::String(Cow::Owned(text))
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'a, const N: usize> From<[(&'a str, Value<'a>); N]> for Value<'a> {
    fn from(members: [(&'a str, Value<'a>); N]) -> Self {
        Self::Object(Object::from(members))
    }
}

impl<'a, const N: usize> From<[(&'a str, Value<'a>); N]> for Object<'a> {
    fn from(members: [(&'a str, Value<'a>); N]) -> Self {
        Self {
            members: members.into_iter().map(|(key, value)| (Cow::Borrowed(key), value)).collect(),
        }
    }
}

impl From<Value<'_>> for serde_json::Value {
    /// Of equal keys the last stays, as everywhere.
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Unsigned(number) => Self::from(number),
            Value::Negative(number) => Self::from(number),
            Value::Float(number) => Self::from(number),
            Value::String(text) => Self::String(text.into_owned()),
            Value::Array(items) => items.into_iter().map(Self::from).collect(),
            Value::Object(object) => object
                .members
                .into_iter()
                .map(|(key, value)| (key.into_owned(), Self::from(value)))
                .collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Bounded(&Cell::new(MAX_VALUES)).deserialize(deserializer)
    }
}

/// Reads a value and takes what it holds from a count of values that may still come.
#[derive(Clone, Copy)]
pub(crate) struct Bounded<'b>(pub(crate) &'b Cell<u32>);

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        let Some(left) = self.0.get().checked_sub(1) else {
            return Err(D::Error::custom(format_args!("more than {MAX_VALUES} values")));
        };
        self.0.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(u64::try_from(value).map_or(Value::Negative(value), Value::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value<'de>, E> {
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            members.push((key, map.next_value_seed(self)?));
        }
        Ok(Value::Object(Object { members }))
    }
}

/// A member's key, borrowed where it has no escapes.
pub(crate) struct Key<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_kind() {
        let kinds = |text: &'static str| parse(text.as_bytes()).unwrap();
        assert_eq!(kinds("18446744073709551615"), Value::Unsigned(u64::MAX));
        assert_eq!(kinds("-9223372036854775808"), Value::Negative(i64::MIN));
        assert!(matches!(kinds("-0"), Value::Float(zero) if zero.is_sign_negative()));
        assert!(matches!(kinds("18446744073709551616"), Value::Float(_)));
        assert!(parse(b"1e400").is_err());
        assert!(parse(b"1 2").is_err());
    }

    #[test]
    fn duplicates_are_kept_and_found_at_any_depth() {
        let value = parse(br#"{"a":[{"b":1,"c":2,"b":3}]}"#).unwrap();
        assert_eq!(value.duplicate_key(), Some("b"));
        let Value::Object(object) = parse(br#"{"a":1,"a":2}"#).unwrap() else { panic!("object") };
        assert_eq!(object.get("a"), Some(&Value::Unsigned(2)));
        assert_eq!(object.sorted().len(), 1);
    }

    #[test]
    fn deep_nesting_is_refused_not_overflowed() {
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
    }
}

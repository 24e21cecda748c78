//! What is known of a value: its content, where all of it is, and what it may hold.

use std::rc::Rc;

use super::super::facts::Holds;

/// Stands in a text for a part that is not known.
pub(super) const GAP: char = '\u{fffc}';
/// Longest text that is kept.
const LONGEST: usize = 256 << 10;

#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    pub(super) data: Data,
    pub(super) holds: Holds,
}

#[derive(Debug, Clone, Default)]
pub(super) enum Data {
    #[default]
    Unknown,
    Text(Rc<str>),
    Bytes(Rc<[u8]>),
    Number(i64),
    List(Rc<Vec<Value>>),
    Map(Rc<Vec<(String, Value)>>),
    /// Something that is known by its name only: a module, a function, a variable of nobody.
    Path(Rc<str>),
    /// A file by its name.
    File(Rc<str>),
    /// A function of this skill: file and number.
    Function(usize, usize),
}

impl Value {
    pub(super) fn new(data: Data, holds: Holds) -> Self {
        Self { data, holds }
    }

    pub(super) fn unknown(holds: Holds) -> Self {
        Self { data: Data::Unknown, holds }
    }

    pub(super) fn text(text: impl Into<Rc<str>>, holds: Holds) -> Self {
        let text = text.into();
        if text.len() > LONGEST {
            Self::unknown(holds)
        } else {
            Self { data: Data::Text(text), holds }
        }
    }

    pub(super) fn bytes(bytes: Vec<u8>, holds: Holds) -> Self {
        if bytes.len() > LONGEST {
            Self::unknown(holds)
        } else {
            Self { data: Data::Bytes(bytes.into()), holds }
        }
    }

    pub(super) fn path(name: impl Into<Rc<str>>) -> Self {
        Self { data: Data::Path(name.into()), holds: Holds::NOTHING }
    }

    pub(super) fn number(number: i64) -> Self {
        Self { data: Data::Number(number), holds: Holds::NOTHING }
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        let holds = items.iter().fold(Holds::NOTHING, |all, item| all | item.whole());
        Self { data: Data::List(items.into()), holds }
    }

    /// What it holds when all of it is taken: of the environment's name, the environment.
    pub(super) fn whole(&self) -> Holds {
        match &self.data {
            Data::Path(name) if matches!(&**name, "os.environ" | "process.env" | "os.environb") => {
                self.holds | Holds::ENVIRONMENT
            }
            Data::Path(name)
                if name.starts_with("sys.argv") || name.starts_with("process.argv") =>
            {
                self.holds | Holds::INPUT
            }
            _ => self.holds,
        }
    }

    /// Its text, if it is one that is known, with [`GAP`]s or without.
    pub(super) fn as_text(&self) -> Option<Rc<str>> {
        match &self.data {
            Data::Text(text) => Some(text.clone()),
            Data::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(Rc::from),
            Data::Number(number) => Some(number.to_string().into()),
            Data::File(name) => Some(name.clone()),
            _ => None,
        }
    }

    pub(super) fn as_bytes(&self) -> Option<Vec<u8>> {
        match &self.data {
            Data::Bytes(bytes) => Some(bytes.to_vec()),
            Data::Text(text) if !text.contains(GAP) => Some(text.as_bytes().to_vec()),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<i64> {
        match &self.data {
            Data::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Its items, if they are known.
    pub(super) fn items(&self) -> Option<Vec<Self>> {
        match &self.data {
            Data::List(items) => Some(items.to_vec()),
            Data::Text(text) if !text.contains(GAP) => {
                Some(text.chars().map(|sign| Self::text(sign.to_string(), self.holds)).collect())
            }
            Data::Bytes(bytes) => Some(
                bytes
                    .iter()
                    .map(|byte| Self::new(Data::Number(i64::from(*byte)), self.holds))
                    .collect(),
            ),
            Data::Map(pairs) => {
                Some(pairs.iter().map(|(key, _)| Self::text(key.as_str(), self.holds)).collect())
            }
            _ => None,
        }
    }

    /// The member of a map.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        match &self.data {
            Data::Map(pairs) => {
                pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    /// As it appears in a text.
    pub(super) fn shown(&self) -> String {
        self.as_text().map_or_else(|| GAP.to_string(), |text| text.to_string())
    }

    /// One of two.
    pub(super) fn or(self, other: Self) -> Self {
        let holds = self.holds | other.holds;
        let data = match (self.data, other.data) {
            (Data::Unknown, data) | (data, Data::Unknown) => data,
            (Data::Text(one), Data::Text(two)) if one == two => Data::Text(one),
            (Data::Path(one), Data::Path(two)) if one == two => Data::Path(one),
            (Data::Number(one), Data::Number(two)) if one == two => Data::Number(one),
            (data @ (Data::File(_) | Data::Function(..)), _) => data,
            _ => Data::Unknown,
        };
        Self { data, holds }
    }

    /// Put behind another.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let holds = self.whole() | other.whole();
        match (&self.data, &other.data) {
            (Data::Number(one), Data::Number(two)) => {
                Self::new(Data::Number(one.wrapping_add(*two)), holds)
            }
            (Data::Bytes(one), Data::Bytes(two)) => Self::bytes([&**one, &**two].concat(), holds),
            (Data::List(one), Data::List(two)) if one.len() + two.len() <= 65_536 => {
                Self::new(Data::List([one.as_slice(), two.as_slice()].concat().into()), holds)
            }
            (Data::List(_), _) | (_, Data::List(_)) => Self::unknown(holds),
            (Data::Text(_), _) | (_, Data::Text(_)) => {
                let (one, two) = (self.shown(), other.shown());
                if one.len() + two.len() > LONGEST {
                    Self::unknown(holds)
                } else {
                    Self::text(one + &two, holds)
                }
            }
            _ => Self::unknown(holds),
        }
    }
}

//! A map of bounded size that keeps what was used last.

use std::collections::{BTreeMap, HashMap};

use wardkeep_evidence::hash::sha256;

/// Values by name; a name of any length costs the same.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    values: HashMap<[u8; 32], (u64, T)>,
    /// When each was used, oldest first.
    order: BTreeMap<u64, [u8; 32]>,
    uses: u64,
    most: usize,
}

impl<T> Recent<T> {
    /// Holds so many at most, and one at least.
    pub(crate) fn new(most: usize) -> Self {
        Self { values: HashMap::new(), order: BTreeMap::new(), uses: 0, most: most.max(1) }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The value of a name, which is then the one used last.
    pub(crate) fn get(&mut self, name: &str) -> Option<&mut T> {
        let key = sha256(name.as_bytes());
        let (used, value) = self.values.get_mut(&key)?;
        self.order.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, key);
        Some(value)
    }

    /// The value of a name, made where there is none.
    pub(crate) fn get_or_make(&mut self, name: &str, make: impl FnOnce() -> T) -> &mut T {
        let key = sha256(name.as_bytes());
        self.uses += 1;
        let uses = self.uses;
        if !self.values.contains_key(&key) {
            while self.values.len() >= self.most && self.drop_oldest().is_some() {}
        }
        let (used, value) = self.values.entry(key).or_insert_with(|| (uses, make()));
        self.order.remove(used);
        *used = uses;
        self.order.insert(uses, key);
        value
    }

    /// The value of a name, without counting as a use.
    pub(crate) fn peek(&self, name: &str) -> Option<&T> {
        self.values.get(&sha256(name.as_bytes())).map(|(_, value)| value)
    }

    /// Sets a value and gives the one that it replaces; what was not used for longest goes where
    /// there are too many.
    pub(crate) fn set(&mut self, name: &str, value: T) -> Option<T> {
        let key = sha256(name.as_bytes());
        self.uses += 1;
        let old = self.values.insert(key, (self.uses, value));
        if let Some((used, _)) = &old {
            self.order.remove(used);
        }
        self.order.insert(self.uses, key);
        while self.values.len() > self.most {
            self.drop_oldest();
        }
        old.map(|(_, value)| value)
    }

    /// Takes out what was not used for longest.
    pub(crate) fn drop_oldest(&mut self) -> Option<T> {
        let (_, key) = self.order.pop_first()?;
        self.values.remove(&key).map(|(_, value)| value)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.values().map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<T> {
        let (used, value) = self.values.remove(&sha256(name.as_bytes()))?;
        self.order.remove(&used);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let mut recent = Recent::new(2);
        assert_eq!((recent.set("a", 1), recent.set("b", 2)), (None, None));
        assert_eq!(recent.get("a"), Some(&mut 1));
        recent.set("c", 3);
        assert_eq!(
            (recent.peek("a"), recent.peek("b"), recent.peek("c")),
            (Some(&1), None, Some(&3))
        );
        assert_eq!((recent.set("c", 4), recent.len(), recent.order.len()), (Some(3), 2, 2));
        assert_eq!((recent.remove("a"), recent.remove("a"), recent.len()), (Some(1), None, 1));
    }
}

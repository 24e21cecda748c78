//! A skill as one row of bytes, the same for the same skill: what its hash is taken of, and what is kept
//! of one that was approved.

use super::tree::{Content, Entry, Tree};

const HEAD: &[u8] = b"wardkeep skill v1\n";

impl Tree {
    /// Names, whether they may be run, contents, and links as links, in order of their names. `None` where
    /// not everything was read, or something is neither file nor link: there is no word for it.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        if !self.gaps.is_empty() {
            return None;
        }
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by(|one, two| one.path.as_bytes().cmp(two.path.as_bytes()));
        if entries.windows(2).any(|two| two[0].path == two[1].path) {
            return None;
        }
        let mut out = Vec::with_capacity(self.bytes() + HEAD.len() + 64 * entries.len());
        out.extend_from_slice(HEAD);
        for entry in entries {
            let (kind, content) = match &entry.content {
                Content::File(bytes) if entry.executable => (b'x', bytes.as_slice()),
                Content::File(bytes) => (b'f', bytes.as_slice()),
                Content::Link(target) => (b'l', target.as_bytes()),
                Content::Special => return None,
            };
            out.push(kind);
            for part in [entry.path.as_bytes(), content] {
                out.extend_from_slice(&(part.len() as u64).to_be_bytes());
                out.extend_from_slice(part);
            }
        }
        Some(out)
    }

    /// Reads what [`Tree::to_bytes`] wrote, and nothing else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(HEAD)?;
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((kind, after)) = rest.split_first() {
            rest = after;
            let path = String::from_utf8(part(&mut rest)?.to_vec()).ok()?;
            let content = part(&mut rest)?.to_vec();
            let content = match kind {
                b'f' | b'x' => Content::File(content),
                b'l' => Content::Link(String::from_utf8(content).ok()?),
                _ => return None,
            };
            if entries.last().is_some_and(|last| last.path.as_bytes() >= path.as_bytes()) {
                return None;
            }
            entries.push(Entry { path, content, executable: *kind == b'x' });
        }
        Some(Self { entries, gaps: Vec::new() })
    }
}

fn part<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(path: &str, content: Content, executable: bool) -> Entry {
        Entry { path: path.to_owned(), content, executable }
    }

    #[test]
    fn everything_that_matters_is_in_it() {
        let file = |text: &str| Content::File(text.as_bytes().to_vec());
        let one = |entry: Entry| Tree { entries: vec![entry], gaps: Vec::new() }.to_bytes();
        let rows = [
            one(entry("a", file("b"), false)),
            one(entry("a", file("b"), true)),
            one(entry("a", file("c"), false)),
            one(entry("b", file("b"), false)),
            one(entry("a", Content::Link("b".to_owned()), false)),
            Tree::of([("a", "b"), ("c", "")]).to_bytes(),
            Tree::default().to_bytes(),
        ];
        for (place, row) in rows.iter().enumerate() {
            assert!(row.is_some() && rows[place + 1..].iter().all(|other| other != row), "{place}");
        }
        let sorted = Tree::of([("a", "1"), ("b", "2")]).to_bytes();
        assert_eq!(Tree::of([("b", "2"), ("a", "1")]).to_bytes(), sorted);
    }

    #[test]
    fn what_was_not_read_has_no_bytes() {
        let mut tree = Tree::of([("a", "b")]);
        tree.gap("c", "it cannot be opened");
        assert_eq!(tree.to_bytes(), None);
        let special = Tree { entries: vec![entry("a", Content::Special, false)], gaps: Vec::new() };
        assert_eq!(special.to_bytes(), None);
        assert_eq!(Tree::of([("a", "b"), ("a", "c")]).to_bytes(), None);
    }

    proptest! {
        #[test]
        fn comes_back(files in prop::collection::btree_map("[a-z/]{1,6}", prop::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let tree = Tree::of(files);
            let bytes = tree.to_bytes().unwrap();
            prop_assert_eq!(Tree::from_bytes(&bytes), Some(tree));
            for end in 0..bytes.len() {
                let cut = Tree::from_bytes(&bytes[..end]);
                prop_assert!(cut.is_none_or(|cut| cut.to_bytes().as_deref() == Some(&bytes[..end])));
            }
        }

        #[test]
        fn any_bytes_are_read_as_one_tree_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let bytes = [HEAD, &bytes].concat();
            if let Some(tree) = Tree::from_bytes(&bytes) {
                prop_assert_eq!(tree.to_bytes(), Some(bytes));
            }
        }
    }
}

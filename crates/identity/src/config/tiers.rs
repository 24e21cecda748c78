//! Which tier a file is in.

use std::collections::HashMap;

use super::pattern::Pattern;
use crate::name::Name;

/// What is asked of a file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Changes only with the owner's approval.
    Protect,
    /// The agent writes it, and every version is kept.
    Watch,
}

impl Tier {
    /// As it is written in a configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Protect => "protect",
            Self::Watch => "watch",
        }
    }
}

/// The name of the configuration; always protected.
pub const CONFIG_FILE: &str = "soulguard.json";
/// Where staging lies; never tracked.
pub const OWN_FOLDER: &str = ".soulguard";

/// The entries of a configuration, ready to be asked.
#[derive(Debug, Clone, Default)]
pub struct Tiers {
    /// Entries without globs, by their first component: most lists have no others.
    plain: HashMap<Vec<u8>, Vec<usize>>,
    /// All others.
    globs: Vec<usize>,
    patterns: Vec<(Tier, Pattern)>,
}

/// How far the entries are matched along a path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cursor {
    /// Own files, of which nothing is tracked.
    own: bool,
    states: Vec<(usize, Vec<usize>)>,
}

impl Tiers {
    pub(super) fn new(entries: Vec<(Tier, Pattern)>) -> Self {
        let mut tiers = Self::default();
        let config = Name::new(CONFIG_FILE.as_bytes()).map(|name| Pattern::of(&name));
        for (tier, pattern) in config.map(|own| (Tier::Protect, own)).into_iter().chain(entries) {
            let at = tiers.patterns.len();
            match pattern.first() {
                Some(first) => tiers.plain.entry(first.to_vec()).or_default().push(at),
                None => tiers.globs.push(at),
            }
            tiers.patterns.push((tier, pattern));
        }
        tiers
    }

    /// The tier of a file; protect comes before watch.
    #[must_use]
    pub fn tier_of(&self, name: &Name) -> Option<Tier> {
        self.tier(&self.at(name))
    }

    /// Whether everything that is or will be below a folder is protected.
    #[must_use]
    pub fn protects_folder(&self, name: &Name) -> bool {
        self.is_whole(&self.at(name))
    }

    /// Where a path leads.
    pub(crate) fn at(&self, name: &Name) -> Cursor {
        let mut cursor: Option<Cursor> = None;
        for component in name.components() {
            cursor = Some(self.step(cursor.as_ref(), component));
        }
        cursor.unwrap_or_default()
    }

    /// One component further; from the workspace itself where there is nothing before.
    pub(crate) fn step(&self, from: Option<&Cursor>, component: &[u8]) -> Cursor {
        let next = |at: usize, positions: &[usize]| {
            let positions = self.patterns[at].1.step(positions, component);
            (!positions.is_empty()).then_some((at, positions))
        };
        match from {
            None => {
                let plain = self.plain.get(component).into_iter().flatten();
                let states = plain
                    .chain(&self.globs)
                    .filter_map(|&at| next(at, &self.patterns[at].1.start()))
                    .collect();
                Cursor { own: component == OWN_FOLDER.as_bytes(), states }
            }
            Some(from) => {
                let states = from.states.iter().filter_map(|(at, was)| next(*at, was)).collect();
                Cursor { own: from.own, states }
            }
        }
    }

    pub(crate) fn tier(&self, cursor: &Cursor) -> Option<Tier> {
        if cursor.own {
            return None;
        }
        let done = |(at, positions): &&(usize, Vec<usize>)| self.patterns[*at].1.is_done(positions);
        cursor.states.iter().filter(done).map(|(at, _)| self.patterns[*at].0).min()
    }

    /// Whether everything at and below this place is protected.
    pub(crate) fn is_whole(&self, cursor: &Cursor) -> bool {
        !cursor.own
            && cursor.states.iter().any(|(at, positions)| {
                let (tier, pattern) = &self.patterns[*at];
                *tier == Tier::Protect && pattern.ends_deep() && pattern.is_done(positions)
            })
    }

    /// Whether something below this place may be tracked.
    pub(crate) fn is_open(&self, cursor: &Cursor) -> bool {
        !cursor.own && cursor.states.iter().any(|(at, was)| self.patterns[*at].1.is_open(was))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiers(protect: &[&str], watch: &[&str]) -> Tiers {
        let of = |tier, list: &[&str]| -> Vec<(Tier, Pattern)> {
            list.iter().map(|text| (tier, Pattern::parse(text).unwrap())).collect()
        };
        Tiers::new([of(Tier::Watch, watch), of(Tier::Protect, protect)].concat())
    }

    fn name(text: &str) -> Name {
        Name::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn protect_comes_first_and_own_files_are_never_tracked() {
        let tiers = tiers(&["SOUL.md", "skills/*.md", "**/*.key"], &["*.md", "memory/", "**"]);
        let of = |text: &str| tiers.tier_of(&name(text));
        assert_eq!(of("SOUL.md"), Some(Tier::Protect));
        assert_eq!(of("skills/a.md"), Some(Tier::Protect));
        assert_eq!(of("a/b/c.key"), Some(Tier::Protect));
        assert_eq!(of("memory/x"), Some(Tier::Watch));
        assert_eq!(of(".soulguard/staging/SOUL.md"), None);
        assert_eq!(of(".soulguard"), None);
        assert_eq!(of("soulguard.json"), Some(Tier::Protect));
    }

    #[test]
    fn the_configuration_is_protected_by_an_empty_one() {
        let tiers = tiers(&[], &["soulguard.json"]);
        assert_eq!(tiers.tier_of(&name("soulguard.json")), Some(Tier::Protect));
        assert_eq!(tiers.tier_of(&name("SOUL.md")), None);
    }

    #[test]
    fn whole_folders_are_known() {
        let tiers = tiers(&["skills/", "docs/**", "one/*.md"], &["memory/"]);
        for (folder, whole) in [
            ("skills", true),
            ("skills/a/b", true),
            ("docs", true),
            ("one", false),
            ("memory", false),
        ] {
            assert_eq!(tiers.protects_folder(&name(folder)), whole, "{folder}");
        }
    }

    #[test]
    fn a_walk_is_led_only_where_something_can_be() {
        let tiers = tiers(&["a/b/*.md", "SOUL.md"], &[]);
        let open = |text: &str| tiers.is_open(&tiers.at(&name(text)));
        assert!(open("a"));
        assert!(open("a/b"));
        assert!(!open("a/c"));
        assert!(!open("node_modules"));
        assert!(!open("a/b/c.md"));
    }
}

//! Names that a confined program may not write, or not read, wherever in the workspace they are.
//!
//! They are what somebody outside of the confinement runs or believes later: hooks, settings of agents,
//! shell and editor start-up files, CI workflows, an agent's own identity. It is one table for what is there
//! already and for what must not come into being. Names are compared without regard to case; of a few it is told that they
//! are written in another way than whoever obeys them looks for, for folders that tell cases apart.

mod lists;
mod pattern;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use self::lists::{
    AGENTS, AS_WRITTEN, BEGINNINGS, COPIES, ENDINGS, EXAMPLES, GIT, IDENTITY, INTEGRATION,
    PACKAGES, SECRETS, STARTUP, VERSIONS,
};
pub(crate) use self::pattern::fits;
pub use self::pattern::{PathPattern, PatternError};

/// Whether parts, nearest first, lie in the folder of what is proposed to the owner.
fn is_staged<'a>(above: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
    let further = above.clone().skip(1);
    above.zip(further).any(|(part, before)| part == b"staging" && before == b".soulguard")
}

/// What is done about names that are known by how they begin or end: `.env.local`, `prod.env`, `a.code-workspace`.
fn by_form(name: &[u8]) -> Option<Guard> {
    if is_like_env(name) {
        return holds_values(name).then_some(Guard::Masked);
    }
    let ends = |end: &&[u8]| ends_with(name, end);
    let begins = |start: &&[u8]| {
        name.len() >= start.len()
            && name[..start.len()].eq_ignore_ascii_case(start)
            && matches!(name.get(start.len()), None | Some(b'.' | b'_'))
    };
    let known = ENDINGS.iter().any(ends) || BEGINNINGS.iter().any(begins);
    known.then_some(Guard::ReadOnly)
}

fn ends_with(name: &[u8], end: &[u8]) -> bool {
    name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
}

/// What parts the words of a name.
fn parts_words(byte: &u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

/// Whether a name is that of an `.env` file with more before or behind it, or of a copy of one: `.env.local`, `.env~`,
/// `#.env#`, `.env (copy)`, `prod.env`, `prod.env.bak`.
fn is_like_env(name: &[u8]) -> bool {
    // Nearly all names end here.
    let has_env = |(at, byte): (usize, &u8)| {
        let behind = || name.get(at + 1..at + 4);
        *byte == b'.' && behind().is_some_and(|word| word.eq_ignore_ascii_case(b"env"))
    };
    if name.len() < 5 || !name.iter().enumerate().any(has_env) {
        return false;
    }
    let name = without_copy(name);
    let behind = name.get(4);
    let begins = name[..4.min(name.len())].eq_ignore_ascii_case(b".env")
        && behind.is_none_or(|byte| parts_words(byte) || byte.is_ascii_digit());
    begins || ends_with(name, b".env")
}

/// Whether the name of an `.env` file does not say that it is an example.
fn holds_values(name: &[u8]) -> bool {
    let name = without_copy(name);
    let is_end = name.len() > 4 && ends_with(name, b".env");
    let rest = if is_end { &name[..name.len() - 4] } else { name };
    let last = rest.rsplit(parts_words).find(|word| !word.is_empty()).unwrap_or_default();
    !EXAMPLES.iter().any(|one| last.eq_ignore_ascii_case(one))
}

/// The name of which this one is a copy that an editor or a person has made; its own, where it is none.
fn without_copy(mut name: &[u8]) -> &[u8] {
    if let [b'#', inner @ .., b'#'] = name {
        name = inner;
    }
    loop {
        let end = name.iter().rposition(|byte| !parts_words(byte)).map_or(0, |last| last + 1);
        let start = name[..end].iter().rposition(parts_words).map_or(0, |at| at + 1);
        let word = &name[start..end];
        let is_copy = COPIES.iter().any(|one| word.eq_ignore_ascii_case(one))
            || (!word.is_empty() && word.iter().all(u8::is_ascii_digit));
        if start == 0 || !is_copy {
            return &name[..end];
        }
        name = &name[..start - 1];
    }
}

/// What is done about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It may be read, never written, made, moved or removed.
    ReadOnly,
    /// It is shown empty, and not made.
    Masked,
}

/// A table of names, ready to ask.
#[derive(Debug, Clone)]
pub struct Names {
    /// Shared by all copies that list the same names.
    table: Arc<Table>,
    patterns: Vec<PathPattern>,
    /// Places where the owner guards a name no more.
    released: Vec<Released>,
}

/// Names by their last parts. It is made for each run, so that it must be cheap to make: built-in names stay where they are.
#[derive(Debug, Clone)]
struct Table {
    all: Vec<Listed>,
    /// For each number of a last part the first in `all`, which leads to the next; [`NONE`] where there is none.
    heads: Vec<u32>,
    /// Shapes of the last parts, a bit each, so that most names need no look-up.
    shapes: [u64; SHAPES / 64],
}

/// A name of the table.
#[derive(Debug, Clone)]
struct Listed {
    /// Its parts, with `/` between; folded, but for the case of plain letters.
    path: Cow<'static, [u8]>,
    guard: Guard,
    /// Whether nobody looks for it in another case.
    as_written: bool,
    next: u32,
}

impl Listed {
    /// A name of the lists, of which all are plain letters.
    fn built_in(name: &'static str, guard: Guard) -> Self {
        let as_written = AS_WRITTEN.contains(&name);
        Self { path: Cow::Borrowed(name.as_bytes()), guard, as_written, next: NONE }
    }

    /// The parts, nearest first.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.path.rsplit(|byte| *byte == b'/')
    }

    fn last(&self) -> &[u8] {
        self.parts().next().unwrap_or_default()
    }

    /// What it would end with behind each of its parts but the last, and the parts before that, nearest first.
    fn cuts(&self) -> impl Iterator<Item = (&[u8], impl Iterator<Item = &[u8]>)> {
        let ends = self.path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        ends.map(|(at, _)| (&self.path[at + 1..], self.path[..at].rsplit(|byte| *byte == b'/')))
    }
}

/// No name of the table.
const NONE: u32 = u32::MAX;
/// How many numbers there are for last parts; a power of two.
const HEADS: usize = 1024;

/// How many shapes there are.
const SHAPES: usize = 4096;

/// A number made of the length of a last part, and its first, middle and last byte, whatever their case.
fn shape_of(last: &[u8]) -> Option<usize> {
    let of = |byte: &u8| usize::from(byte.to_ascii_lowercase());
    let (first, middle) = (of(last.first()?), of(last.get(last.len() / 2)?));
    Some((last.len() + 31 * first + 1021 * middle + 197 * of(last.last()?)) % SHAPES)
}

/// The number of a last part, whatever its case.
fn number_of(last: &[u8]) -> usize {
    let step = |sum: u32, byte: &u8| {
        (sum ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    };
    let sum = last.iter().fold(0x811c_9dc5, step);
    (sum ^ (sum >> 15)) as usize % HEADS
}

impl Table {
    fn none() -> Self {
        let (all, heads) = (Vec::with_capacity(512), vec![NONE; HEADS]);
        Self { all, heads, shapes: [0; SHAPES / 64] }
    }

    fn add(&mut self, mut listed: Listed) -> bool {
        let last = listed.last();
        let (Some(shape), Ok(place)) = (shape_of(last), u32::try_from(self.all.len())) else {
            return false;
        };
        if last.len() > LONGEST || place == NONE {
            return false;
        }
        self.shapes[shape / 64] |= 1 << (shape % 64);
        let number = number_of(last);
        listed.next = self.heads[number];
        self.heads[number] = place;
        self.all.push(listed);
        true
    }

    /// The names with a last part, whatever its case.
    fn with_last(&self, last: &[u8]) -> impl Iterator<Item = &Listed> {
        let of = |place: u32| self.all.get(place as usize);
        let first = of(self.heads[number_of(last)]);
        let all = std::iter::successors(first, move |listed| of(listed.next));
        all.filter(move |listed| listed.last().eq_ignore_ascii_case(last))
    }

    fn remove(&mut self, is_it: impl Fn(&Listed) -> bool) {
        let mut left = Self::none();
        for listed in std::mem::take(&mut self.all) {
            if !is_it(&listed) {
                left.add(listed);
            }
        }
        *self = left;
    }
}

/// A place where a name is not guarded, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Released {
    at_top: bool,
    /// Nearest first.
    parts: Vec<Name>,
}

impl Released {
    fn fits<'a>(&self, name: &[u8], mut above: impl Iterator<Item = &'a [u8]>) -> bool {
        let Some((own, before)) = self.parts.split_first() else { return false };
        **own == *name
            && before.iter().all(|own| above.next().is_some_and(|part| **own == *part))
            && (!self.at_top || (above.next().is_some() && above.next().is_none()))
    }
}

impl Released {
    /// Whether it begins with parts of a path and ends in a folder there, or in one below.
    fn begins_in(&self, parts: &[&[u8]]) -> bool {
        (1..self.parts.len()).any(|cut| {
            // Parts of the path from its end on, against the place without its last parts.
            let head = &self.parts[cut..];
            let fits = head.len() < parts.len()
                && head.iter().zip(parts.iter().rev()).all(|(own, part)| **own == **part);
            fits && (!self.at_top || head.len() + 1 == parts.len())
        }) || (self.at_top && parts.len() == 1)
    }
}

/// One part of a path, as it is written.
type Name = Box<[u8]>;

/// A name that was found in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The part of the path it begins with.
    pub(crate) at: usize,
    /// How many parts it has.
    pub(crate) parts: usize,
    /// Whether it is one that nobody looks for as it is written, unless the folder it is in folds names.
    pub(crate) otherwise: bool,
}

/// A name that a path ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ending {
    parts: usize,
    guard: Guard,
    otherwise: bool,
}

/// Longest name in the table.
const LONGEST: usize = 63;

impl Names {
    /// The built-in names.
    #[must_use]
    pub fn standard() -> Self {
        let mut table = Table::none();
        for list in [IDENTITY, AGENTS, GIT, VERSIONS, STARTUP, INTEGRATION, PACKAGES] {
            for name in list {
                table.add(Listed::built_in(name, Guard::ReadOnly));
            }
        }
        for name in SECRETS {
            table.add(Listed::built_in(name, Guard::Masked));
        }
        Self::of_table(table)
    }

    fn of_table(table: Table) -> Self {
        Self { table: Arc::new(table), patterns: Vec::new(), released: Vec::new() }
    }

    #[cfg(test)]
    fn none() -> Self {
        Self::of_table(Table::none())
    }

    /// Adds a name, or the last parts of a path. One that is empty or longer than a name can be is not
    /// added; says whether it was.
    pub fn add(&mut self, path: &str, guard: Guard) -> bool {
        let path = folded_parts(path).join(&b'/');
        let same = |one: &Listed| {
            one.path.eq_ignore_ascii_case(&path) && one.guard == guard && !one.as_written
        };
        let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if self.table.with_last(last).any(same) {
            return true;
        }
        let path = Cow::Owned(path);
        Arc::make_mut(&mut self.table).add(Listed { path, guard, as_written: false, next: NONE })
    }

    /// Adds a pattern: what it fits may be read and never written, made, moved or removed.
    pub fn add_pattern(&mut self, pattern: PathPattern) {
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
    }

    /// Guards a name no more; says whether it was guarded. A path that ends with a name of one part is released at
    /// that place, as it is written: `docs/agents.md` at any depth, `/docs/agents.md` only at the top. So is one that
    /// is known by its form alone: `test.env`.
    pub fn release(&mut self, path: &str) -> bool {
        let whole = folded_parts(path).join(&b'/');
        let last = whole.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if last.is_empty() {
            return false;
        }
        let at_top = path.starts_with('/');
        let is_it = |listed: &Listed| {
            listed.path.eq_ignore_ascii_case(&whole) && !(at_top && listed.parts().nth(1).is_none())
        };
        let is_listed = self.table.with_last(last).any(is_it);
        if is_listed {
            Arc::make_mut(&mut self.table).remove(is_it);
        }
        let mut known = self.table.with_last(last);
        let is_guarded = by_form(last).is_some()
            || (!is_listed && known.any(|listed| listed.parts().nth(1).is_none()));
        if is_guarded {
            let parts = path.rsplit('/').filter(|part| !part.is_empty());
            let parts = parts.map(|part| part.as_bytes().into()).collect();
            self.released.push(Released { at_top, parts });
        }
        is_listed || is_guarded
    }

    /// Whether a folder at a path, or what lies in it, may have names that are guarded elsewhere: proposals to the
    /// owner, and what was released at one place.
    pub(crate) fn is_looser(&self, parts: &[&[u8]]) -> bool {
        let above = parts.iter().rev().copied();
        let everywhere = |one: &Released| !one.at_top && one.parts.len() == 1;
        parts.last().is_some_and(|name| *name == b".soulguard")
            || is_staged(above)
            || !self.released.iter().all(everywhere)
    }

    /// Whether a name that is guarded in a folder `here` may be in one `there`, or in folders that both hold.
    pub(crate) fn is_looser_than(&self, there: &[&[u8]], here: &[&[u8]]) -> bool {
        let staged = |parts: &[&[u8]]| is_staged(parts.iter().rev().copied());
        let above = |parts: &[&[u8]]| parts.last().is_some_and(|name| *name == b".soulguard");
        let released = |one: &Released| one.begins_in(there) && !one.begins_in(here);
        (staged(there) && !staged(here))
            || (above(there) && !above(here))
            || self.released.iter().any(released)
    }

    /// What is done about a name in the folder `parent`, a path with `/` between its parts that begins with
    /// the name of the folder that is guarded.
    #[must_use]
    pub fn of(&self, parent: &[u8], name: &[u8]) -> Option<Guard> {
        self.written(parent, name).map(|(guard, _)| guard)
    }

    /// As [`Self::of`], and whether nobody looks for the name as it is written, unless the folder folds names.
    pub(crate) fn written(&self, parent: &[u8], name: &[u8]) -> Option<(Guard, bool)> {
        let above = parent.rsplit(|byte| *byte == b'/').filter(|part| !part.is_empty());
        self.ending(name, above).map(|found| (found.guard, found.otherwise))
    }

    /// The name that ends with `name`. `above` are the parts before it, nearest first.
    fn ending<'a>(
        &self,
        name: &[u8],
        above: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<Ending> {
        let plain = if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(folded(name)) };
        // What an agent proposes waits for the owner there, and steers nobody.
        let proposed = |found: &Ending| {
            (found.parts, found.guard) == (1, Guard::ReadOnly)
                && IDENTITY.iter().any(|own| same(&plain, own.as_bytes()))
                && is_staged(above.clone())
        };
        let released = |found: &Ending| {
            found.parts == 1 && self.released.iter().any(|one| one.fits(name, above.clone()))
        };
        let listed = self.listed(&plain, above.clone());
        let listed = listed.filter(|found| !proposed(found) && !released(found));
        if listed.is_some_and(|found| !found.otherwise) {
            return listed;
        }
        let fits = self.patterns.iter().find_map(|one| one.ends_with(&plain, above.clone()));
        let fits = fits.map(|parts| Ending { parts, guard: Guard::ReadOnly, otherwise: false });
        fits.or(listed)
    }

    fn listed<'a>(
        &self,
        name: &[u8],
        above: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<Ending> {
        let shape = shape_of(name)?;
        if let Some(guard) = by_form(name) {
            return Some(Ending { parts: 1, guard, otherwise: false });
        }
        let table = &*self.table;
        if table.shapes[shape / 64] & (1 << (shape % 64)) == 0 {
            return None;
        }
        let mut found: Option<Ending> = None;
        for listed in table.with_last(name) {
            let mut parts = 1;
            let mut above = above.clone();
            let is_it = listed.parts().skip(1).all(|wanted| {
                parts += 1;
                above.next().is_some_and(|part| same(part, wanted))
            });
            if is_it {
                let otherwise = listed.as_written && *listed.path != *name;
                let ending = Ending { parts, guard: listed.guard, otherwise };
                if listed.guard == Guard::Masked {
                    return Some(ending);
                }
                // The latest that was listed counts, those that are written otherwise only where there is no other.
                if found.is_none_or(|found| found.otherwise) {
                    found = Some(ending);
                }
            }
        }
        found
    }

    /// The first guarded name in a path that ends with its part `from` or a later one.
    pub(crate) fn find(&self, parts: &[&[u8]], from: usize) -> Option<Hit> {
        (from..parts.len()).find_map(|end| {
            let above = parts[..end].iter().rev().copied();
            let Ending { parts, otherwise, .. } = self.ending(parts[end], above)?;
            Some(Hit { at: (end + 1).saturating_sub(parts), parts, otherwise })
        })
    }

    /// Whether a path that begins with the name of the folder that is guarded is one that an owner's
    /// pattern names: the folders that it lies in are part of it.
    pub(crate) fn is_owners(&self, path: &[u8]) -> bool {
        let mut parts = path.rsplit(|byte| *byte == b'/').filter(|part| !part.is_empty());
        let Some(name) = parts.next().map(folded) else { return false };
        self.patterns.iter().any(|one| one.ends_with(&name, parts.clone()).is_some())
    }

    /// What would have to lie in a folder at a path, for a guarded name to begin with parts of that path
    /// and to end in the folder.
    pub(crate) fn continued(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let Some((name, above)) = parts.split_last() else { return Vec::new() };
        let mut found = Vec::new();
        for listed in &self.table.all {
            for (tail, mut before) in listed.cuts() {
                let mut parts = above.iter().rev();
                let fits = before.next().is_some_and(|wanted| same(name, wanted))
                    && before.all(|wanted| parts.next().is_some_and(|part| same(part, wanted)));
                if fits {
                    found.push(tail.to_ascii_lowercase());
                }
            }
        }
        found.extend(self.patterns.iter().filter_map(|one| one.continued(parts)));
        found
    }

    /// Names of folders that guarded names may go on in: with any other name [`Self::continued`] finds nothing, which is
    /// quicker to know where many folders are looked at. `None` where patterns may go on anywhere.
    pub(crate) fn folders(&self) -> Option<HashSet<Vec<u8>>> {
        let all = self.table.all.iter().flat_map(|listed| listed.parts().skip(1));
        self.patterns.is_empty().then(|| all.map(<[u8]>::to_ascii_lowercase).collect())
    }

    /// As [`Self::of`], for a whole path: also what lies below a name that is guarded.
    #[must_use]
    pub fn of_path(&self, path: &[u8]) -> Option<Guard> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut found = None;
        for end in ends.chain([path.len()]) {
            let until = &path[..end];
            let start = until.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            match self.of(&until[..start], &until[start..]) {
                Some(Guard::Masked) => return Some(Guard::Masked),
                Some(Guard::ReadOnly) => found = Some(Guard::ReadOnly),
                None => {}
            }
        }
        found
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::standard()
    }
}

fn folded_parts(path: &str) -> Vec<Vec<u8>> {
    path.split('/').filter(|part| !part.is_empty()).map(|part| folded(part.as_bytes())).collect()
}

/// Whether a part of a path is a name that is folded already, but for the case of plain letters.
pub(crate) fn same(part: &[u8], name: &[u8]) -> bool {
    let plain = if part.is_ascii() { Cow::Borrowed(part) } else { Cow::Owned(folded(part)) };
    plain.eq_ignore_ascii_case(name)
}

/// A name without what file systems that fold do not see: case, and signs that have no width.
pub(crate) fn folded(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let text = String::from_utf8_lossy(name);
    let mut folded = String::with_capacity(text.len());
    for sign in text.chars().filter(|sign| !is_hidden(*sign)) {
        match plain_letters(sign) {
            Some(letters) => folded.push_str(letters),
            None => folded.extend(sign.to_lowercase()),
        }
    }
    folded.into_bytes()
}

/// Whether file systems that fold do not see a sign: the kernel (ext4, f2fs, tmpfs) leaves out all that Unicode calls
/// default ignorable, and HFS+ some of them.
fn is_hidden(sign: char) -> bool {
    matches!(sign,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// What signs fold to that are plain letters to such a file system, but whose lower case is something else.
fn plain_letters(sign: char) -> Option<&'static str> {
    Some(match sign {
        '\u{17F}' => "s",
        '\u{212A}' => "k",
        '\u{DF}' | '\u{1E9E}' => "ss",
        '\u{FB00}' => "ff",
        '\u{FB01}' => "fi",
        '\u{FB02}' => "fl",
        '\u{FB03}' => "ffi",
        '\u{FB04}' => "ffl",
        '\u{FB05}' | '\u{FB06}' => "st",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Guard> {
        Names::standard().of_path(path.as_bytes())
    }

    #[test]
    fn names_are_found_at_any_depth() {
        for path in [
            "AGENTS.md",
            "a/b/Agents.MD",
            ".git/hooks",
            ".git/hooks/pre-commit",
            "x/.git/config",
            "x/.claude/settings.json",
            ".claude/worktrees/x",
            ".vscode/tasks.json",
            ".VSCODE/Ta\u{17F}ks.json",
            "deep/er/.github/workflows/x.yml",
            ".Git\u{200c}Hub/workflows",
            ".g\u{34f}it/hooks/post-checkout",
            ".git\u{fe0f}/config",
            ".mcp.json\u{200b}",
            ".mcp\u{e0061}.json",
            ".github/work\u{fb02}ows/x.yml",
            ".git/con\u{fb01}g",
            ".npmrc",
        ] {
            assert_eq!(of(path), Some(Guard::ReadOnly), "{path}");
        }
        for path in [
            ".env",
            "a/.env",
            ".env.local",
            ".ENV.production",
            ".env.d/x",
            "prod.env",
            "a/Prod.ENV",
            ".env-prod",
            ".env_local",
            ".env.example.local",
            ".env~",
            "#.env#",
            ".env (copy)",
            ".env copy 2",
            ".env1",
            ".env.bak",
            ".ENV.old~",
            "prod.env.bak",
            "prod.env~",
            "#prod.env#",
            ".prod.env.swp",
            "a/.envs/.production/.postgres",
            ".envrc.local",
            ".dev.vars",
            ".netrc",
            ".pypirc",
        ] {
            assert_eq!(of(path), Some(Guard::Masked), "{path}");
        }
        for path in [
            "a/my.code-workspace",
            "X.Code-Workspace",
            ".CODE-WORKSPACE",
            "a.sublime-project",
            ".lintstagedrc",
            "a/.LintStagedRC.json",
            ".huskyrc.js",
            ".autoenv_leave.zsh",
            ".envrc",
            "a/rust-toolchain.toml",
            ".hg/hgrc",
            "x/tools/bazel",
        ] {
            assert_eq!(of(path), Some(Guard::ReadOnly), "{path}");
        }
        for path in [
            "",
            "/",
            "src/main.rs",
            "hooks",
            "config",
            "git/hooks",
            "x.git/config",
            "settings.json",
            ".env.example",
            ".env.local.sample",
            ".env-example",
            ".env_template",
            "example.env",
            "a/template.env",
            "app.sample.env",
            "my-example.env",
            "env",
            "prod.env.ts",
            "xenv",
            ".environment",
            "environment.ts",
            "environment.bak",
            "env.d.ts",
            ".envoy.yaml",
            ".envoy.bak",
            ".envision (copy)",
            ".env.example~",
            ".env.example.bak",
            "example.env.bak",
            "bak",
            "~",
            "##",
            ".lintstagedrcx",
            "a.sublime-projects",
            ".hg/dirstate",
            "tools/bazelisk",
            "bin/activate",
            ".crush/crush.db",
            ".github/dependabot.yml",
            ".git/refs/heads/hooks",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn proposals_may_have_the_names_that_they_are_for_and_no_others() {
        for path in [".soulguard/staging/SOUL.md", "a/.soulguard/staging/x/agents.md"] {
            assert_eq!(of(path), None, "{path}");
        }
        for path in [
            ".soulguard/SOUL.md",
            "staging/SOUL.md",
            ".soulguard/staging/.git/hooks/pre-commit",
            ".soulguard/staging/.claude/settings.json",
            ".soulguard/staging/.envrc",
            ".soulguard/staging/.env",
        ] {
            assert!(of(path).is_some(), "{path}");
        }
    }

    #[test]
    fn what_is_written_otherwise_is_told() {
        let names = Names::standard();
        let written = |path: &str| {
            let (parent, name) = path.rsplit_once('/').unwrap();
            names.written(parent.as_bytes(), name.as_bytes())
        };
        for path in ["w/docs/identity.md", "w/a/Soul.md", "w/a/\u{17F}oul.md", "w/localgpt.md"] {
            assert_eq!(written(path), Some((Guard::ReadOnly, true)), "{path}");
        }
        // What somebody obeys in any case, or a file system folds for git and others, is what it is.
        for path in [
            "w/docs/IDENTITY.md",
            "w/docs/agents.md",
            "w/a/claude.md",
            "w/a/gemini.md",
            "w/a/.CURSORRULES",
            "w/.GIT/hooks",
            "w/.Claude",
            "w/.VSCode",
            "w/.BASHRC",
        ] {
            assert_eq!(written(path), Some((Guard::ReadOnly, false)), "{path}");
        }
        assert_eq!(written("w/.ENV"), Some((Guard::Masked, false)));
        // An owner's own word is about any case.
        let mut own = Names::standard();
        own.add_pattern("notes/*.md".parse().unwrap());
        assert_eq!(own.written(b"w/notes", b"identity.md"), Some((Guard::ReadOnly, false)));
        assert!(own.add("IDENTITY.md", Guard::ReadOnly));
        assert_eq!(own.written(b"w/docs", b"identity.md"), Some((Guard::ReadOnly, false)));
    }

    #[test]
    fn a_name_can_be_released_at_the_top() {
        let mut names = Names::standard();
        assert!(names.release("/AGENTS.md"));
        assert_eq!(names.of_path(b"w/AGENTS.md"), None);
        assert_eq!(names.of_path(b"w/a/AGENTS.md"), Some(Guard::ReadOnly));
    }

    #[test]
    fn a_name_can_be_released_at_one_place() {
        let mut names = Names::standard();
        assert!(names.release("docs/agents.md") && names.release("/top/agents.md"));
        for free in ["w/docs/agents.md", "w/a/docs/agents.md", "w/top/agents.md"] {
            assert_eq!(names.of_path(free.as_bytes()), None, "{free}");
        }
        for held in [
            "w/agents.md",
            "w/docs/AGENTS.md",
            "w/Docs/agents.md",
            "w/xdocs/agents.md",
            "w/docs/x/agents.md",
            "w/docs/claude.md",
            "w/a/top/agents.md",
        ] {
            assert_eq!(names.of_path(held.as_bytes()), Some(Guard::ReadOnly), "{held}");
        }
        // Not what lies below, not what has several parts, and not against the owner's other word.
        for (there, here, looser) in [
            ("w/docs", "w/p", true),
            ("w/a/docs", "w/docs", false),
            ("w/top", "w/p", true),
            ("w/a/top", "w/p", false),
            ("w", "w/p", true),
            ("w/a", "w/p", false),
            ("w/.soulguard/staging/x", "w/p", true),
            ("w/.soulguard", "w/p", true),
            ("w/.soulguard/staging/x", "w/.soulguard/staging/y", false),
        ] {
            let parts = |path: &'static str| path.split('/').map(str::as_bytes).collect::<Vec<_>>();
            assert_eq!(names.is_looser_than(&parts(there), &parts(here)), looser, "{there} {here}");
        }
        assert!(names.release("test.env") && names.release("/ci/.env.ci"));
        for (path, guard) in [
            ("w/a/test.env", None),
            ("w/a/Test.env", Some(Guard::Masked)),
            ("w/ci/.env.ci", None),
            ("w/a/ci/.env.ci", Some(Guard::Masked)),
            ("w/other.env", Some(Guard::Masked)),
        ] {
            assert_eq!(names.of_path(path.as_bytes()), guard, "{path}");
        }
        assert!(names.release("sub/.claude"));
        assert_eq!(names.of(b"w/sub", b".claude"), None);
        assert_eq!(names.of(b"w/sub/.claude", b"settings.json"), Some(Guard::ReadOnly));
        assert!(!names.release("sub/.git/hooks") && !names.release("sub/.git/config"));
        assert_eq!(names.of(b"w/sub/.git", b"hooks"), Some(Guard::ReadOnly));
        names.add_pattern("agents.md".parse().unwrap());
        assert_eq!(names.of(b"w/docs", b"agents.md"), Some(Guard::ReadOnly));
    }

    #[test]
    fn every_built_in_name_is_taken() {
        let mut names = Names::standard();
        assert!(!names.add("", Guard::ReadOnly));
        assert!(!names.add("/", Guard::ReadOnly));
        assert!(!names.add(&"x".repeat(64), Guard::ReadOnly));
        assert!(names.add("notes/Mine.txt", Guard::Masked));
        assert_eq!(names.of(b"a/notes", b"mine.txt"), Some(Guard::Masked));
        assert_eq!(names.of(b"a", b"mine.txt"), None);
        assert!(names.release("Notes/mine.txt") && !names.release("notes/mine.txt"));
        assert_eq!(names.of(b"a/notes", b"mine.txt"), None);
        let all = [IDENTITY, AGENTS, GIT, VERSIONS, STARTUP, INTEGRATION, PACKAGES, SECRETS];
        for name in all.into_iter().flatten() {
            assert!(name.is_ascii() && !name.starts_with('/'), "{name}");
            assert!(of(name).is_some(), "{name}");
            let parts: Vec<&[u8]> = name.split('/').map(str::as_bytes).collect();
            assert!(Names::standard().find(&parts, 0).is_some(), "{name}");
            for cut in 1..parts.len() {
                assert!(!Names::standard().continued(&parts[..cut]).is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn what_a_folder_must_not_hold() {
        let names = Names::standard();
        let inside = names.continued(&[b"a", b".GitHub"]);
        assert!(inside.contains(&b"workflows".to_vec()), "{inside:?}");
        assert!(names.continued(&[b"src"]).is_empty() && names.continued(&[]).is_empty());
        let mut names = names;
        assert!(names.release(".gitea/workflows"));
        assert!(names.continued(&[b".gitea"]).is_empty());
    }

    #[test]
    fn the_name_of_the_guarded_folder_alone_does_not_count() {
        let names = Names::standard();
        assert_eq!(names.find(&[b".claude", b"x"], 1), None);
        let hit = names.find(&[b".claude", b"settings.json"], 1);
        assert_eq!(hit, Some(Hit { at: 0, parts: 2, otherwise: false }));
    }
}

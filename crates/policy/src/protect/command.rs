//! What a shell command would do to protected files, as far as that can be read off it.
//!
//! **A heuristic.** It knows what well-known programs do with the files that they are given. A
//! script, a compiler, a program that nobody heard of, code that computes a name, can write
//! anything, and at most a warning comes of it. What holds against an agent that wants to get
//! around it is confinement, or files of another owner.

mod control;
mod globs;
mod words;

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use wardkeep_detect::effects::{Access, Effect, EffectKind, Effects, Made, Target, Unknown};
use wardkeep_detect::finding::Span;
use wardkeep_detect::shell::Word;

use super::facts::{FileKind, PathFacts, Readings};
use super::set::{Class, Denial, Operation, ProtectedSet, Redirect};

/// Most directories that a command may be in at once; beyond it none is known.
const MAX_DIRECTORIES: usize = 8;
/// Most paths that are resolved for one command; beyond it nothing can be told, and is denied.
const MAX_RESOLVED: usize = 20_000;
/// Most hits that are told.
const MAX_HITS: usize = 1024;
/// Most files that are told.
pub const MAX_TOUCHED: usize = 1024;
/// Files of the state directory whose names alone are worth a warning.
const STATE_NAMES: [&str; 2] = [".device_key", ".security_audit.jsonl"];

/// How a command stands to the protected files; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Nothing was found.
    NoHit,
    /// Something is named, or cannot be told: worth a record.
    Warned,
    /// It would change something protected, or read the state directory.
    Denied,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// How much it matters.
    pub level: Level,
    /// What is hit, why, and what to do instead.
    pub denial: Denial,
    /// The program that does it.
    pub program: Option<String>,
    /// Whether it would only read.
    pub reads: bool,
    /// Where in the command.
    pub span: Span,
}

/// A file that the command would do something to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Touch {
    /// What it would do.
    pub operation: Operation,
    /// The file, or the directory that a glob starts in: absolute.
    pub path: PathBuf,
    /// Components of a glob below it, in lower case; a file that is named has none.
    pub glob: Vec<String>,
}

/// What is made of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandJudgement {
    /// The highest level of all hits.
    pub level: Level,
    /// What was found, highest level first.
    pub hits: Vec<Hit>,
    /// The files that it would do something to, protected or not, as far as they can be told; each
    /// once, and at most [`MAX_TOUCHED`] of them.
    pub touched: Vec<Touch>,
}

/// What a command runs in.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'s> {
    /// The directory that it starts in, absolute.
    pub directory: &'s Path,
    /// The home directory of who runs it, for `~`.
    pub home: Option<&'s Path>,
}

/// Resolves a path: the directory that it is relative to, the path as it is written, and whether
/// a link at its end is followed. An error says why it cannot be resolved.
pub type Resolve<'r> = dyn FnMut(&Path, &str, bool) -> Result<Readings, String> + 'r;

/// Judges what a command would do to protected files.
///
/// A write that resolves to a protected file, or by a glob to one that exists, is denied, and so
/// is reading anything of the state directory, and a command that is too long to be read to its
/// end. The mere name of a protected file is a warning, as
/// is what cannot be told: a write to a computed name, a script that is not known. Reading the
/// policy is no hit.
#[must_use]
pub fn judge_command(
    effects: &Effects,
    around: &Surroundings<'_>,
    resolve: &mut Resolve<'_>,
    set: &ProtectedSet,
) -> CommandJudgement {
    let mut judge = Judge {
        around,
        resolver: resolve,
        set,
        hits: Vec::new(),
        seen: HashSet::new(),
        links: Vec::new(),
        made: HashSet::new(),
        touched: Vec::new(),
        touches: HashSet::new(),
        resolved: 0,
    };
    let mut places: Vec<Option<Vec<Where>>> = vec![None; effects.directories.len()];
    for effect in effects.effects.iter().filter(|effect| !effect.remote) {
        let index = effect.directory;
        let known = places.get(index).cloned().flatten();
        let here = known.unwrap_or_else(|| judge.places(effects, index));
        if let Some(slot) = places.get_mut(index) {
            *slot = Some(here.clone());
        }
        judge.effect(effect, &here);
    }
    for mention in &effects.mentions {
        judge.mention(mention);
    }
    let mut hits = judge.hits;
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.level));
    let level = hits.first().map_or(Level::NoHit, |hit| hit.level);
    CommandJudgement { level, hits, touched: judge.touched }
}

/// A directory that a command may be in; nothing where it cannot be told.
type Where = Option<PathBuf>;

struct Judge<'a, 'r> {
    around: &'a Surroundings<'a>,
    resolver: &'a mut Resolve<'r>,
    set: &'a ProtectedSet,
    hits: Vec<Hit>,
    seen: HashSet<(Level, String, Span)>,
    /// Links that the command itself makes: where, and to what.
    links: Vec<(PathBuf, PathBuf)>,
    /// Files that the command itself makes, so that what is copied from where they are is known.
    made: HashSet<PathBuf>,
    touched: Vec<Touch>,
    touches: HashSet<Touch>,
    resolved: usize,
}

impl Judge<'_, '_> {
    /// Resolves a path as it will be once the command has made its links.
    fn resolve(&mut self, base: &Path, text: &str, follow: bool) -> Result<Readings, String> {
        self.resolved += 1;
        if self.resolved > MAX_RESOLVED {
            return Err(format!("the command names more than {MAX_RESOLVED} paths"));
        }
        let readings = (self.resolver)(base, text, follow)?;
        let path = clean(&base.join(text));
        let through = self.links.iter().rev().find_map(|(link, to)| {
            let rest = path.strip_prefix(link).ok()?;
            let whole = !rest.as_os_str().is_empty() || follow;
            whole.then(|| if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) })
        });
        match through {
            Some(through) => {
                let other = (self.resolver)(Path::new("/"), &through.to_string_lossy(), follow)?;
                Ok(Readings { literal: readings.literal, cleaned: Some(other.literal) })
            }
            None => Ok(readings),
        }
    }

    fn hit(&mut self, level: Level, denial: Denial, effect: Option<&Effect>, span: Span) {
        // The first hits are kept; one of the highest level always is.
        let higher = self.hits.iter().all(|hit| hit.level < level);
        if self.hits.len() >= MAX_HITS && !higher {
            return;
        }
        if self.seen.insert((level, denial.what.clone(), span)) {
            let program = effect.and_then(|effect| effect.program.clone());
            let reads = effect.is_some_and(|effect| match &effect.kind {
                EffectKind::File(access, _) => access.only_reads(),
                _ => false,
            });
            self.hits.push(Hit { level, denial, program, reads, span });
        }
    }

    fn touch(&mut self, operation: Operation, path: PathBuf, glob: &[String]) {
        let touch = Touch { operation, path, glob: glob.to_vec() };
        if self.touched.len() < MAX_TOUCHED && self.touches.insert(touch.clone()) {
            self.touched.push(touch);
        }
    }

    fn warn(&mut self, class: Class, what: &str, why: String, effect: Option<&Effect>, span: Span) {
        let next = "it is recorded; name the files that are meant".to_owned();
        self.hit(Level::Warned, Denial { what: what.to_owned(), class, why, next }, effect, span);
    }

    /// The directories that a command may be in.
    fn places(&mut self, effects: &Effects, index: usize) -> Vec<Where> {
        let mut here = vec![Some(self.around.directory.to_path_buf())];
        let Some(directory) = effects.directories.get(index) else { return vec![None] };
        for step in &directory.steps {
            let mut next = Vec::new();
            for place in &here {
                let (there, exists) = self.step(place.as_deref(), &step.to);
                let stays = match step.made {
                    Made::Surely => false,
                    Made::IfPossible => !exists,
                    Made::Perhaps => true,
                };
                next.extend(there);
                if stays {
                    next.push(place.clone());
                }
            }
            next.sort();
            next.dedup();
            if next.len() > MAX_DIRECTORIES {
                next.truncate(MAX_DIRECTORIES);
                next.push(None);
            }
            here = next;
        }
        here
    }

    /// Where a change of directory leads: shells go up by the names that they came by, the kernel
    /// goes up from where links lead. And whether there is a directory.
    fn step(&mut self, from: Option<&Path>, to: &Word) -> (Vec<Where>, bool) {
        let Some(text) = self.literal(to) else { return (vec![None], false) };
        let base = match from {
            Some(base) => base,
            None if text.starts_with('/') => Path::new("/"),
            None => return (vec![None], false),
        };
        let named = clean(&base.join(&text));
        let Ok(readings) = self.resolve(base, &text, true) else { return (vec![None], false) };
        let exists = readings.all().any(|facts| facts.kind == FileKind::Directory);
        let mut places = vec![Some(named.clone())];
        let same = self
            .resolve(Path::new("/"), &named.to_string_lossy(), true)
            .is_ok_and(|other| other.literal.path == readings.literal.path);
        if !same {
            places.push(Some(readings.literal.path));
        }
        (places, exists)
    }

    /// The text of a word that is known, with `~` written out.
    fn literal(&self, word: &Word) -> Option<String> {
        let text = word.text.as_deref().filter(|_| !word.glob)?;
        self.without_tilde(text)
    }

    fn without_tilde(&self, text: &str) -> Option<String> {
        let Some(rest) = text.strip_prefix('~') else { return Some(text.to_owned()) };
        let (who, below) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        match who {
            "" => Some(format!("{}{below}", self.around.home?.display())),
            // Where the shell is.
            "+" => Some(format!(".{below}")),
            // Where it was, or the home of somebody else.
            _ => None,
        }
    }

    fn effect(&mut self, effect: &Effect, here: &[Where]) {
        match &effect.kind {
            EffectKind::File(access, target) => {
                for place in here {
                    self.file(effect, *access, target, place.as_deref());
                }
                if *access == Access::Replace && effect.program.as_deref() == Some("ln") {
                    here.iter().flatten().for_each(|place| self.link(target, place));
                }
            }
            EffectKind::Run { program, arguments } => self.run(effect, program, arguments),
            EffectKind::Opaque(Unknown::Rest) => {
                let denial = Denial {
                    what: String::new(),
                    class: Class::Unknown,
                    why: "the command is too long to be judged to its end".to_owned(),
                    next: "run it in parts, or as a script".to_owned(),
                };
                self.hit(Level::Denied, denial, Some(effect), effect.span);
            }
            EffectKind::Opaque(unknown) => {
                let why = match unknown {
                    Unknown::Program => "which program runs cannot be told",
                    Unknown::Script => "what a shell is given to run cannot be told",
                    _ => "parts of the command cannot be read",
                };
                self.warn(Class::Unknown, "", why.to_owned(), Some(effect), effect.span);
            }
            EffectKind::Code { text: None, .. } => {
                let why = "code is run that is not known".to_owned();
                self.warn(Class::Unknown, "", why, Some(effect), effect.span);
            }
            _ => {}
        }
    }

    /// A link that the command makes: what it does later may go through it.
    fn link(&mut self, target: &Target, here: &Path) {
        let Some(text) = self.literal(&target.word) else { return };
        let at = here.join(&text);
        for source in target.sources.iter().take(MAX_DIRECTORIES) {
            let Some(to) = self.literal(source) else { continue };
            let name = to.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if self.links.len() > MAX_HITS {
                return;
            }
            for link in [at.clone(), at.join(name)] {
                // A relative link starts where it lies; a hard link where it was made.
                let beside = link.parent().unwrap_or(here).join(&to);
                self.links.push((clean(&link), clean(&beside)));
                self.links.push((clean(&link), clean(&here.join(&to))));
            }
        }
    }

    fn file(&mut self, effect: &Effect, access: Access, target: &Target, here: Option<&Path>) {
        if access == Access::WriteTree {
            self.tree(effect, target, here);
            return;
        }
        let operation = operation(access, target);
        if target.word.text.is_none() {
            self.computed(effect, operation, &target.word, here);
        } else if target.word.glob {
            self.glob(effect, operation, &target.word, here);
        } else if let Some(text) = self.literal(&target.word) {
            self.path(effect, operation, target, &text, here);
        } else {
            self.by_name(effect, operation, &target.word);
        }
    }

    /// A path that is known.
    fn path(
        &mut self,
        effect: &Effect,
        operation: Operation,
        target: &Target,
        text: &str,
        here: Option<&Path>,
    ) {
        let base = match here {
            Some(base) => base,
            None if text.starts_with('/') => Path::new("/"),
            None => return self.by_name(effect, operation, &target.word),
        };
        if !target.sources.is_empty()
            && let Ok(readings) = self.resolve(base, text, true)
        {
            let PathFacts { kind, path: directory, .. } = readings.literal;
            // By then it may be a folder.
            if matches!(kind, FileKind::Directory | FileKind::Missing) {
                for source in &target.sources {
                    self.put_into(effect, operation, &directory, source, base);
                }
            }
            if kind == FileKind::Directory {
                return;
            }
        }
        self.judge(effect, operation, base, text);
    }

    fn judge(&mut self, effect: &Effect, operation: Operation, base: &Path, text: &str) {
        match self.resolve(base, text, operation.follows_link()) {
            Ok(readings) => {
                let judged = self.set.judge(operation, &readings, Redirect::Impossible);
                if let Some(denial) = judged.denial() {
                    self.hit(Level::Denied, denial.clone(), Some(effect), effect.span);
                }
                for facts in readings.all() {
                    self.touch(operation, facts.path.clone(), &[]);
                }
                let makes = matches!(operation, Operation::Write | Operation::Replace);
                if makes && self.made.len() < MAX_HITS {
                    self.made.extend(readings.all().map(|facts| facts.path.clone()));
                }
            }
            Err(reason) => {
                let level = if operation.only_reads() { Level::Warned } else { Level::Denied };
                self.touch(operation, base.join(text), &[]);
                self.hit(level, Denial::unresolved(text, &reason), Some(effect), effect.span);
            }
        }
    }

    /// A file that is put into a directory under its own name.
    fn put_into(
        &mut self,
        effect: &Effect,
        operation: Operation,
        directory: &Path,
        source: &Word,
        base: &Path,
    ) {
        match self.literal(source) {
            Some(text) => {
                let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                if !matches!(name, "" | "." | "..") {
                    let name = name.to_owned();
                    self.judge(effect, operation, directory, &name);
                }
            }
            None => {
                if source.text.is_none() {
                    self.unknown_into(effect, directory);
                }
                self.glob_into_directory(effect, operation, directory, source, base);
            }
        }
    }

    /// Files whose names cannot be told are put where agents look for settings.
    fn unknown_into(&mut self, effect: &Effect, directory: &Path) {
        let there = self.resolve(Path::new("/"), &directory.to_string_lossy(), true);
        let settings = there.ok().and_then(|there| self.set.settings_below(&there.literal));
        if let Some((class, shown)) = settings {
            let denial = Denial {
                what: shown.clone(),
                class,
                why: format!(
                    "files are put into `{}` whose names cannot be told, and `{shown}` may be among them",
                    directory.display()
                ),
                next: "name the files".to_owned(),
            };
            self.hit(Level::Denied, denial, Some(effect), effect.span);
        }
    }

    /// Files below a directory are written: those that the sources have, or nobody knows which.
    fn tree(&mut self, effect: &Effect, target: &Target, here: Option<&Path>) {
        let Some(text) = self.literal(&target.word) else {
            let why = "files are written below a directory that cannot be told".to_owned();
            return self.warn(Class::Unknown, "", why, Some(effect), effect.span);
        };
        let base = here.unwrap_or(Path::new("/"));
        let readings = match self.resolve(base, &text, true) {
            Ok(readings) => readings,
            Err(reason) => {
                let denial = Denial::unresolved(&text, &reason);
                return self.hit(Level::Denied, denial, Some(effect), effect.span);
            }
        };
        // The directory itself may be one of those that nothing may be written to.
        self.judge(effect, Operation::Write, base, &text);
        let directory = readings.literal;
        if target.sources.is_empty() {
            self.unknown_into(effect, &directory.path.clone());
            if let Some((class, shown)) = self.set.below(&directory).filter(|_| directory.exists())
            {
                let why = format!(
                    "files below `{}` are written, `{shown}` may be among them",
                    directory.path.display()
                );
                self.warn(class, &shown, why, Some(effect), effect.span);
            }
            return;
        }
        for source in &target.sources {
            self.tree_from(effect, &directory, source, base);
        }
    }

    /// Whether a file is there by the time the command needs it.
    fn will_exist(&self, readings: &Readings) -> bool {
        readings.literal.exists() || readings.all().any(|facts| self.made.contains(&facts.path))
    }

    /// Whether a source has a file that would come to lie on a protected one.
    fn tree_from(&mut self, effect: &Effect, directory: &PathFacts, source: &Word, base: &Path) {
        let Some(text) = self.literal(source) else {
            return self.glob_into_directory(
                effect,
                Operation::Write,
                &directory.path,
                source,
                base,
            );
        };
        let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
        let protected: Vec<(PathBuf, Class, String)> =
            self.set.paths().map(|(path, class, shown)| (path, class, shown.to_owned())).collect();
        for (path, ..) in protected {
            // The source comes to lie in the directory, or in its place.
            for root in [directory.path.join(&name), directory.path.clone()] {
                let Ok(below) = path.strip_prefix(&root) else { continue };
                let inside = format!("{}/{}", text.trim_end_matches('/'), below.display());
                let there = self.resolve(base, &inside, true);
                if there.is_ok_and(|there| self.will_exist(&there)) {
                    self.judge(effect, Operation::Write, Path::new("/"), &path.to_string_lossy());
                }
            }
        }
    }
}

/// A path with `.` and `x/..` taken out of its text.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

fn operation(access: Access, target: &Target) -> Operation {
    match access {
        Access::Read => Operation::Read,
        Access::ReadTree => Operation::ReadTree,
        Access::List => Operation::List,
        Access::Delete => Operation::Delete,
        Access::RenameAway => Operation::RenameAway,
        Access::Replace => Operation::Replace,
        Access::HardLink => Operation::HardLink,
        Access::ChangeMode | Access::ChangeOwner if target.tree => Operation::ChangeTreeAttributes,
        Access::ChangeMode | Access::ChangeOwner => Operation::ChangeAttributes,
        _ => Operation::Write,
    }
}

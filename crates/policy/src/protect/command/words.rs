//! Names and patterns where no file can be resolved: what they may be.

use std::path::Path;

use wardkeep_detect::effects::{Effect, Mention};
use wardkeep_detect::shell::{Word, pattern_matches};

use super::super::set::{Class, Operation};
use super::{Judge, STATE_NAMES};
use wardkeep_detect::names::fold_name;

impl Judge<'_, '_> {
    /// A path in a directory that is not known: only its name can be compared.
    pub(super) fn by_name(&mut self, effect: &Effect, operation: Operation, word: &Word) {
        let Some(text) = word.text.as_deref() else { return };
        let folded = fold_name(text.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        let named = self.set.named(&folded).map(|(class, shown)| (class, shown.to_owned()));
        if let Some((class, shown)) = named.filter(|_| !operation.only_reads()) {
            let why = format!("`{text}` may be `{shown}`: in which directory cannot be told");
            self.warn(class, &shown, why, Some(effect), effect.span);
        }
    }

    /// A name that is computed: it may be a protected one.
    pub(super) fn computed(
        &mut self,
        effect: &Effect,
        operation: Operation,
        word: &Word,
        here: Option<&Path>,
    ) {
        let pattern = word.pattern.to_lowercase();
        let told = pattern.chars().any(|sign| !matches!(sign, '*' | '?' | '/' | '.'));
        if !told {
            if !operation.only_reads() {
                let why = "a file is changed whose name cannot be told".to_owned();
                self.warn(Class::Unknown, "", why, Some(effect), effect.span);
            }
            return;
        }
        let mut found = None;
        for (path, class, shown) in self.set.paths() {
            if operation.only_reads() && class != Class::State {
                continue;
            }
            let mut spellings = vec![path.to_string_lossy().to_lowercase()];
            if let Some(below) = here.and_then(|here| path.strip_prefix(here).ok()) {
                let below = below.to_string_lossy().to_lowercase();
                spellings.push(format!("./{below}"));
                spellings.push(below);
            }
            if class == Class::State {
                for name in STATE_NAMES {
                    spellings.push(path.join(name).to_string_lossy().to_lowercase());
                }
            } else if let Some(name) = path.file_name().filter(|_| class != Class::AgentSettings) {
                spellings.push(name.to_string_lossy().to_lowercase());
            }
            if spellings.iter().any(|spelling| pattern_matches(&pattern, spelling)) {
                found = Some((class, shown.to_owned()));
                break;
            }
        }
        // The directory is computed, the name in it is not: `/proc/$$/cwd/LocalGPT.md`.
        let last = fold_name(pattern.rsplit('/').next().unwrap_or_default());
        let found = found.or_else(|| {
            let (class, shown) = self.set.named(&last).filter(|_| !operation.only_reads())?;
            Some((class, shown.to_owned()))
        });
        if let Some((class, shown)) = found {
            let why = format!("a computed name may be `{shown}`");
            self.warn(class, &shown, why, Some(effect), effect.span);
        }
    }

    /// A name that stands in the command without a known effect.
    pub(super) fn mention(&mut self, mention: &Mention) {
        let found = match mention.word.text.as_deref() {
            Some(text) if !mention.word.glob => self.names(text),
            _ => {
                let pattern = mention.word.pattern.to_lowercase();
                let last = pattern.rsplit('/').next().unwrap_or_default();
                // A pattern of which little is known names everything, and so nothing.
                let telling = last.chars().filter(|sign| sign.is_alphanumeric()).count() >= 3;
                let names = self.set.paths().filter(|(_, class, _)| *class != Class::AgentSettings);
                let mut named = names.filter_map(|(path, class, shown)| {
                    let name = path.file_name()?.to_string_lossy().to_lowercase();
                    (telling && pattern_matches(last, &name)).then(|| (class, shown.to_owned()))
                });
                named.next()
            }
        };
        if let Some((class, shown)) = found {
            let why = format!("the command names `{shown}`; what it does with it cannot be told");
            self.warn(class, &shown, why, None, mention.span);
        }
    }

    fn names(&self, text: &str) -> Option<(Class, String)> {
        let folded = fold_name(text.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        if let Some((class, shown)) = self.set.named(&folded) {
            return Some((class, shown.to_owned()));
        }
        let written = self.without_tilde(text)?;
        let state = self.set.state();
        let inside = Path::new(&written).starts_with(state)
            && !Path::new(&written).starts_with(self.set.workspace());
        (inside || STATE_NAMES.contains(&folded.as_str()))
            .then(|| (Class::State, "the state directory".to_owned()))
    }
}

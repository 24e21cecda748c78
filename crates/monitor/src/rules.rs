//! The rules in force, as the signed set has them.

use std::collections::BTreeMap;

use wardkeep_guard::rules::{RuleFile, Rules};
use wardkeep_policy::signed_set::{Change, Kind, SetState, SetVerification};

/// The owner's rules, in the state directory.
pub const RULES_FILE: &str = "rules.cedar";
/// More of them.
const RULES_FOLDER: &str = "rules/";
const ENDING: &str = ".cedar";

/// Whether a file of the signed set holds rules.
#[must_use]
pub fn is_rules(name: &str) -> bool {
    name == RULES_FILE || (name.starts_with(RULES_FOLDER) && name.ends_with(ENDING))
}

/// The built-in rules and the owner's. What is there is used, signed or not: it can only tighten.
/// Where a rule that was signed may be missing, every action is asked about besides.
#[must_use]
pub fn in_force(set: &SetVerification) -> Rules {
    let rules = of_files(&set.files);
    match lost(set) {
        Some(why) => rules.changed(&why),
        None => rules,
    }
}

/// The built-in rules and those of some files, by their names in the signed set.
#[must_use]
pub fn of_files(files: &BTreeMap<String, Vec<u8>>) -> Rules {
    let own: Vec<RuleFile<'_>> = files
        .iter()
        .filter(|(name, _)| is_rules(name))
        .map(|(name, text)| RuleFile { name, text })
        .collect();
    Rules::new(&own)
}

/// Why a rule that the owner signed may be missing.
fn lost(set: &SetVerification) -> Option<String> {
    match &set.state {
        SetState::Valid | SetState::Unsigned => None,
        SetState::Changed(changes) => changes.iter().find(|one| loses_rules(one)).map(told),
        SetState::Vanished => Some("their signature is gone".to_owned()),
        SetState::Rollback { .. } => Some("their signature is an older one".to_owned()),
        SetState::Corrupted(why) => Some(format!("their signature cannot be used: {why}")),
        SetState::NoKey(why) => (set.memory.last_counter > 0).then(|| why.clone()),
    }
}

fn loses_rules(change: &Change) -> bool {
    // The folder by itself, or all of the state directory, is named where it cannot be read.
    // A config blocks hosts and names files and texts that are denied: without it more is allowed.
    let concerned = is_rules(&change.name)
        || matches!(change.name.as_str(), "rules" | "." | wardkeep_policy::store::CONFIG_FILE);
    concerned && change.kind != Kind::Added
}

fn told(change: &Change) -> String {
    let how = match change.kind {
        Kind::Modified => "was changed",
        Kind::Removed => "was removed",
        Kind::Added => "was added",
        Kind::Unreadable => "cannot be read",
    };
    format!("{} {how}", change.name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wardkeep_evidence::record::Principal;
    use wardkeep_evidence::time::Timestamp;
    use wardkeep_guard::facts::Facts;
    use wardkeep_guard::surface::{Act, Surface};
    use wardkeep_guard::verdict::Verdict;
    use wardkeep_policy::manifest::Signer;
    use wardkeep_policy::sign::{Presence, Request};
    use wardkeep_policy::signed_set::SetDraft;
    use wardkeep_policy::store::PolicyStore;

    use super::*;

    const RULE: &str = "@id(\"no-bash\") forbid (principal, action == Action::\"call\", resource) \
                        when { context.subject == \"Bash\" };";

    /// What a call of Bash gets, and what a message gets.
    fn decided(store: &PolicyStore) -> [(Verdict, String); 2] {
        let rules = in_force(&store.settings().set);
        let judge = |act, subject: &str| {
            let facts = Facts::new(Principal::User, Surface::ConversationIO, act, subject);
            let judged = rules.judge(&facts);
            (judged.verdict(), judged.rule().into_owned())
        };
        [judge(Act::Call, "Bash"), judge(Act::Receive, "hello")]
    }

    fn denied() -> (Verdict, String) {
        (Verdict::Deny, "own:no-bash".to_owned())
    }

    fn passed(rule: &str) -> (Verdict, String) {
        (Verdict::Allow, rule.to_owned())
    }

    #[test]
    fn what_an_agent_does_to_signed_rules_loosens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let owner = rustix::process::getuid().as_raw();
        let store = PolicyStore::new(state, owner);
        let changed = (Verdict::Ask, "rules-ask-changed".to_owned());
        let broken = (Verdict::Ask, "rules-ask-broken".to_owned());
        // No state at all, then a key.
        assert_eq!(decided(&store), [passed("tool-allow-call"), passed("cio-allow-clean")]);
        store.create_key(*b"0123456789abcdefFEDCBA9876543210").unwrap();
        // Never signed: it counts, for it can only tighten.
        fs::write(state.join(RULES_FILE), RULE).unwrap();
        assert_eq!(decided(&store), [denied(), passed("cio-allow-clean")]);
        let now = Timestamp::from_unix(1_800_000_000).unwrap();
        let (presence, signer) = (Presence::Yes, Signer::Cli);
        let request = Request { presence, confined: false, signer, now };
        store.sign_set(&SetDraft::read(state).unwrap(), &request).unwrap();
        assert_eq!(decided(&store), [denied(), passed("cio-allow-clean")]);
        // A rule is taken out; the file goes; it becomes nonsense; it becomes a permit.
        fs::write(state.join(RULES_FILE), "// nothing").unwrap();
        assert_eq!(decided(&store), [changed.clone(), changed.clone()]);
        fs::remove_file(state.join(RULES_FILE)).unwrap();
        assert_eq!(decided(&store), [changed.clone(), changed.clone()]);
        for text in ["forbid (", "permit (principal, action, resource);"] {
            fs::write(state.join(RULES_FILE), text).unwrap();
            assert_eq!(decided(&store), [broken.clone(), broken.clone()]);
        }
        // A link in its place is not followed.
        fs::remove_file(state.join(RULES_FILE)).unwrap();
        std::os::unix::fs::symlink("/dev/null", state.join(RULES_FILE)).unwrap();
        assert_eq!(decided(&store)[1], changed);
        fs::remove_file(state.join(RULES_FILE)).unwrap();
        fs::write(state.join(RULES_FILE), RULE).unwrap();
        assert_eq!(decided(&store), [denied(), passed("cio-allow-clean")]);
        // A file that was added can only tighten.
        fs::create_dir(state.join("rules")).unwrap();
        fs::write(
            state.join("rules/more.cedar"),
            "@id(\"b\") forbid (principal, action, resource);",
        )
        .unwrap();
        assert_eq!(decided(&store)[1].0, Verdict::Deny);
        fs::remove_file(state.join("rules/more.cedar")).unwrap();
        // The signature goes.
        fs::remove_file(store.signed_path()).unwrap();
        assert_eq!(decided(&store), [denied(), changed]);
    }
}

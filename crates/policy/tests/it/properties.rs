//! Parsers and formats, by property.

use proptest::prelude::*;
use wardkeep_policy::audit::{Action, Chain, Event, Line, Source, append, parse_entry, read};
use wardkeep_policy::config::Config;
use wardkeep_policy::hash::ContentHash;
use wardkeep_policy::key::DeviceKey;
use wardkeep_policy::manifest::{Manifest, Signer};
use wardkeep_policy::workspace::WorkspaceId;

use crate::lab::{folder, now, random32};

fn any_action() -> impl Strategy<Value = Action> {
    prop::sample::select(Action::ALL.to_vec())
}

fn any_event() -> impl Strategy<Value = Event> {
    (any_action(), any::<Option<[u8; 32]>>(), ".{0,30}", prop::option::of(".{1,60}")).prop_map(
        |(action, content, tool, detail)| Event {
            action,
            content: content.map(ContentHash),
            source: Source::tool(&tool),
            detail,
        },
    )
}

proptest! {
    #[test]
    fn manifests_come_back_as_they_were(
        policy in prop::collection::vec(any::<u8>(), 0..200),
        id in any::<[u8; 16]>(),
        counter in 1u64..,
        bound in any::<bool>(),
    ) {
        let folder = folder();
        let key = DeviceKey::create(&folder.path().join("key"), random32(1)).unwrap();
        let id = WorkspaceId::from_random(id);
        let mut manifest = Manifest::sign(&key, &policy, Signer::Gui, now(), id, counter);
        if !bound {
            manifest.binding = None;
        }
        let parsed = Manifest::parse(&manifest.to_bytes()).unwrap();
        prop_assert_eq!(&parsed, &manifest);
        prop_assert!(parsed.signs(&key, &policy) && parsed.is_bound(&key));
    }

    #[test]
    fn any_bytes_are_a_manifest_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Manifest::parse(&bytes);
        let _ = parse_entry(&bytes);
        let _ = Config::parse(&bytes);
    }

    #[test]
    fn a_changed_byte_of_a_manifest_is_noticed(at in 0usize..420, to in any::<u8>()) {
        let folder = folder();
        let key = DeviceKey::create(&folder.path().join("key"), random32(1)).unwrap();
        let id = WorkspaceId::from_random([9; 16]);
        let manifest = Manifest::sign(&key, b"policy", Signer::Cli, now(), id, 7);
        let mut bytes = manifest.to_bytes();
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(parsed) = Manifest::parse(&bytes) {
            let holds = parsed.content == ContentHash::of(b"policy")
                && parsed.signs(&key, b"policy")
                && parsed.is_bound(&key);
            prop_assert!(!holds || parsed == manifest, "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn events_come_back_as_they_were(events in prop::collection::vec(any_event(), 1..6)) {
        let folder = folder();
        let path = folder.path().join("log");
        for event in &events {
            append(&path, event, now()).unwrap();
        }
        let report = read(&path, None).unwrap();
        prop_assert_eq!(report.summary.chain, Chain::Intact);
        prop_assert_eq!(report.rows.len(), events.len());
        for (row, event) in report.rows.iter().zip(&events) {
            let Line::Entry(entry) = &row.line else { panic!() };
            prop_assert_eq!(&entry.action, &event.action);
            prop_assert_eq!(&entry.source, &event.source);
            prop_assert_eq!(&entry.detail, &event.detail);
            prop_assert_eq!(&entry.content, &event.content.map(|hash| hash.to_string()));
        }
    }

    /// Whatever stands in the log, an entry can be appended, hangs on what was there, and nothing
    /// that was there is changed.
    #[test]
    fn any_bytes_can_be_appended_to(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = folder();
        let path = folder.path().join("log");
        std::fs::write(&path, &bytes).unwrap();
        append(&path, &Event::new(Action::Missing, Source::Cli), now()).unwrap();
        prop_assert!(std::fs::read(&path).unwrap().starts_with(&bytes));
        let report = read(&path, None).unwrap();
        let last = report.rows.last().unwrap();
        prop_assert_eq!(last.link, wardkeep_policy::audit::Link::Valid);
    }
}

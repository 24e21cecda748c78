//! What came back from an address.

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::RecordType;

use super::read;
use crate::index::{Facts, Filter, Index, LookError};
use crate::store::StoreReader;

/// Results that are looked at, the newest first.
const LOOKED: u32 = 20_000;

/// The newest results that came from an address, the newest first and at most `limit`, and how many more
/// there are; an address without a path stands for its host.
///
/// # Errors
/// When the index is wrong or cannot be read.
pub fn results_from(
    reader: &StoreReader,
    index: &Index,
    address: &str,
    limit: usize,
) -> Result<(Vec<RecordId>, u64), LookError> {
    let wanted = place_of(address);
    let host = host_of(&wanted).filter(|_| path_of(&wanted).is_empty());
    let filter = Filter { kind: Some(RecordType::ToolResult), ..Filter::default() };
    let (mut found, mut more) = (Vec::new(), 0);
    for location in index.newest(&filter, LOOKED)? {
        let result = read(reader, location, |line| {
            let place = Facts::of(&line.record).place()?;
            let same = match host {
                Some(host) => host_of(place).is_some_and(|of| of.eq_ignore_ascii_case(host)),
                None => place == wanted,
            };
            (same && line.record.kind == RecordType::ToolResult).then_some(line.record.id)
        });
        match result {
            Some(id) if found.len() < limit => found.push(id),
            Some(_) => more += 1,
            None => {}
        }
    }
    Ok((found, more))
}

/// An address or a path without what may hold a secret by its nature: who asks is not part of where.
pub(crate) fn place_of(place: &str) -> String {
    let end = place.find(['?', '#']).filter(|_| place.contains("://")).unwrap_or(place.len());
    let place = &place[..end];
    let host = place.find("://").map_or(0, |at| at + 3);
    let path = place[host..].find('/').map_or(place.len(), |at| host + at);
    let host = place[host..path].rfind('@').map_or(host, |at| host + at + 1);
    let scheme = place.find("://").map_or("", |at| &place[..at + 3]);
    format!("{scheme}{}", &place[host..])
}

fn host_of(place: &str) -> Option<&str> {
    let (_, rest) = place.split_once("://")?;
    rest.split('/').next().filter(|host| !host.is_empty())
}

fn path_of(place: &str) -> &str {
    let rest = place.split_once("://").map_or(place, |(_, rest)| rest);
    rest.split_once('/').map_or("", |(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_without_who_asks_and_a_host_without_its_path() {
        for (given, place, host, path) in [
            (
                "https://me:secret@a.example/x/y?key=1#z",
                "https://a.example/x/y",
                "a.example",
                "x/y",
            ),
            ("https://a.example", "https://a.example", "a.example", ""),
            ("https://a.example/?q=1", "https://a.example/", "a.example", ""),
        ] {
            let found = place_of(given);
            assert_eq!(
                (found.as_str(), host_of(&found), path_of(&found)),
                (place, Some(host), path)
            );
        }
        assert_eq!(
            (place_of("/w/what?.md").as_str(), host_of("/w/what?.md")),
            ("/w/what?.md", None)
        );
    }
}

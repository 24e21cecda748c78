//! Any bytes as a line of `records.jsonl` and of `audit-log.jsonl`.

#![no_main]

use wardkeep_evidence::check::Check;
use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::json::parse;
use wardkeep_evidence::record::Record;
use wardkeep_evidence::verify::{check_entry_line, check_record_line};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(value) = parse(data) else { return };
    let mut scratch = Vec::new();
    let (mut parents, mut defects) = (Vec::new(), 0);
    let line = check_record_line(value.clone(), 1, &mut scratch, &mut parents, &mut |_, _, _| {
        defects += 1;
    });
    assert!(line.usable || defects > 0, "nothing without a reason");
    assert_eq!(line.parents, parents.len());

    let mut strict = Vec::new();
    let record = Record::from_value(value.clone(), &mut |check, expected, found| {
        assert!(!expected.is_empty());
        let _ = found;
        if check != Check::RecordTypeExtended {
            strict.push(check);
        }
    });
    if let Some(record) = &record
        && strict.is_empty()
    {
        let mut text = Vec::new();
        record.write_line(&mut text);
        let read = parse(&text).expect("a written record is JSON");
        let read = Record::from_value(read, &mut |check, _, found| {
            assert_eq!(check, Check::RecordTypeExtended, "a written record is sound: {found}");
        });
        let read = read.expect("a written record is a record");
        assert_eq!(read.id, record.id);
        assert_eq!(read.compute_id(&mut scratch), record.compute_id(&mut Vec::new()));
        let mut again = Vec::new();
        read.write_line(&mut again);
        assert_eq!(again, text, "writing is a fixed point");
        assert_eq!(record.clone().into_owned(), *record);
    }

    let mut defects = 0;
    let entry = Entry::from_value(value.clone(), &mut |_, _, _| defects += 1);
    assert!(entry.is_some() || defects > 0, "nothing without a reason");
    if let Some(entry) = entry {
        let mut text = Vec::new();
        entry.write_line(&mut text);
        let read = parse(&text).expect("a written entry is JSON");
        assert_eq!(Entry::from_value(read, &mut |_, _, _| {}), Some(entry));
    }
    let _ = check_entry_line(value, 1, &mut scratch, None, &mut |_, _, _| {});
});

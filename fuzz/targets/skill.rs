//! A skill of one file, of every kind in turn: the first byte says which.

#![no_main]

use wardkeep_skill::{Options, Tree, Verdict, verify};

const PATHS: [&str; 18] = [
    "SKILL.md", "a.sh", "a.py", "a.js", "a.ts", "package.json", "a.yaml", "a.txt", "a.zip", "a.tar", "a.gz", "a.html", "a.ps1", "a", "a.rb", "a.php", "Makefile", "a.ipynb",
];

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    let path = PATHS[usize::from(*kind) % PATHS.len()];
    let tree = Tree::of([(path, bytes)]);
    let report = verify(&tree, &Options::default());
    assert!(report.complete || report.verdict >= Verdict::Ask);
    let worst = report.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Allow);
    assert!(report.verdict >= worst);
    let text = String::from_utf8_lossy(bytes);
    for finding in report.findings.iter().filter(|finding| finding.path == path) {
        assert!(text.get(finding.start..finding.end).is_some(), "{finding:?}");
        assert!(wardkeep_skill::rule(finding.rule).is_some(), "{finding:?}");
    }
});

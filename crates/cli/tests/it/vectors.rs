//! The exit codes of v0.1's own program over the shared vectors.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::shared::{run, skip};

#[test]
fn lenient_ends_with_the_code_of_v01() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/aegx");
    let Ok(list) = fs::read(folder.join("MANIFEST.json")) else {
        skip("the shared vectors beside the checkout", "lenient_ends_with_the_code_of_v01");
        return;
    };
    let list: Vec<Value> = serde_json::from_slice(&list).unwrap();
    let mut seen = 0;
    for row in list.iter().filter(|row| row["format"] == "F1") {
        let path = row["path"].as_str().unwrap();
        let ran = run(&folder, &["aegx", "verify", "--lenient", path]);
        assert_eq!(Some(i64::from(ran.code)), row["reference_exit"].as_i64(), "{path} {ran:?}");
        let verdict = if ran.code == 0 { "Verification: PASS\n" } else { "Verification: FAIL\n" };
        assert!(ran.stdout.starts_with(verdict), "{path} {ran:?}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

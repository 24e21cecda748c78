//! The command lines in `tests/cmd`, one behaviour a file.
//!
//! `TRYCMD=overwrite cargo test -p wardkeep cases` writes what is printed now; read it before you
//! keep it.

use crate::shared::{BINARY, link};

#[test]
fn cases() {
    let links = tempfile::tempdir().unwrap();
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("wardkeep", std::path::Path::new(BINARY))
        .register_bin("aegx", link(links.path(), "aegx"))
        .case("tests/cmd/*.trycmd");
    for (variable, value) in [
        ("COLUMNS", "100"),
        ("CLICOLOR", "0"),
        ("WARDKEEP_STATE_DIR", "/nowhere"),
        ("WARDKEEP_APPEND_ONLY", "0"),
    ] {
        cases.env(variable, value);
    }
    cases.run();
}

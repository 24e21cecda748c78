//! Speed of facts about files and requests: `cargo bench -p wardkeep-guard --bench facts`.

use std::path::Path;

use divan::{Bencher, black_box};
use wardkeep_guard::files::{SensitiveFiles, sensitivity};
use wardkeep_guard::network::{Egress, facts_of};

fn main() {
    divan::main();
}

#[divan::bench(args = [
    "https://docs.rs/url/latest/url/",
    "https://www.example.org/search?q=rust+url+crate&hl=en&page=2",
    "HTTPS://user@WebHook.site.:8443/a?b=c",
    "http://2852039166/latest/meta-data/",
    "https://bücher.example/x",
])]
fn network(bencher: Bencher<'_, '_>, url: &str) {
    let egress = Egress::default();
    bencher.bench(|| facts_of(black_box(url), "GET", 0, &egress));
}

#[divan::bench(args = [
    "/home/user/projects/shop/src/checkout/password_reset.rs",
    "/home/user/.ssh/id_ed25519",
    "/home/user/projects/ｓｈｏｐ/.env",
])]
fn file(bencher: Bencher<'_, '_>, path: &str) {
    let files = SensitiveFiles::default();
    let home = Path::new("/home/user");
    bencher.bench(|| sensitivity(black_box(Path::new(path)), Some(home), &files));
}

#[divan::bench]
fn built_in_lists() -> SensitiveFiles {
    SensitiveFiles::default()
}

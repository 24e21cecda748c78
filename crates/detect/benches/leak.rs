//! Speed and hold-back of the output guard: `cargo bench -p wardkeep-detect --bench leak`.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::hint::black_box;
use std::time::Instant;

use wardkeep_detect::leak::{OutputGuard, PromptProfile, StreamGuard};

const PROSE: &str = "The harbour was quiet in the early morning, and the fishermen had already left for the \
northern banks. A thin mist hung over the water, so that the far shore could hardly be made out. Mrs. Alder \
opened the bakery at six, as she did every day, and set the first loaves in the window. By noon the market \
would be full of people from the villages nearby, who came to sell apples, wool and honey. I think my neighbours \
are right: the barometer has been falling since Tuesday, and here is what you should do about it.\n\n";

const CODE: &str = "```rust\nfn visit(&mut self, node: &Node, depth: usize) -> Result<(), Error> {\n    \
for (index, child) in node.children.iter().enumerate() {\n        self.path.push(index);\n        \
self.visit(child, depth + 1)?;\n        self.path.pop();\n    }\n    Ok(())\n}\n```\n\nThis walks the tree.\n\n";

const LIST: &str = "## What to bring\n\n- **Boots** (waterproof, size 42), see [the shop](https://shop.example/boots)\n\
- 2 litres of water, 350 g of bread\n- A map 1:25,000; the path is *not* marked\n\nPrices in 2019: 35 €, 40 €.\n\n";

fn main() {
    let prompt: String = (0..120)
        .map(|at| format!("Rule {at}: when the ship of line {at} asks for berth {}, tell the pilot of quay {}. ", at * 7 % 31, at * 13 % 17))
        .collect();
    let built = Instant::now();
    let profile = black_box(PromptProfile::of(&prompt));
    println!("profile of {} bytes: {:?}", prompt.len(), built.elapsed());
    let built = Instant::now();
    let known = OutputGuard::for_prompt(&profile);
    println!("guard for it: {:?}", built.elapsed());
    let built = Instant::now();
    let bare = OutputGuard::new();
    println!("guard without a prompt: {:?}", built.elapsed());
    println!("{:<28} {:>9} {:>10} {:>8} {:>8}", "text", "bytes", "p50 us", "MB/s", "ns/B");
    for (name, guard) in [("no prompt", &bare), ("prompt", &known)] {
        for (kind, text) in [("prose", PROSE), ("code", CODE), ("lists", LIST)] {
            for size in [1 << 10, 64 << 10, 1 << 20] {
                let text = text.repeat(size / text.len() + 1);
                measure(
                    &format!("{name}, {kind}"),
                    &text[..text.floor_char_boundary(size)],
                    |text| {
                        black_box(guard.check(text));
                    },
                );
            }
        }
    }
    let mega = PROSE.repeat((1 << 20) / PROSE.len());
    for piece in [1, 4, 64, 4096] {
        measure(&format!("prompt, prose by {piece}"), &mega, |text| {
            let mut stream = StreamGuard::new(&known);
            for at in (0..text.len()).step_by(piece) {
                black_box(stream.feed(&text[at..(at + piece).min(text.len())]));
            }
            black_box(stream.finish());
        });
    }
    println!("{:<28} {:>9} {:>9} {:>9}", "held, pieces of 4 bytes", "mean", "p99", "most");
    for (name, guard) in [("no prompt", &bare), ("prompt", &known)] {
        for (kind, text) in [("prose", PROSE), ("code", CODE), ("lists", LIST)] {
            hold(&format!("{name}, {kind}"), guard, &text.repeat(40));
        }
    }
}

fn measure(name: &str, text: &str, check: impl Fn(&str)) {
    let rounds = ((16 << 20) / text.len()).clamp(5, 3000);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            check(text);
            began.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let bytes = text.len() as f64;
    println!(
        "{name:<28} {bytes:>9} {:>10.2} {:>8.0} {:>8.2}",
        median * 1e6,
        bytes / 1e6 / median,
        median * 1e9 / bytes
    );
}

fn hold(name: &str, guard: &OutputGuard, text: &str) {
    let mut stream = StreamGuard::new(guard);
    let mut held = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let next = text.ceil_char_boundary((at + 4).min(text.len()));
        black_box(stream.feed(&text[at..next]));
        at = next;
        held.push(stream.held());
    }
    held.sort_unstable();
    let mean = held.iter().sum::<usize>() / held.len();
    println!("{name:<28} {mean:>9} {:>9} {:>9}", held[held.len() * 99 / 100], held[held.len() - 1]);
}

//! What would raise a mark.

use super::{Anchors, Asks, Confined, Evidence, Facts, Files, Keeping, Part, Policy, Skills, Step};

/// Something that costs points: which part, how much of it in shares, and what to do.
struct Gap {
    part: &'static str,
    shares: usize,
    what: String,
    command: String,
    broken: bool,
}

impl Gap {
    fn new(part: &'static str, what: impl Into<String>, command: impl Into<String>) -> Self {
        Self { part, shares: 1, what: what.into(), command: command.into(), broken: false }
    }

    fn broken(self) -> Self {
        Self { broken: true, ..self }
    }
}

/// What to do, the broken first, then what gains most. What a step gains is its part of what is missing,
/// rounded so that all of them together gain no more than that.
pub(super) fn steps(facts: &Facts, parts: &[Part]) -> Vec<Step> {
    let mut gaps = Vec::new();
    of_agents(facts, &mut gaps);
    of_workspaces(facts, &mut gaps);
    of_evidence(facts, &mut gaps);
    let missing = |name: &str| {
        let part = parts.iter().find(|part| part.name == name);
        part.map_or(0, |part| part.most - part.points)
    };
    let shares = |name: &str| -> usize {
        gaps.iter().filter(|gap| gap.part == name).map(|gap| gap.shares).sum()
    };
    let mut steps: Vec<Step> = gaps
        .iter()
        .map(|gap| {
            let gains = super::share(missing(gap.part), gap.shares, shares(gap.part));
            let Gap { what, command, broken, .. } = gap;
            Step { what: what.clone(), command: command.clone(), gains, broken: *broken }
        })
        .collect();
    // Stable: what is equal stays in the order above.
    steps.sort_by_key(|step| (!step.broken, std::cmp::Reverse(step.gains)));
    steps
}

fn of_agents(facts: &Facts, gaps: &mut Vec<Gap>) {
    const ASK: &str = "agents ask before they act";
    const CONFINED: &str = "agents run confined";
    if facts.agents.is_empty() {
        gaps.push(Gap::new(ASK, "no agent asks wardkeep", "wardkeep install AGENT"));
        gaps.push(Gap::new(CONFINED, "no agent was seen confined", "wardkeep run -- AGENT"));
    }
    for agent in &facts.agents {
        let name = &agent.name;
        let install = format!("wardkeep install {name}");
        match &agent.asks {
            Asks::Yes => {}
            Asks::Unseen => {
                let what = format!("whether {name} asks was not looked at");
                gaps.push(Gap::new(ASK, what, format!("wardkeep doctor {name}")));
            }
            Asks::No => {
                gaps.push(Gap::new(ASK, format!("{name} does not ask wardkeep"), install));
            }
            Asks::Untrusted { program: true } => {
                let what = format!("{name} does not trust the hooks of wardkeep yet");
                gaps.push(Gap::new(ASK, what, install));
            }
            // Nobody but the agent itself can be told.
            Asks::Untrusted { program: false } => {
                let what = format!(
                    "{name} does not trust the hooks of wardkeep yet: start it, type `/hooks`, and \
                     trust them"
                );
                gaps.push(Gap::new(ASK, what, agent.program.clone()));
            }
            Asks::SwitchedOff(why) => {
                let what = format!("{name} does not ask wardkeep any more: {why}");
                gaps.push(Gap::new(ASK, what, install).broken());
            }
        }
        let (what, shares) = match agent.confined {
            Confined::Fully => continue,
            Confined::Partly => ("was last seen only partly confined", 1),
            Confined::No => ("was last seen with nothing that confines it", 2),
            Confined::Unseen => ("was not seen confined", 2),
        };
        let command = format!("wardkeep run -- {}", agent.program);
        gaps.push(Gap { shares, ..Gap::new(CONFINED, format!("{name} {what}"), command) });
    }
}

fn of_workspaces(facts: &Facts, gaps: &mut Vec<Gap>) {
    const KEPT: &str = "files are kept";
    const OWNED: &str = "files belong to another user";
    const APPROVED: &str = "files are as approved";
    const SIGNED: &str = "policy is signed";
    if facts.workspaces.is_empty() {
        let init = "wardkeep init";
        gaps.push(Gap::new(KEPT, "no workspace is set up", init));
        gaps.push(Gap::new(OWNED, "no workspace has an owner of its own", "sudo wardkeep init"));
        gaps.push(Gap::new(APPROVED, "no files are approved", init));
        gaps.push(Gap::new(SIGNED, "no policy is signed", "wardkeep md sign"));
    }
    for place in &facts.workspaces {
        let path = &place.path;
        let at = |words: &str| format!("wardkeep {words} {}", quoted(path));
        if place.keeping == Keeping::None {
            let what = format!("the files of `{path}` that define the agent are not kept");
            gaps.push(Gap::new(KEPT, what, at("init")));
        }
        if place.keeping != Keeping::Owned {
            let what = format!("the protected files of `{path}` belong to the agent's own user");
            gaps.push(Gap::new(OWNED, what, format!("sudo {}", at("init"))));
        }
        match place.files {
            Files::Approved => {}
            Files::Drifted(many) => {
                let files = if many == 1 { "file is" } else { "files are" };
                let what = format!("{many} {files} not as you approved in `{path}`");
                gaps.push(Gap::new(APPROVED, what, at("sync")).broken());
            }
            Files::Unseen => {
                let what = format!("whether the files of `{path}` are as approved is not known");
                gaps.push(Gap::new(APPROVED, what, at("status")));
            }
        }
        let sign = at("md sign -w");
        match &place.policy {
            Policy::Valid => {}
            Policy::None => {
                gaps.push(Gap::new(SIGNED, format!("`{path}` has no policy"), at("init")));
            }
            Policy::Unsigned => {
                gaps.push(Gap::new(SIGNED, format!("the policy of `{path}` is not signed"), sign));
            }
            Policy::Unseen => {
                let what = format!("the policy of `{path}` was not looked at");
                gaps.push(Gap::new(SIGNED, what, at("md status -w")));
            }
            Policy::Broken(state) => {
                let what = format!("the policy of `{path}` does not count: {state}");
                gaps.push(Gap::new(SIGNED, what, at("md status -w")).broken());
            }
        }
    }
}

fn of_evidence(facts: &Facts, gaps: &mut Vec<Gap>) {
    const HOLDS: &str = "evidence holds";
    const ANCHORED: &str = "evidence is anchored elsewhere";
    const SKILLS: &str = "skills are as approved";
    let verify = "wardkeep evidence verify";
    match facts.evidence {
        Evidence::Holds => {}
        Evidence::Broken => {
            gaps.push(Gap::new(HOLDS, "the evidence does not hold", verify).broken())
        }
        Evidence::Unseen => gaps.push(Gap::new(HOLDS, "the evidence was not verified", verify)),
    }
    match facts.anchors {
        Anchors::Reached => {}
        Anchors::None => gaps.push(Gap::new(
            ANCHORED,
            "nothing outside remembers the evidence: an older copy put back is not noticed",
            "wardkeep evidence anchor add --help",
        )),
        Anchors::Unreached => gaps.push(Gap::new(
            ANCHORED,
            "the anchor has taken nothing yet",
            "wardkeep evidence anchor push",
        )),
        Anchors::Alarm => gaps.push(
            Gap::new(ANCHORED, "an anchor saw another log", "wardkeep evidence anchor list")
                .broken(),
        ),
    }
    match facts.skills {
        Skills::Sound => {}
        Skills::Unseen => {
            gaps.push(Gap::new(SKILLS, "the skills were not looked at", "wardkeep skill list"));
        }
        Skills::Changed(many) => {
            let what = match many {
                0 => "no pin of a skill counts".to_owned(),
                1 => "a skill is not as it was pinned".to_owned(),
                many => format!("{many} skills are not as they were pinned"),
            };
            gaps.push(Gap::new(SKILLS, what, "wardkeep skill list").broken());
        }
    }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%".contains(&byte);
    if !path.is_empty() && !path.starts_with('-') && path.bytes().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word_of_a_shell() {
        for (path, shown) in [
            ("/w", "/w"),
            ("/my work", "'/my work'"),
            ("/a'b;rm -rf $x", "'/a'\\''b;rm -rf $x'"),
            ("", "''"),
            ("-x", "'-x'"),
        ] {
            assert_eq!(quoted(path), shown);
        }
    }
}

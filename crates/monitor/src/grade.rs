//! How well things are protected: a mark from what was observed, and what would raise it.
//!
//! A pure function: who calls it looks, and says so where it did not. What was not looked at earns
//! nothing, and what is broken keeps the mark down whatever else holds.

mod facts;
mod steps;

use std::fmt;

use serde::Serialize;

pub use self::facts::{
    AgentFacts, Anchors, Asks, Confined, Evidence, Facts, Files, Keeping, Policy, Skills,
    WorkspaceFacts,
};
use self::steps::steps;

/// The mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grade {
    /// `A` is the best.
    pub letter: Letter,
    /// Points, of 100.
    pub points: u8,
    /// Which kind of protection holds everywhere that it was looked at.
    pub strength: Strength,
    /// What the points are for.
    pub parts: Vec<Part>,
    /// What would raise it: what is broken first, then what gains most.
    pub steps: Vec<Step>,
}

/// Letters, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Letter {
    /// Next to nothing holds, or the evidence itself is broken.
    F,
    /// A little.
    E,
    /// Something, or something that held is broken.
    D,
    /// The half and more.
    C,
    /// Most of it.
    B,
    /// All that one can have without being root, or more.
    A,
}

impl Letter {
    fn of(points: u8) -> Self {
        match points {
            90.. => Self::A,
            75.. => Self::B,
            60.. => Self::C,
            40.. => Self::D,
            20.. => Self::E,
            _ => Self::F,
        }
    }
}

impl fmt::Display for Letter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Which kind of protection holds, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// None that was seen.
    None,
    /// The agents ask; one that controls its own process can stop asking, and the evidence shows where.
    Watched,
    /// The agents run confined.
    Confined,
    /// What is protected belongs to another user.
    Owned,
    /// Both.
    OwnedAndConfined,
}

impl Strength {
    /// It in a word or three.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "not protected",
            Self::Watched => "watched",
            Self::Confined => "confined",
            Self::Owned => "owned",
            Self::OwnedAndConfined => "owned and confined",
        }
    }
}

/// Points for one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// For what.
    pub name: &'static str,
    /// How many.
    pub points: u8,
    /// Of how many.
    pub most: u8,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What is not as it could be.
    pub what: String,
    /// The command that mends it.
    pub command: String,
    /// How many points it gains at most.
    pub gains: u8,
    /// Whether something is broken, and not only missing.
    pub broken: bool,
}

/// The mark for what was observed.
#[must_use]
pub fn grade(facts: &Facts) -> Grade {
    let parts = parts(facts);
    let points = parts.iter().map(|part| part.points).sum();
    let letter = Letter::of(points).min(ceiling(facts));
    Grade { letter, points, strength: strength(facts), steps: steps(facts, &parts), parts }
}

/// Whole points for `good` of `all`; none where there is nothing.
fn share(most: u8, good: usize, all: usize) -> u8 {
    let share = usize::from(most) * good.min(all);
    share.checked_div(all).and_then(|points| u8::try_from(points).ok()).unwrap_or(0)
}

fn parts(facts: &Facts) -> Vec<Part> {
    let (agents, places) = (&facts.agents, &facts.workspaces);
    let asking = agents.iter().filter(|agent| agent.asks == Asks::Yes).count();
    // A part of the way counts half.
    let confined = agents.iter().map(|agent| match agent.confined {
        Confined::Fully => 2,
        Confined::Partly => 1,
        Confined::No | Confined::Unseen => 0,
    });
    let of_places = |good: &dyn Fn(&WorkspaceFacts) -> bool| {
        (places.iter().filter(|place| good(place)).count(), places.len())
    };
    let all = |holds: bool| (usize::from(holds), 1);
    let rows: [(&'static str, u8, (usize, usize)); 9] = [
        ("agents ask before they act", 20, (asking, agents.len())),
        ("agents run confined", 20, (confined.sum(), agents.len() * 2)),
        ("files are kept", 10, of_places(&|place| place.keeping != Keeping::None)),
        ("files belong to another user", 5, of_places(&|place| place.keeping == Keeping::Owned)),
        ("files are as approved", 10, of_places(&|place| place.files == Files::Approved)),
        ("policy is signed", 15, of_places(&|place| place.policy == Policy::Valid)),
        ("evidence holds", 10, all(facts.evidence == Evidence::Holds)),
        ("evidence is anchored elsewhere", 5, all(facts.anchors == Anchors::Reached)),
        ("skills are as approved", 5, all(facts.skills == Skills::Sound)),
    ];
    let part = |(name, most, (good, all))| Part { name, points: share(most, good, all), most };
    rows.into_iter().map(part).collect()
}

/// The best letter with what is broken.
fn ceiling(facts: &Facts) -> Letter {
    if facts.evidence == Evidence::Broken || facts.anchors == Anchors::Alarm {
        return Letter::F;
    }
    let agents = facts.agents.iter().any(|agent| matches!(agent.asks, Asks::SwitchedOff(_)));
    let places = facts.workspaces.iter().any(|place| {
        matches!(place.files, Files::Drifted(_)) || matches!(place.policy, Policy::Broken(_))
    });
    let skills = matches!(facts.skills, Skills::Changed(_));
    if agents || places || skills { Letter::D } else { Letter::A }
}

fn strength(facts: &Facts) -> Strength {
    let every = |good: &dyn Fn(&AgentFacts) -> bool| {
        !facts.agents.is_empty() && facts.agents.iter().all(good)
    };
    let confined = every(&|agent| agent.confined == Confined::Fully);
    let places = &facts.workspaces;
    let owned = !places.is_empty() && places.iter().all(|place| place.keeping == Keeping::Owned);
    match (owned, confined) {
        (true, true) => Strength::OwnedAndConfined,
        (true, false) => Strength::Owned,
        (false, true) => Strength::Confined,
        (false, false) if every(&|agent| agent.asks == Asks::Yes) => Strength::Watched,
        (false, false) => Strength::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best() -> Facts {
        Facts {
            agents: vec![AgentFacts {
                name: "claude-code".into(),
                program: "claude".into(),
                asks: Asks::Yes,
                confined: Confined::Fully,
            }],
            workspaces: vec![WorkspaceFacts {
                path: "/w".into(),
                keeping: Keeping::Owned,
                files: Files::Approved,
                policy: Policy::Valid,
            }],
            evidence: Evidence::Holds,
            anchors: Anchors::Reached,
            skills: Skills::Sound,
        }
    }

    #[test]
    fn all_of_it_is_a_hundred_points_and_nothing_seen_is_none() {
        let whole = grade(&best());
        assert_eq!((whole.letter, whole.points), (Letter::A, 100));
        assert_eq!(whole.strength, Strength::OwnedAndConfined);
        assert_eq!(whole.steps, []);
        assert_eq!(whole.parts.iter().map(|part| u32::from(part.most)).sum::<u32>(), 100);
        let nothing = grade(&Facts::default());
        assert_eq!((nothing.letter, nothing.points), (Letter::F, 0));
        assert_eq!(nothing.strength, Strength::None);
        let gained: u32 = nothing.steps.iter().map(|step| u32::from(step.gains)).sum();
        assert_eq!(gained, 100, "the steps lead all the way: {:?}", nothing.steps);
        assert!(nothing.steps.iter().all(|step| step.command.contains("wardkeep ")));
    }

    #[test]
    fn a_laptop_without_root_reaches_the_best_mark() {
        let mut facts = best();
        facts.workspaces[0].keeping = Keeping::User;
        facts.anchors = Anchors::None;
        let laptop = grade(&facts);
        assert_eq!((laptop.letter, laptop.points), (Letter::A, 90));
        assert_eq!(laptop.strength, Strength::Confined);
    }

    #[test]
    fn what_is_broken_keeps_the_mark_down_and_comes_first() {
        type Break<'a> = (&'a str, &'a dyn Fn(&mut Facts), Letter);
        let broken: [Break<'_>; 6] = [
            ("evidence verify", &|facts| facts.evidence = Evidence::Broken, Letter::F),
            ("evidence anchor list", &|facts| facts.anchors = Anchors::Alarm, Letter::F),
            (
                "install claude-code",
                &|facts| facts.agents[0].asks = Asks::SwitchedOff("hooks are off".into()),
                Letter::D,
            ),
            ("sync", &|facts| facts.workspaces[0].files = Files::Drifted(2), Letter::D),
            (
                "md status",
                &|facts| facts.workspaces[0].policy = Policy::Broken("tamper_detected".into()),
                Letter::D,
            ),
            ("skill list", &|facts| facts.skills = Skills::Changed(1), Letter::D),
        ];
        for (command, breaks, letter) in broken {
            let mut facts = best();
            // Something else that only could be better, and gains more.
            facts.agents[0].confined = Confined::No;
            breaks(&mut facts);
            let found = grade(&facts);
            assert_eq!(found.letter, letter, "{command}");
            let first = &found.steps[0];
            assert!(first.broken && first.command.contains(command), "{command}: {first:?}");
        }
    }

    #[test]
    fn a_mark_never_rises_by_what_was_not_seen() {
        let mut facts = best();
        for (unsee, less) in [
            (&(|facts: &mut Facts| facts.evidence = Evidence::Unseen) as &dyn Fn(&mut Facts), 10),
            (&|facts: &mut Facts| facts.skills = Skills::Unseen, 5),
            (&|facts: &mut Facts| facts.agents[0].confined = Confined::Unseen, 20),
            (&|facts: &mut Facts| facts.workspaces[0].files = Files::Unseen, 10),
        ] {
            let before = grade(&facts).points;
            unsee(&mut facts);
            assert_eq!(grade(&facts).points, before - less);
        }
        assert_eq!(grade(&facts).strength, Strength::Owned);
    }

    #[test]
    fn one_of_two_is_half_and_each_gap_is_named() {
        let mut facts = best();
        facts.agents.push(AgentFacts {
            name: "codex".into(),
            program: "codex".into(),
            asks: Asks::No,
            confined: Confined::Partly,
        });
        let found = grade(&facts);
        assert_eq!(found.points, 100 - 10 - 5);
        assert_eq!(found.strength, Strength::Owned);
        let commands: Vec<&str> = found.steps.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(commands, ["wardkeep install codex", "wardkeep run -- codex"]);
        assert_eq!(found.steps.iter().map(|step| step.gains).collect::<Vec<_>>(), [10, 5]);
    }

    #[test]
    fn hooks_that_are_not_trusted_yet_earn_nothing_and_break_nothing() {
        let mut facts = best();
        for (program, command) in [(true, "wardkeep install claude-code"), (false, "claude")] {
            facts.agents[0].asks = Asks::Untrusted { program };
            let found = grade(&facts);
            assert_eq!((found.letter, found.points), (Letter::B, 80));
            let first = &found.steps[0];
            assert!(!first.broken && first.command == command, "{first:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn points_stay_within_a_hundred(asks in proptest::collection::vec(0..4u8, 0..9)) {
            let mut facts = best();
            facts.agents = asks
                .iter()
                .map(|kind| AgentFacts {
                    name: "a".into(),
                    program: "a".into(),
                    asks: [Asks::Yes, Asks::No, Asks::Unseen, Asks::SwitchedOff(String::new())]
                        [usize::from(*kind)]
                    .clone(),
                    confined: Confined::Partly,
                })
                .collect();
            let found = grade(&facts);
            let gains: u32 = found.steps.iter().map(|step| u32::from(step.gains)).sum();
            proptest::prop_assert!(found.points <= 100);
            proptest::prop_assert!(u32::from(found.points) + gains <= 100);
        }
    }
}

//! What the index keeps of a record: its shape in one number, and a few texts.

use std::borrow::Cow;

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, Record, RecordType};
use wardkeep_guard::surface::Surface;
use wardkeep_guard::verdict::Verdict;

use super::words::Said;
use super::{Category, Severity};

/// What kind of record it is, and what it says of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Type of the record.
    pub kind: RecordType,
    /// On whose behalf.
    pub principal: Principal,
    /// What it tells, if it is one of the monitor's own.
    pub said: Option<Said>,
    /// What was decided.
    pub verdict: Option<Verdict>,
    /// What it is about.
    pub category: Option<Category>,
    /// How grave it says it is.
    pub severity: Option<Severity>,
    /// Where it crossed.
    pub surface: Option<Surface>,
    /// How grave it is as a notification; `None` if it is none.
    pub level: Option<Severity>,
}

// Bits of each part, from the lowest; the level is last, so that larger means graver.
const KIND: u32 = 0;
const PRINCIPAL: u32 = 5;
const SAID: u32 = 9;
const VERDICT: u32 = 14;
const CATEGORY: u32 = 18;
const SEVERITY: u32 = 23;
const SURFACE: u32 = 26;
const LEVEL: u32 = 30;

/// Shapes from here on are notifications. The same number stands in the index's definition.
pub(super) const FIRST_NOTICE: i64 = 1 << LEVEL;

impl Shape {
    /// As one number. Its layout is part of the index's version.
    pub(super) fn pack(&self) -> i64 {
        fn code<T: PartialEq>(all: &[T], value: Option<&T>) -> i64 {
            let at = value.and_then(|value| all.iter().position(|item| item == value));
            at.and_then(|at| i64::try_from(at + 1).ok()).unwrap_or(0)
        }
        code(RecordType::ALL, Some(&self.kind)) << KIND
            | code(Principal::ALL, Some(&self.principal)) << PRINCIPAL
            | code(Said::ALL, self.said.as_ref()) << SAID
            | code(&Verdict::ALL, self.verdict.as_ref()) << VERDICT
            | code(Category::ALL, self.category.as_ref()) << CATEGORY
            | code(Severity::ALL, self.severity.as_ref()) << SEVERITY
            | code(&Surface::ALL, self.surface.as_ref()) << SURFACE
            | code(Severity::ALL, self.level.as_ref()) << LEVEL
    }

    /// Reads the number; `None` if no record has such a shape.
    pub(super) fn unpack(number: i64) -> Option<Self> {
        let part = |low: u32, width: u32| usize::try_from(number >> low & ((1 << width) - 1)).ok();
        fn word<T: Copy>(all: &[T], code: Option<usize>) -> Option<Option<T>> {
            match code? {
                0 => Some(None),
                code => all.get(code - 1).map(|item| Some(*item)),
            }
        }
        (number >> LEVEL <= Severity::ALL.len() as i64).then_some(())?;
        Some(Self {
            kind: word(RecordType::ALL, part(KIND, 5))??,
            principal: word(Principal::ALL, part(PRINCIPAL, 4))??,
            said: word(Said::ALL, part(SAID, 5))?,
            verdict: word(&Verdict::ALL, part(VERDICT, 4))?,
            category: word(Category::ALL, part(CATEGORY, 5))?,
            severity: word(Severity::ALL, part(SEVERITY, 3))?,
            surface: word(&Surface::ALL, part(SURFACE, 4))?,
            level: word(Severity::ALL, part(LEVEL, 3))?,
        })
    }

    /// The number of a type of record, and the bits it stands in.
    pub(super) fn kind_bits(kind: RecordType) -> (i64, i64) {
        let at = RecordType::ALL.iter().position(|item| *item == kind).unwrap_or(0);
        (0x1f, i64::try_from(at + 1).unwrap_or(0))
    }

    /// The number of a verdict, and the bits it stands in.
    pub(super) fn verdict_bits(verdict: Verdict) -> (i64, i64) {
        let at = Verdict::ALL.iter().position(|item| *item == verdict).unwrap_or(0);
        (0xf << VERDICT, i64::try_from(at + 1).unwrap_or(0) << VERDICT)
    }

    /// The number of a word that records tell by, and the bits it stands in.
    pub(super) fn said_bits(said: Said) -> (i64, i64) {
        let at = Said::ALL.iter().position(|item| *item == said).unwrap_or(0);
        (0x1f << SAID, i64::try_from(at + 1).unwrap_or(0) << SAID)
    }

    /// The number of a category, and the bits it stands in.
    pub(super) fn category_bits(category: Category) -> (i64, i64) {
        let at = Category::ALL.iter().position(|item| *item == category).unwrap_or(0);
        (0x1f << CATEGORY, i64::try_from(at + 1).unwrap_or(0) << CATEGORY)
    }

    /// The lowest shape of a notification of this level.
    pub(super) fn lowest(level: Severity) -> i64 {
        let at = Severity::ALL.iter().position(|item| *item == level).unwrap_or(0);
        i64::try_from(at + 1).unwrap_or(1) << LEVEL
    }

    /// Whether a file was really changed: a record of a denied or staged change changed none.
    #[must_use]
    pub fn changed_file(&self) -> bool {
        let kind = matches!(
            self.kind,
            RecordType::FileWrite | RecordType::FileDelete | RecordType::FileRename
        );
        kind && self.happened()
    }

    /// Whether a request left.
    #[must_use]
    pub fn left(&self) -> bool {
        self.kind == RecordType::NetworkRequest && self.happened()
    }

    /// Whether it is an action that was denied, or waits for the owner.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.said == Some(Said::Decision)
            && matches!(self.verdict, Some(Verdict::Deny | Verdict::Ask))
    }

    fn happened(&self) -> bool {
        !matches!(self.verdict, Some(Verdict::Deny | Verdict::Ask | Verdict::Stage))
    }
}

/// What a record says that the index and the reports need.
#[derive(Debug, Clone)]
pub struct Facts<'r> {
    /// Its shape.
    pub shape: Shape,
    /// The rule that decided.
    pub rule: Option<&'r str>,
    /// The file, address or message it is about.
    pub subject: Option<&'r str>,
    /// How many denials a flood stands for.
    pub many: u64,
    /// The parent that is only what the session had seen before.
    pub context: Option<RecordId>,
    content: Option<&'r Object<'r>>,
}

impl<'r> Facts<'r> {
    /// Reads them from a record.
    #[must_use]
    pub fn of(record: &'r Record<'r>) -> Self {
        let content = match &record.payload {
            Payload::Inline(Value::Object(content)) => Some(content),
            _ => None,
        };
        let said = content.and_then(|content| Said::parse(content.get("kind")?.as_str()?));
        // Without a word of the monitor's own, the content is somebody else's.
        let content = content.filter(|_| said.is_some());
        let text = |key: &str| content.and_then(|content| content.get(key)).and_then(Value::as_str);
        let is =
            |key: &str| content.and_then(|content| content.get(key)) == Some(&Value::Bool(true));
        let find = |name: Option<&str>, all: &[Surface]| {
            all.iter().copied().find(|surface| Some(surface.as_str()) == name)
        };
        let verdict = text("verdict");
        let verdict = Verdict::ALL.into_iter().find(|item| Some(item.as_str()) == verdict);
        let category = match (text("category").and_then(Category::parse), said) {
            (None, Some(Said::Rollback)) if is("auto") => Some(Category::AutoRollback),
            (None, Some(Said::Rollback)) => Some(Category::Rollback),
            (category, _) => category,
        };
        let mut shape = Shape {
            kind: record.kind,
            principal: record.principal,
            said,
            verdict,
            category,
            severity: text("severity").and_then(Severity::parse),
            surface: find(text("surface"), &Surface::ALL),
            level: None,
        };
        shape.level = level(&shape);
        let many = match content.and_then(|content| content.get("count")) {
            // A number that nobody counted to must not run over in a sum.
            Some(Value::Unsigned(count)) if said == Some(Said::Flood) => (*count).min(1 << 32),
            _ => 0,
        };
        Self {
            shape,
            rule: text("rule"),
            subject: text("subject"),
            many,
            context: text("context").and_then(RecordId::from_hex),
            content,
        }
    }

    /// A text of its content.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&'r str> {
        self.content?.get(key)?.as_str()
    }

    /// A value of its content.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&'r Value<'r>> {
        self.content?.get(key)
    }

    /// Where a result came from, beside the tool that gave it: an address or a file.
    #[must_use]
    pub fn place(&self) -> Option<&'r str> {
        let place = self.text("place").filter(|place| !place.is_empty());
        place.filter(|_| {
            self.shape.said == Some(Said::Decision) && self.text("act") == Some("return")
        })
    }

    /// The subject as the index keeps it.
    #[must_use]
    pub fn kept_subject(&self) -> Option<Cow<'r, str>> {
        const LONGEST: usize = 1024;
        let subject = self.subject?;
        let end = subject.floor_char_boundary(LONGEST);
        Some(Cow::Borrowed(&subject[..end]))
    }
}

/// How grave a record is as a notification; `None` for the daily work.
fn level(shape: &Shape) -> Option<Severity> {
    let usual = match shape.said? {
        Said::Decision => {
            let quiet = matches!(shape.verdict, None | Some(Verdict::Allow));
            let found = shape.category.is_some() || shape.severity.is_some();
            // Allowed changes of what matters are told of as well.
            let matters = match shape.surface {
                Some(Surface::ControlPlane) => shape.kind == RecordType::ControlPlaneChangeRequest,
                Some(Surface::DurableMemory) => shape.changed_file(),
                Some(Surface::SkillInstall) => true,
                _ => false,
            };
            match shape.verdict {
                Some(Verdict::Deny | Verdict::Ask) => Severity::Medium,
                _ if !quiet || found || matters => Severity::Info,
                _ => return None,
            }
        }
        Said::Alert | Said::Switch => Severity::Medium,
        Said::Flood => Severity::High,
        Said::Snapshot | Said::Rollback | Said::Recovery | Said::Warning => Severity::Info,
        _ => return None,
    };
    Some(shape.severity.unwrap_or(usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_comes_back() {
        let shape = Shape {
            kind: RecordType::SkillVerification,
            principal: Principal::External,
            said: Some(Said::Warning),
            verdict: Some(Verdict::Deny),
            category: Some(Category::RateLimit),
            severity: Some(Severity::Critical),
            surface: Some(Surface::SkillInstall),
            level: Some(Severity::Critical),
        };
        assert_eq!(Shape::unpack(shape.pack()), Some(shape));
        let bare = Shape {
            kind: RecordType::SessionStart,
            principal: Principal::Sys,
            said: None,
            verdict: None,
            category: None,
            severity: None,
            surface: None,
            level: None,
        };
        assert_eq!(Shape::unpack(bare.pack()), Some(bare));
        assert!(bare.pack() < FIRST_NOTICE && shape.pack() >= FIRST_NOTICE);
        for number in [0, -1, i64::MAX, i64::MIN, 1 << 40, 0x1f | 1 << PRINCIPAL] {
            assert_eq!(Shape::unpack(number), None, "{number}");
        }
        // All words fit into their bits.
        assert!(RecordType::ALL.len() < 32 && Principal::ALL.len() < 16 && Said::ALL.len() < 32);
        assert!(Category::ALL.len() < 32 && Severity::ALL.len() < 8 && Surface::ALL.len() < 16);
    }
}

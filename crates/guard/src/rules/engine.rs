//! Facts as Cedar sees them.

use std::collections::HashSet;
use std::str::FromStr as _;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicyId,
    PolicySet, Request, RestrictedExpression as Value, Schema,
};
use wardkeep_evidence::record::Principal;

use super::SCHEMA;
use super::names::Named as _;
use crate::facts::{Facts, FileFacts, NetworkFacts};
use crate::surface::{Surface, is_owner, is_untrusted};
use crate::taint::Taint;

/// Longest text of a fact that a rule is asked about; matching a pattern costs time with it.
const LONGEST: usize = 64 << 10;

/// Schema and entities, which are the same for every request.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) schema: Schema,
    entities: Entities,
    authorizer: Authorizer,
    principal: EntityTypeName,
    action: EntityTypeName,
    surface: EntityTypeName,
}

/// What came out of evaluating policies.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// Those that matched.
    pub(super) policies: Vec<PolicyId>,
    /// Those that failed, and why. Cedar passes over them; who asks must not.
    pub(super) failed: Vec<(PolicyId, String)>,
}

impl Engine {
    pub(super) fn new() -> Result<Self, String> {
        let (schema, _) =
            Schema::from_cedarschema_str(SCHEMA).map_err(|error| error.to_string())?;
        let kind = |name: &str| EntityTypeName::from_str(name).map_err(|error| error.to_string());
        let (principal, surface, trust) = (kind("Principal")?, kind("Surface")?, kind("Trust")?);
        let group = |principal: Principal| {
            EntityUid::from_type_name_and_id(trust.clone(), EntityId::new(trust_of(principal)))
        };
        let groups: HashSet<EntityUid> = Principal::all().iter().copied().map(group).collect();
        let principals = Principal::all().iter().map(|one| {
            let uid =
                EntityUid::from_type_name_and_id(principal.clone(), EntityId::new(one.name()));
            Entity::new_no_attrs(uid, HashSet::from([group(*one)]))
        });
        let surfaces = Surface::all().iter().map(|one| {
            EntityUid::from_type_name_and_id(surface.clone(), EntityId::new(one.name()))
        });
        let others = groups.into_iter().chain(surfaces).map(Entity::with_uid);
        let entities = Entities::from_entities(principals.chain(others), Some(&schema))
            .map_err(|error| error.to_string())?;
        let action = kind("Action")?;
        Ok(Self { schema, entities, authorizer: Authorizer::new(), principal, action, surface })
    }

    /// The request that facts are.
    pub(super) fn request(&self, facts: &Facts) -> Result<Request, String> {
        let longest = [
            facts.subject.len(),
            facts.file.as_ref().map_or(0, |file| file.path.len()),
            facts.network.as_ref().map_or(0, |network| network.host.len()),
        ];
        if longest.into_iter().any(|length| length > LONGEST) {
            return Err(format!("a name has more than {LONGEST} bytes"));
        }
        let uid = |kind: &EntityTypeName, name: &str| {
            EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(name))
        };
        let context = Context::from_pairs(pairs(facts)).map_err(|error| error.to_string())?;
        Request::new(
            uid(&self.principal, facts.principal.name()),
            uid(&self.action, facts.act.name()),
            uid(&self.surface, facts.surface.name()),
            context,
            // INVARIANT: `pairs` gives what the schema says; a test compares them.
            None,
        )
        .map_err(|error| error.to_string())
    }

    /// The policies that match a request.
    pub(super) fn matching(&self, request: &Request, policies: &PolicySet) -> Matched {
        let response = self.authorizer.is_authorized(request, policies, &self.entities);
        let diagnostics = response.diagnostics();
        let failed = diagnostics.errors().map(|error| {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            (error.policy_id().clone(), error.inner().to_string())
        });
        Matched { policies: diagnostics.reason().cloned().collect(), failed: failed.collect() }
    }
}

fn trust_of(principal: Principal) -> &'static str {
    if is_owner(principal) {
        "owner"
    } else if is_untrusted(principal) {
        "untrusted"
    } else {
        "tool"
    }
}

/// The context. That an owner has approved the action is not in it: no rule but one that asks is
/// answered by that, and the verdict says which those are.
fn pairs(facts: &Facts) -> Vec<(String, Value)> {
    let mut pairs = vec![
        ("subject".to_owned(), text(&facts.subject)),
        ("direct".to_owned(), taint(facts.direct)),
        ("ambient".to_owned(), taint(facts.ambient)),
        ("taint".to_owned(), taint(facts.taint())),
        ("scan".to_owned(), text(facts.scan.name())),
        (
            "categories".to_owned(),
            Value::new_set(facts.categories.iter().map(|category| text(category.name()))),
        ),
        ("open_proxy".to_owned(), Value::new_bool(facts.open_proxy)),
    ];
    let record = |pairs: Vec<(&str, Value)>| {
        Value::new_record(pairs.into_iter().map(|(name, value)| (name.to_owned(), value))).ok()
    };
    pairs.extend(
        [
            ("file", facts.file.as_ref().map(file).and_then(record)),
            ("network", facts.network.as_ref().map(network).and_then(record)),
            ("skill", facts.skill.map(|skill| text(skill.name()))),
            ("sandbox", facts.sandbox.map(|sandbox| text(sandbox.name()))),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?))),
    );
    pairs
}

fn file(file: &FileFacts) -> Vec<(&'static str, Value)> {
    let FileFacts { path, memory, protection, sensitivity, resolved } = file;
    vec![
        ("path", text(path)),
        ("memory", Value::new_bool(*memory)),
        ("protection", text(protection.name())),
        ("sensitivity", text(sensitivity.name())),
        ("resolved", Value::new_bool(*resolved)),
    ]
}

fn network(network: &NetworkFacts) -> Vec<(&'static str, Value)> {
    let NetworkFacts {
        scheme,
        host,
        port,
        method,
        payload,
        allowed,
        listed,
        blocked,
        internal,
        metadata,
        oversized,
        exfiltration,
        resolved,
    } = network;
    let mut pairs = vec![
        ("scheme", text(scheme)),
        ("host", text(host)),
        ("method", text(method)),
        ("payload", Value::new_long(i64::try_from(*payload).unwrap_or(i64::MAX))),
        ("allowed", Value::new_bool(*allowed)),
        ("listed", Value::new_bool(*listed)),
        ("blocked", Value::new_bool(*blocked)),
        ("internal", Value::new_bool(*internal)),
        ("metadata", Value::new_bool(*metadata)),
        ("oversized", Value::new_bool(*oversized)),
        ("exfiltration", Value::new_bool(*exfiltration)),
        ("resolved", Value::new_bool(*resolved)),
    ];
    pairs.extend(port.map(|port| ("port", Value::new_long(i64::from(port)))));
    pairs
}

fn text(text: &str) -> Value {
    Value::new_string(text.to_owned())
}

fn taint(taint: Taint) -> Value {
    Value::new_set(taint.names().map(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Compliance, Protection, Sensitivity, SkillFacts};
    use crate::surface::Act;

    #[test]
    fn facts_are_what_the_schema_says() {
        let engine = Engine::new().unwrap();
        for act in Act::ALL {
            let mut facts = Facts::new(Principal::Web, Surface::NetworkIO, act, "x");
            for full in [false, true] {
                if full {
                    fill(&mut facts);
                }
                let context = Context::from_pairs(pairs(&facts)).unwrap();
                let uid = EntityUid::from_type_name_and_id(
                    engine.action.clone(),
                    EntityId::new(act.name()),
                );
                context.validate(&engine.schema, &uid).unwrap();
            }
        }
    }

    fn fill(facts: &mut Facts) {
        facts.direct = Taint::ALL;
        facts.skill = Some(SkillFacts::Clean);
        facts.sandbox = Some(Compliance::None);
        facts.file = Some(FileFacts {
            path: "/x".to_owned(),
            memory: true,
            protection: Protection::None,
            sensitivity: Sensitivity::Denied,
            resolved: true,
        });
        facts.network = Some(NetworkFacts {
            scheme: "https".to_owned(),
            host: "a.example".to_owned(),
            port: Some(1),
            method: "GET".to_owned(),
            payload: u64::MAX,
            allowed: true,
            listed: true,
            blocked: true,
            internal: true,
            metadata: true,
            oversized: true,
            exfiltration: true,
            resolved: true,
        });
    }
}

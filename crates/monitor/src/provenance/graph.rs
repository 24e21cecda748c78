//! A closure as a graph that fits on a page: its records, or groups of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;
use wardkeep_evidence::hash::RecordId;
use wardkeep_guard::rules::built_in::FOREIGN;
use wardkeep_guard::taint::Taint;

use super::{Closure, Direction, read};
use crate::index::{Facts, Index, LookError, Severity};
use crate::store::StoreReader;

/// Nodes and edges, ready to be drawn.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Graph {
    /// The nodes, the oldest first.
    pub nodes: Vec<GraphNode>,
    /// What leads where.
    pub edges: Vec<GraphEdge>,
    /// Whether the nodes are groups of records by session and type.
    pub grouped: bool,
    /// Records that no node stands for.
    pub more: u64,
}

/// A record, or a group of them.
#[derive(Debug, Clone, Serialize)]
pub struct GraphNode {
    /// Its id; none for a group.
    pub record: Option<RecordId>,
    /// What it is, in a word or two.
    pub label: String,
    /// What it is about.
    pub detail: String,
    /// The page or the file that it came from, where the record says so.
    pub place: Option<String>,
    /// What of its taint others could have written; of a group this is not known.
    pub taint: Vec<&'static str>,
    /// Its session.
    pub session: String,
    /// How grave it is.
    pub level: Option<Severity>,
    /// How many records it stands for.
    pub records: u64,
    /// Whether the walk starts here.
    pub start: bool,
    /// How many steps from the start.
    pub depth: u32,
}

/// From a parent to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GraphEdge {
    /// Position of the parent among the nodes.
    pub from: usize,
    /// Position of the child.
    pub to: usize,
    /// Whether only by way of what the session had seen.
    pub ambient: bool,
}

/// Most nodes that can be read on a page.
const MAX_NODES: u64 = 200;
/// Most edges that are drawn.
const MAX_EDGES: usize = 2_000;
/// Most records whose group is remembered for the edges.
const MAX_GROUPED: usize = 1_000_000;

impl Graph {
    /// The graph of a closure: each record up to some 200, beyond that by session and type.
    ///
    /// # Errors
    /// When the index is wrong or cannot be read.
    pub fn of(reader: &StoreReader, index: &Index, closure: &Closure) -> Result<Self, LookError> {
        let mut graph = if closure.len() < MAX_NODES {
            Self::of_records(reader, index, closure)?
        } else {
            Self::of_groups(index, closure)?
        };
        graph.edges.sort_by_key(|edge| (edge.from, edge.to, edge.ambient));
        graph.edges.dedup();
        graph.edges.truncate(MAX_EDGES);
        graph.measure(closure.walk().direction);
        Ok(graph)
    }

    /// Nodes and edges as the records themselves say.
    fn of_records(
        reader: &StoreReader,
        index: &Index,
        closure: &Closure,
    ) -> Result<Self, LookError> {
        let mut graph = Self::default();
        let mut places: HashMap<RecordId, usize> = HashMap::new();
        let mut wrong = 0;
        for position in closure.positions() {
            let row = index.row(position)?;
            let found = row.and_then(|row| {
                read(reader, row.location, |line| {
                    let record = &line.record;
                    (line.entry.index == position).then_some(())?;
                    let facts = Facts::of(record);
                    let mut context = facts.context;
                    for parent in &record.parents {
                        let ambient = context.take_if(|context| context == parent).is_some();
                        if let Some(from) = places.get(parent)
                            && (!ambient || !closure.walk().direct)
                        {
                            let to = graph.nodes.len();
                            graph.edges.push(GraphEdge { from: *from, to, ambient });
                        }
                    }
                    let verdict = facts.shape.verdict.map(|verdict| verdict.as_str());
                    let label = match (facts.shape.level, verdict) {
                        (Some(_), Some(verdict)) => format!("{}: {verdict}", record.kind),
                        _ => record.kind.to_string(),
                    };
                    Some(GraphNode {
                        record: Some(record.id),
                        label,
                        detail: facts.subject.or(facts.text("message")).unwrap_or_default().into(),
                        place: facts.place().map(str::to_owned),
                        taint: foreign(&record.taint),
                        session: record.meta_str("session").unwrap_or_default().to_owned(),
                        level: facts.shape.level,
                        records: 1,
                        start: position == closure.start(),
                        depth: 0,
                    })
                })
            });
            match found {
                Some(node) => {
                    places.extend(node.record.map(|id| (id, graph.nodes.len())));
                    graph.nodes.push(node);
                }
                None => wrong += 1,
            }
        }
        if wrong > 0 { Err(LookError::Wrong(wrong)) } else { Ok(graph) }
    }

    /// Groups by session and type, as the index says.
    fn of_groups(index: &Index, closure: &Closure) -> Result<Self, LookError> {
        let mut graph = Self { grouped: true, ..Self::default() };
        let mut names: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
        let mut groups: HashMap<u64, usize> = HashMap::new();
        let last = closure.positions().last().unwrap_or(0);
        let first = closure.positions().next().unwrap_or(0);
        index.each_line(first, last, |position, shape, session, _| {
            if !closure.contains(position) {
                return;
            }
            let start = position == closure.start();
            let session = session.unwrap_or_default();
            let known = names.get(&(session.to_owned(), shape.kind.as_str())).copied();
            let at = match known {
                Some(at) if !start => at,
                _ if graph.nodes.len() as u64 >= MAX_NODES && !start => {
                    graph.more += 1;
                    return;
                }
                _ => {
                    let at = graph.nodes.len();
                    if !start {
                        names.insert((session.to_owned(), shape.kind.as_str()), at);
                    }
                    graph.nodes.push(GraphNode {
                        record: None,
                        label: shape.kind.to_string(),
                        detail: String::new(),
                        place: None,
                        taint: Vec::new(),
                        session: session.to_owned(),
                        level: None,
                        records: 0,
                        start,
                        depth: 0,
                    });
                    at
                }
            };
            let node = &mut graph.nodes[at];
            node.records += 1;
            node.level = node.level.max(shape.level);
            if groups.len() < MAX_GROUPED {
                groups.insert(position, at);
            }
        })?;
        for node in &mut graph.nodes {
            node.detail = match node.records {
                1 => "1 record".to_owned(),
                many => format!("{many} records"),
            };
        }
        let mut edges = std::collections::BTreeSet::new();
        index.each_edge(first, false, |child, parent, ambient| {
            if ambient && closure.walk().direct {
                return;
            }
            if let (Some(from), Some(to)) = (groups.get(&parent), groups.get(&child))
                && from != to
                && edges.len() < MAX_EDGES
            {
                edges.insert((*from, *to, ambient));
            }
        })?;
        graph.edges.extend(edges.into_iter().map(|(from, to, ambient)| GraphEdge {
            from,
            to,
            ambient,
        }));
        Ok(graph)
    }

    /// Sets the depths: steps from the start, the way the walk went.
    fn measure(&mut self, direction: Direction) {
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            match direction {
                Direction::Forward => next[edge.from].push(edge.to),
                Direction::Backward => next[edge.to].push(edge.from),
            }
        }
        let mut depth: Vec<Option<u32>> = vec![None; self.nodes.len()];
        let mut open: VecDeque<usize> = VecDeque::new();
        if let Some(start) = self.nodes.iter().position(|node| node.start) {
            depth[start] = Some(0);
            open.push_back(start);
        }
        let mut deepest = 0;
        while let Some(at) = open.pop_front() {
            let here = depth[at].unwrap_or(0);
            deepest = here;
            for &other in &next[at] {
                if depth[other].is_none() {
                    depth[other] = Some(here + 1);
                    open.push_back(other);
                }
            }
        }
        for (node, depth) in self.nodes.iter_mut().zip(depth) {
            node.depth = depth.unwrap_or(deepest + 1);
        }
    }
}

/// Flags of what others could have written, and what came through a proxy.
fn foreign(names: &[Cow<'_, str>]) -> Vec<&'static str> {
    let taint = Taint::from_names(names.iter().map(AsRef::as_ref));
    taint.only(FOREIGN.union(Taint::PROXY_DERIVED)).names().collect()
}

//! The automaton that finds every literal of every rule in one pass.
//!
//! An Aho-Corasick machine, made deterministic and packed: a state stores only the steps that differ
//! from what the last byte alone would say, all states share one array of cells, and a state's id is
//! where its cells begin. One step is two loads, one comparison and one choice; clean text stays near
//! the root and therefore in the first caches. The build script runs this file too, so that nothing is built at
//! start-up.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Set in a step's target where the state that it leads to ends a literal.
const MATCH: u32 = 1 << 31;
/// Set beside it where every such literal must end a word.
const WHOLE: u32 = 1 << 30;
/// Owner of a cell that nobody uses.
const FREE: u32 = u32::MAX;
/// How far back from the highest cell in use a place for a new state is looked for.
const LOOK_BACK: usize = 1536;

/// The packed machine.
#[derive(Debug, Clone)]
pub(crate) struct Automaton {
    /// Byte to class: bytes that no literal contains share class 0.
    pub(crate) byte_class: Cow<'static, [u8]>,
    /// By class of the last byte and of this one: where a state leads that does not say otherwise.
    pub(crate) usual: Cow<'static, [u32]>,
    /// Byte classes.
    pub(crate) width: usize,
    /// Owner and target.
    pub(crate) cells: Cow<'static, [[u32; 2]]>,
    /// Of each state id, where its list starts in `matches`; 0 for none.
    pub(crate) outputs: Cow<'static, [u32]>,
    /// Lists of literals, each after its length.
    pub(crate) matches: Cow<'static, [u16]>,
}

impl Automaton {
    /// The literals that end in a state.
    #[inline]
    pub(crate) fn ended(&self, state: u32) -> &[u16] {
        let at = self.outputs.get(state as usize).map_or(0, |&at| at as usize);
        let count = self.matches.get(at).map_or(0, |&count| usize::from(count));
        self.matches.get(at + 1..at + 1 + count).unwrap_or(&[])
    }

    /// Goes through a text from a place on; calls back with every state in which literals end, and the
    /// place behind the byte, until the answer is to stop.
    #[inline]
    pub(crate) fn run(&self, text: &[u8], from: usize, mut ended: impl FnMut(u32, usize) -> bool) {
        let (usual, cells, width): (&[u32], &[[u32; 2]], usize) =
            (&self.usual, &self.cells, self.width);
        let Ok(byte_class): Result<&[u8; 256], _> = <&[u8; 256]>::try_from(&*self.byte_class)
        else {
            return;
        };
        let (mut state, mut row) = (0u32, 0);
        for (at, &byte) in text.iter().enumerate().skip(from) {
            let class = usize::from(byte_class[usize::from(byte)]);
            let default = usual[row + class];
            let [owner, target] = cells[state as usize + class];
            row = class * width;
            state = if owner == state { target } else { default };
            if state & MATCH != 0 {
                let whole = state & WHOLE != 0;
                state &= !(MATCH | WHOLE);
                if whole && text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) {
                    continue;
                }
                if ended(state, at + 1) {
                    return;
                }
            }
        }
    }

    /// Builds the machine; literal `n` of the input is literal `n` of the output, and must end a
    /// word where `whole` says so.
    pub(crate) fn build(literals: &[Vec<u8>], whole: &[bool]) -> Result<Self, String> {
        if literals.len() >= usize::from(u16::MAX) {
            return Err("too many literals".to_owned());
        }
        let trie = Trie::new(literals);
        let (byte_class, classes) = byte_classes(literals);
        let usual = trie.usual(&byte_class, classes);
        let rows = trie.determine(&usual, &byte_class, classes);
        Ok(pack(&trie, &rows, &usual, whole, byte_class))
    }
}

/// A trie with failure links and the literals that end in each node.
struct Trie {
    children: Vec<HashMap<u8, usize>>,
    fail: Vec<usize>,
    ends: Vec<Vec<u16>>,
    /// The byte that leads to each node.
    last: Vec<u8>,
    /// Nodes by depth.
    order: Vec<usize>,
}

impl Trie {
    fn new(literals: &[Vec<u8>]) -> Self {
        let mut children: Vec<HashMap<u8, usize>> = vec![HashMap::new()];
        let mut ends: Vec<Vec<u16>> = vec![Vec::new()];
        let mut last = vec![0];
        for (id, literal) in (0u16..).zip(literals) {
            let mut node = 0;
            for &byte in literal {
                let fresh = children.len();
                node = *children[node].entry(byte).or_insert(fresh);
                if node == fresh {
                    children.push(HashMap::new());
                    ends.push(Vec::new());
                    last.push(byte);
                }
            }
            ends[node].push(id);
        }
        let mut fail = vec![0; children.len()];
        let mut order = Vec::with_capacity(children.len());
        let mut queue: VecDeque<usize> = VecDeque::from([0]);
        while let Some(node) = queue.pop_front() {
            order.push(node);
            let mut steps: Vec<(u8, usize)> =
                children[node].iter().map(|(&byte, &child)| (byte, child)).collect();
            steps.sort_unstable();
            for (byte, child) in steps {
                queue.push_back(child);
                if node != 0 {
                    let mut from = fail[node];
                    fail[child] = loop {
                        match children[from].get(&byte) {
                            Some(&to) => break to,
                            None if from == 0 => break 0,
                            None => from = fail[from],
                        }
                    };
                }
                let inherited = ends[fail[child]].clone();
                ends[child].extend(inherited);
            }
        }
        Self { children, fail, ends, last, order }
    }

    /// Of each class of a last byte and of a next one, the node that the two alone lead to.
    fn usual(&self, byte_class: &[u8], classes: usize) -> Vec<usize> {
        let class = |byte: u8| usize::from(byte_class[usize::from(byte)]);
        let mut first = vec![0; classes];
        for (&byte, &child) in &self.children[0] {
            first[class(byte)] = child;
        }
        let mut usual = Vec::with_capacity(classes * classes);
        for &node in &first {
            let mut row = first.clone();
            if node != 0 {
                for (&byte, &child) in &self.children[node] {
                    row[class(byte)] = child;
                }
            }
            usual.extend(row);
        }
        usual
    }

    /// Of each node, the steps that differ from the usual ones.
    fn determine(
        &self,
        usual: &[usize],
        byte_class: &[u8],
        classes: usize,
    ) -> Vec<Vec<(usize, usize)>> {
        let mut rows: Vec<BTreeMap<usize, usize>> = vec![BTreeMap::new(); self.children.len()];
        for &node in self.order.iter().skip(1) {
            let last = usize::from(byte_class[usize::from(self.last[node])]);
            let mut row = rows[self.fail[node]].clone();
            for (&byte, &child) in &self.children[node] {
                row.insert(usize::from(byte_class[usize::from(byte)]), child);
            }
            row.retain(|&class, &mut target| usual[last * classes + class] != target);
            rows[node] = row;
        }
        rows.into_iter().map(|row| row.into_iter().collect()).collect()
    }
}

fn byte_classes(literals: &[Vec<u8>]) -> (Vec<u8>, usize) {
    let used: HashSet<u8> = literals.iter().flatten().copied().collect();
    let mut byte_class = vec![0u8; 256];
    let mut classes = 1u8;
    for byte in 0..=255u8 {
        if used.contains(&byte) && classes < u8::MAX {
            byte_class[usize::from(byte)] = classes;
            classes += 1;
        }
    }
    (byte_class, usize::from(classes))
}

fn pack(
    trie: &Trie,
    rows: &[Vec<(usize, usize)>],
    usual: &[usize],
    whole: &[bool],
    byte_class: Vec<u8>,
) -> Automaton {
    let classes = byte_class.iter().max().map_or(1, |&most| usize::from(most) + 1);
    let mut cells: Vec<[u32; 2]> = vec![[FREE, 0]; classes];
    let mut taken: HashSet<usize> = HashSet::from([0]);
    let mut place = vec![0usize; rows.len()];
    let mut highest = 0usize;
    for &node in trie.order.iter().skip(1) {
        let row = &rows[node];
        let mut base = highest.saturating_sub(LOOK_BACK).max(1);
        while taken.contains(&base)
            || row
                .iter()
                .any(|&(class, _)| cells.get(base + class).is_some_and(|cell| cell[0] != FREE))
        {
            base += 1;
        }
        taken.insert(base);
        highest = highest.max(base);
        if cells.len() < base + classes {
            cells.resize(base + classes, [FREE, 0]);
        }
        for &(class, _) in row {
            cells[base + class][0] = id(base);
        }
        place[node] = base;
    }
    let mut outputs = vec![0u32; cells.len()];
    let mut matches = vec![0u16];
    for (node, ends) in trie.ends.iter().enumerate() {
        if !ends.is_empty() {
            outputs[place[node]] = id(matches.len());
            matches.push(u16::try_from(ends.len()).unwrap_or(u16::MAX));
            matches.extend(ends.iter().take(usize::from(u16::MAX)));
        }
    }
    let target = |node: usize| {
        let ends = &trie.ends[node];
        let all = ends.iter().all(|&literal| whole[usize::from(literal)]);
        id(place[node])
            | if ends.is_empty() { 0 } else { MATCH }
            | if all && !ends.is_empty() { WHOLE } else { 0 }
    };
    for (node, row) in rows.iter().enumerate().skip(1) {
        for &(class, to) in row {
            cells[place[node] + class][1] = target(to);
        }
    }
    let usual = usual.iter().map(|&to| target(to)).collect();
    Automaton {
        byte_class: Cow::Owned(byte_class),
        usual: Cow::Owned(usual),
        width: classes,
        cells: Cow::Owned(cells),
        outputs: Cow::Owned(outputs),
        matches: Cow::Owned(matches),
    }
}

fn id(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(0) & !(MATCH | WHOLE)
}

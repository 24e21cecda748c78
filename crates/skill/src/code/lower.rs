//! From a syntax tree to [`super::ir`]: what the languages have in common.

use std::ops::Range;

use tree_sitter::Node;

use super::ir::{Expr, Function, Module, Operator, Statement, Target};

/// Deepest nesting that is read.
const DEPTH: usize = 110;
/// Most nodes that are read of one file.
const NODES: usize = 400_000;

/// Reads the nodes of one language.
pub(super) trait Grammar {
    fn expr(&self, lower: &mut Lower<'_>, node: Node<'_>) -> Expr;
    fn statement(&self, lower: &mut Lower<'_>, node: Node<'_>) -> Statement;
}

pub(super) struct Lower<'a> {
    pub(super) source: &'a str,
    pub(super) module: Module,
    grammar: &'a dyn Grammar,
    depth: usize,
    nodes: usize,
}

impl<'a> Lower<'a> {
    pub(super) fn new(source: &'a str, grammar: &'a dyn Grammar) -> Self {
        Self { source, module: Module::default(), grammar, depth: 0, nodes: 0 }
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn enter(&mut self) -> bool {
        self.nodes += 1;
        let inside = self.depth < DEPTH && self.nodes < NODES;
        self.module.truncated |= !inside;
        inside
    }

    pub(super) fn expr(&mut self, node: Node<'_>) -> Expr {
        if !self.enter() {
            return Expr::Parts(Vec::new());
        }
        self.depth += 1;
        let grammar = self.grammar;
        let expr = grammar.expr(self, node);
        self.depth -= 1;
        expr
    }

    pub(super) fn statement(&mut self, node: Node<'_>) -> Statement {
        if !self.enter() {
            return Statement::Block(Vec::new());
        }
        self.depth += 1;
        let grammar = self.grammar;
        let statement = grammar.statement(self, node);
        self.depth -= 1;
        statement
    }

    /// A field of a node as an expression.
    pub(super) fn field(&mut self, node: Node<'_>, name: &str) -> Expr {
        match node.child_by_field_name(name) {
            Some(child) => self.expr(child),
            None => Expr::Parts(Vec::new()),
        }
    }

    /// A field of a node as statements.
    pub(super) fn body(&mut self, node: Node<'_>, name: &str) -> Vec<Statement> {
        node.child_by_field_name(name).map(|child| vec![self.statement(child)]).unwrap_or_default()
    }

    pub(super) fn exprs(&mut self, node: Node<'_>) -> Vec<Expr> {
        children(node).into_iter().map(|child| self.expr(child)).collect()
    }

    pub(super) fn statements(&mut self, node: Node<'_>) -> Vec<Statement> {
        children(node).into_iter().map(|child| self.statement(child)).collect()
    }

    /// Keeps a function and says by which number.
    pub(super) fn function(
        &mut self,
        name: String,
        parameters: Vec<String>,
        body: Vec<Statement>,
    ) -> usize {
        self.module.functions.push(Function { name, parameters, body });
        self.module.functions.len() - 1
    }

    /// A chain of the same operator is read along its left side, however long it is.
    pub(super) fn binary(&mut self, node: Node<'_>, kind: &str) -> Expr {
        let sign = |node: Node<'_>, source: &str| {
            let operator = node.child_by_field_name("operator");
            operator
                .and_then(|node| source.get(node.byte_range()))
                .map(str::to_owned)
                .unwrap_or_default()
        };
        let first = sign(node, self.source);
        let mut right = Vec::new();
        let mut at = node;
        while at.kind() == kind && sign(at, self.source) == first {
            if let Some(child) = at.child_by_field_name("right") {
                right.push(self.expr(child));
            }
            let Some(left) = at.child_by_field_name("left") else { break };
            at = left;
            // A name in brackets is the same name.
            while at.kind() == "parenthesized_expression" && at.named_child_count() == 1 {
                let Some(inner) = at.named_child(0) else { break };
                at = inner;
            }
        }
        let mut parts = vec![self.expr(at)];
        parts.extend(right.into_iter().rev());
        let operator = operator(&first);
        if operator == Operator::Add {
            return Expr::Sum(parts);
        }
        if matches!(first.as_str(), "||" | "??" | "or" | "and" | "&&") || parts.len() > DEPTH {
            return Expr::Choice(parts);
        }
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or(Expr::Parts(Vec::new()));
        parts.fold(first, |left, right| Expr::Binary(operator, Box::new(left), Box::new(right)))
    }
}

pub(super) fn range(node: Node<'_>) -> Range<usize> {
    node.byte_range()
}

/// Named children without comments.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

pub(super) fn operator(sign: &str) -> Operator {
    match sign.trim_end_matches('=') {
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" | "//" => Operator::Divide,
        "%" => Operator::Modulo,
        "^" => Operator::Xor,
        "&" => Operator::And,
        "|" => Operator::Or,
        "<<" => Operator::Left,
        ">>" | ">>>" => Operator::Right,
        "<" if sign == "<=" => Operator::AtMost,
        "<" => Operator::Less,
        ">" if sign == ">=" => Operator::AtLeast,
        ">" => Operator::More,
        "" if sign.len() > 1 => Operator::Equal,
        "!" => Operator::NotEqual,
        _ => Operator::Other,
    }
}

/// What an expression stands for as a target.
pub(super) fn target(expr: Expr) -> Target {
    match expr {
        Expr::Name(name) => Target::Name(name),
        Expr::Member(base, name) => Target::Member(name, base),
        Expr::Index(base, _) | Expr::Slice(base, _) => Target::Item(base),
        Expr::List(parts) | Expr::Parts(parts) => {
            Target::Several(parts.into_iter().map(target).collect())
        }
        _ => Target::Nothing,
    }
}

/// A number as it is written.
pub(super) fn number(text: &str) -> Option<i64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let text = text.trim_end_matches('n');
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    match text.get(..2) {
        Some("0x") => radix(&text[2..], 16),
        Some("0o") => radix(&text[2..], 8),
        Some("0b") => radix(&text[2..], 2),
        _ => text.parse().ok(),
    }
}

/// A literal with its backslashes read.
pub(super) fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        if sign != '\\' {
            out.push(sign);
            continue;
        }
        let Some(next) = signs.next() else { break };
        match next {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'x' => out.extend(hex(&mut signs, 2)),
            'U' => out.extend(hex(&mut signs, 8)),
            'u' => {
                if signs.peek() == Some(&'{') {
                    signs.next();
                    let digits: String =
                        signs.by_ref().take_while(|sign| *sign != '}').take(8).collect();
                    out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                } else {
                    out.extend(hex(&mut signs, 4));
                }
            }
            '0'..='7' => {
                let mut value = next.to_digit(8).unwrap_or(0);
                while let Some(digit) =
                    signs.peek().and_then(|sign| sign.to_digit(8)).filter(|_| value < 32)
                {
                    value = value * 8 + digit;
                    signs.next();
                }
                out.extend(char::from_u32(value));
            }
            '\n' => {}
            other => out.push(other),
        }
    }
    out
}

/// The character of so many hexadecimal digits.
fn hex(signs: &mut std::iter::Peekable<std::str::Chars<'_>>, length: usize) -> Option<char> {
    let mut value = 0;
    for _ in 0..length {
        value = value * 16 + signs.peek().and_then(|sign| sign.to_digit(16))?;
        signs.next();
    }
    char::from_u32(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals() {
        assert_eq!(unescaped(r"\x63url \u{68}\u0069\n\157"), "curl hi\no");
        assert_eq!(unescaped("\\"), "");
        assert_eq!(
            (number("0x1F"), number("1_000"), number("7n"), number("1.5")),
            (Some(31), Some(1000), Some(7), None)
        );
        assert_eq!(
            (operator("+="), operator("<="), operator("==="), operator("!==")),
            (Operator::Add, Operator::AtMost, Operator::Equal, Operator::NotEqual)
        );
    }
}

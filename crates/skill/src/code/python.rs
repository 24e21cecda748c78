//! Python, lowered.

use tree_sitter::Node;

use super::ir::{Call, Expr, Statement};
use super::lower::{Grammar, Lower, children, number, operator, range, target, unescaped};

#[derive(Debug)]
pub(super) struct Python;

impl Grammar for Python {
    fn expr(&self, lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
        match node.kind() {
            "identifier" => Expr::Name(lower.text(node).to_owned()),
            "string" => string(lower, node),
            "concatenated_string" => Expr::Sum(lower.exprs(node)),
            "integer" => number(lower.text(node)).map_or(Expr::Parts(Vec::new()), Expr::Number),
            "true" => Expr::Number(1),
            "false" => Expr::Number(0),
            "attribute" => {
                let name =
                    node.child_by_field_name("attribute").map(|child| lower.text(child).to_owned());
                Expr::Member(Box::new(lower.field(node, "object")), name.unwrap_or_default())
            }
            "subscript" => subscript(lower, node),
            "call" => call(lower, node),
            "binary_operator" => lower.binary(node, "binary_operator"),
            "boolean_operator" => lower.binary(node, "boolean_operator"),
            "comparison_operator" => comparison(lower, node),
            "unary_operator" => {
                let negative = lower.text(node).starts_with('-');
                let inner = lower.field(node, "argument");
                if negative { Expr::Negative(Box::new(inner)) } else { inner }
            }
            "conditional_expression" => Expr::Choice(lower.exprs(node)),
            "list" | "tuple" | "set" | "expression_list" | "pattern_list" | "tuple_pattern" => {
                Expr::List(lower.exprs(node))
            }
            "parenthesized_expression" | "await" | "list_splat" | "type" => {
                match node.named_child(0) {
                    Some(inner) => lower.expr(inner),
                    None => Expr::Parts(Vec::new()),
                }
            }
            "dictionary" => {
                let mut pairs = Vec::new();
                for child in children(node) {
                    if child.kind() == "pair" {
                        pairs.push((lower.field(child, "key"), lower.field(child, "value")));
                    } else {
                        pairs.push((Expr::Parts(Vec::new()), lower.expr(child)));
                    }
                }
                Expr::Map(pairs)
            }
            "list_comprehension"
            | "generator_expression"
            | "set_comprehension"
            | "dictionary_comprehension" => comprehension(lower, node),
            "named_expression" => {
                let to = target(lower.field(node, "name"));
                Expr::Assign(Box::new(to), Box::new(lower.field(node, "value")), false)
            }
            "lambda" => {
                let parameters =
                    node.child_by_field_name("parameters").map(|child| names(lower, child));
                let body = vec![Statement::Return(lower.field(node, "body"))];
                Expr::Function(lower.function(String::new(), parameters.unwrap_or_default(), body))
            }
            _ => Expr::Parts(lower.exprs(node)),
        }
    }

    fn statement(&self, lower: &mut Lower<'_>, node: Node<'_>) -> Statement {
        match node.kind() {
            "expression_statement" => match node.named_child(0) {
                Some(child) if child.kind() == "assignment" => {
                    let to = target(lower.field(child, "left"));
                    let value = match child.child_by_field_name("right") {
                        Some(right) if right.kind() == "assignment" => lower.field(right, "right"),
                        Some(right) => lower.expr(right),
                        None => Expr::Parts(Vec::new()),
                    };
                    Statement::Set { target: to, value, add: false }
                }
                Some(child) if child.kind() == "augmented_assignment" => {
                    let to = target(lower.field(child, "left"));
                    let value = lower.field(child, "right");
                    Statement::Set { target: to, value, add: true }
                }
                Some(_) => Statement::Expr(Expr::Parts(lower.exprs(node))),
                None => Statement::Block(Vec::new()),
            },
            "function_definition" => {
                let name = node
                    .child_by_field_name("name")
                    .map(|child| lower.text(child).to_owned())
                    .unwrap_or_default();
                let parameters =
                    node.child_by_field_name("parameters").map(|child| names(lower, child));
                let body = lower.body(node, "body");
                let index = lower.function(name.clone(), parameters.unwrap_or_default(), body);
                Statement::Function { name, index }
            }
            "class_definition" => Statement::Block(lower.body(node, "body")),
            "decorated_definition" => Statement::Block(lower.statements(node)),
            "if_statement" | "elif_clause" => {
                let test = lower.field(node, "condition");
                let then = lower.body(node, "consequence");
                let mut cursor = node.walk();
                let others: Vec<Node<'_>> =
                    node.children_by_field_name("alternative", &mut cursor).collect();
                let other = others.into_iter().map(|child| lower.statement(child)).collect();
                Statement::If { test, then, other }
            }
            "for_statement" => {
                let to = target(lower.field(node, "left"));
                let over = lower.field(node, "right");
                Statement::For { target: to, over, body: lower.body(node, "body") }
            }
            "while_statement" => {
                let test = lower.field(node, "condition");
                Statement::While { test, body: lower.body(node, "body"), at: range(node) }
            }
            "with_statement" => with(lower, node),
            "return_statement" | "yield" => Statement::Return(match node.named_child(0) {
                Some(child) => lower.expr(child),
                None => Expr::Parts(Vec::new()),
            }),
            "break_statement" | "raise_statement" | "continue_statement" => {
                let parts = lower.exprs(node);
                Statement::Block(vec![Statement::Expr(Expr::Parts(parts)), Statement::Leave])
            }
            "import_statement" | "import_from_statement" => import(lower, node),
            "module"
            | "block"
            | "try_statement"
            | "except_clause"
            | "finally_clause"
            | "else_clause"
            | "match_statement"
            | "case_clause"
            | "except_group_clause" => Statement::Block(lower.statements(node)),
            "comment" => Statement::Block(Vec::new()),
            _ => Statement::Expr(self.expr(lower, node)),
        }
    }
}

fn string(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let mut prefix = String::new();
    let mut parts = Vec::new();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "string_start" => prefix = lower.text(child).to_ascii_lowercase(),
            "string_content" => {
                let text = lower.text(child);
                let text = if prefix.contains('r') { text.to_owned() } else { unescaped(text) };
                parts.push(Expr::Text(text));
            }
            "interpolation" => parts.push(lower.field(child, "expression")),
            _ => {}
        }
    }
    if prefix.contains('b') {
        let bytes = parts.iter().flat_map(|part| match part {
            // Bytes above 127 are one sign each after the escapes.
            Expr::Text(text) => {
                text.chars().map(|sign| u8::try_from(u32::from(sign)).unwrap_or(b'?')).collect()
            }
            _ => Vec::new(),
        });
        return Expr::Bytes(bytes.collect());
    }
    match parts.len() {
        0 => Expr::Text(String::new()),
        1 if matches!(parts[0], Expr::Text(_)) => parts.remove(0),
        _ => Expr::Template(parts),
    }
}

fn subscript(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let value = Box::new(lower.field(node, "value"));
    let Some(index) = node.child_by_field_name("subscript") else {
        return Expr::Parts(vec![*value]);
    };
    if index.kind() != "slice" {
        return Expr::Index(value, Box::new(lower.expr(index)));
    }
    let mut bounds = [None, None, None];
    let mut place = 0;
    let mut cursor = index.walk();
    for child in index.children(&mut cursor) {
        if child.kind() == ":" {
            place += 1;
        } else if child.is_named() && place < 3 {
            bounds[place] = Some(Box::new(lower.expr(child)));
        }
    }
    Expr::Slice(value, bounds)
}

fn call(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let callee = lower.field(node, "function");
    let (mut args, mut named) = (Vec::new(), Vec::new());
    if let Some(list) = node.child_by_field_name("arguments") {
        if list.kind() == "generator_expression" {
            args.push(lower.expr(list));
        } else {
            for child in children(list) {
                if child.kind() == "keyword_argument" {
                    let name =
                        child.child_by_field_name("name").map(|child| lower.text(child).to_owned());
                    named.push((name.unwrap_or_default(), lower.field(child, "value")));
                } else {
                    args.push(lower.expr(child));
                }
            }
        }
    }
    Expr::Call(Box::new(Call { callee, args, named, at: range(node) }))
}

fn comparison(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let sign = node.child_by_field_name("operators").map(|child| lower.text(child).to_owned());
    let mut parts = lower.exprs(node);
    if parts.len() == 2
        && let (Some(right), Some(left)) = (parts.pop(), parts.pop())
    {
        return Expr::Binary(operator(&sign.unwrap_or_default()), Box::new(left), Box::new(right));
    }
    Expr::Parts(parts)
}

fn comprehension(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let parts = children(node);
    let clause = parts.iter().find(|child| child.kind() == "for_in_clause");
    let (Some(body), Some(clause)) = (node.child_by_field_name("body"), clause) else {
        return Expr::Parts(lower.exprs(node));
    };
    let name =
        clause.child_by_field_name("left").map(|child| names(lower, child)).unwrap_or_default();
    let over = Box::new(lower.field(*clause, "right"));
    let mut item = if body.kind() == "pair" {
        Expr::List(vec![lower.field(body, "key"), lower.field(body, "value")])
    } else {
        lower.expr(body)
    };
    let rest: Vec<Expr> = parts
        .iter()
        .filter(|child| matches!(child.kind(), "if_clause"))
        .map(|child| lower.expr(*child))
        .collect();
    if parts.iter().filter(|child| child.kind() == "for_in_clause").count() > 1 {
        item = Expr::Parts(vec![item]);
    }
    if rest.is_empty() {
        return Expr::Each { item: Box::new(item), name, over };
    }
    Expr::Parts(vec![Expr::Each { item: Box::new(item), name, over }, Expr::Parts(rest)])
}

fn with(lower: &mut Lower<'_>, node: Node<'_>) -> Statement {
    let mut out = Vec::new();
    for clause in children(node).into_iter().filter(|child| child.kind() == "with_clause") {
        for item in children(clause) {
            let Some(value) = item.child_by_field_name("value") else { continue };
            if value.kind() == "as_pattern" {
                let to = value.child_by_field_name("alias").and_then(|alias| alias.named_child(0));
                let from = value.named_child(0).map(|child| lower.expr(child));
                let to = to.map(|child| target(lower.expr(child)));
                if let (Some(to), Some(from)) = (to, from) {
                    out.push(Statement::Set { target: to, value: from, add: false });
                }
            } else {
                out.push(Statement::Expr(lower.expr(value)));
            }
        }
    }
    out.extend(lower.body(node, "body"));
    Statement::Block(out)
}

fn import(lower: &mut Lower<'_>, node: Node<'_>) -> Statement {
    let module = node
        .child_by_field_name("module_name")
        .map(|child| lower.text(child).trim_start_matches('.'));
    let mut cursor = node.walk();
    let found: Vec<Node<'_>> = node.children_by_field_name("name", &mut cursor).collect();
    let mut out = Vec::new();
    for child in found {
        let (name, alias) = if child.kind() == "aliased_import" {
            let name = child.child_by_field_name("name").map(|child| lower.text(child));
            (
                name.unwrap_or_default(),
                child.child_by_field_name("alias").map(|child| lower.text(child)),
            )
        } else {
            (lower.text(child), None)
        };
        let (path, name) = match (module, alias) {
            (Some(module), alias) => (format!("{module}.{name}"), alias.unwrap_or(name)),
            (None, Some(alias)) => (name.to_owned(), alias),
            // `import os.path` makes `os` known.
            (None, None) => {
                let first = name.split('.').next().unwrap_or(name);
                (first.to_owned(), first)
            }
        };
        out.push(Statement::Import { path, name: name.to_owned() });
    }
    Statement::Block(out)
}

/// The names in a pattern or a list of parameters.
fn names(lower: &Lower<'_>, node: Node<'_>) -> Vec<String> {
    if node.kind() == "identifier" {
        return vec![lower.text(node).to_owned()];
    }
    let mut out = Vec::new();
    for child in children(node) {
        let name = child.child_by_field_name("name").unwrap_or(child);
        let name = if name.kind() == "identifier" { Some(name) } else { name.named_child(0) };
        out.push(name.map(|name| lower.text(name).to_owned()).unwrap_or_default());
    }
    out
}

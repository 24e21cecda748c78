//! JavaScript and TypeScript, lowered.

use tree_sitter::Node;

use super::ir::{Call, Expr, Statement, Target};
use super::lower::{Grammar, Lower, children, number, range, target, unescaped};

#[derive(Debug)]
pub(super) struct Script;

impl Grammar for Script {
    fn expr(&self, lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
        match node.kind() {
            "identifier"
            | "shorthand_property_identifier"
            | "this"
            | "property_identifier"
            | "super"
            | "import" => Expr::Name(lower.text(node).to_owned()),
            "string" => Expr::Text(literal(lower, node)),
            "template_string" => template(lower, node),
            "number" => number(lower.text(node)).map_or(Expr::Parts(Vec::new()), Expr::Number),
            "true" => Expr::Number(1),
            "false" => Expr::Number(0),
            "member_expression" => {
                let name =
                    node.child_by_field_name("property").map(|child| lower.text(child).to_owned());
                Expr::Member(Box::new(lower.field(node, "object")), name.unwrap_or_default())
            }
            "subscript_expression" => Expr::Index(
                Box::new(lower.field(node, "object")),
                Box::new(lower.field(node, "index")),
            ),
            "call_expression" | "new_expression" => call(lower, node),
            "binary_expression" => lower.binary(node, "binary_expression"),
            "unary_expression" => {
                let sign = lower.text(node).chars().next();
                let inner = lower.field(node, "argument");
                if sign == Some('-') { Expr::Negative(Box::new(inner)) } else { inner }
            }
            "ternary_expression" => Expr::Choice(lower.exprs(node)),
            "array" | "array_pattern" => Expr::List(lower.exprs(node)),
            "object" => object(lower, node),
            "parenthesized_expression"
            | "await_expression"
            | "as_expression"
            | "satisfies_expression"
            | "non_null_expression"
            | "spread_element" => match node.named_child(0) {
                Some(inner) => lower.expr(inner),
                None => Expr::Parts(Vec::new()),
            },
            "assignment_expression" => {
                let to = node.child_by_field_name("left").map(|child| pattern(lower, child));
                let value = lower.field(node, "right");
                Expr::Assign(Box::new(to.unwrap_or(Target::Nothing)), Box::new(value), false)
            }
            "augmented_assignment_expression" => {
                let to = node.child_by_field_name("left").map(|child| pattern(lower, child));
                let value = lower.field(node, "right");
                Expr::Assign(Box::new(to.unwrap_or(Target::Nothing)), Box::new(value), true)
            }
            "update_expression" => {
                let to = node.child_by_field_name("argument").map(|child| pattern(lower, child));
                let step = if lower.text(node).contains("++") { 1 } else { -1 };
                Expr::Assign(
                    Box::new(to.unwrap_or(Target::Nothing)),
                    Box::new(Expr::Number(step)),
                    true,
                )
            }
            "arrow_function"
            | "function_expression"
            | "function"
            | "generator_function"
            | "method_definition" => Expr::Function(function(lower, node).1),
            "type_annotation" | "type_arguments" | "comment" => Expr::Parts(Vec::new()),
            _ => Expr::Parts(lower.exprs(node)),
        }
    }

    fn statement(&self, lower: &mut Lower<'_>, node: Node<'_>) -> Statement {
        match node.kind() {
            "lexical_declaration" | "variable_declaration" => {
                let mut out = Vec::new();
                for child in
                    children(node).into_iter().filter(|child| child.kind() == "variable_declarator")
                {
                    let to = child.child_by_field_name("name").map(|child| pattern(lower, child));
                    if child.child_by_field_name("value").is_some() {
                        let value = lower.field(child, "value");
                        out.push(Statement::Set {
                            target: to.unwrap_or(Target::Nothing),
                            value,
                            add: false,
                        });
                    }
                }
                Statement::Block(out)
            }
            "function_declaration" | "generator_function_declaration" | "method_definition" => {
                let (name, index) = function(lower, node);
                Statement::Function { name, index }
            }
            "class_declaration" | "class_body" | "abstract_class_declaration" | "class" => {
                Statement::Block(
                    children(node)
                        .into_iter()
                        .filter(|child| {
                            !matches!(child.kind(), "type_identifier" | "class_heritage")
                        })
                        .map(|child| lower.statement(child))
                        .collect(),
                )
            }
            "public_field_definition" | "field_definition" => {
                let name = node
                    .child_by_field_name("name")
                    .or_else(|| node.child_by_field_name("property"));
                let name = name.map(|child| lower.text(child).to_owned()).unwrap_or_default();
                let base = Box::new(Expr::Name("this".to_owned()));
                Statement::Set {
                    target: Target::Member(name, base),
                    value: lower.field(node, "value"),
                    add: false,
                }
            }
            "if_statement" => {
                let test = lower.field(node, "condition");
                let then = lower.body(node, "consequence");
                Statement::If { test, then, other: lower.body(node, "alternative") }
            }
            "for_in_statement" => {
                let to = node.child_by_field_name("left").map(|child| pattern(lower, child));
                let over = lower.field(node, "right");
                Statement::For {
                    target: to.unwrap_or(Target::Nothing),
                    over,
                    body: lower.body(node, "body"),
                }
            }
            "for_statement" => {
                let first = lower.body(node, "initializer");
                let test = lower.field(node, "condition");
                let mut body = lower.body(node, "body");
                let step = lower.field(node, "increment");
                body.push(Statement::Expr(step));
                let mut out = first;
                out.push(Statement::While { test, body, at: range(node) });
                Statement::Block(out)
            }
            "while_statement" | "do_statement" => {
                let test = lower.field(node, "condition");
                Statement::While { test, body: lower.body(node, "body"), at: range(node) }
            }
            "return_statement" => Statement::Return(match node.named_child(0) {
                Some(child) => lower.expr(child),
                None => Expr::Parts(Vec::new()),
            }),
            "break_statement" | "throw_statement" | "continue_statement" => {
                let parts = lower.exprs(node);
                Statement::Block(vec![Statement::Expr(Expr::Parts(parts)), Statement::Leave])
            }
            "import_statement" => import(lower, node),
            "program" | "statement_block" | "export_statement" | "try_statement"
            | "catch_clause" | "finally_clause" | "else_clause" | "switch_statement"
            | "switch_body" | "switch_case" | "switch_default" | "labeled_statement" => {
                Statement::Block(lower.statements(node))
            }
            "interface_declaration" | "type_alias_declaration" | "comment" => {
                Statement::Block(Vec::new())
            }
            "expression_statement" => Statement::Expr(Expr::Parts(lower.exprs(node))),
            _ => Statement::Expr(self.expr(lower, node)),
        }
    }
}

fn literal(lower: &Lower<'_>, node: Node<'_>) -> String {
    let text = lower.text(node);
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    unescaped(inner)
}

fn template(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let mut parts = Vec::new();
    for child in children(node) {
        match child.kind() {
            "string_fragment" => parts.push(Expr::Text(lower.text(child).to_owned())),
            "escape_sequence" => parts.push(Expr::Text(unescaped(lower.text(child)))),
            "template_substitution" => parts.push(match child.named_child(0) {
                Some(inner) => lower.expr(inner),
                None => Expr::Parts(Vec::new()),
            }),
            _ => {}
        }
    }
    match parts.len() {
        0 => Expr::Text(String::new()),
        1 if matches!(parts[0], Expr::Text(_)) => parts.remove(0),
        _ => Expr::Template(parts),
    }
}

fn call(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let callee = if node.kind() == "new_expression" { "constructor" } else { "function" };
    let callee = lower.field(node, callee);
    let args = match node.child_by_field_name("arguments") {
        Some(list) if list.kind() == "template_string" => vec![lower.expr(list)],
        Some(list) => lower.exprs(list),
        None => Vec::new(),
    };
    Expr::Call(Box::new(Call { callee, args, named: Vec::new(), at: range(node) }))
}

fn object(lower: &mut Lower<'_>, node: Node<'_>) -> Expr {
    let mut pairs = Vec::new();
    for child in children(node) {
        match child.kind() {
            "pair" => {
                let key = match child.child_by_field_name("key") {
                    Some(key) if key.kind() == "property_identifier" => {
                        Expr::Text(lower.text(key).to_owned())
                    }
                    Some(key) => lower.expr(key),
                    None => Expr::Parts(Vec::new()),
                };
                pairs.push((key, lower.field(child, "value")));
            }
            "shorthand_property_identifier" => {
                let name = lower.text(child).to_owned();
                pairs.push((Expr::Text(name.clone()), Expr::Name(name)));
            }
            _ => pairs.push((Expr::Parts(Vec::new()), lower.expr(child))),
        }
    }
    Expr::Map(pairs)
}

fn pattern(lower: &mut Lower<'_>, node: Node<'_>) -> Target {
    match node.kind() {
        "identifier" => Target::Name(lower.text(node).to_owned()),
        "object_pattern" => {
            let mut members = Vec::new();
            for child in children(node) {
                match child.kind() {
                    "pair_pattern" => {
                        let text = |name| {
                            child
                                .child_by_field_name(name)
                                .map(|child| lower.text(child).to_owned())
                        };
                        members.push((
                            text("key").unwrap_or_default(),
                            text("value").unwrap_or_default(),
                        ));
                    }
                    _ => {
                        let name = lower
                            .text(child)
                            .split(['=', ' '])
                            .next()
                            .unwrap_or_default()
                            .to_owned();
                        members.push((name.clone(), name));
                    }
                }
            }
            Target::Members(members)
        }
        _ => target(lower.expr(node)),
    }
}

fn function(lower: &mut Lower<'_>, node: Node<'_>) -> (String, usize) {
    let name = node
        .child_by_field_name("name")
        .map(|child| lower.text(child).to_owned())
        .unwrap_or_default();
    let mut parameters = Vec::new();
    if let Some(one) = node.child_by_field_name("parameter") {
        parameters.push(lower.text(one).to_owned());
    }
    if let Some(list) = node.child_by_field_name("parameters") {
        for child in children(list) {
            let inner = child
                .child_by_field_name("pattern")
                .or_else(|| child.child_by_field_name("left"))
                .unwrap_or(child);
            parameters.push(lower.text(inner).to_owned());
        }
    }
    let body = match node.child_by_field_name("body") {
        Some(body) if body.kind() == "statement_block" => vec![lower.statement(body)],
        Some(body) => vec![Statement::Return(lower.expr(body))],
        None => Vec::new(),
    };
    (name.clone(), lower.function(name, parameters, body))
}

fn import(lower: &mut Lower<'_>, node: Node<'_>) -> Statement {
    let source =
        node.child_by_field_name("source").map(|child| literal(lower, child)).unwrap_or_default();
    let source = source.strip_prefix("node:").unwrap_or(&source).to_owned();
    let mut out = Vec::new();
    for clause in children(node).into_iter().filter(|child| child.kind() == "import_clause") {
        for child in children(clause) {
            match child.kind() {
                "identifier" => out.push((source.clone(), lower.text(child).to_owned())),
                "namespace_import" => {
                    let name = child.named_child(0).map(|child| lower.text(child).to_owned());
                    out.push((source.clone(), name.unwrap_or_default()));
                }
                "named_imports" => {
                    for one in children(child) {
                        let text = |name| {
                            one.child_by_field_name(name).map(|child| lower.text(child).to_owned())
                        };
                        let name = text("name").unwrap_or_default();
                        let alias = text("alias").unwrap_or_else(|| name.clone());
                        out.push((format!("{source}.{name}"), alias));
                    }
                }
                _ => {}
            }
        }
    }
    Statement::Block(out.into_iter().map(|(path, name)| Statement::Import { path, name }).collect())
}

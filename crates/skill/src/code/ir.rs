//! What is kept of a program: calls, values and where they go. The same for every language.

use std::ops::Range;

/// An expression.
#[derive(Debug, Clone)]
pub(super) enum Expr {
    Text(String),
    Bytes(Vec<u8>),
    Number(i64),
    Name(String),
    Member(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    /// From, to, step.
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Call(Box<Call>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// Added up from the left: these chains may be long.
    Sum(Vec<Expr>),
    Negative(Box<Expr>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// Pieces that are put together as text.
    Template(Vec<Expr>),
    /// An item for each of something.
    Each {
        item: Box<Expr>,
        name: Vec<String>,
        over: Box<Expr>,
    },
    /// One of these.
    Choice(Vec<Expr>),
    Function(usize),
    Assign(Box<Target>, Box<Expr>, bool),
    /// Of no interest but for what is in it.
    Parts(Vec<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Xor,
    And,
    Or,
    Left,
    Right,
    Less,
    More,
    AtMost,
    AtLeast,
    Equal,
    NotEqual,
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) callee: Expr,
    pub(super) args: Vec<Expr>,
    pub(super) named: Vec<(String, Expr)>,
    pub(super) at: Range<usize>,
}

/// What a value is given to.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Name(String),
    /// By its last name.
    Member(String, Box<Expr>),
    Item(Box<Expr>),
    Several(Vec<Target>),
    /// `{a, b: c}`: which member goes to which name.
    Members(Vec<(String, String)>),
    Nothing,
}

/// A statement.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    Expr(Expr),
    Set { target: Target, value: Expr, add: bool },
    Import { path: String, name: String },
    Function { name: String, index: usize },
    If { test: Expr, then: Vec<Statement>, other: Vec<Statement> },
    For { target: Target, over: Expr, body: Vec<Statement> },
    While { test: Expr, body: Vec<Statement>, at: Range<usize> },
    Return(Expr),
    Block(Vec<Statement>),
    Leave,
}

/// A function, a method or a lambda.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<Statement>,
}

/// One file.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) body: Vec<Statement>,
    pub(super) functions: Vec<Function>,
    /// Whether it was too large or too deep to be read to its end.
    pub(super) truncated: bool,
}

//! A graph as a picture: one SVG file that needs nothing else.

use std::fmt::Write as _;

use super::graph::{Graph, GraphNode};
use crate::index::Severity;
use crate::markup::{Escaped, Links};

const WIDTH: usize = 210;
const HEIGHT: usize = 44;
const GAP_X: usize = 70;
const GAP_Y: usize = 14;
const MARGIN: usize = 24;
const TOP: usize = 72;
/// Of the bar that marks a node as tainted.
const BAR: usize = 7;
/// Most nodes in a column before the next one is begun.
const ROWS: usize = 16;
/// So wide that the legend fits.
const LEAST: usize = 480;
const TAINTED: &str = "#7c3aed";
/// Letters that fit into a node.
const LETTERS: usize = 27;

/// Draws a graph. The oldest is on the left where the walk went forward, the start where it went
/// backward; whatever the records hold stays text. With `links` each record leads to its view.
#[must_use]
pub fn svg(graph: &Graph, title: &str, links: Option<&Links>) -> String {
    let places = places(graph);
    let right = places.iter().map(|(x, _)| x + WIDTH).max().unwrap_or(WIDTH);
    let bottom = places.iter().map(|(_, y)| y + HEIGHT).max().unwrap_or(HEIGHT);
    let (width, height) = ((right + MARGIN).max(LEAST), bottom + MARGIN);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#777\"/></marker></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#111\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"42\" fill=\"#555\">solid: direct; dashed: only by way of what the session had seen\
         </text>\n{}\n",
        legend(graph),
        title = Escaped::new(title),
    );
    for edge in &graph.edges {
        let (Some(from), Some(to)) = (places.get(edge.from), places.get(edge.to)) else { continue };
        let dash = if edge.ambient { " stroke-dasharray=\"4 3\"" } else { "" };
        // From the side that faces the other node.
        let (x1, x2, bend) =
            if from.0 <= to.0 { (from.0 + WIDTH, to.0, 40) } else { (from.0, to.0 + WIDTH, -40) };
        let (y1, y2) = (from.1 + HEIGHT / 2, to.1 + HEIGHT / 2);
        let (c1, c2) = (shift(x1, bend), shift(x2, -bend));
        let _ = writeln!(
            out,
            "<path d=\"M{x1} {y1}C{c1} {y1} {c2} {y2} {x2} {y2}\" fill=\"none\" stroke=\"#999\"{dash} \
             marker-end=\"url(#a)\"/>"
        );
    }
    for (node, (x, y)) in graph.nodes.iter().zip(&places) {
        draw(node, *x, *y, links, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn shift(x: usize, by: isize) -> usize {
    x.saturating_add_signed(by)
}

/// What marks a node, or why none is marked.
fn legend(graph: &Graph) -> String {
    let text =
        |x: usize, text: &str| format!("<text x=\"{x}\" y=\"60\" fill=\"#555\">{text}</text>");
    if !graph.grouped {
        return format!(
            "<rect x=\"{MARGIN}\" y=\"50\" width=\"{BAR}\" height=\"12\" fill=\"{TAINTED}\"/>{}",
            text(MARGIN + BAR + 6, "bar: tainted, from the web or from others who are not trusted")
        );
    }
    let mut said =
        "too many records for one picture: grouped by session and type, without taint".to_owned();
    if graph.more > 0 {
        let _ = write!(said, "; {} records are not shown", graph.more);
    }
    text(MARGIN, &said)
}

/// Where each node stands: columns by depth, each begun anew when it is full.
fn places(graph: &Graph) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_by_key(|at| (graph.nodes[*at].depth, *at));
    let mut places = vec![(MARGIN, TOP); graph.nodes.len()];
    let (mut column, mut row, mut depth) = (0, 0, 0);
    for at in order {
        if graph.nodes[at].depth != depth || row == ROWS {
            column += usize::from(row > 0);
            row = 0;
            depth = graph.nodes[at].depth;
        }
        places[at] = (MARGIN + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y));
        row += 1;
    }
    places
}

fn draw(node: &GraphNode, x: usize, y: usize, links: Option<&Links>, out: &mut String) {
    let tainted = !node.taint.is_empty();
    let (fill, stroke) = match node.level {
        Some(Severity::Critical) => ("#fde2e1", "#b3261e"),
        Some(Severity::High) => ("#fdeadb", "#b45309"),
        Some(Severity::Medium) => ("#fdf6d8", "#a16207"),
        _ if tainted => ("#f3eefe", TAINTED),
        _ => ("#f3f5f8", "#64748b"),
    };
    let weight = if node.start { 3 } else { 1 };
    let line = |text: &str| Escaped::cut(text, LETTERS);
    let link = node.record.zip(links);
    if let Some((record, links)) = link {
        let _ = write!(out, "<a href=\"{}{record}\">", Escaped::new(links.record));
    }
    let _ = write!(
        out,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" \
         fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{weight}\"/>",
        Escaped::new(&tip(node)),
    );
    if tainted {
        let _ = write!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BAR}\" height=\"{HEIGHT}\" rx=\"2\" fill=\"{TAINTED}\"/>"
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-weight=\"600\" fill=\"#111\">{}</text>\
         <text x=\"{}\" y=\"{}\" fill=\"#444\">{}</text></g>{}",
        x + BAR + 6,
        y + 18,
        line(&node.label),
        x + BAR + 6,
        y + 34,
        line(&about(node)),
        if link.is_some() { "</a>" } else { "" },
    );
}

/// What is told of a node where one points at it: what its colours say, too. What is ours comes first,
/// because a long text is cut.
fn tip(node: &GraphNode) -> String {
    let mut parts: Vec<String> = node.record.map(|id| format!("{id:.10}")).into_iter().collect();
    parts.extend(node.level.map(|level| level.to_string()));
    if !node.taint.is_empty() {
        parts.push(format!("tainted: {}", node.taint.join(" ")));
    }
    parts.extend(node.place.iter().map(|place| format!("from {place}")));
    parts.extend([&node.session, &node.detail].into_iter().filter(|it| !it.is_empty()).cloned());
    parts.join(" · ")
}

/// The second line of a node.
fn about(node: &GraphNode) -> String {
    let more = match &node.place {
        Some(place) => near(place),
        None if node.record.is_none() => &node.session,
        None => "",
    };
    match (node.detail.as_str(), more) {
        ("", "") => node.session.clone(),
        (one, "") | ("", one) => one.to_owned(),
        (detail, more) => format!("{detail} · {more}"),
    }
}

/// The part of a place that says most where there is little room: the host of an address, the name of a file.
fn near(place: &str) -> &str {
    match place.split_once("://") {
        Some((_, rest)) => rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest),
        None => place.rsplit('/').find(|part| !part.is_empty()).unwrap_or(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_its_host_or_its_name() {
        assert_eq!(near("https://docs.example/guide/long"), "docs.example");
        assert_eq!(near("https://docs.example"), "docs.example");
        assert_eq!(near("/home/me/notes/"), "notes");
        assert_eq!(near("notes.md"), "notes.md");
        assert_eq!(near(""), "");
        assert_eq!(near("://"), "");
    }
}

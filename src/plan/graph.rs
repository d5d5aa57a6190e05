//! A graph of actions and the order between them, as a value.
//!
//! An action can only come after actions that were added earlier, so there are no cycles. Each edge says what the
//! failure of the earlier action means for the later one.

/// Identifies an action or a barrier in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(usize);

/// The relation of an action to an earlier action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// The later action is skipped if the earlier action fails or is skipped.
    Needs,
    /// The later action begins once the earlier action has ended, even if that failed or was skipped.
    Follows,
}

/// Actions, each with the actions that come before it.
#[derive(Debug, Clone)]
pub struct Graph<A> {
    nodes: Vec<GraphNode<A>>,
}

/// The condition under which a barrier between two steps opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// All actions before the barrier have ended.
    Ended,
    /// Each action before the barrier has ended, is postponed, or waits for a postponed action.
    EndedOrPostponed,
}

/// An action, or a barrier.
#[derive(Debug, Clone)]
pub struct GraphNode<A> {
    /// `Ok` for an action, `Err` with the condition for a barrier.
    pub action: Result<A, Barrier>,
    /// The earlier actions and barriers, each with its edge.
    pub before: Vec<(ActionId, EdgeKind)>,
}

impl ActionId {
    /// Returns the index of the action or barrier in its graph.
    pub fn index(self) -> usize {
        self.0
    }
}

impl<A> Default for Graph<A> {
    fn default() -> Self {
        Self { nodes: Vec::new() }
    }
}

impl<A> Graph<A> {
    /// Adds an action that comes after the actions `before`.
    ///
    /// # Panics
    ///
    /// If one of the actions `before` is not in the graph yet.
    pub fn add(&mut self, action: A, before: impl IntoIterator<Item = (ActionId, EdgeKind)>) -> ActionId {
        self.push(Ok(action), before.into_iter().collect())
    }

    /// Adds a barrier after the actions `before`. A later action then needs one edge to the barrier, instead of one
    /// edge to each action.
    pub fn add_barrier(&mut self, barrier: Barrier, before: impl IntoIterator<Item = ActionId>) -> ActionId {
        let edges = before.into_iter().map(|id| (id, EdgeKind::Follows));
        self.push(Err(barrier), edges.collect())
    }

    /// Returns the action with this ID; `None` for a barrier.
    pub fn action(&self, id: ActionId) -> Option<&A> {
        self.nodes[id.0].action.as_ref().ok()
    }

    /// Returns all actions and barriers in the order in which they were added: earlier ones first.
    pub fn nodes(&self) -> impl Iterator<Item = (ActionId, &GraphNode<A>)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (ActionId(index), node))
    }

    /// Returns this graph for dry runs, with nothing left but the edges that an action needs. No dry run shows what
    /// another one would write, so none has to wait for another.
    pub fn with_needs_only(mut self) -> Self {
        for node in &mut self.nodes {
            node.before.retain(|(_, edge)| *edge == EdgeKind::Needs);
        }
        self
    }

    fn push(&mut self, action: Result<A, Barrier>, before: Vec<(ActionId, EdgeKind)>) -> ActionId {
        let id = ActionId(self.nodes.len());
        assert!(
            before.iter().all(|(earlier, _)| *earlier < id),
            "an action comes after actions that are in the graph already"
        );
        self.nodes.push(GraphNode { action, before });
        id
    }
}

impl<A> FromIterator<A> for Graph<A> {
    /// Creates a graph without edges: its actions may run in any order.
    fn from_iter<I: IntoIterator<Item = A>>(actions: I) -> Self {
        let nodes = actions.into_iter().map(|action| GraphNode {
            action: Ok(action),
            before: Vec::new(),
        });
        Self {
            nodes: nodes.collect(),
        }
    }
}

#[cfg(test)]
impl<A> Graph<A> {
    /// Returns a line for each action: its name, the actions that it needs, and after `|` the actions that it follows.
    /// A barrier is named by the actions before it.
    pub(super) fn lines(&self, name: impl Fn(&A) -> String) -> Vec<String> {
        let name_of = |id: &ActionId| {
            let before = self.nodes[id.0].before.iter();
            let before = before.filter_map(|(earlier, _)| self.action(*earlier));
            let barrier = || format!("[{}]", before.map(&name).collect::<Vec<_>>().join(" "));
            self.action(*id).map_or_else(barrier, &name)
        };
        let nodes = self.nodes.iter().filter(|node| node.action.is_ok());
        nodes
            .map(|node| {
                let names = |edge| {
                    let before = node.before.iter().filter(|(_, its)| *its == edge);
                    before.map(|(id, _)| name_of(id)).collect::<Vec<_>>().join(", ")
                };
                let own = node.action.as_ref().map(&name).unwrap_or_default();
                let (needs, follows) = (names(EdgeKind::Needs), names(EdgeKind::Follows));
                format!("{own} <- {needs} | {follows}").trim_end().to_owned()
            })
            .collect()
    }
}

#[cfg(test)]
pub(super) mod documentation {
    //! Compares the table about failures in docs/safety.md with the edges of the graphs.

    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;

    use super::{ActionId, EdgeKind, Graph};

    /// Checks that the rows that begin with one of `beginnings` are exactly the edges of these graphs.
    ///
    /// `name` returns what an action is called, and `named_before` what one before it is called.
    pub(in crate::plan) fn assert_shows<A>(
        graphs: &[Graph<A>],
        beginnings: &[&str],
        name: impl Fn(&A) -> &'static str,
        named_before: impl Fn(&A, Option<&A>) -> &'static str,
        consequence: impl Fn(&A, EdgeKind) -> &'static str,
    ) {
        let mut rows: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for graph in graphs {
            for (_, node) in graph.nodes() {
                let Ok(action) = &node.action else { continue };
                for (before, edge) in &node.before {
                    let before: &ActionId = before;
                    let earlier = graph.action(*before);
                    let row = rows
                        .entry((name(action), named_before(action, earlier)))
                        .or_default();
                    let is_lost = earlier.map_or("it begins anyway", |earlier| consequence(earlier, *edge));
                    row.insert(is_lost);
                }
            }
        }
        let rows: BTreeSet<String> = rows
            .into_iter()
            .map(|((name, before), lost)| {
                let lost: Vec<&str> = lost.into_iter().collect();
                let lost = match lost.as_slice() {
                    [both, _] => format!(
                        "{both}, unless what failed or was skipped is a new namespace or has dependencies of its own: \
                         then it is skipped"
                    ),
                    one => one.concat(),
                };
                format!("| {name} | {before} | {lost} |")
            })
            .collect();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/safety.md");
        let page = fs::read_to_string(page).expect("the page");
        let is_row = |line: &&str| {
            let mut beginnings = beginnings.iter();
            beginnings.any(|beginning| line.starts_with(&format!("| {beginning} |")))
        };
        let shown: BTreeSet<String> = page.lines().filter(is_row).map(str::to_owned).collect();
        assert_eq!(shown, rows);
    }
}

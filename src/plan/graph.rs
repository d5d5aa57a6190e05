//! A graph of actions and the order between them, as a value.
//!
//! The nodes are actions, and barriers between steps. A node can only come after nodes that were added earlier, so there
//! are no cycles. Each edge says what the failure of the earlier node means for the later one.

/// Identifies a node in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// The relation of a node to an earlier node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// The later action is skipped if the earlier action fails or is skipped.
    Needs,
    /// The later action begins once the earlier action has ended, even if that failed or was skipped.
    Follows,
}

/// Nodes, each with the nodes that come before it.
#[derive(Debug, Clone)]
pub struct Graph<A> {
    nodes: Vec<GraphNode<A>>,
}

/// The condition under which a barrier between two steps opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// All actions before the barrier have ended.
    Ended,
    /// Each action before the barrier has ended, is postponed (its webhook cannot be called yet), or waits for a
    /// postponed action.
    EndedOrPostponed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind<A> {
    Action(A),
    Barrier(Barrier),
}

#[derive(Debug, Clone)]
pub struct GraphNode<A> {
    pub kind: NodeKind<A>,
    /// The earlier nodes, each with its edge.
    pub before: Vec<(NodeId, EdgeKind)>,
}

impl NodeId {
    /// Returns the index of the node in its graph.
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
    /// Adds an action that comes after the nodes `before`.
    ///
    /// # Panics
    ///
    /// If one of the nodes `before` is not in the graph yet.
    pub fn add(&mut self, action: A, before: impl IntoIterator<Item = (NodeId, EdgeKind)>) -> NodeId {
        self.push(NodeKind::Action(action), before.into_iter().collect())
    }

    /// Adds a barrier after the nodes `before`. A later node then needs one edge to the barrier, instead of one edge to
    /// each of them.
    pub fn add_barrier(&mut self, barrier: Barrier, before: impl IntoIterator<Item = NodeId>) -> NodeId {
        let edges = before.into_iter().map(|id| (id, EdgeKind::Follows));
        self.push(NodeKind::Barrier(barrier), edges.collect())
    }

    /// Returns the action with this ID; `None` for a barrier.
    pub fn action(&self, id: NodeId) -> Option<&A> {
        match &self.nodes[id.0].kind {
            NodeKind::Action(action) => Some(action),
            NodeKind::Barrier(_) => None,
        }
    }

    /// Returns all nodes in the order in which they were added: earlier ones first.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &GraphNode<A>)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (NodeId(index), node))
    }

    /// Keeps only the edges `Needs`, for dry runs: an action whose need failed is still skipped, but order no longer
    /// matters, since no dry run shows what another one would write.
    pub fn with_needs_only(mut self) -> Self {
        for node in &mut self.nodes {
            node.before.retain(|(_, edge)| *edge == EdgeKind::Needs);
        }
        self
    }

    fn push(&mut self, kind: NodeKind<A>, before: Vec<(NodeId, EdgeKind)>) -> NodeId {
        let id = NodeId(self.nodes.len());
        assert!(
            before.iter().all(|(earlier, _)| *earlier < id),
            "a node comes after nodes that are in the graph already"
        );
        self.nodes.push(GraphNode { kind, before });
        id
    }
}

impl<A> FromIterator<A> for Graph<A> {
    /// Creates a graph without edges: its actions may run in any order.
    fn from_iter<I: IntoIterator<Item = A>>(actions: I) -> Self {
        let nodes = actions.into_iter().map(|action| GraphNode {
            kind: NodeKind::Action(action),
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
        let mut lines = Vec::new();
        for (id, node) in self.nodes() {
            if let Some(action) = self.action(id) {
                let own = name(action);
                let needs = self.names_of_earlier(node, EdgeKind::Needs, &name);
                let follows = self.names_of_earlier(node, EdgeKind::Follows, &name);
                lines.push(format!("{own} <- {needs} | {follows}").trim_end().to_owned());
            }
        }
        lines
    }

    fn names_of_earlier(&self, node: &GraphNode<A>, edge: EdgeKind, name: &impl Fn(&A) -> String) -> String {
        let earlier = node.before.iter().filter(|(_, its)| *its == edge);
        let names: Vec<String> = earlier.map(|(id, _)| self.name_of(*id, name)).collect();
        names.join(", ")
    }

    fn name_of(&self, id: NodeId, name: &impl Fn(&A) -> String) -> String {
        if let Some(action) = self.action(id) {
            return name(action);
        }
        let earlier = self.nodes[id.0].before.iter();
        let actions = earlier.filter_map(|(id, _)| self.action(*id));
        format!("[{}]", actions.map(name).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
pub(super) mod safety_page_tests {
    //! Compares the table about failures in docs/safety.md with the edges of the graphs.

    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;

    use super::{EdgeKind, Graph};

    /// Checks that the rows that begin with one of `beginnings` are exactly the edges of these graphs.
    ///
    /// `name` returns what an action is called, `name_of_earlier` what a node before it is called, and `consequence` what
    /// the failure of an earlier action means for it.
    pub(in crate::plan) fn assert_page_has_exactly_the_edges<A>(
        graphs: &[Graph<A>],
        beginnings: &[&str],
        name: impl Fn(&A) -> &'static str,
        name_of_earlier: impl Fn(&A, Option<&A>) -> &'static str,
        consequence: impl Fn(&A, EdgeKind) -> &'static str,
    ) {
        let mut rows: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for graph in graphs {
            for (id, node) in graph.nodes() {
                let Some(action) = graph.action(id) else { continue };
                for (before, edge) in &node.before {
                    let earlier = graph.action(*before);
                    let row = rows
                        .entry((name(action), name_of_earlier(action, earlier)))
                        .or_default();
                    row.insert(earlier.map_or("it begins anyway", |earlier| consequence(earlier, *edge)));
                }
            }
        }
        let rows: BTreeSet<String> = rows
            .into_iter()
            .map(|((name, before), texts)| {
                let texts: Vec<&str> = texts.into_iter().collect();
                let consequence_text = match texts.as_slice() {
                    // Two texts mean that it depends on the earlier action. The first says that it begins anyway.
                    [first, _] => format!(
                        "{first}, unless what failed or was skipped is a new namespace or has dependencies of its own: \
                         then it is skipped"
                    ),
                    one => one.concat(),
                };
                format!("| {name} | {before} | {consequence_text} |")
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

//! Ranks by dependency: the step in which each object is applied or deleted, from the wave of its kind and from its
//! dependencies, which are the edges of a graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A step of the order. Steps are ordered by wave, and within a wave by depth: the length of the chain of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    wave: usize,
    depth: usize,
}

impl Rank {
    /// Returns the first rank of a wave.
    pub fn for_wave(wave: usize) -> Self {
        Self { wave, depth: 0 }
    }
}

/// Objects, which are known by their indices in a list of the caller, with their waves and edges.
#[derive(Debug, Default)]
pub struct DependencyGraph {
    /// The wave of each object.
    waves: Vec<usize>,
    /// For each object, the indices of the objects that an edge orders before it.
    predecessors: Vec<Vec<usize>>,
}

impl DependencyGraph {
    /// Creates a graph without edges.
    pub fn new(waves: impl Iterator<Item = usize>) -> Self {
        let waves: Vec<usize> = waves.collect();
        Self {
            predecessors: vec![Vec::new(); waves.len()],
            waves,
        }
    }

    /// Adds an edge: the object at index `earlier` comes before the object at index `later`.
    pub fn add_edge(&mut self, earlier: usize, later: usize) {
        self.predecessors[later].push(earlier);
    }

    /// Returns whether the edges order the object at index `earlier` before the object at index `later`.
    pub fn has_path(&self, earlier: usize, later: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![later];
        while let Some(index) = open.pop() {
            if index == earlier {
                return true;
            }
            if seen.insert(index) {
                open.extend(&self.predecessors[index]);
            }
        }
        false
    }

    /// Returns the rank of each object (Kahn's algorithm). An object has the first rank of its wave. If a predecessor
    /// has that rank or a later one, the object has the rank after its latest predecessor, in the wave of that
    /// predecessor.
    ///
    /// # Errors
    ///
    /// Returns the objects of a cycle: each comes after the next one, and the last one comes after the first.
    pub fn ranks(&self) -> Result<Vec<Rank>, Vec<usize>> {
        let mut ranks: Vec<Rank> = self.waves.iter().copied().map(Rank::for_wave).collect();
        // For each object, the number of predecessors without a final rank.
        let mut unranked: Vec<usize> = self.predecessors.iter().map(Vec::len).collect();
        let successors = self.successors();
        let mut ready: VecDeque<usize> = (0..unranked.len())
            .filter(|index| unranked[*index] == 0)
            .collect();
        let mut ranked_count = 0;
        while let Some(earlier) = ready.pop_front() {
            ranked_count += 1;
            let next_rank = Rank {
                depth: ranks[earlier].depth + 1,
                ..ranks[earlier]
            };
            for later in &successors[earlier] {
                if ranks[*later] <= ranks[earlier] {
                    ranks[*later] = next_rank;
                }
                unranked[*later] -= 1;
                if unranked[*later] == 0 {
                    ready.push_back(*later);
                }
            }
        }
        if ranked_count == ranks.len() {
            Ok(ranks)
        } else {
            Err(self.find_cycle(&unranked))
        }
    }

    /// Returns, for each object, the indices of the objects that an edge orders after it.
    fn successors(&self) -> Vec<Vec<usize>> {
        let mut successors = vec![Vec::new(); self.predecessors.len()];
        for (later, predecessors) in self.predecessors.iter().enumerate() {
            for earlier in predecessors {
                successors[*earlier].push(later);
            }
        }
        successors
    }

    /// Finds a cycle when no object without a rank is ready. Then each object without a rank has a predecessor without
    /// a rank, so a path from predecessor to predecessor comes to an object that it has passed before.
    fn find_cycle(&self, unranked_predecessor_counts: &[usize]) -> Vec<usize> {
        let mut path = Vec::new();
        let mut positions: BTreeMap<usize, usize> = BTreeMap::new();
        let mut next = unranked_predecessor_counts.iter().position(|count| *count > 0);
        while let Some(index) = next {
            if let Some(start) = positions.insert(index, path.len()) {
                path.drain(..start);
                break;
            }
            path.push(index);
            next = self.predecessors[index]
                .iter()
                .find(|earlier| unranked_predecessor_counts[**earlier] > 0)
                .copied();
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(waves: &[usize], edges: &[(usize, usize)]) -> DependencyGraph {
        let mut graph = DependencyGraph::new(waves.iter().copied());
        for (earlier, later) in edges {
            graph.add_edge(*earlier, *later);
        }
        graph
    }

    #[test]
    fn edges_win_over_waves() {
        type Pairs<'a> = &'a [(usize, usize)];
        let table: [(&[usize], Pairs, Pairs); 6] = [
            (&[0, 2, 1], &[], &[(0, 0), (2, 0), (1, 0)]),
            // The one before comes in an earlier wave anyhow.
            (&[0, 2], &[(0, 1)], &[(0, 0), (2, 0)]),
            (&[1, 1], &[(0, 1)], &[(1, 0), (1, 1)]),
            // A ConfigMap that depends on a Deployment.
            (&[2, 1], &[(0, 1)], &[(2, 0), (2, 1)]),
            (&[1, 1, 1], &[(0, 1), (1, 2)], &[(1, 0), (1, 1), (1, 2)]),
            (
                &[2, 1, 3, 2],
                &[(0, 1), (1, 2), (1, 3)],
                &[(2, 0), (2, 1), (3, 0), (2, 2)],
            ),
        ];
        for (waves, edges, expected) in table {
            let ranks = graph(waves, edges).ranks().expect("no cycle");
            let ranks: Vec<_> = ranks.iter().map(|rank| (rank.wave, rank.depth)).collect();
            assert_eq!(ranks, expected, "{waves:?} {edges:?}");
        }
    }

    /// All graphs of four objects: either each edge is kept, or there is a cycle, and it is one.
    #[test]
    fn every_edge_is_kept_or_there_is_a_cycle() {
        let pairs: Vec<(usize, usize)> = (0..4)
            .flat_map(|one| (0..4).map(move |other| (one, other)))
            .filter(|(one, other)| one != other)
            .collect();
        let mut cycles = 0;
        for chosen in 0_u32..1 << pairs.len() {
            let edges = pairs.iter().enumerate();
            let edges = edges.filter(|(bit, _)| chosen & (1 << bit) != 0);
            let edges: Vec<(usize, usize)> = edges.map(|(_, edge)| *edge).collect();
            let waves = [2, 0, 1, 1];
            match graph(&waves, &edges).ranks() {
                Ok(ranks) => {
                    for (earlier, later) in &edges {
                        assert!(ranks[*earlier] < ranks[*later], "{edges:?}");
                    }
                    for (place, wave) in waves.iter().enumerate() {
                        assert!(ranks[place].wave >= *wave, "{edges:?}");
                    }
                }
                Err(cycle) => {
                    cycles += 1;
                    assert!(cycle.len() > 1, "{edges:?}");
                    let next = cycle.iter().cycle().skip(1);
                    for (later, earlier) in cycle.iter().zip(next) {
                        assert!(edges.contains(&(*earlier, *later)), "{edges:?} {cycle:?}");
                    }
                }
            }
        }
        // 543 of the 4096 directed graphs have no cycle.
        assert_eq!(cycles, 4096 - 543);
    }

    #[test]
    fn a_path_leads_over_several_edges_and_ends_in_a_cycle() {
        let graph = graph(&[1; 5], &[(0, 1), (1, 2), (2, 1), (3, 2)]);
        assert!(graph.has_path(0, 2));
        assert!(!graph.has_path(2, 0));
        assert!(!graph.has_path(4, 2));
    }

    #[test]
    fn a_long_chain_is_ranked() {
        let edges: Vec<(usize, usize)> = (1..20_000).map(|place| (place - 1, place)).collect();
        let ranks = graph(&vec![1; 20_000], &edges).ranks().expect("no cycle");
        assert_eq!(
            ranks.last(),
            Some(&Rank {
                wave: 1,
                depth: 19_999
            })
        );
    }
}

//! Ranks by dependency: the step in which each object comes, from the wave of its kind and its edges.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A step of the order: first by waves, and within a wave by edges.
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

/// Objects by their places in a list, each with its wave and the objects that come before it.
#[derive(Debug, Default)]
pub struct DependencyGraph {
    waves: Vec<usize>,
    before: Vec<Vec<usize>>,
}

impl DependencyGraph {
    /// Creates a graph without edges.
    pub fn new(waves: impl Iterator<Item = usize>) -> Self {
        let waves: Vec<usize> = waves.collect();
        Self {
            before: vec![Vec::new(); waves.len()],
            waves,
        }
    }

    /// Lets the object at `earlier` come before that at `later`.
    pub fn order(&mut self, earlier: usize, later: usize) {
        self.before[later].push(earlier);
    }

    /// Returns the rank of each object. An object has the rank of its own wave, unless one before it
    /// comes as late: then it comes right after that.
    ///
    /// # Errors
    ///
    /// A cycle: each object comes after the next one, and the last after the first.
    pub fn ranks(&self) -> Result<Vec<Rank>, Vec<usize>> {
        let mut ranks: Vec<Rank> = self.waves.iter().copied().map(Rank::for_wave).collect();
        let mut missing: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut after = vec![Vec::new(); self.before.len()];
        for (later, before) in self.before.iter().enumerate() {
            for earlier in before {
                after[*earlier].push(later);
            }
        }
        let free = (0..missing.len()).filter(|place| missing[*place] == 0);
        let mut free: VecDeque<usize> = free.collect();
        let mut ranked = 0;
        while let Some(place) = free.pop_front() {
            ranked += 1;
            let next = Rank {
                depth: ranks[place].depth + 1,
                ..ranks[place]
            };
            for later in &after[place] {
                if ranks[*later] <= ranks[place] {
                    ranks[*later] = next;
                }
                missing[*later] -= 1;
                if missing[*later] == 0 {
                    free.push_back(*later);
                }
            }
        }
        if ranked == ranks.len() {
            Ok(ranks)
        } else {
            Err(self.cycle(&missing))
        }
    }

    /// Returns this object and all that are on a cycle with it.
    pub fn on_cycles_with(&self, place: usize) -> BTreeSet<usize> {
        let mut after = vec![Vec::new(); self.before.len()];
        for (later, before) in self.before.iter().enumerate() {
            for earlier in before {
                after[*earlier].push(later);
            }
        }
        let later = reachable(&after, place);
        let earlier = reachable(&self.before, place);
        later.intersection(&earlier).copied().collect()
    }

    /// Follows objects that could not be ranked until one comes again.
    fn cycle(&self, missing: &[usize]) -> Vec<usize> {
        let mut path = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut next = missing.iter().position(|count| *count > 0);
        while let Some(place) = next {
            if let Some(start) = places.insert(place, path.len()) {
                path.drain(..start);
                break;
            }
            path.push(place);
            let mut before = self.before[place].iter();
            next = before.find(|before| missing[**before] > 0).copied();
        }
        path
    }
}

/// Returns this place and all that edges lead to from it.
fn reachable(edges: &[Vec<usize>], place: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([place]);
    let mut new = vec![place];
    while let Some(place) = new.pop() {
        new.extend(edges[place].iter().filter(|next| reached.insert(**next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(waves: &[usize], edges: &[(usize, usize)]) -> DependencyGraph {
        let mut graph = DependencyGraph::new(waves.iter().copied());
        for (earlier, later) in edges {
            graph.order(*earlier, *later);
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
                    // Without the edges among all that are on cycles with it, none of them is.
                    let all = graph(&waves, &edges).on_cycles_with(cycle[0]);
                    assert!(cycle.iter().all(|place| all.contains(place)), "{edges:?}");
                    let is_left = |edge: &&(usize, usize)| !(all.contains(&edge.0) && all.contains(&edge.1));
                    let left: Vec<_> = edges.iter().filter(is_left).copied().collect();
                    for place in cycle {
                        let alone = graph(&waves, &left).on_cycles_with(place);
                        assert_eq!(alone.len(), 1, "{edges:?}");
                    }
                }
            }
        }
        // 543 of the 4096 directed graphs have no cycle.
        assert_eq!(cycles, 4096 - 543);
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

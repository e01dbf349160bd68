//! Strongly connected members of one folder of modules.

use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Modules of one folder each of which reaches all others.
pub(crate) struct Cycle {
    /// Their paths from the crate's root, sorted.
    pub(crate) members: Vec<String>,
    /// A reference for each edge between them.
    pub(crate) because: Vec<String>,
}

type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// All cycles of a crate, in every folder of modules.
pub(crate) fn all(tree: &Tree) -> Vec<Cycle> {
    let mut folders: BTreeMap<Vec<String>, Edges> = BTreeMap::new();
    for (from, to, place) in tree.references() {
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let (Some(user), Some(used)) = (from.get(shared), to.get(shared)) else { continue };
        let edges = folders.entry(from[..shared].to_vec()).or_default();
        edges.entry(user.clone()).or_default().entry(used.clone()).or_insert(place);
    }
    folders.iter().flat_map(|(folder, edges)| of_folder(folder, edges)).collect()
}

fn of_folder(folder: &[String], edges: &Edges) -> Vec<Cycle> {
    let reached = edges.keys().map(|from| (from.clone(), reachable(from, edges))).collect::<BTreeMap<_, _>>();
    let mut seen = BTreeSet::new();
    let mut cycles = Vec::new();
    for (from, to) in &reached {
        if !to.contains(from) || seen.contains(from) {
            continue;
        }
        let together = |other: &&String| reached.get(*other).is_some_and(|back| back.contains(from));
        let members = to.iter().filter(together).cloned().collect::<BTreeSet<_>>();
        seen.extend(members.clone());
        let because = members.iter().flat_map(|user| {
            let used = edges.get(user).into_iter().flatten().filter(|(used, _)| members.contains(*used));
            used.map(move |(used, place)| format!("  {user} → {used}: {place}"))
        });
        let because = because.collect();
        let path = |name: String| folder.iter().cloned().chain([name]).collect::<Vec<_>>().join("::");
        cycles.push(Cycle { because, members: members.into_iter().map(path).collect() });
    }
    cycles
}

fn reachable(from: &str, edges: &Edges) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(next) = open.pop() {
        for to in edges.get(&next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    reached
}

//! The stages of the program stand in one order, and each imports only those before it; no file
//! is too long. Both are read from the source.

mod source;
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use source::{Code, named_by};

use crate::packaging::CHECKOUT;

/// The top-level modules from left to right: each may import those to its left. A new module
/// needs a place here.
const ORDER: &[&str] = &[
    "model",
    "error",
    "find_program",
    "regular_file",
    "cluster",
    "manifest",
    "compare",
    "event",
    "import",
    "plan",
    "read",
    "verify",
    "execute",
    "wait",
    "report",
    "cli",
    "settings",
    "session",
    "commands",
];

/// The most lines of a file; `tests.rs` may have more.
const MOST_LINES: usize = 450;

/// One import of a top-level module by another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: String,
    to: String,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// Each edge with the files that have it.
type Edges = BTreeMap<Edge, BTreeSet<PathBuf>>;

/// The source files of a crate, by their path below `src`.
type Sources = BTreeMap<PathBuf, String>;

/// The path of the module in this file; none of the crate itself.
fn module_of(file: &Path) -> Vec<String> {
    let mut segments: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|segment| segment.to_string_lossy().into_owned())
        .collect();
    segments.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    segments
}

/// All imports between top-level modules, tests left out.
fn edges(sources: &Sources) -> Edges {
    let codes: BTreeMap<Vec<String>, (&PathBuf, Code)> = sources
        .iter()
        .map(|(file, source)| (module_of(file), (file, Code::of(source))))
        .collect();
    let tests: BTreeSet<Vec<String>> = codes
        .iter()
        .flat_map(|(module, (_, code))| {
            let child = |name: &String| [module.as_slice(), std::slice::from_ref(name)].concat();
            code.test_modules.iter().map(child)
        })
        .collect();
    let mut edges = Edges::new();
    for (module, (file, code)) in &codes {
        let is_test = (1..=module.len()).any(|length| tests.contains(&module[..length]));
        let Some(from) = module.first().filter(|_| !is_test) else {
            continue;
        };
        for to in named_by(&code.tokens, module) {
            if to != *from {
                let edge = Edge {
                    from: from.clone(),
                    to,
                };
                edges.entry(edge).or_default().insert((*file).clone());
            }
        }
    }
    edges
}

/// Modules without a place in the order, whether they import or are imported.
fn without_place(edges: &Edges, sources: &Sources, order: &[&str]) -> BTreeSet<String> {
    let modules = sources
        .keys()
        .filter_map(|file| module_of(file).into_iter().next());
    let named = edges.keys().flat_map(|edge| [edge.from.clone(), edge.to.clone()]);
    modules
        .chain(named)
        .filter(|module| !order.contains(&module.as_str()))
        .collect()
}

/// The imports of a stage to the right.
fn to_the_right<'a>(edges: &'a Edges, order: &[&str]) -> BTreeMap<&'a Edge, &'a BTreeSet<PathBuf>> {
    let place = |module: &str| order.iter().position(|stage| *stage == module);
    edges
        .iter()
        .filter(|(edge, _)| place(&edge.from) < place(&edge.to))
        .collect()
}

/// A way from a module back to itself.
fn cycle(edges: &BTreeSet<&Edge>) -> Option<Vec<String>> {
    fn visit(way: &mut Vec<String>, done: &mut BTreeSet<String>, edges: &BTreeSet<&Edge>) -> bool {
        let Some(last) = way.last().cloned() else {
            return false;
        };
        for edge in edges.iter().filter(|edge| edge.from == last) {
            let begin = way.iter().position(|module| *module == edge.to);
            if !done.contains(&edge.to) || begin.is_some() {
                way.push(edge.to.clone());
                if let Some(begin) = begin {
                    way.drain(..begin);
                    return true;
                }
                if visit(way, done, edges) {
                    return true;
                }
                way.pop();
            }
        }
        done.insert(last);
        false
    }
    let mut done = BTreeSet::new();
    edges.iter().find_map(|edge| {
        let mut way = vec![edge.from.clone()];
        visit(&mut way, &mut done, edges).then_some(way)
    })
}

/// The source files of the program.
fn program() -> Sources {
    fn add(directory: &Path, root: &Path, sources: &mut Sources) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                add(&path, root, sources);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                let file = path.strip_prefix(root).expect("below the root").to_owned();
                sources.insert(file, text);
            }
        }
    }
    let root = Path::new(CHECKOUT).join("src");
    let mut sources = Sources::new();
    add(&root, &root, &mut sources);
    sources
}

fn lines<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let lines: Vec<String> = items.into_iter().map(|item| format!("\n  {item}")).collect();
    lines.concat()
}

#[test]
fn each_stage_imports_stages_to_its_left() {
    let sources = program();
    let edges = edges(&sources);
    let unknown = without_place(&edges, &sources, ORDER);
    assert!(
        unknown.is_empty(),
        "modules without a place in ORDER:{}",
        lines(&unknown)
    );

    let wrong: Vec<String> = to_the_right(&edges, ORDER)
        .iter()
        .flat_map(|(edge, files)| {
            let line = move |file: &PathBuf| format!("{edge} in src/{}", file.display());
            files.iter().map(line)
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "imports of a stage to the right:{}",
        lines(&wrong)
    );
    assert_eq!(cycle(&edges.keys().collect()), None, "a cycle of modules");
}

#[test]
fn no_file_is_longer_than_a_person_reads() {
    let long: Vec<String> = program()
        .into_iter()
        .filter(|(file, _)| !file.ends_with("tests.rs"))
        .map(|(file, text)| (file, text.lines().count()))
        .filter(|(_, count)| *count > MOST_LINES)
        .map(|(file, count)| format!("src/{}: {count}", file.display()))
        .collect();
    assert!(long.is_empty(), "files above {MOST_LINES} lines:{}", lines(&long));
}
